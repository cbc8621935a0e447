//! Loads ACL and HCCL, the vendor's or the mock's, into the function tables: once per process, never unloaded.
//!
//! `ADASUM_BACKEND=cann|mock|auto` decides first. `auto` takes what is already in the process; `ADASUM_CANN_HOME`;
//! `ASCEND_HOME_PATH` and `ASCEND_TOOLKIT_HOME`; what the loader finds by name; and the mock only where there is
//! neither a davinci device nor a toolkit variable. A mixture of the mock and the vendor is refused.

use std::env;
use std::ffi::{CStr, OsStr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

use super::acl::Acl;
pub use super::choose::Kind;
use super::choose::{Choice, Facts, Source, choose};
use super::embedded;
use super::hccl::Hccl;
use super::origin::{Counter, Origin, file_of, mock_counter, symbol};
pub use super::symbols::Symbol;
use super::symbols::{
    Missing, OLDEST_CANN, complete_hccl, missing_in_acl, missing_in_hccl, optional,
};
use crate::error::{Error, ErrorKind, Result};

/// Names of ACL. From CANN 9 on, it is in the second and the first only leads there, where a package has it at all (runtime,
/// src/acl/aclrt/CMakeLists.txt and scripts/package/module/ascend/RuntimeSo.xml:44).
const ACL_NAMES: [&str; 2] = ["libascendcl.so", "libacl_rt.so"];
const HCCL_NAME: &str = "libhccl.so";
/// Newer HCCL keeps the communicators apart from the operations.
const HCOMM_NAME: &str = "libhcomm.so";

/// A function that only this library can define, by which the file of a library is found.
const ACL_ANCHOR: &CStr = c"aclInit";
const HCCL_ANCHOR: &CStr = c"HcclAllReduce";

/// The loaded libraries.
pub struct Backend {
    /// Whose libraries they are.
    pub kind: Kind,
    /// Functions of ACL; those that are required are all present.
    pub acl: Acl,
    /// Functions of HCCL; those that are required are all present.
    pub hccl: Hccl,
    /// File of ACL.
    pub acl_path: PathBuf,
    /// File of HCCL.
    pub hccl_path: PathBuf,
    /// Version of the mock, if they are the mock's.
    pub mock_version: Option<String>,
    /// Why they were chosen, as the end of a sentence.
    pub why: String,
    counter: Option<Counter>,
}

impl Backend {
    /// The functions that need not be there, and whether they are.
    pub fn optional_symbols(&self) -> Vec<Symbol> {
        optional(&self.acl, &self.hccl)
    }

    /// What the mock has counted under `name` in this process, 0 for a name that it does not know; `None` on CANN.
    pub fn mock_counter(&self, name: &CStr) -> Option<u64> {
        // SAFETY: it takes a C string, which lives through the call, and keeps nothing of it.
        self.counter
            .map(|counter| unsafe { counter(name.as_ptr()) })
    }
}

/// The libraries of this process, loaded at the first call.
///
/// # Errors
/// If `ADASUM_BACKEND` is wrong or contradicts what is loaded, if CANN should be there and is not, or if it is too
/// old. The same error is returned by every later call.
pub fn backend() -> Result<&'static Backend> {
    static BACKEND: OnceLock<Result<Backend>> = OnceLock::new();
    BACKEND.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Backend> {
    let facts = facts()?;
    let choice = choose(&facts)?;
    let mut reasons = Vec::new();
    for source in &choice.sources {
        match open(source)? {
            Ok(pair) => {
                let mut backend = fill(pair)?;
                backend.why = why(source, &facts);
                check_wish(&choice, &backend)?;
                report(&choice, source, &backend, &reasons);
                return Ok(backend);
            }
            Err(reason) => reasons.push(reason),
        }
    }
    Err(not_found(&facts, &reasons))
}

fn why(source: &Source, facts: &Facts) -> String {
    match source {
        Source::Loaded => "it was in this process already".to_owned(),
        Source::Home(home) if facts.cann_home.is_some() => {
            format!("ADASUM_CANN_HOME names {}", home.display())
        }
        Source::Home(home) => format!("a toolkit variable names {}", home.display()),
        Source::LoaderPath => "the loader finds it by name".to_owned(),
        Source::EmbeddedMock if facts.wish.as_deref() == Some("mock") => {
            "ADASUM_BACKEND=mock".to_owned()
        }
        Source::EmbeddedMock => {
            "there is no Ascend device, no toolkit variable, and no CANN where the loader looks"
                .to_owned()
        }
    }
}

fn not_found(facts: &Facts, reasons: &[String]) -> Error {
    let mut why = Vec::new();
    if facts.has_device {
        why.push("this machine has an Ascend device");
    }
    if !facts.toolkits.is_empty() {
        why.push("a toolkit variable is set");
    }
    if facts.wish.as_deref() == Some("cann") {
        why.push("ADASUM_BACKEND=cann");
    }
    if facts.cann_home.is_some() {
        why.push("ADASUM_CANN_HOME is set");
    }
    Error::new(
        ErrorKind::InvalidState,
        format!(
            "CANN cannot be loaded ({}): {}; run `source set_env.sh` of the toolkit, or set ADASUM_BACKEND=mock",
            why.join(", "),
            reasons.join("; ")
        ),
    )
}

fn check_wish(choice: &Choice, backend: &Backend) -> Result<()> {
    match choice.only {
        Some(only) if only != backend.kind => Err(Error::new(
            ErrorKind::InvalidState,
            format!(
                "ADASUM_BACKEND={} was asked for, but {} is the library of {}",
                only.name(),
                backend.acl_path.display(),
                backend.kind.name()
            ),
        )),
        _ => Ok(()),
    }
}

fn report(choice: &Choice, source: &Source, backend: &Backend, reasons: &[String]) {
    if choice.only.is_none() && *source == Source::EmbeddedMock {
        log::warn!(
            "no Ascend device and no CANN found: running on the mock of ACL and HCCL, on this machine's processor \
             (ADASUM_BACKEND=mock chooses it without this warning)"
        );
        log::debug!("CANN was not found: {}", reasons.join("; "));
    }
    log::info!(
        "backend {}: {}, {}",
        backend.kind.name(),
        backend.acl_path.display(),
        backend.hccl_path.display()
    );
}

fn facts() -> Result<Facts> {
    let path = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    Ok(Facts {
        wish: env::var_os("ADASUM_BACKEND").map(|wish| wish.to_string_lossy().into_owned()),
        loaded: loaded()?,
        cann_home: path("ADASUM_CANN_HOME"),
        toolkits: ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"]
            .into_iter()
            .filter_map(path)
            .collect(),
        has_device: has_device(Path::new("/dev")),
    })
}

/// Whether `folder` (`/dev`) has a davinci device or the manager of them.
fn has_device(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("davinci"));
        number.is_some_and(|rest| {
            rest == "_manager"
                || (!rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
    })
}

/// The library that is in the process already, and its file.
fn loaded() -> Result<Option<(Kind, PathBuf)>> {
    let (library, anchor) = match (loaded_acl(), already_loaded(HCCL_NAME)) {
        (Some(acl), _) => (acl, ACL_ANCHOR),
        (None, Some(hccl)) => (hccl, HCCL_ANCHOR),
        (None, None) => return Ok(None),
    };
    let origin = Origin::of(&library, "a library in this process", anchor)?;
    Ok(Some((origin.kind, origin.path)))
}

/// ACL and HCCL, opened but not looked at.
struct Pair {
    acl: Library,
    hccl: Library,
}

/// Opens both libraries of `source`. The inner error says why they are not there, which lets the next source be tried.
fn open(source: &Source) -> Result<std::result::Result<Pair, String>> {
    let pair = match source {
        Source::Loaded => open_loaded(),
        Source::LoaderPath => open_pair(Path::new("")),
        Source::Home(home) => {
            let libraries = home.join("lib64");
            if libraries.is_dir() {
                open_pair(&libraries)
            } else {
                open_pair(home)
            }
        }
        Source::EmbeddedMock => open_pair(&embedded::libraries()?),
    };
    Ok(pair)
}

/// Opens both libraries of one folder: the HCCL of one toolkit does not work on the ACL of another.
fn open_pair(folder: &Path) -> std::result::Result<Pair, String> {
    Ok(Pair {
        acl: open_acl(folder)?,
        hccl: open_library(folder.join(HCCL_NAME))?,
    })
}

/// Opens what is in the process; a library that is not comes from the folder of the other.
fn open_loaded() -> std::result::Result<Pair, String> {
    match (loaded_acl(), already_loaded(HCCL_NAME)) {
        (Some(acl), Some(hccl)) => Ok(Pair { acl, hccl }),
        (Some(acl), None) => {
            let folder = folder_of(&acl, ACL_ANCHOR);
            let hccl = open_library(folder.join(HCCL_NAME)).or_else(|_| open_library(HCCL_NAME))?;
            Ok(Pair { acl, hccl })
        }
        (None, Some(hccl)) => {
            let folder = folder_of(&hccl, HCCL_ANCHOR);
            let acl = open_acl(&folder).or_else(|_| open_acl(Path::new("")))?;
            Ok(Pair { acl, hccl })
        }
        (None, None) => Err(format!("{HCCL_NAME} is no longer in this process")),
    }
}

/// The folder of the library that defines `anchor`.
fn folder_of(library: &Library, anchor: &CStr) -> PathBuf {
    symbol(library, anchor)
        .and_then(file_of)
        .and_then(|path| path.parent().map(Path::to_owned))
        .unwrap_or_default()
}

/// Opens ACL in `folder`, or by the loader's search if that is empty. The error is that of the first name.
fn open_acl(folder: &Path) -> std::result::Result<Library, String> {
    let [first, second] = ACL_NAMES.map(|name| folder.join(name));
    open_library(first).or_else(|reason| open_library(second).map_err(|_| reason))
}

fn loaded_acl() -> Option<Library> {
    ACL_NAMES.into_iter().find_map(already_loaded)
}

/// Opens a library by path or, without a slash, by the loader's search.
fn open_library(path: impl AsRef<OsStr>) -> std::result::Result<Library, String> {
    // SAFETY: runs the initialisers of libraries that the user installed or that this crate embeds.
    unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_LOCAL) }.map_err(|error| reason(&error))
}

