//! The libraries that are loaded.

use crate::ascend::{self, Device};
use crate::cli::tools::qualify::findings::{Findings, Seen, require};
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::error::Result;

/// The check whose figure is the number of devices.
pub(crate) const DEVICES: &str = "devices";

pub(crate) fn run(_: &StageRank, findings: &mut Findings) -> Result<()> {
    let survey = ascend::survey()?;
    findings.check("ACL and HCCL", || {
        let (acl, hccl) = (survey.backend.acl.display(), survey.backend.hccl.display());
        let cann = survey.cann.as_deref().unwrap_or("unknown");
        let name = match survey.mock_version {
            Some(version) => format!("the mock, version {version}"),
            None => "the vendor's".to_owned(),
        };
        Ok(Seen::note(format!("{name}: {acl}, {hccl}; CANN {cann}")))
    });
    findings.check("functions", || {
        let missing = survey.optional.iter().filter(|symbol| !symbol.present);
        let missing: Vec<&str> = missing.map(|symbol| symbol.name).collect();
        let seen = match missing.as_slice() {
            [] => Seen::note("all"),
            some => Seen::note(format!("all that are needed; without {}", some.join(", "))),
        };
        Ok(seen)
    });
    findings.check(DEVICES, || {
        let count = Device::count()?;
        require(count > 0, || "this process has no device".to_owned())?;
        Ok(Seen::figure(f64::from(count), "devices"))
    });
    Ok(())
}
