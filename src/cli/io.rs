//! What the program writes: data on standard output, sentences on standard error, files.

use std::fmt::Display;
use std::fs::{self, File, FileType, Metadata, Permissions};
use std::io::ErrorKind::{
    BrokenPipe, Interrupted, IsADirectory, NotADirectory, NotFound, PermissionDenied, TimedOut,
    WouldBlock,
};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cache;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::sys::process;
use crate::topo;

/// How long is waited for who reads no more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A sentence of this program on standard error.
pub(crate) fn notice(text: &str) {
    /// Whether nobody read the last sentence: the next ones do not wait as long again.
    static UNREAD: AtomicBool = AtomicBool::new(false);
    let line = format!("adasum-run: {text}\n");
    let patience = match UNREAD.load(Ordering::Relaxed) {
        true => Duration::ZERO,
        false => PATIENCE,
    };
    // A closed standard error is no fault, nor is one that nobody reads.
    let written = write_unless(std::io::stderr(), line.as_bytes(), |unread| {
        unread >= patience
    });
    let unread = written.is_err_and(|error| error.kind() == TimedOut);
    UNREAD.store(unread, Ordering::Relaxed);
}

/// Writes `bytes`, unless `give_up` says so of the time that nobody has read: [`TimedOut`].
pub(crate) fn write_unless(
    to: impl AsFd,
    mut bytes: &[u8],
    give_up: impl Fn(Duration) -> bool,
) -> std::io::Result<()> {
    const LOOK: Duration = Duration::from_millis(100);
    let mut file = File::from(to.as_fd().try_clone_to_owned()?);
    let mut since = Instant::now();
    while !bytes.is_empty() {
        if !process::is_writable(file.as_fd(), LOOK) {
            if give_up(since.elapsed()) {
                return Err(TimedOut.into());
            }
            continue;
        }
        let part = &bytes[..bytes.len().min(libc::PIPE_BUF)];
        match file.write(part) {
            Ok(written) => {
                bytes = &bytes[written..];
                since = Instant::now();
            }
            Err(error) if matches!(error.kind(), Interrupted | WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Text on standard output; a reader that has seen enough is no fault.
pub(crate) fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != BrokenPipe => Err(failed("standard output", error)),
        _ => Ok(()),
    }
}

/// A line of JSON on standard output, for the process that started this one.
pub(crate) fn send(value: &impl Serialize) -> Result<()> {
    let line = json(value)? + "\n";
    let sent = std::io::stdout().write_all(line.as_bytes());
    sent.map_err(|error| failed("cannot report a result", error))
}

/// A value as JSON on one line.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| failed("JSON", error))
}

/// A file that the user has named, with this content, whole or not at all.
///
/// # Errors
/// If the file that is there is read-only, or writing fails. The text names the file.
pub(crate) fn save(path: &Path, text: &str) -> Result<()> {
    if is_read_only(path) {
        return Err(read_only(path));
    }
    replace(path, |file| {
        let written = file.write_all(text.as_bytes());
        written.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
    })
}

/// Has `fill` write a file beside the one that `path` leads to, which then takes its place and its mode. What is no file,
/// like a terminal, is written to.
///
/// # Errors
/// Those of `fill`, and of the file system. The text names the file, and what was there before is as it was.
pub(crate) fn replace(path: &Path, fill: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let target = destination(path);
    let before = fs::metadata(&target).ok();
    let kind = before.as_ref().map(Metadata::file_type);
    let written = if is_in_place(&target, kind) {
        let opened = File::options().append(true).open(&target);
        opened
            .map_err(file_error)
            .and_then(|mut file| fill(&mut file))
    } else {
        let draft = target.with_file_name(cache::unique(".adasum-new"));
        let written = fill_new(&draft, before.map(|before| before.permissions()), fill)
            .and_then(|()| fs::rename(&draft, &target).map_err(file_error));
        if written.is_err() {
            // It may not even be there; the error that counts is the first.
            let _ = fs::remove_file(&draft);
        }
        written
    };
    written.context(|| path.display())
}

/// Whether a file is written to, and not replaced.
fn is_in_place(target: &Path, kind: Option<FileType>) -> bool {
    // A name in /proc is that of an open file, which somebody else goes on writing.
    target.starts_with("/proc") || kind.is_some_and(|kind| !kind.is_file())
}

fn fill_new(
    path: &Path,
    permissions: Option<Permissions>,
    fill: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let opened = File::options().write(true).create_new(true).open(path);
    let mut file = opened.map_err(file_error)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions).map_err(file_error)?;
    }
    fill(&mut file)?;
    // File systems in a network say only now that they are full.
    file.sync_all().map_err(file_error)
}