/// Opens the copy that is in the process under this SONAME, whoever loaded it.
fn already_loaded(name: &str) -> Option<Library> {
    let flags = RTLD_LAZY | RTLD_LOCAL | libc::RTLD_NOLOAD;
    // SAFETY: with RTLD_NOLOAD nothing is loaded, so no code runs.
    unsafe { Library::open(Some(name), flags) }.ok()
}

/// The loader's own words.
fn reason(error: &libloading::Error) -> String {
    error.to_string()
}

/// Fills the tables and refuses what must not be used.
fn fill(pair: Pair) -> Result<Backend> {
    let acl_origin = Origin::of(&pair.acl, ACL_NAMES[0], ACL_ANCHOR)?;
    let hccl_origin = Origin::of(&pair.hccl, HCCL_NAME, HCCL_ANCHOR)?;
    acl_origin.require_match(&hccl_origin)?;
    let counter = match acl_origin.kind {
        Kind::Mock => mock_counter(&pair.acl),
        Kind::Cann => None,
    };

    // SAFETY: the declarations are those of CANN, and the mock is compiled against the same headers.
    let acl = unsafe { Acl::from_library(pair.acl) };
    let acl = acl.map_err(|error| unreadable(&acl_origin, &error))?;
    check_missing(&acl_origin, &missing_in_acl(&acl))?;

    // SAFETY: as above.
    let hccl = unsafe { Hccl::from_library(pair.hccl) };
    let mut hccl = hccl.map_err(|error| unreadable(&hccl_origin, &error))?;
    if !missing_in_hccl(&hccl).is_empty() {
        add_hcomm(&mut hccl, &hccl_origin);
    }
    check_missing(&hccl_origin, &missing_in_hccl(&hccl))?;

    Ok(Backend {
        kind: acl_origin.kind,
        acl,
        hccl,
        acl_path: acl_origin.path,
        hccl_path: hccl_origin.path,
        mock_version: acl_origin.mock_version,
        why: String::new(),
        counter,
    })
}

