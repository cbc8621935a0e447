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
/// it that are not what they should be are replaced. Where it cannot be used (read only, not ours, open to others, or below
/// a folder in which others may exchange it), a private folder below the system's temporary folder takes its place, the same
/// at each call.
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
    let (hash, temporary) = (hash(files), env::temp_dir());
    let folders = candidates(&hash, owner, &temporary, |name| env::var_os(name));
    unpack_to_first(folders, owner, files)
}

/// The folders to try, in order, for content of this `hash`. `variable` looks up an environment variable.
fn candidates(
    hash: &str,
    owner: Option<Owner>,
    temporary: &Path,
    variable: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> impl Iterator<Item = PathBuf> {
    let path = |name| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = path("ADASUM_CACHE_DIR")
        .or_else(|| Some(path("XDG_CACHE_HOME")?.join("adasum")))
        .or_else(|| Some(path("HOME")?.join(".cache/adasum")));
    // Directly below the temporary folder: its sticky bit keeps others from exchanging ours. They may have taken the name,
    // and then a random one does, which an earlier call may have made.
    let name = owner.map(|owner| format!("adasum-{}-{hash}", owner.user));
    let made = name.clone().into_iter().flat_map(move |name| {
        let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
        let random = entries.filter(move |entry| {
            let found = entry.file_name();
            found.to_string_lossy().starts_with(&format!("{name}-"))
        });
        let folders = random.map(|entry| entry.path());
        folders.filter(move |folder| check_private(folder, owner).is_ok())
    });
    let fresh = unique(name.as_deref().unwrap_or("adasum"));
    cache
        .map(|folder| folder.join(hash))
        .into_iter()
        .chain(name.map(|name| temporary.join(name)))
        .chain(made)
        .chain([temporary.join(fresh)])
}

fn unpack_to_first(
    folders: impl Iterator<Item = PathBuf>,
    owner: Option<Owner>,
    files: &[(&str, &[u8])],
) -> Result<PathBuf> {
    let mut reasons = Vec::new();
    for folder in folders {
        // The loader and HCCL want absolute paths.
        let unpacked = std::path::absolute(&folder)
            .and_then(|folder| unpack_to(&folder, owner, files).map(|()| folder));
        match unpacked {
            Ok(folder) => return Ok(folder),
            Err(error) => {
                // What the system refuses is common (a read-only home); that others could meddle is not.
                let level = match error.kind() {
                    io::ErrorKind::Other => log::Level::Warn,
                    _ => log::Level::Debug,
                };
                log::log!(level, "cannot unpack to {}: {error}", folder.display());
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
fn unpack_to(target: &Path, owner: Option<Owner>, files: &[(&str, &[u8])]) -> io::Result<()> {
    check_parents(target, owner)?;
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
fn check_private(folder: &Path, owner: Option<Owner>) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let problem = if !metadata.is_dir() {
        "not a folder"
    } else if metadata.mode() & 0o077 != 0 {
        "open to other users"
    } else if owner.map(|owner| owner.user) != Some(metadata.uid()) {
        "not known to be owned by this user"
    } else {
        return Ok(());
    };
    Err(io::Error::other(problem))
}

/// Refuses a folder that somebody else could exchange: one of those above it belongs to another user, or may be written by
/// others and has no sticky bit. Root, the own group and root's are no others.
fn check_parents(folder: &Path, owner: Option<Owner>) -> io::Result<()> {
    let mut above = folder.ancestors().skip(1);
    let nearest = above.find_map(|parent| parent.canonicalize().ok());
    let user_of_root = fs::metadata("/")?.uid();
    for parent in nearest.iter().flat_map(|nearest| nearest.ancestors()) {
        let metadata = fs::metadata(parent)?;
        if !is_trusted(metadata.uid(), owner, user_of_root) {
            let parent = parent.display();
            let problem = format!("{parent} belongs to another user");
            return Err(io::Error::other(problem));
        }
        let (mode, group) = (metadata.mode(), metadata.gid());
        let own_group = group == 0 || owner.is_some_and(|owner| owner.group == group);
        let open = mode & 0o002 != 0 || mode & 0o020 != 0 && !own_group;
        if open && mode & 0o1000 == 0 {
            let parent = parent.display();
            let problem = format!("others may write in {parent}, which has no sticky bit");
            return Err(io::Error::other(problem));
        }
    }
    Ok(())
}

/// Whether a folder of `user` may stand above ours: root's, or one of this user's, if he is known.
fn is_trusted(user: u32, owner: Option<Owner>, user_of_root: u32) -> bool {
    // In a container without rights, all users that it does not know have this number, root among them if `/` has it.
    const UNKNOWN: u32 = 65534;
    let own = owner.is_none_or(|owner| owner.user == user);
    user == 0 || own || user == UNKNOWN && user_of_root == UNKNOWN
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

/// Who owns what this process makes.
#[derive(Debug, Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

/// The user and group that this process acts as; unknown where `/proc` is not mounted.
fn owner_of_this_process() -> Option<Owner> {
    let metadata = fs::metadata("/proc/self").ok()?;
    Some(Owner {
        user: metadata.uid(),
        group: metadata.gid(),
    })
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

/// A folder for intermediate files, of this user alone, which goes with this object.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// A new one, whose name begins with `name`.
    ///
    /// # Errors
    /// If it cannot be made. The text names it.
    pub(crate) fn new(name: &str) -> Result<TemporaryFolder> {
        let path = env::temp_dir().join(unique(name));
        let made = std::path::absolute(&path).and_then(|path| {
            // Whatever has this name already is not ours.
            DirBuilder::new().mode(0o700).create(&path)?;
            Ok(path)
        });
        let error = |error| Error::new(ErrorKind::Io, format!("{}: {error}", path.display()));
        made.map(TemporaryFolder).map_err(error)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            log::warn!("{}: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const FILES: &[(&str, &[u8])] = &[("one.so", b"first"), ("two.so", b"second")];

    fn unpack_in(folders: &[PathBuf]) -> Result<PathBuf> {
        unpack_to_first(folders.iter().cloned(), owner_of_this_process(), FILES)
    }

    fn assert_complete(folder: &Path) {
        for (name, content) in FILES {
            assert_eq!(&fs::read(folder.join(name)).unwrap(), content);
        }
        let entries = fs::read_dir(folder).unwrap().count();
        assert_eq!(entries, FILES.len(), "leftovers in {}", folder.display());
    }

    #[test]
    fn temporary_folders_are_this_users_and_go() {
        let (first, second) = (
            TemporaryFolder::new("a").unwrap(),
            TemporaryFolder::new("a").unwrap(),
        );
        assert_ne!(first.path(), second.path());
        let path = first.path().to_owned();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn unpacks_once() {
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        let targets = [scratch.path().join("a/b")];
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
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        let targets = [scratch.path().join("cache")];
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
        let entries = fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(entries, 1, "leftovers beside the folder");
    }

    #[test]
    fn damaged_files_are_replaced() {
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        let targets = [scratch.path().join("cache")];
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
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        let targets = [scratch.path().join("first"), scratch.path().join("second")];
        let folder = unpack_in(&targets).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let other = unpack_in(&targets).unwrap();
        assert!(other.starts_with(&targets[1]));
        assert_complete(&other);
    }

    #[test]
    fn a_folder_below_one_that_others_may_write_is_not_used() {
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        let set = |mode| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(scratch.path().join("open"), mode).unwrap();
        };
        fs::create_dir(scratch.path().join("open")).unwrap();
        let targets = [
            scratch.path().join("open/cache/first"),
            scratch.path().join("second"),
        ];
        for mode in [0o757, 0o777] {
            set(mode);
            assert!(unpack_in(&targets).unwrap().starts_with(&targets[1]));
            let text = unpack_in(&targets[..1]).unwrap_err().to_string();
            let said = format!(
                "others may write in {}",
                scratch.path().join("open").display()
            );
            assert!(text.contains(&said), "{text}");
        }
        set(0o1777);
        assert!(unpack_in(&targets).unwrap().starts_with(&targets[0]));
        set(0o777);
        assert!(unpack_in(&targets).unwrap().starts_with(&targets[1]));
    }

    #[test]
    fn a_folder_below_one_of_another_user_is_not_used() {
        let owner = Some(Owner { user: 7, group: 7 });
        assert!(is_trusted(0, owner, 0) && is_trusted(7, owner, 0));
        assert!(!is_trusted(8, owner, 0) && !is_trusted(65534, owner, 0));
        assert!(is_trusted(65534, owner, 65534) && !is_trusted(8, owner, 65534));
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        fs::create_dir(scratch.path().join("other")).unwrap();
        // Only root may do so.
        if std::os::unix::fs::chown(scratch.path().join("other"), Some(12345), None).is_ok() {
            let targets = [
                scratch.path().join("other/cache"),
                scratch.path().join("second"),
            ];
            assert!(unpack_in(&targets).unwrap().starts_with(&targets[1]));
        }
    }

    #[test]
    fn a_name_that_others_have_taken_costs_one_more_folder() {
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        let owner = owner_of_this_process();
        let unpacked = || {
            let folders = candidates("1f", owner, scratch.path(), |_| None);
            unpack_to_first(folders, owner, FILES).unwrap()
        };
        let taken = unpacked();
        fs::set_permissions(&taken, fs::Permissions::from_mode(0o755)).unwrap();
        let other = unpacked();
        assert_ne!(other, taken);
        assert_eq!(unpacked(), other);
        assert_complete(&other);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_root_that_cannot_be_made_is_passed_over() {
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        fs::write(scratch.path().join("file"), b"").unwrap();
        let targets = [
            scratch.path().join("file/below"),
            scratch.path().join("second"),
        ];
        assert!(unpack_in(&targets).unwrap().starts_with(&targets[1]));
        let error = unpack_in(&targets[..1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("ADASUM_CACHE_DIR"), "{error}");
    }

    #[test]
    fn without_a_known_user_only_a_fresh_folder_will_do() {
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        let targets = [scratch.path().join("first"), scratch.path().join("second")];
        unpack_in(&targets).unwrap();
        let folder = unpack_to_first(targets.iter().cloned(), None, FILES).unwrap();
        assert_eq!(folder, targets[1]);
        assert_complete(&folder);
    }

    #[test]
    fn files_may_stand_in_subfolders() {
        let scratch = TemporaryFolder::new("adasum-cache-test").unwrap();
        let folder = scratch.path().join("cache");
        let files: &[(&str, &[u8])] = &[("a/b/one.h", b"1"), ("a/two.h", b"2")];
        let unpack = || {
            let folders = [folder.clone()].into_iter();
            unpack_to_first(folders, owner_of_this_process(), files)
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
            let owner = Owner { user: 7, group: 7 };
            candidates("1f", Some(owner), Path::new("/none"), variable).collect::<Vec<_>>()
        };
        let first = |set: &[(&str, &str)]| with(set).remove(0);
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
