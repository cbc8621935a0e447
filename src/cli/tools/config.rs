//! `adasum-run config`: what a C or C++ program needs to be built for ACL and HCCL and to run on the mock.
//!
//! Headers and libraries are those embedded in this program, unpacked: nothing else need be installed.

use std::path::Path;

use crate::cli::io;
use crate::error::{Error, ErrorKind, Result};
use crate::sys::embedded;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Args {
    /// Flags to compile with
    #[arg(long)]
    cflags: bool,
    /// Flags to link with; LD_LIBRARY_PATH still decides first which libraries a program runs on
    #[arg(long)]
    libs: bool,
    /// The folder of the mock's libraries, which alone as LD_LIBRARY_PATH makes a program run on the mock
    #[arg(long)]
    mock_lib_dir: bool,
    /// The folder to include acl/acl.h and hccl/hccl.h from
    #[arg(long)]
    cann_include: bool,
}

/// Prints the flags in one line and each folder in a line of its own.
pub(crate) fn run(args: &Args) -> Result<()> {
    io::print(&lines(args)?)
}

fn lines(args: &Args) -> Result<String> {
    let mut flags = Vec::new();
    if args.cflags {
        flags.push(format!("-I{}", for_shell(&embedded::headers()?)?));
    }
    if args.libs {
        let folder = for_shell(&embedded::libraries()?)?;
        flags.push(format!("-L{folder} -Wl,-rpath,{folder} -lhccl -lascendcl"));
    }
    let mut lines = Vec::new();
    if !flags.is_empty() {
        lines.push(flags.join(" "));
    }
    if args.mock_lib_dir {
        lines.push(text(&embedded::libraries()?)?.to_owned());
    }
    if args.cann_include {
        lines.push(text(&embedded::headers()?)?.to_owned());
    }
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        Error::new(
            ErrorKind::Io,
            format!("{} is not UTF-8: set ADASUM_CACHE_DIR", path.display()),
        )
    })
}

/// The path with a backslash before what a shell or make would take for something else, as pkg-config writes it.
fn for_shell(path: &Path) -> Result<String> {
    let mut quoted = String::new();
    for character in text(path)?.chars() {
        if !(character.is_alphanumeric() || "/._-+,:=@%~".contains(character)) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    Ok(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        assert_eq!(for_shell(Path::new("/a-b/c.d")).unwrap(), "/a-b/c.d");
        assert_eq!(for_shell(Path::new("/a b/$c")).unwrap(), "/a\\ b/\\$c");
    }
}
