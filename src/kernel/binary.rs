//! The kernel binary: the CPU twin on the mock, and on a chip the file that `adasum-run build-kernels` made for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::arch::Chip;
use super::elf::KernelFile;
#[cfg(feature = "mock")]
use super::twin;
use crate::cache;
use crate::error::{Error, ErrorKind, Result};
use crate::sys::Kind;

/// The variable that names the kernel binary to load, or the folder to look for it first.
const VARIABLE: &str = "ADASUM_KERNELS";

/// The kernels' sources, embedded: name and content.
const SOURCES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/kernel_sources.rs"));

/// Kernel binaries that `build.rs` was asked to make: architecture and content.
const EMBEDDED: &[(u32, &[u8])] = include!(concat!(env!("OUT_DIR"), "/kernel_binaries.rs"));

/// The places where the kernels of a chip are looked for.
struct Places {
    named: Option<OsString>,
    embedded: &'static [(u32, &'static [u8])],
    /// Folders, the first one first.
    folders: Vec<PathBuf>,
}

impl Places {
    fn of_this_process() -> Result<Self> {
        let program = std::env::current_exe().ok();
        let beside = program.and_then(|program| Some(program.parent()?.to_owned()));
        Ok(Places {
            named: std::env::var_os(VARIABLE).filter(|path| !path.is_empty()),
            embedded: EMBEDDED,
            folders: beside.into_iter().chain([source_folder()?]).collect(),
        })
    }

    /// The file or folder that [`VARIABLE`] names.
    fn named(&self) -> Result<Option<PathBuf>> {
        let Some(path) = self.named.as_ref().map(PathBuf::from) else {
            return Ok(None);
        };
        if path.is_absolute() {
            return Ok(Some(path));
        }
        Err(Error::invalid(format!(
            "{VARIABLE} must be an absolute path, not {}",
            path.display()
        )))
    }

    fn find(&self, chip: &Chip) -> Result<PathBuf> {
        let mut folders = self.folders.clone();
        let name = file_name(chip.arch());
        match self.named()? {
            Some(folder) if folder.is_dir() => {
                let file = folder.join(&name);
                if file.exists() {
                    return checked(file, chip);
                }
                folders.insert(0, folder);
            }
            Some(file) => return checked(file, chip),
            None => {}
        }
        if let Some((_, content)) = self.embedded.iter().find(|(arch, _)| *arch == chip.arch()) {
            check(content, &format!("the embedded {name}"), chip)?;
            return Ok(cache::unpack(&[(&name, content)])?.join(name));
        }
        match folders
            .iter()
            .map(|folder| folder.join(&name))
            .find(|path| path.exists())
        {
            Some(path) => checked(path, chip),
            None => Err(missing(chip, &folders, &name)),
        }
    }
}

/// The kernel binary for a chip that `aclrtGetSocName` calls `soc`, as a real device would load it.
///
/// The places, in this order: the file or folder that `ADASUM_KERNELS` names, what is embedded in this program, the
/// program's folder, the cache. The name of the file has the architecture and a hash of the sources, so that a file of
/// another version is not taken.
///
/// # Errors
/// [`ErrorKind::Unsupported`] with the command that makes it, if there is none; that there are no kernels for the chip;
/// [`ErrorKind::InvalidArgument`] if the file is no kernel binary of a chip.
pub fn locate(soc: &str) -> Result<PathBuf> {
    let chip = Chip::named(soc)?;
    Places::of_this_process()?.find(&chip)
}

/// The kernel binary to load for `chip`.
pub(super) fn find(kind: Kind, chip: &Chip) -> Result<PathBuf> {
    let places = Places::of_this_process()?;
    match kind {
        Kind::Cann => places.find(chip),
        Kind::Mock => match places.named()? {
            Some(path) if !path.is_dir() => Ok(path),
            _ => twin_file(),
        },
    }
}

#[cfg(feature = "mock")]
fn twin_file() -> Result<PathBuf> {
    const FILE: &str = "adasum_kernels.o";
    Ok(cache::unpack(&[(FILE, twin::binary())])?.join(FILE))
}

#[cfg(not(feature = "mock"))]
fn twin_file() -> Result<PathBuf> {
    Err(Error::unsupported(
        "this build has no kernels for a processor: it was made without feature mock",
    ))
}

/// The folder with the kernels' sources, which also keeps what was compiled from them: its name is their hash.
pub(super) fn source_folder() -> Result<PathBuf> {
    cache::unpack(SOURCES)
}

/// Name of the kernel binary of an architecture.
pub(super) fn file_name(arch: u32) -> String {
    format!("adasum_kernels_{arch}_{:.8}.o", cache::hash(SOURCES))
}

fn command(chip: &Chip) -> String {
    format!(
        "run `adasum-run build-kernels --soc {}` where a CANN toolkit is installed",
        chip.name()
    )
}

fn missing(chip: &Chip, folders: &[PathBuf], name: &str) -> Error {
    let list: Vec<String> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    let other = folders
        .iter()
        .find_map(|folder| other_version(folder, chip.arch()));
    let other = other.map_or_else(String::new, |path| {
        format!("; {} is of other sources", path.display())
    });
    Error::unsupported(format!(
        "no kernel binary for {}: there is no {name} in {}{other}; {}",
        chip.name(),
        list.join(", "),
        command(chip)
    ))
}

