//! One array in NumPy's `.npy` format: a header that is a Python dictionary of three entries, then the elements.
//!
//! The header is the format's specification in <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use std::io::Read;

use crate::cli::lab::reduce::tensor::{Shape, Tensor, element_bytes};
use crate::error::{Error, Result};
use crate::plan::DType;

const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy itself reads no longer header from a file that it does not trust.
const LONGEST_HEADER: u32 = 10_000;
/// Headers are padded so that the elements start at multiples of this.
const ALIGNMENT: usize = 64;

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    dtype: DType,
    big_endian: bool,
    fortran_order: bool,
    shape: Shape,
}

/// Reads an array to its end, which must be that of `reader` too. It is said to have `size` bytes.
///
/// # Errors
/// Names what is wrong, not the array. Memory is taken for no more than `size` bytes.
pub(crate) fn read(name: &str, reader: impl Read, size: u64) -> Result<Tensor> {
    // One byte more, to see that there is none.
    let mut reader = reader.take(size.saturating_add(1));
    let header = parse(&header_text(&mut reader)?)?;
    let bytes = header.shape.bytes(header.dtype)?;
    let wrong = |has: String| {
        Error::invalid(format!(
            "{} elements of {} take {bytes} bytes, the array has {has}",
            header.shape,
            header.dtype.name()
        ))
    };
    let said = reader.limit().checked_sub(1);
    if said != Some(bytes) {
        return Err(wrong(said.unwrap_or(0).to_string()));
    }
    let mut data = Vec::new();
    let room = usize::try_from(reader.limit()).unwrap_or(usize::MAX);
    data.try_reserve_exact(room)
        .map_err(|error| Error::invalid(format!("no memory for {bytes} bytes: {error}")))?;
    let read = reader.read_to_end(&mut data);
    read.map_err(|error| Error::invalid(error.to_string()))?;
    if data.len() as u64 != bytes {
        return Err(wrong(match data.len() as u64 > bytes {
            true => "more".to_owned(),
            false => data.len().to_string(),
        }));
    }
    if header.big_endian {
        let elements = data.chunks_exact_mut(element_bytes(header.dtype));
        elements.for_each(<[u8]>::reverse);
    }
    if header.fortran_order {
        data = transposed(&data, header.shape.sizes(), element_bytes(header.dtype));
    }
    Ok(Tensor {
        name: name.to_owned(),
        shape: header.shape,
        dtype: header.dtype,
        data,
    })
}

/// The bytes of an array up to its elements, as NumPy writes them in C order.
///
/// # Errors
/// For bf16, which NumPy does not have.
pub(crate) fn header(tensor: &Tensor) -> Result<Vec<u8>> {
    let descr = match tensor.dtype {
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::BF16 => {
            return Err(Error::unsupported(
                "NumPy's formats have no bf16: write a .safetensors file",
            ));
        }
    };
    let shape = tensor.shape.python();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let fixed = MAGIC.len() + 4;
    let whole = (fixed + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.push_str(&" ".repeat(whole - fixed - text.len() - 1));
    text.push('\n');
    let length = u16::try_from(text.len())
        .map_err(|_| Error::unsupported("the array has too many dimensions"))?;
    Ok([MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat())
}

fn header_text(reader: &mut impl Read) -> Result<String> {
    let no_array = |_| Error::invalid("it does not start like an array (.npy)");
    let mut start = [0; 8];
    reader.read_exact(&mut start).map_err(no_array)?;
    if !start.starts_with(MAGIC) {
        return Err(Error::invalid("it does not start like an array (.npy)"));
    }
    let cut_off = |error| Error::invalid(format!("its header is cut off: {error}"));
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            reader.read_exact(&mut length).map_err(cut_off)?;
            u32::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            reader.read_exact(&mut length).map_err(cut_off)?;
            u32::from_le_bytes(length)
        }
        version => {
            return Err(Error::unsupported(format!(
                "version {version} of the .npy format, read are 1 to 3"
            )));
        }
    };
    if length > LONGEST_HEADER {
        return Err(Error::invalid(format!(
            "its header has {length} bytes, at most {LONGEST_HEADER} are read"
        )));
    }
    let mut text = vec![0; length as usize];
    reader.read_exact(&mut text).map_err(cut_off)?;
    String::from_utf8(text).map_err(|_| Error::invalid("its header is not text"))
}

