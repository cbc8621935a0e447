//! Reads a kernel binary before an NPU does: it must be code for an NPU, have the kernels, and say that they run on vector
//! cores.
//!
//! What the vendor's runtime makes of such a file is in its open sources (hicann/runtime at 681ef76,
//! src/runtime/core/src/kernel): `elf.cc` takes 64-bit files and global functions that are not hidden from the first
//! symbol table, and from a section `.ascend.meta.<kernel>` entries of type, length and value, the last of a type
//! counting; `program.cc` (GetKernelTypeAndMixType) takes the kind of a kernel from the entry of type 1, and a kernel
//! without one for one of the cube cores where chips have both. It does not look at the machine: 0x1029 is what the
//! vendor's linker writes (src/dfx/adump/adump/exception/dump_ELF.cpp; published binaries of custom operators).

use std::collections::BTreeMap;

use object::Endianness;
use object::elf::{
    EM_AARCH64, EM_NONE, EM_X86_64, ET_REL, FileHeader64, SHN_UNDEF, SHT_SYMTAB, STB_GLOBAL,
    STT_FUNC, STV_HIDDEN,
};
use object::read::elf::{FileHeader, SectionHeader, Sym};

/// The machine of code for the cores of an NPU.
const MACHINE: u16 = 0x1029;

/// Beginning of the name of a section that belongs to a kernel.
const META: &[u8] = b".ascend.meta.";

/// Type of the entry with a kernel's kind.
const KIND: u16 = 1;

/// The kind of a kernel that runs on vector cores alone.
const VECTOR: u32 = 3;

/// A kernel binary, as far as it tells of kernels.
pub(super) struct KernelFile<'data> {
    /// Symbols with a name, and whether the runtime takes them for kernels.
    symbols: BTreeMap<&'data [u8], bool>,
    /// Kinds of kernels; nothing where the section has no whole entry of that type.
    kinds: BTreeMap<&'data [u8], Option<u32>>,
}

impl<'data> KernelFile<'data> {
    /// Reads `content`. The error says what is wrong with it, as a predicate of the file.
    pub(super) fn parse(content: &'data [u8]) -> Result<Self, String> {
        let damaged = |error: object::Error| format!("is a damaged file: {error}");
        let (class, order) = match content {
            [0x7f, b'E', b'L', b'F', class, order, ..] if content.len() >= 64 => (class, order),
            [0x7f, b'E', b'L', b'F', ..] | [] => {
                return Err("is too short for a kernel binary".to_owned());
            }
            _ => return Err("is no kernel binary".to_owned()),
        };
        if *class != 2 {
            return Err("is no 64-bit file, as kernel binaries are".to_owned());
        }
        if *order != 1 {
            return Err("is not little-endian, as kernel binaries are".to_owned());
        }
        let header = FileHeader64::<Endianness>::parse(content).map_err(damaged)?;
        let endian = header.endian().map_err(damaged)?;
        match header.e_machine(endian) {
            MACHINE => {}
            EM_NONE | EM_X86_64 | EM_AARCH64 => {
                return Err("is code for a host, not for an NPU".to_owned());
            }
            other => {
                return Err(format!(
                    "is code for machine {other:#x}, not for an NPU ({MACHINE:#x})"
                ));
            }
        }
        if header.e_type(endian) == ET_REL {
            return Err("is not linked".to_owned());
        }
        let sections = header.sections(endian, content).map_err(damaged)?;
        let table = sections
            .symbols(endian, content, SHT_SYMTAB)
            .map_err(damaged)?;
        if table.is_empty() {
            return Err("has no symbol table".to_owned());
        }
        let mut symbols = BTreeMap::new();
        for symbol in table.iter() {
            let name = table.symbol_name(endian, symbol).map_err(damaged)?;
            let kernel = symbol.st_type() == STT_FUNC
                && symbol.st_bind() == STB_GLOBAL
                && symbol.st_visibility() != STV_HIDDEN
                && symbol.st_shndx(endian) != SHN_UNDEF;
            *symbols.entry(name).or_insert(false) |= kernel;
        }
        let mut kinds = BTreeMap::new();
        for section in sections.iter() {
            let name = sections.section_name(endian, section).map_err(damaged)?;
            if let Some(kernel) = name.strip_prefix(META) {
                let entries = section.data(endian, content).map_err(damaged)?;
                kinds.insert(kernel, kind(entries));
            }
        }
        Ok(KernelFile { symbols, kinds })
    }

