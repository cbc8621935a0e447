//! The folder that embedded files are unpacked into: once per content, shared by all processes of a user.
//!
//! Nothing of the crate may depend on the build tree or the working directory, so libraries, kernel binaries and
//! data that are embedded in it come to disk here. The folder is named by the hash of what is in it: files of
//! different versions never meet. This module must not know what the files are.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, process};

use sha1::{Digest, Sha1};

use crate::error::{Error, ErrorKind, Result};

/// Unpacks `files` (name, possibly in a subfolder, and content) and returns the folder that holds them.
///
/// The folder is `${ADASUM_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/adasum}/<hash>`, private to the user. Files in
/// it that are not what they should be are replaced. Where it cannot be used (read only, not ours, open to others), a
/// private folder below the system's temporary folder takes its place.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a name that leads out of the folder or is hidden, [`ErrorKind::Io`] if no folder can be used.
pub fn unpack(files: &[(&str, &[u8])]) -> Result<PathBuf> {
    if let Some((name, _)) = files.iter().find(|(name, _)| !stays_inside(name)) {
        return Err(Error::invalid(format!(
            "{name:?} is not a name inside a folder"
        )));
    }
    let owner = owner_of_this_process();
    let folders = candidates(&hash(files), owner, |name| env::var_os(name));
    unpack_to_first(&folders, owner, files)
}

/// The folders to try, in order, for content of this `hash`. `variable` looks up an environment variable.
fn candidates(
    hash: &str,
    owner: Option<u32>,
    variable: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> Vec<PathBuf> {
    let path = |name| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = path("ADASUM_CACHE_DIR")
        .or_else(|| Some(path("XDG_CACHE_HOME")?.join("adasum")))
        .or_else(|| Some(path("HOME")?.join(".cache/adasum")));
    // Directly below the temporary folder: its sticky bit keeps others from exchanging ours.
    let temporary = env::temp_dir();
    cache
        .map(|folder| folder.join(hash))
        .into_iter()
        .chain(owner.map(|user| temporary.join(format!("adasum-{user}-{hash}"))))
        .chain([temporary.join(unique("adasum"))])
        .collect()
}

fn unpack_to_first(
    folders: &[PathBuf],
    owner: Option<u32>,
    files: &[(&str, &[u8])],
) -> Result<PathBuf> {
    let mut reasons = Vec::new();
    for folder in folders {
        // The loader and HCCL want absolute paths.
        let unpacked = std::path::absolute(folder)
            .and_then(|folder| unpack_to(&folder, owner, files).map(|()| folder));
        match unpacked {
            Ok(folder) => return Ok(folder),
            Err(error) => {
                log::debug!("cannot unpack to {}: {error}", folder.display());
                reasons.push(format!("{}: {error}", folder.display()));
            }
        }
    }
    Err(Error::new(
        ErrorKind::Io,
        format!(
            "no folder to unpack embedded files into (ADASUM_CACHE_DIR sets one): {}",
            reasons.join("; ")
        ),
    ))
}

/// Whether a name leads to a file in the folder that is not hidden.
fn stays_inside(name: &str) -> bool {
    name.split('/')
        .all(|part| !part.is_empty() && !part.starts_with('.'))
}

/// The SHA-1 of all names and contents with their lengths, in hexadecimal digits: the name of the folder.
pub(crate) fn hash(files: &[(&str, &[u8])]) -> String {
    let mut hasher = Sha1::new();
    for (name, content) in files {
        for part in [name.as_bytes(), content] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    let digest = hasher.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes `target` hold exactly what it should, whether or not it exists.
fn unpack_to(target: &Path, owner: Option<u32>, files: &[(&str, &[u8])]) -> io::Result<()> {
    if !target.exists() && create(target, files)? {
        return Ok(());
    }
    check_private(target, owner)?;
    for (name, content) in files {
        let path = target.join(name);
        if !holds(&path, content) {
            // Renamed over the old file, so that other processes never see a part of it.
            let fresh = unique(".new");
            write(target, &fresh, content)?;
            make_folder_of(target, name)?;
            fs::rename(target.join(fresh), &path)?;
        }
    }
    Ok(())
}

/// Writes a folder beside `target` and renames it, so that `target` appears complete or not at all. Returns false if
/// another process or thread was faster.
fn create(target: &Path, files: &[(&str, &[u8])]) -> io::Result<bool> {
    let parent = target.parent().unwrap_or(Path::new("/"));
    let mut private = DirBuilder::new();
    private.mode(0o700).recursive(true).create(parent)?;
    let fresh = parent.join(unique(".adasum-new"));
    private.recursive(false).create(&fresh)?;
    let renamed = files
        .iter()
        .try_for_each(|(name, content)| write(&fresh, name, content))
        .and_then(|()| fs::rename(&fresh, target));
    let Err(error) = renamed else {
        return Ok(true);
    };
    // A failure only leaves the folder behind.
    let _ = fs::remove_dir_all(&fresh);
    if target.exists() {
        Ok(false)
    } else {
        Err(error)
    }
}

fn write(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    make_folder_of(folder, name)?;
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(folder.join(name))?;
    file.write_all(content)
}

/// Makes the subfolder of `folder` that `name` stands in, if it stands in one.
fn make_folder_of(folder: &Path, name: &str) -> io::Result<()> {
    match name.rsplit_once('/') {
        Some((inside, _)) => DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(folder.join(inside)),
        None => Ok(()),
    }
}

/// Refuses a folder whose files somebody else could exchange: what is unpacked here is loaded as code.
fn check_private(folder: &Path, owner: Option<u32>) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let problem = if !metadata.is_dir() {
        "not a folder"
    } else if metadata.mode() & 0o077 != 0 {
        "open to other users"
    } else if owner != Some(metadata.uid()) {
        "not known to be owned by this user"
    } else {
        return Ok(());
    };
    Err(io::Error::other(problem))
}

/// Whether `path` is a regular file with this content.
fn holds(path: &Path, content: &[u8]) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return false;
    };
    if !metadata.is_file() || metadata.len() != content.len() as u64 {
        return false;
    }
    let mut found = Vec::with_capacity(content.len());
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut found))
        .is_ok()
        && found == content
}