fn parse(text: &str) -> Result<Header> {
    let mut literal = Literal { rest: text };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    literal.expect('{')?;
    while !literal.accept('}') {
        let key = literal.string()?;
        literal.expect(':')?;
        match key {
            "descr" => descr = Some(literal.descr()?),
            "fortran_order" => fortran_order = Some(literal.boolean()?),
            "shape" => shape = Some(literal.tuple()?),
            _ => return Err(Error::invalid(format!("its header has an entry {key:?}"))),
        }
        if !literal.accept(',') {
            literal.expect('}')?;
            break;
        }
    }
    literal.end()?;
    let missing = |entry| Error::invalid(format!("its header has no entry {entry:?}"));
    let descr = descr.ok_or_else(|| missing("descr"))?;
    let (dtype, big_endian) = element_type(descr)?;
    Ok(Header {
        dtype,
        big_endian,
        fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
        shape: Shape::new(shape.ok_or_else(|| missing("shape"))?),
    })
}

/// The element type of NumPy's name for it, and whether its bytes are in big-endian order.
fn element_type(descr: &str) -> Result<(DType, bool)> {
    let big_endian = descr.starts_with('>');
    match descr {
        "<f4" | ">f4" => Ok((DType::F32, big_endian)),
        "<f2" | ">f2" => Ok((DType::F16, big_endian)),
        "|O" | "O" => Err(Error::unsupported(
            "it holds Python objects (dtype '|O'), which are never read",
        )),
        _ => Err(Error::unsupported(format!(
            "dtype {descr:?}; arrays of float32 and float16 are reduced, bf16 comes in .safetensors files"
        ))),
    }
}

/// Elements of a Fortran-ordered array of these sizes in C order.
fn transposed(data: &[u8], sizes: &[u64], element: usize) -> Vec<u8> {
    let mut strides = Vec::with_capacity(sizes.len());
    let mut stride = element;
    for &size in sizes {
        strides.push(stride);
        stride = stride.saturating_mul(usize::try_from(size).unwrap_or(usize::MAX));
    }
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0_u64; sizes.len()];
    let mut at = 0;
    while out.len() < data.len() {
        out.extend_from_slice(&data[at..at + element]);
        // The next index, the last dimension first.
        for dimension in (0..sizes.len()).rev() {
            index[dimension] += 1;
            at += strides[dimension];
            if index[dimension] < sizes[dimension] {
                break;
            }
            at -= strides[dimension] * usize::try_from(index[dimension]).unwrap_or(0);
            index[dimension] = 0;
        }
    }
    out
}