/// Looks up in libhcomm what libhccl lacks.
fn add_hcomm(hccl: &mut Hccl, origin: &Origin) {
    let beside = origin.path.with_file_name(HCOMM_NAME);
    let open = || open_library(&beside).or_else(|_| open_library(HCOMM_NAME));
    let (Ok(kept), Ok(library)) = (open(), open()) else {
        return;
    };
    // Its functions end up in a table that does not own it, so it must never be closed.
    Box::leak(Box::new(kept));
    // SAFETY: the declarations are those of CANN.
    if let Ok(other) = unsafe { Hccl::from_library(library) } {
        complete_hccl(hccl, other);
    }
}

fn unreadable(origin: &Origin, error: &libloading::Error) -> Error {
    Error::new(
        ErrorKind::InvalidState,
        format!("{}: {}", origin.path.display(), reason(error)),
    )
}

fn check_missing(origin: &Origin, missing: &[Missing]) -> Result<()> {
    let Some(first) = missing.first() else {
        return Ok(());
    };
    let more = match missing.len() {
        1 => String::new(),
        2 => " and 1 more function".to_owned(),
        count => format!(" and {} more functions", count.saturating_sub(1)),
    };
    Err(Error::unsupported(format!(
        "{} lacks {} (in CANN since {}){more}: CANN {OLDEST_CANN} or newer is needed",
        origin.path.display(),
        first.name,
        first.since
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_library_is_named_with_what_it_lacks() {
        let missing = Missing {
            name: "HcclBarrier",
            since: "8.1.RC1",
        };
        let hccl = Origin {
            kind: Kind::Cann,
            path: "/old/libhccl.so".into(),
            mock_version: None,
        };
        assert!(check_missing(&hccl, &[]).is_ok());
        let error = check_missing(&hccl, &[missing, missing]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(
            error.to_string(),
            "/old/libhccl.so lacks HcclBarrier (in CANN since 8.1.RC1) and 1 more function: \
             CANN 8.1.RC1 or newer is needed"
        );
    }

    #[test]
    fn a_machine_with_a_device_is_told_what_to_do() {
        let facts = Facts {
            has_device: true,
            ..Facts::default()
        };
        let error = not_found(&facts, &["no such file".to_owned()]).to_string();
        assert!(error.contains("source set_env.sh"), "{error}");
        assert!(error.contains("has an Ascend device"), "{error}");
        assert!(error.contains("no such file"), "{error}");
    }

    #[test]
    fn devices_are_recognised_by_name() {
        let folder = env::temp_dir().join(format!("adasum-devices-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let found = [
            "davinci",
            "davinci0x",
            "null",
            "davinci_manager",
            "davinci12",
        ]
        .map(|name| {
            let file = folder.join(name);
            std::fs::write(&file, b"").unwrap();
            let found = has_device(&folder);
            std::fs::remove_file(&file).unwrap();
            found
        });
        std::fs::remove_dir(&folder).unwrap();
        assert_eq!(found, [false, false, false, true, true]);
        assert!(!has_device(&folder));
    }

    #[test]
    fn the_embedded_mock_loads() {
        let pair = open(&Source::EmbeddedMock).unwrap().unwrap();
        let backend = fill(pair).unwrap();
        assert_eq!(backend.kind, Kind::Mock);
        assert_eq!(backend.acl_path.parent(), backend.hccl_path.parent());
    }
}