/// A kernel binary in `folder` that was made from other sources.
fn other_version(folder: &Path, arch: u32) -> Option<PathBuf> {
    let start = format!("adasum_kernels_{arch}_");
    let mut entries = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()));
    entries.find(|path| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        name.starts_with(&start) && name.ends_with(".o")
    })
}

/// Checks that the file `path` is the kernels of a chip.
pub(super) fn checked(path: PathBuf, chip: &Chip) -> Result<PathBuf> {
    let content = std::fs::read(&path).map_err(|error| {
        Error::new(
            ErrorKind::Io,
            format!("{}: {error}; {}", path.display(), command(chip)),
        )
    })?;
    check(&content, &path.display().to_string(), chip)?;
    Ok(path)
}

/// Checks that `content`, which messages call `name`, is the kernels of a chip.
fn check(content: &[u8], name: &str, chip: &Chip) -> Result<()> {
    KernelFile::parse(content)
        .and_then(|file| file.check(kernels(), chip.has_cube_cores_apart()))
        .map_err(|fault| Error::invalid(format!("{name} {fault}; {}", command(chip))))
}

/// Names of the kernels: those of the sources.
fn kernels() -> impl Iterator<Item = &'static str> {
    SOURCES
        .iter()
        .filter_map(|(name, _)| name.strip_suffix(".cpp"))
}

#[cfg(test)]
mod tests {
    use super::super::elf_sample::Sample;
    use super::super::toolkit::kernels_in;
    use super::*;
    use crate::cache::TemporaryFolder;

    const NPU: u16 = 0x1029;

    fn chip() -> Chip {
        Chip::named("Ascend910B1").unwrap()
    }

    fn places(named: Option<&str>, folders: &[&Path]) -> Places {
        Places {
            named: named.map(Into::into),
            embedded: &[],
            folders: folders.iter().map(|&folder| folder.to_owned()).collect(),
        }
    }

    /// A folder with a file that holds the kernels for a machine.
    fn folder(label: &str, file: &str, machine: u16) -> TemporaryFolder {
        let folder = TemporaryFolder::new(&format!("adasum-binary-{label}")).unwrap();
        let mut content = Sample::new(&kernels().collect::<Vec<_>>());
        content.machine = machine;
        std::fs::write(folder.path().join(file), content.bytes()).unwrap();
        folder
    }

    #[test]
    fn a_real_device_needs_a_built_binary() {
        let empty = Path::new("/nowhere");
        let error = places(None, &[empty]).find(&chip()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        for part in [
            "Ascend910B1",
            "/nowhere",
            "adasum_kernels_2201_",
            "adasum-run build-kernels --soc Ascend910B1",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_first_folder_with_the_file_is_taken() {
        let name = file_name(2201);
        let (one, two) = (folder("one", &name, NPU), folder("two", &name, NPU));
        let found = places(None, &[Path::new("/nowhere"), one.path(), two.path()]).find(&chip());
        assert_eq!(found.unwrap(), one.path().join(&name));
        let named = two.path().to_str();
        assert_eq!(
            places(named, &[one.path()]).find(&chip()).unwrap(),
            two.path().join(&name)
        );
        let file = two.path().join(&name);
        assert_eq!(places(file.to_str(), &[]).find(&chip()).unwrap(), file);
        let embedding = |named: Option<&str>| Places {
            embedded: &[(2201, b"no kernel binary")],
            ..places(named, &[one.path()])
        };
        assert_eq!(embedding(named).find(&chip()).unwrap(), file);
        let empty = TemporaryFolder::new("adasum-binary-empty").unwrap();
        for named in [None, empty.path().to_str()] {
            let error = embedding(named).find(&chip()).unwrap_err().to_string();
            assert!(
                error.contains("the embedded adasum_kernels_2201_"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_no_kernel_binary_is_refused_with_the_command() {
        let name = file_name(2201);
        let host = folder("host", &name, 62);
        let old = folder("old", "adasum_kernels_2201_00000000.o", NPU);
        std::fs::write(
            host.path().join("text.o"),
            "no binary at all, but long enough",
        )
        .unwrap();
        let text_file = host.path().join("text.o");
        let missing_file = host.path().join("missing.o");
        for (places, words) in [
            (places(None, &[host.path()]), "code for a host"),
            (places(None, &[old.path()]), "other sources"),
            (places(text_file.to_str(), &[]), "no kernel binary"),
            (places(missing_file.to_str(), &[]), "missing.o"),
        ] {
            let error = places.find(&chip()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(
                error.contains("adasum-run build-kernels --soc Ascend910B1"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_binary_is_named_by_an_absolute_path() {
        let error = places(Some("kernels.o"), &[]).find(&chip()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("absolute"), "{error}");
    }

    #[test]
    fn sources_are_complete() {
        let folder = source_folder().unwrap();
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc/kernels");
        let [embedded, own] = [&folder, &own].map(|folder| kernels_in(folder).unwrap());
        assert_eq!(embedded, own);
        assert!(embedded.contains(&"gram".to_owned()));
        assert!(folder.join("arch.h").exists() && !folder.join("twin").exists());
    }
}
