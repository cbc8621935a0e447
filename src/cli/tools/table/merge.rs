//! `adasum-run table merge`.

use std::path::PathBuf;

use crate::cli::tools::table::make::save;
use crate::error::Result;
use crate::topo;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tables of version 1.0; ranks are counted in their order
    #[arg(required = true, value_name = "TABLE")]
    tables: Vec<PathBuf>,
    /// Folder for the file hccl_{servers}s_{ranks}p.json
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

/// Writes the file and prints its name.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut contents = Vec::new();
    for path in &args.tables {
        contents.push((path.as_path(), topo::read_file(path)?));
    }
    let tables = contents
        .iter()
        .map(|(path, bytes)| (*path, bytes.as_slice()));
    save(&topo::merge(tables)?, &args.output)
}