/// Whether [`save`] could write a file at `path`, as far as can be seen now. What is there stays as it is.
///
/// # Errors
/// As [`save`]. The text names the file.
pub(crate) fn check_place(path: &Path) -> Result<()> {
    if is_read_only(path) {
        return Err(read_only(path));
    }
    check_replace(path)
}

/// Whether [`replace`] could write a file at `path`, as far as can be seen now. What is there stays as it is.
///
/// # Errors
/// As [`replace`]. The text names the file.
pub(crate) fn check_replace(path: &Path) -> Result<()> {
    let target = destination(path);
    let before = fs::metadata(&target).ok();
    let checked = match before.map(|before| before.file_type()) {
        // Its reader would take the end of the test for the end of the file.
        Some(kind) if kind.is_fifo() => Ok(()),
        before if is_in_place(&target, before) => {
            File::options().append(true).open(&target).map(drop)
        }
        _ => {
            let draft = target.with_file_name(cache::unique(".adasum-new"));
            let made = File::options().write(true).create_new(true).open(&draft);
            made.and_then(|_| fs::remove_file(&draft))
        }
    };
    checked.map_err(file_error).context(|| path.display())
}

fn read_only(path: &Path) -> Error {
    Error::invalid(format!("{}: the file is read-only", path.display()))
}

/// Whether a file is there that this process may not write, or that its mode says nobody should.
pub(crate) fn is_read_only(path: &Path) -> bool {
    let denied = || {
        let opened = File::options().write(true).open(path);
        opened.is_err_and(|error| error.kind() == PermissionDenied)
    };
    fs::metadata(path)
        .is_ok_and(|facts| facts.is_file() && (facts.permissions().readonly() || denied()))
}

/// # Errors
/// If the file that `name` is for is one of `others`, each with what names it.
pub(crate) fn refuse_same(name: &str, path: &Path, others: &[(&str, &Path)]) -> Result<()> {
    match others.iter().find(|(_, other)| is_same(path, other)) {
        None => Ok(()),
        Some((other, _)) => Err(Error::invalid(format!(
            "{name} {}: {other} is the same file",
            path.display()
        ))),
    }
}

/// Whether two paths lead to one file, by links of any kind.
pub(crate) fn is_same(path: &Path, other: &Path) -> bool {
    identity(path) == identity(other)
}

/// Device and inode of a file, or the path where there is none yet.
fn identity(path: &Path) -> (Option<(u64, u64)>, PathBuf) {
    match fs::metadata(path) {
        Ok(facts) => (Some((facts.dev(), facts.ino())), PathBuf::new()),
        Err(_) => (None, destination(path)),
    }
}

/// The path of a file without symbolic links, whether or not the file is there.
fn destination(path: &Path) -> PathBuf {
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if let (Ok(folder), Some(name)) = (folder.canonicalize(), path.file_name()) {
            path = folder.join(name);
        }
        match fs::read_link(&path) {
            Ok(next) if !path.starts_with("/proc") => path = path.with_file_name("").join(next),
            _ => break,
        }
    }
    path
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "what map_err gives is consumed"
)]
fn file_error(error: std::io::Error) -> Error {
    Error::new(kind(&error), error.to_string())
}

/// The text of a file that the user has named.
///
/// # Errors
/// If it cannot be read, is no regular file, larger than 16 MiB or not UTF-8. The text names the file.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let text = String::from_utf8(topo::read_file(path)?);
    text.map_err(|error| Error::invalid(format!("{}: {error}", path.display())))
}

/// The error of a file that the user has named in `what`: where it cannot be, the argument is wrong.
pub(crate) fn file_failed(what: impl Display, error: &std::io::Error) -> Error {
    Error::new(kind(error), format!("{what}: {error}"))
}

fn kind(error: &std::io::Error) -> ErrorKind {
    match error.kind() {
        NotFound | PermissionDenied | NotADirectory | IsADirectory => ErrorKind::InvalidArgument,
        _ => ErrorKind::Io,
    }
}

/// The error of an input or an output: what failed, and why.
pub(crate) fn failed(what: impl Display, error: impl Display) -> Error {
    Error::new(ErrorKind::Io, format!("{what}: {error}"))
}