/// What is left of a Python literal.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn accept(&mut self, token: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: char) -> Result<()> {
        match self.accept(token) {
            true => Ok(()),
            false => Err(self.wrong(&format!("{token:?}"))),
        }
    }

    fn wrong(&self, wanted: &str) -> Error {
        let found: String = self.rest.chars().take(20).collect();
        Error::invalid(format!("its header has {found:?} where {wanted} belongs"))
    }

    fn string(&mut self) -> Result<&'a str> {
        let quote = match (self.accept('\''), self.rest) {
            (true, _) => '\'',
            (false, _) if self.accept('"') => '"',
            _ => return Err(self.wrong("a string")),
        };
        let (text, rest) = self
            .rest
            .split_once(quote)
            .ok_or_else(|| self.wrong("the end of a string"))?;
        self.rest = rest;
        Ok(text)
    }

    fn descr(&mut self) -> Result<&'a str> {
        if self.accept('[') {
            return Err(Error::unsupported(
                "it holds records of several fields (a structured dtype)",
            ));
        }
        self.string()
    }

    fn boolean(&mut self) -> Result<bool> {
        match self.word() {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(self.wrong("True or False")),
        }
    }

    fn tuple(&mut self) -> Result<Vec<u64>> {
        self.expect('(')?;
        let mut sizes = Vec::new();
        while !self.accept(')') {
            let word = self.word();
            // Python 2 wrote long numbers with an L.
            let digits = word.strip_suffix('L').unwrap_or(word);
            let size = digits.parse();
            sizes
                .push(size.map_err(|_| Error::invalid(format!("its header has a size {word:?}")))?);
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sizes)
    }

    fn word(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '-');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn end(&mut self) -> Result<()> {
        match self
            .rest
            .trim_matches(|c: char| c.is_whitespace() || c == '\0')
        {
            "" => Ok(()),
            _ => Err(self.wrong("nothing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Header {
        parse(text).unwrap()
    }

    fn refused(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn headers_are_read_in_every_spelling() {
        let header = parsed("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n");
        assert_eq!((header.dtype, header.big_endian), (DType::F32, false));
        assert!(!header.fortran_order);
        assert_eq!(header.shape.sizes(), [3, 4]);
        let header = parsed("{\"shape\":(7L,),\"fortran_order\":True,\"descr\":\">f2\"}");
        assert_eq!((header.dtype, header.big_endian), (DType::F16, true));
        assert!(header.fortran_order);
        assert_eq!(header.shape.sizes(), [7]);
        let header = parsed("{'descr': '<f2', 'fortran_order': False, 'shape': ()}");
        assert!(header.shape.sizes().is_empty());
    }

    #[test]
    fn wrong_headers_are_refused_with_the_reason() {
        let with = |descr: &str, shape: &str| {
            refused(&format!(
                "{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"
            ))
        };
        assert!(with("'|O'", "()").contains("Python objects"));
        assert!(with("'<f8'", "()").contains("\"<f8\""));
        assert!(with("[('a', '<f4')]", "()").contains("structured"));
        assert!(with("'<f4'", "(-1,)").contains("\"-1\""));
        assert!(with("'<f4'", "(99999999999999999999,)").contains("size"));
        assert!(with("'<f4'", "(1 2)").contains("')'"));
        assert!(refused("{'descr': '<f4', 'shape': ()}").contains("\"fortran_order\""));
        assert!(refused("{'descr': '<f4").contains("end of a string"));
        assert!(refused("{'desc': '<f4'}").contains("\"desc\""));
        assert!(refused("").contains("'{'"));
        assert!(refused("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x").contains('x'));
    }

    #[test]
    fn written_headers_are_aligned_and_read_again() {
        for sizes in [vec![], vec![0], vec![5], vec![3, 4, 1], vec![1; 32]] {
            let tensor = Tensor {
                name: "t".to_owned(),
                data: vec![7; 2 * sizes.iter().product::<usize>()],
                shape: Shape::new(sizes.iter().map(|&size| size as u64).collect()),
                dtype: DType::F16,
            };
            let mut bytes = header(&tensor).unwrap();
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            bytes.extend(&tensor.data);
            let size = bytes.len() as u64;
            assert_eq!(read("t", bytes.as_slice(), size).unwrap(), tensor);
        }
    }

    #[test]
    fn fortran_order_is_turned_into_c_order() {
        // Element (i, j, k) of a 2 x 3 x 2 array is 100 i + 10 j + k.
        let value = |i: u8, j: u8, k: u8| 100 * i + 10 * j + k;
        let mut fortran = Vec::new();
        for (k, j, i) in
            (0..2).flat_map(|k| (0..3).flat_map(move |j| (0..2).map(move |i| (k, j, i))))
        {
            fortran.push(value(i, j, k));
        }
        let mut c = Vec::new();
        for (i, j, k) in
            (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..2).map(move |k| (i, j, k))))
        {
            c.push(value(i, j, k));
        }
        assert_eq!(transposed(&fortran, &[2, 3, 2], 1), c);
        assert_eq!(transposed(&[1, 2, 3, 4], &[], 4), [1, 2, 3, 4]);
        assert!(transposed(&[], &[3, 0], 4).is_empty());
    }
}
