//! A directory for each rank with what the tutorial's scripts leave there: `env.log` and `train.log`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::{io, text};
use crate::error::{Error, Result};
use crate::topo::JobSecret;

/// What a rank prints.
const LOG: &str = "train.log";

/// The directories of all ranks that are started here.
pub(crate) struct Logs {
    folder: PathBuf,
    files: BTreeMap<u32, File>,
    /// Ranks whose logs lack lines.
    incomplete: BTreeSet<u32>,
}

impl Logs {
    /// Directories will be in `folder`, which is made.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn new(folder: &Path) -> Result<Logs> {
        fs::create_dir_all(folder)
            .and_then(|()| std::path::absolute(folder))
            .map(|folder| Logs {
                folder,
                files: BTreeMap::new(),
                incomplete: BTreeSet::new(),
            })
            .map_err(|error| Error::invalid(format!("--log-dir {}: {error}", folder.display())))
    }

    /// Makes the directory of `rank`, puts `copies` into it and opens its log; writes down the environment of `command`.
    /// The first attempt starts with an empty log, later ones go on.
    ///
    /// # Errors
    /// If a file cannot be copied or made.
    pub(crate) fn open(
        &mut self,
        rank: u32,
        command: &Command,
        copies: &[PathBuf],
        first: bool,
    ) -> Result<PathBuf> {
        let folder = self.folder.join(format!("device_{rank}"));
        let failed = |path: &Path, error: std::io::Error| io::failed(path.display(), error);
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        for copy in copies {
            let name = copy
                .file_name()
                .ok_or_else(|| Error::invalid(format!("--copy {}: not a file", copy.display())))?;
            let target = folder.join(name);
            // A named pipe would be waited for.
            if fs::metadata(copy).is_ok_and(|facts| !facts.is_file()) {
                return Err(Error::invalid(format!(
                    "--copy {}: not a regular file",
                    copy.display()
                )));
            }
            // Opened for writing, the file itself would be empty before it is read.
            if target.exists() && io::is_same(copy, &target) {
                continue;
            }
            fs::copy(copy, target)
                .map_err(|error| io::file_failed(format!("--copy {}", copy.display()), &error))?;
        }
        let path = folder.join("env.log");
        // The environment may hold secrets of the user's.
        let mut options = File::options();
        options.create(true).write(true).truncate(true).mode(0o600);
        options
            .open(&path)
            .and_then(|mut file| file.write_all(&environment(command)))
            .map_err(|error| failed(&path, error))?;
        let path = folder.join(LOG);
        let mut options = File::options();
        options
            .create(true)
            .write(true)
            .append(!first)
            .truncate(first);
        let file = options.open(&path).map_err(|error| failed(&path, error))?;
        self.files.insert(rank, file);
        Ok(folder)
    }

    /// Writes whole lines of `rank`.
    ///
    /// # Errors
    /// If the disk does not take them, once: the log ends there, and those of other ranks go on.
    pub(crate) fn lines(&mut self, rank: u32, lines: &[u8]) -> Result<()> {
        let Some(file) = self.files.get_mut(&rank) else {
            return Ok(());
        };
        // One write, so that whoever follows the file sees whole lines.
        file.write_all(lines).map_err(|error| {
            self.files.remove(&rank);
            self.incomplete.insert(rank);
            let path = self.folder.join(format!("device_{rank}/{LOG}"));
            let what = format!("rank {rank}: its log {} ends here", path.display());
            io::failed(what, error)
        })
    }

    /// # Errors
    /// If a log lacks lines; names the ranks.
    pub(crate) fn check(&self) -> Result<()> {
        if self.incomplete.is_empty() {
            return Ok(());
        }
        let ranks = text::numbers("rank", self.incomplete.iter().copied());
        Err(io::failed(
            "--log-dir",
            format!("the logs lack lines of {ranks}"),
        ))
    }
}

/// The environment of the command as `env` prints it, sorted, but for what others may not see.
fn environment(command: &Command) -> Vec<u8> {
    let mut all: BTreeMap<_, _> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => all.insert(name.to_owned(), value.to_owned()),
            None => all.remove(name),
        };
    }
    if let Some(secret) = all.get_mut(OsStr::new(JobSecret::VARIABLE)) {
        *secret = "(not shown)".into();
    }
    let line = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        [
            name.as_encoded_bytes(),
            b"=",
            value.as_encoded_bytes(),
            b"\n",
        ]
        .concat()
    };
    all.into_iter().flat_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::TemporaryFolder;

    #[test]
    fn a_file_that_is_in_its_place_is_not_emptied() {
        let scratch = TemporaryFolder::new("adasum-logs-test").unwrap();
        let mut logs = Logs::new(scratch.path()).unwrap();
        let folder = scratch.path().join("device_0");
        fs::create_dir(&folder).unwrap();
        let (file, link) = (folder.join("data"), folder.join("link"));
        fs::write(&file, b"content").unwrap();
        std::os::unix::fs::symlink("data", &link).unwrap();
        let outside = scratch.path().join("data");
        std::os::unix::fs::symlink(&file, &outside).unwrap();
        for copy in [file.clone(), link, outside] {
            logs.open(0, &Command::new("true"), &[copy], true).unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"content");
        }
    }
}
