//! Kernel binaries made by hand, for tests: what the toolkit's linker makes, without code, and with any fault in it.

/// The file to write.
#[derive(Clone)]
pub(crate) struct Sample {
    /// Bytes 4 and 5 of the file: class and order of bytes.
    pub(crate) class: u8,
    pub(crate) order: u8,
    /// Kind of file: 1 to be linked, 2 linked.
    pub(crate) kind: u16,
    pub(crate) machine: u16,
    pub(crate) symbol_table: bool,
    pub(crate) kernels: Vec<Kernel>,
}

#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    /// Binding and type of its symbol, in the upper and the lower four bits.
    pub(crate) info: u8,
    pub(crate) visibility: u8,
    /// Section of its symbol.
    pub(crate) section: u16,
    /// What its section `.ascend.meta.` holds.
    pub(crate) meta: Option<Vec<u8>>,
}

/// An entry that says which cores a kernel runs on: type 1 with the four bytes of `kind`.
pub(crate) fn entry(kind: u32) -> Vec<u8> {
    let mut bytes = vec![1, 0, 4, 0];
    bytes.extend(kind.to_le_bytes());
    bytes
}

/// The lowest bytes of a number, little-endian.
fn low<const COUNT: usize>(number: usize) -> [u8; COUNT] {
    std::array::from_fn(|i| number.to_le_bytes()[i])
}

impl Sample {
    /// Kernels of these names for vector cores.
    pub(crate) fn new(kernels: &[&str]) -> Self {
        let kernel = |name: &&str| Kernel {
            name: (*name).to_owned(),
            info: 0x12,
            visibility: 0,
            section: 1,
            meta: Some(entry(3)),
        };
        Sample {
            class: 2,
            order: 1,
            kind: 2,
            machine: 0x1029,
            symbol_table: true,
            kernels: kernels.iter().map(kernel).collect(),
        }
    }

    /// The file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut file = vec![0; 64];
        let mut sections = Sections::default();
        sections.add(&mut file, "", 0, &[], [0, 0]);
        sections.add(&mut file, ".text", 1, &[0; 16], [0, 0]);
        for kernel in &self.kernels {
            if let Some(meta) = &kernel.meta {
                let name = format!(".ascend.meta.{}", kernel.name);
                sections.add(&mut file, &name, 1, meta, [0, 0]);
            }
        }
        if self.symbol_table {
            let (mut symbols, mut names) = (vec![0; 24], vec![0]);
            for kernel in &self.kernels {
                symbols.extend(low::<4>(names.len()));
                symbols.extend([kernel.info, kernel.visibility]);
                symbols.extend(kernel.section.to_le_bytes());
                symbols.extend([0; 16]);
                names.extend(kernel.name.bytes().chain([0]));
            }
            let link = sections.count() as u64 + 1;
            sections.add(&mut file, ".symtab", 2, &symbols, [link, 24]);
            sections.add(&mut file, ".strtab", 3, &names, [0, 0]);
        }
        sections.end(&mut file);
        let (count, start) = (sections.count(), file.len() as u64);
        file.extend(&sections.headers);
        let mut header = vec![0x7f, b'E', b'L', b'F', self.class, self.order, 1];
        header.resize(16, 0);
        header.extend(self.kind.to_le_bytes());
        header.extend(self.machine.to_le_bytes());
        header.extend(1_u32.to_le_bytes());
        header.extend([0; 16]);
        header.extend(start.to_le_bytes());
        header.extend([0; 4]);
        for number in [64, 56, 0, 64, count, count - 1] {
            header.extend(low::<2>(number));
        }
        file[..64].copy_from_slice(&header);
        file
    }
}

/// The table of sections and their names.
#[derive(Default)]
struct Sections {
    headers: Vec<u8>,
    names: Vec<u8>,
}

impl Sections {
    fn count(&self) -> usize {
        self.headers.len() / 64
    }

    /// A section at the next multiple of 8 bytes, `more` is what it belongs to and the size of its entries.
    fn add(&mut self, file: &mut Vec<u8>, name: &str, kind: u32, content: &[u8], more: [u64; 2]) {
        file.resize(file.len().next_multiple_of(8), 0);
        let place = file.len() as u64;
        file.extend(content);
        self.head(name, kind, place, content.len() as u64, more);
    }

    fn head(&mut self, name: &str, kind: u32, place: u64, size: u64, more: [u64; 2]) {
        self.headers.extend(low::<4>(self.names.len()));
        self.names.extend(name.bytes().chain([0]));
        self.headers.extend(kind.to_le_bytes());
        for number in [0, 0, place, size] {
            self.headers.extend(number.to_le_bytes());
        }
        self.headers.extend(more[0].to_le_bytes());
        self.headers.extend(8_u64.to_le_bytes());
        self.headers.extend(more[1].to_le_bytes());
    }

    /// The section with their names, and room in front of the table.
    fn end(&mut self, file: &mut Vec<u8>) {
        const NAME: &str = ".shstrtab";
        let place = file.len() as u64;
        let size = self.names.len() + NAME.len() + 1;
        self.head(NAME, 3, place, size as u64, [0, 0]);
        file.extend(&self.names);
        file.resize(file.len().next_multiple_of(8), 0);
    }
}
