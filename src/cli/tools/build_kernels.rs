//! `adasum-run build-kernels`: compiles the kernels for an NPU where a CANN toolkit is installed.

use std::path::PathBuf;

use crate::cli::io;
use crate::error::Result;
use crate::kernel::{Build, Chip, usual_chips};

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The chip to compile for, as aclrtGetSocName names it; several may be given
    #[arg(long, value_name = "NAME")]
    soc: Vec<String>,
    /// The architecture to compile for: 1001 (910A), 2201 (910B, 910C), 3510 (950) [default: 2201, and 3510 if the toolkit knows it]
    #[arg(long, value_name = "NUMBER", conflicts_with = "soc")]
    arch: Vec<u32>,
    /// The folder for the binaries [default: in the cache, where they are found]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How: with the compiler itself or with the cmake functions of the toolkit [default: cmake where they are]
    #[arg(long, value_name = "WAY", value_parser = ["bisheng", "cmake"])]
    with: Option<String>,
}

/// Prints the path of each binary; the commands that made it go to standard error.
pub(crate) fn run(args: &Args) -> Result<()> {
    let chips: Vec<Chip> = if args.soc.is_empty() && args.arch.is_empty() {
        usual_chips(args.with.as_deref(), io::notice)?
    } else {
        let by_arch = args.arch.iter().map(|&arch| Chip::of_arch(arch));
        let by_name = args.soc.iter().map(|name| Chip::named(name));
        by_arch.chain(by_name).collect::<Result<_>>()?
    };
    for chip in chips {
        let build = Build {
            chip,
            folder: args.out.clone(),
            way: args.with.clone(),
        };
        let path = build.run(io::notice)?;
        io::print(&format!("{}\n", path.display()))?;
    }
    Ok(())
}