/// The user that this process acts as; unknown where `/proc` is not mounted.
fn owner_of_this_process() -> Option<u32> {
    fs::metadata("/proc/self")
        .ok()
        .map(|metadata| metadata.uid())
}

/// A file name that no other process, thread or call uses.
pub(crate) fn unique(prefix: &str) -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let time = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |time| time.as_nanos());
    format!("{prefix}-{}-{call}-{time:x}", process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const FILES: &[(&str, &[u8])] = &[("one.so", b"first"), ("two.so", b"second")];

    /// A folder of its own for each test, removed at its end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            let path = env::temp_dir().join(unique("adasum-cache-test"));
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }

        fn join(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn unpack_in(folders: &[PathBuf]) -> Result<PathBuf> {
        unpack_to_first(folders, owner_of_this_process(), FILES)
    }

    fn assert_complete(folder: &Path) {
        for (name, content) in FILES {
            assert_eq!(&fs::read(folder.join(name)).unwrap(), content);
        }
        let entries = fs::read_dir(folder).unwrap().count();
        assert_eq!(entries, FILES.len(), "leftovers in {}", folder.display());
    }

    #[test]
    fn unpacks_once() {
        let scratch = Scratch::new();
        let targets = [scratch.join("a/b")];
        let folder = unpack_in(&targets).unwrap();
        assert_complete(&folder);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        let inode = fs::metadata(folder.join("one.so")).unwrap().ino();
        assert_eq!(unpack_in(&targets).unwrap(), folder);
        assert_eq!(fs::metadata(folder.join("one.so")).unwrap().ino(), inode);
    }

    #[test]
    fn other_content_is_another_folder() {
        assert_ne!(hash(FILES), hash(&FILES[..1]));
        assert_ne!(hash(&[("ab", b"c")]), hash(&[("a", b"bc")]));
    }

    #[test]
    fn threads_share_one_folder() {
        let scratch = Scratch::new();
        let targets = [scratch.join("cache")];
        let folders: Vec<PathBuf> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| unpack_in(&targets).unwrap()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(folders.iter().all(|folder| *folder == folders[0]));
        assert_complete(&folders[0]);
        let entries = fs::read_dir(&scratch.0).unwrap().count();
        assert_eq!(entries, 1, "leftovers beside the folder");
    }

    #[test]
    fn damaged_files_are_replaced() {
        let scratch = Scratch::new();
        let targets = [scratch.join("cache")];
        let folder = unpack_in(&targets).unwrap();
        fs::write(folder.join("one.so"), b"fi").unwrap();
        fs::write(folder.join("two.so"), b"SECOND").unwrap();
        assert_eq!(unpack_in(&targets).unwrap(), folder);
        assert_complete(&folder);
        fs::remove_file(folder.join("one.so")).unwrap();
        std::os::unix::fs::symlink("two.so", folder.join("one.so")).unwrap();
        assert_eq!(unpack_in(&targets).unwrap(), folder);
        assert_complete(&folder);
    }

    #[test]
    fn a_folder_open_to_others_is_not_used() {
        let scratch = Scratch::new();
        let targets = [scratch.join("first"), scratch.join("second")];
        let folder = unpack_in(&targets).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let other = unpack_in(&targets).unwrap();
        assert!(other.starts_with(&targets[1]));
        assert_complete(&other);
    }

    #[test]
    fn a_root_that_cannot_be_made_is_passed_over() {
        let scratch = Scratch::new();
        fs::write(scratch.join("file"), b"").unwrap();
        let targets = [scratch.join("file/below"), scratch.join("second")];
        assert!(unpack_in(&targets).unwrap().starts_with(&targets[1]));
        let error = unpack_in(&targets[..1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("ADASUM_CACHE_DIR"), "{error}");
    }

    #[test]
    fn without_a_known_user_only_a_fresh_folder_will_do() {
        let scratch = Scratch::new();
        let targets = [scratch.join("first"), scratch.join("second")];
        unpack_in(&targets).unwrap();
        let folder = unpack_to_first(&targets, None, FILES).unwrap();
        assert_eq!(folder, targets[1]);
        assert_complete(&folder);
    }

    #[test]
    fn files_may_stand_in_subfolders() {
        let scratch = Scratch::new();
        let folder = scratch.join("cache");
        let files: &[(&str, &[u8])] = &[("a/b/one.h", b"1"), ("a/two.h", b"2")];
        let unpack = || {
            unpack_to_first(
                std::slice::from_ref(&folder),
                owner_of_this_process(),
                files,
            )
        };
        unpack().unwrap();
        assert_eq!(fs::read(folder.join("a/b/one.h")).unwrap(), b"1");
        fs::remove_dir_all(folder.join("a/b")).unwrap();
        unpack().unwrap();
        assert_eq!(fs::read(folder.join("a/b/one.h")).unwrap(), b"1");
        assert_eq!(
            fs::metadata(folder.join("a")).unwrap().mode() & 0o777,
            0o700
        );
    }

    #[test]
    fn names_must_stay_inside() {
        for name in [
            "",
            "/a",
            "a/",
            "a//b",
            "a/../b",
            "..",
            ".hidden",
            "a/.hidden",
        ] {
            let error = unpack(&[(name, b"")]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn the_environment_chooses_the_folder() {
        let with = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(key, _)| *key == name)?;
                Some(found.1.into())
            };
            candidates("1f", Some(7), variable)
        };
        let first = |set| with(set).remove(0);
        assert_eq!(first(&[("HOME", "/h")]), Path::new("/h/.cache/adasum/1f"));
        let xdg = [("HOME", "/h"), ("XDG_CACHE_HOME", "/x")];
        assert_eq!(first(&xdg), Path::new("/x/adasum/1f"));
        let own = [("XDG_CACHE_HOME", "/x"), ("ADASUM_CACHE_DIR", "/a")];
        assert_eq!(first(&own), Path::new("/a/1f"));
        let empty = [("ADASUM_CACHE_DIR", ""), ("HOME", "/h")];
        assert_eq!(first(&empty), Path::new("/h/.cache/adasum/1f"));
        let temporary = with(&[]);
        assert_eq!(temporary.len(), 2);
        assert!(temporary[0].ends_with("adasum-7-1f"));
    }
}