    /// Checks that the file has `kernels` and, where chips have two sorts of cores (`with_kinds`), says that they run on vector
    /// cores. The error is a predicate of the file.
    pub(super) fn check<'a>(
        &self,
        kernels: impl IntoIterator<Item = &'a str>,
        with_kinds: bool,
    ) -> Result<(), String> {
        for kernel in kernels {
            match self.symbols.get(kernel.as_bytes()) {
                Some(true) => {}
                Some(false) => {
                    return Err(format!(
                        "has {kernel}, but not as a function that others can see"
                    ));
                }
                None => return Err(format!("has no kernel {kernel}")),
            }
            if with_kinds {
                self.check_kind(kernel)?;
            }
        }
        Ok(())
    }

    fn check_kind(&self, kernel: &str) -> Result<(), String> {
        let place = match self.kinds.get(kernel.as_bytes()) {
            Some(Some(VECTOR)) => return Ok(()),
            Some(Some(2 | 6)) => "on cube cores".to_owned(),
            Some(Some(4 | 5)) => "on cube and vector cores together".to_owned(),
            Some(Some(kind)) => format!("as kind {kind}"),
            Some(None) => {
                return Err(format!(
                    "has a damaged section .ascend.meta.{kernel}, which is to say which cores run {kernel}"
                ));
            }
            None => {
                return Err(format!(
                    "does not say that {kernel} runs on vector cores (no section .ascend.meta.{kernel}): an NPU would \
                     run it on cube cores"
                ));
            }
        };
        Err(format!(
            "has {kernel} run {place}, not on vector cores (kind {VECTOR})"
        ))
    }
}

