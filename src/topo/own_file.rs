//! Files that hold what only this user's processes may know or change.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind as Io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::sys::process::effective_user;

/// Bits of the mode by which others may write.
pub(super) const OTHERS_WRITE: u32 = 0o022;
/// Bits of the mode by which others may do anything.
pub(super) const OTHERS_ANY: u32 = 0o077;

/// Opens the file `path` to read it; `None` if there is none. It is looked at once it is open, so nobody can exchange it.
///
/// # Errors
/// If it is no regular file, belongs to another user, or its mode has a bit of `forbidden`.
pub(super) fn open(path: &Path, forbidden: u32) -> Result<Option<File>> {
    // A named pipe would otherwise wait for a writer.
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == Io::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, &error)),
    };
    let facts = file.metadata().map_err(|error| failed(path, &error))?;
    let refused = |reason: String| Err(Error::invalid(format!("{}: {reason}", path.display())));
    let (user, mode) = (effective_user(), facts.mode() & 0o7777);
    if !facts.is_file() {
        return refused("not a regular file".to_owned());
    }
    if facts.uid() != user {
        return refused(format!(
            "it belongs to user {}, this process to user {user}",
            facts.uid()
        ));
    }
    if mode & forbidden != 0 {
        let what = if forbidden == OTHERS_ANY {
            "use"
        } else {
            "write"
        };
        return refused(format!(
            "its mode is {mode:04o}, so that others may {what} it; chmod 600 mends that"
        ));
    }
    Ok(Some(file))
}

/// Makes a new file that only this user can read and write, from its first moment on.
pub(super) fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// The error of a call for a file whose path came from outside.
pub(super) fn failed(path: &Path, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        Io::NotFound | Io::PermissionDenied | Io::NotADirectory | Io::IsADirectory => {
            ErrorKind::InvalidArgument
        }
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn files_that_others_can_touch_are_refused() {
        let folder = std::env::temp_dir().join(format!("adasum-own-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        assert!(open(&path, OTHERS_ANY).unwrap().is_none());
        create(&path).unwrap().write_all(b"text").unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(create(&path).unwrap_err().kind(), Io::AlreadyExists);
        for (mode, forbidden, what) in [
            (0o600, OTHERS_ANY, None),
            (0o400, OTHERS_ANY, None),
            (
                0o640,
                OTHERS_ANY,
                Some("its mode is 0640, so that others may use it"),
            ),
            (0o601, OTHERS_ANY, Some("its mode is 0601")),
            (0o644, OTHERS_WRITE, None),
            (
                0o664,
                OTHERS_WRITE,
                Some("its mode is 0664, so that others may write it"),
            ),
            (0o602, OTHERS_WRITE, Some("its mode is 0602")),
        ] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            match (open(&path, forbidden), what) {
                (Ok(Some(_)), None) => {}
                (Err(error), Some(what)) => {
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                    let start = format!("{}: {what}", path.display());
                    assert!(error.to_string().starts_with(&start), "{error}");
                }
                (other, what) => panic!("{mode:o}: {other:?}, not {what:?}"),
            }
        }
        let folder_error = open(&folder, OTHERS_WRITE).unwrap_err();
        assert!(
            folder_error.to_string().ends_with("not a regular file"),
            "{folder_error}"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_of_another_user_are_refused() {
        let folder = std::env::temp_dir().join(format!("adasum-other-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut path = folder.join("file");
        create(&path).unwrap();
        if effective_user() == 0 {
            chown(&path, Some(54321), None).unwrap();
        } else {
            // Only root can give files away, but root has some.
            path = "/etc/passwd".into();
        }
        let error = open(&path, OTHERS_WRITE).unwrap_err();
        assert!(error.to_string().contains("it belongs to user "), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
