//! The kernel binary.

use crate::ascend;
use crate::cli::tools::qualify::findings::{Findings, Seen};
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::error::{ErrorKind, Result};
use crate::kernel::{self, Build, Chip, Kernels};

pub(crate) fn run(own: &StageRank, findings: &mut Findings) -> Result<()> {
    let device = own.device()?;
    let soc = device.soc_name()?;
    let real = ascend::backend()?.name != "mock";
    if real && let Err(error) = kernel::locate(&soc) {
        // What is there but is no kernel binary is for its owner to remove.
        if error.kind() == ErrorKind::Unsupported {
            findings.check("built with the toolkit", || {
                let build = Build {
                    chip: Chip::named(&soc)?,
                    folder: None,
                    way: None,
                };
                let path = build.run(|line| println!("{line}"))?;
                Ok(Seen::note(path.display().to_string()))
            });
        }
    }
    findings.check("a binary for the processor", || {
        Ok(Seen::note(match real {
            true => kernel::locate(&soc)?.display().to_string(),
            false => "the CPU twin".to_owned(),
        }))
    });
    findings.check("all kernels load", || {
        let kernels = Kernels::load(&device)?;
        let (chip, path) = (kernels.chip().name(), kernels.path().display());
        Ok(Seen::note(format!("for {chip}, from {path}")))
    });
    Ok(())
}