/// The value of the last entry of type [`KIND`]: type and length in 2 bytes each, value.
fn kind(mut entries: &[u8]) -> Option<u32> {
    let mut found = None;
    while let Some((&[type0, type1, length0, length1], rest)) = entries.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([length0, length1]));
        let Some((value, rest)) = rest.split_at_checked(length) else {
            break;
        };
        if u16::from_le_bytes([type0, type1]) == KIND {
            found = value.try_into().ok().map(u32::from_le_bytes);
        }
        entries = rest;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::elf_sample::{Sample, entry};
    use super::*;

    const KERNELS: [&str; 2] = ["gram", "pack"];

    fn sample() -> Sample {
        Sample::new(&KERNELS)
    }

    fn check(content: &[u8], with_kinds: bool) -> Result<(), String> {
        KernelFile::parse(content)?.check(KERNELS, with_kinds)
    }

    /// What is wrong with a sample that `change` has spoilt; before, nothing is.
    fn fault(change: impl FnOnce(&mut Sample)) -> String {
        let mut sample = sample();
        check(&sample.bytes(), true).unwrap();
        change(&mut sample);
        check(&sample.bytes(), true).unwrap_err()
    }

    #[test]
    fn kernels_for_vector_cores_are_taken_at_any_address() {
        let mut shifted = vec![0];
        shifted.extend(sample().bytes());
        check(&shifted[1..], true).unwrap();
        // What else the compiler says about a kernel is passed over, before and behind; the last word counts.
        let mut sample = sample();
        let mut entries = vec![4, 0, 3, 0, 9, 9, 9];
        entries.extend([entry(2), entry(3), vec![12, 0, 0, 0], vec![1, 0, 99, 0]].concat());
        sample.kernels[0].meta = Some(entries);
        check(&sample.bytes(), true).unwrap();
    }

    #[test]
    fn what_is_no_elf_file_is_refused() {
        assert_eq!(
            check(b"kernels of a chip", true).unwrap_err(),
            "is no kernel binary"
        );
        for short in [&b""[..], b"\x7fELF\x02\x01"] {
            assert_eq!(
                check(short, true).unwrap_err(),
                "is too short for a kernel binary"
            );
        }
    }

    #[test]
    fn files_of_32_bits_are_refused() {
        let fault = fault(|sample| sample.class = 1);
        assert!(fault.contains("no 64-bit file"), "{fault}");
    }

    #[test]
    fn big_endian_files_are_refused() {
        let fault = fault(|sample| sample.order = 2);
        assert!(fault.contains("not little-endian"), "{fault}");
    }

    #[test]
    fn code_for_other_machines_is_refused() {
        for host in [0, 62, 183] {
            let fault = fault(|sample| sample.machine = host);
            assert_eq!(fault, "is code for a host, not for an NPU");
        }
        let fault = fault(|sample| sample.machine = 243);
        assert_eq!(fault, "is code for machine 0xf3, not for an NPU (0x1029)");
    }

    #[test]
    fn files_that_are_not_linked_are_refused() {
        assert_eq!(fault(|sample| sample.kind = 1), "is not linked");
    }

    #[test]
    fn files_without_symbols_are_refused() {
        let fault = fault(|sample| sample.symbol_table = false);
        assert_eq!(fault, "has no symbol table");
    }

    #[test]
    fn a_missing_kernel_is_named() {
        let fault = fault(|sample| sample.kernels[1].name = "packs".to_owned());
        assert_eq!(fault, "has no kernel pack");
    }

    #[test]
    fn kernels_that_the_runtime_does_not_see_are_named() {
        // A local function, a global object, a hidden function, an undefined one.
        for (info, visibility, section) in [(0x02, 0, 1), (0x11, 0, 1), (0x12, 2, 1), (0x12, 0, 0)]
        {
            let fault = fault(|sample| {
                let kernel = &mut sample.kernels[1];
                (kernel.info, kernel.visibility, kernel.section) = (info, visibility, section);
            });
            assert_eq!(fault, "has pack, but not as a function that others can see");
        }
    }

    #[test]
    fn kernels_without_a_kind_are_refused_where_there_are_cube_cores() {
        let said = fault(|sample| sample.kernels[1].meta = None);
        assert!(
            said.contains("no section .ascend.meta.pack") && said.contains("cube cores"),
            "{said}"
        );
        let mut sample = sample();
        for kernel in &mut sample.kernels {
            kernel.meta = None;
        }
        check(&sample.bytes(), false).unwrap();
    }

    #[test]
    fn kernels_of_other_cores_are_refused() {
        for (kind, words) in [
            (1, "as kind 1"),
            (2, "on cube cores"),
            (4, "on cube and vector cores together"),
            (7, "as kind 7"),
        ] {
            let fault = fault(|sample| sample.kernels[0].meta = Some(entry(kind)));
            assert_eq!(
                fault,
                format!("has gram run {words}, not on vector cores (kind 3)")
            );
        }
    }

    #[test]
    fn a_damaged_kind_is_refused() {
        let other = [entry(3), vec![1, 0, 2, 0, 3, 0]].concat();
        for entries in [
            vec![],
            vec![1, 0, 4],
            vec![1, 0, 5, 0, 3, 0, 0, 0],
            vec![2, 0, 4, 0, 3, 0, 0, 0],
            vec![1, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0],
            other,
        ] {
            let fault = fault(|sample| sample.kernels[1].meta = Some(entries));
            assert!(
                fault.contains("damaged section .ascend.meta.pack"),
                "{fault}"
            );
        }
    }

    #[test]
    fn no_damage_makes_the_reader_panic() {
        let file = sample().bytes();
        // The table of sections is at the end, so that every shorter file lacks some of it.
        for length in 0..file.len() {
            check(&file[..length], true).unwrap_err();
        }
        let mut damaged = file.clone();
        let mut refused = 0;
        for place in 0..file.len() {
            for value in (0..8)
                .map(|bit| file[place] ^ (1 << bit))
                .chain([0, 0x7f, 0xff])
            {
                damaged[place] = value;
                refused += usize::from(check(&damaged, true).is_err());
            }
            damaged[place] = file[place];
        }
        assert!(refused > file.len(), "{refused}");
    }

    /// Files with code below a folder.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let below = |path: PathBuf| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        };
        let paths = entries.flat_map(|entry| below(entry.path()));
        paths
            .filter(|path| path.extension() == Some("o".as_ref()))
            .collect()
    }

    #[test]
    #[ignore = "needs published kernel binaries: tests/clients/vendor_kernels.sh"]
    fn published_kernels_are_read_like_ours() {
        let folder = std::env::var_os("ADASUM_VENDOR_KERNELS").unwrap();
        let (mut vector, mut other, mut unlinked) = (0, 0, 0);
        for path in files(Path::new(&folder)) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let content = std::fs::read(&path).unwrap();
            let file = match KernelFile::parse(&content) {
                Err(fault) if name.ends_with("_relocatable") => {
                    assert_eq!(fault, "is not linked", "{name}");
                    unlinked += 1;
                    continue;
                }
                file => file.unwrap(),
            };
            assert!(!file.kinds.is_empty(), "{name}");
            for (kernel, kind) in &file.kinds {
                let kernel = std::str::from_utf8(kernel).unwrap();
                file.check([kernel], false).unwrap();
                let said = file.check([kernel], true);
                if *kind == Some(VECTOR) {
                    said.unwrap();
                    vector += 1;
                } else {
                    let fault = said.unwrap_err();
                    assert!(fault.contains("not on vector cores"), "{fault}");
                    other += 1;
                }
            }
            let fault = file.check(KERNELS, true).unwrap_err();
            assert_eq!(fault, "has no kernel gram");
        }
        println!("{vector} kernels of vector cores, {other} others, {unlinked} files not linked");
        assert!(vector > 0 && other > 0 && unlinked > 0);
    }
}
