//! Processor, cores and memory of a device.

use crate::cli::tools::qualify::findings::{Findings, Seen, require};
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::error::Result;
use crate::kernel::Chip;

/// Less free memory than this is too little for the stages that follow.
const NEEDED: usize = 2 << 30;

pub(crate) fn run(own: &StageRank, findings: &mut Findings) -> Result<()> {
    let device = own.device()?;
    findings.check("processor", || {
        let soc = device.soc_name()?;
        let arch = Chip::named(&soc)?.arch();
        Ok(Seen::note(format!("{soc}, kernels of architecture {arch}")))
    });
    findings.check("vector cores", || {
        Ok(Seen::figure(f64::from(device.vector_cores()?), "cores"))
    });
    findings.check("free memory", || {
        let Some((free, total)) = device.memory()? else {
            return Ok(Seen::note("the library does not tell"));
        };
        require(free >= NEEDED, || {
            format!("{} MB are free, {} are needed", free >> 20, NEEDED >> 20)
        })?;
        let seen = Seen::figure((free >> 20) as f64, "MB");
        Ok(seen.and(format!("of {} MB", total >> 20)))
    });
    Ok(())
}
