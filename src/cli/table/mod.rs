//! `adasum-run table`: rank tables made, merged, checked and drawn.

mod addresses;
mod check;
mod make;
mod show;

pub(super) use check::{as_json, verdict};

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::topo::{self, NewTable, Product};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make the table of this server, as hccl_tools.py does, and print the name of its file
    Make(make::Args),
    /// Join the tables of several servers, as merge_hccl.py does but checked, and print the name of the file
    Merge(MergeArgs),
    /// List every fault of a table by line and field
    Check(check::Args),
    /// Draw servers, devices and groups of a table
    Show(show::Args),
}

#[derive(Debug, clap::Args)]
struct MergeArgs {
    /// Tables of version 1.0; ranks are counted in their order
    #[arg(required = true, value_name = "TABLE")]
    tables: Vec<PathBuf>,
    /// Folder for the file hccl_{servers}s_{ranks}p.json
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

/// Which product's rules hold.
#[derive(Debug, clap::Args)]
struct ProductArgs {
    /// Hold the table to the rules of this chip, too (Ascend910A is the one with rules of its own)
    #[arg(long, value_name = "NAME")]
    soc: Option<String>,
}

impl ProductArgs {
    fn product(&self) -> Product {
        self.soc.as_deref().map_or(Product::Any, Product::of_soc)
    }
}

/// Runs the command; returns the exit code.
///
/// # Errors
/// If an argument or a file is wrong, or the result cannot be written.
pub(crate) fn run(args: &Args) -> Result<u8> {
    match &args.command {
        Command::Make(args) => make::run(args).map(|()| 0),
        Command::Merge(args) => merge(args).map(|()| 0),
        Command::Check(args) => check::run(args),
        Command::Show(args) => show::run(args).map(|()| 0),
    }
}

fn merge(args: &MergeArgs) -> Result<()> {
    let mut contents = Vec::new();
    for path in &args.tables {
        contents.push((path.as_path(), topo::read_file(path)?));
    }
    let tables = contents
        .iter()
        .map(|(path, bytes)| (*path, bytes.as_slice()));
    save(&topo::merge(tables)?, &args.output)
}

/// Writes a table into `folder` and prints its name.
fn save(table: &NewTable, folder: &Path) -> Result<()> {
    let path = folder.join(&table.file_name);
    std::fs::write(&path, &table.text)
        .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", path.display())))?;
    print(&format!("{}\n", path.display()))
}

/// Text on standard output.
fn print(text: &str) -> Result<()> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Error::new(ErrorKind::Io, format!("standard output: {error}")))
}
