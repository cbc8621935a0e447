//! The first device: its chip, its memory, and the kernels for it.

use serde_json::json;

use crate::ascend::{Device, Survey};
use crate::cli::text;
use crate::cli::tools::doctor::report::Check;
use crate::error::Result;
use crate::kernel::{self, Kernels};

/// Facts of device 0.
pub(crate) struct DeviceFacts {
    /// Number of devices of this process.
    pub(crate) count: u32,
    /// Name of the chip.
    pub(crate) soc: String,
    /// Bytes of free device memory, if the library tells.
    pub(crate) free: Option<usize>,
}

/// Adds the checks "device" and "kernels".
pub(crate) fn check(survey: &Survey, checks: &mut Vec<Check>) -> Option<DeviceFacts> {
    let mut check = Check::new("device");
    let opened = open(&mut check);
    let (device, found) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            check.fail(error.to_string());
            checks.push(check);
            checks.push(Check::skipped("kernels", "no device is open"));
            return None;
        }
    };
    checks.push(check);
    checks.push(kernels(&device, &found.soc, survey));
    Some(found)
}

fn open(check: &mut Check) -> Result<(Device, DeviceFacts)> {
    let count = Device::count()?;
    let device = Device::open(0)?;
    let soc = device.soc_name()?;
    let cores = device.vector_cores()?;
    let memory = device.memory()?;
    check.say(format!(
        "{count} devices; device 0 is an {soc} with {cores} vector cores"
    ));
    if let Some((free, total)) = memory {
        check.say(format!(
            "{} of {} MB of its memory are free",
            free >> 20,
            total >> 20
        ));
    }
    if let Some(joined) = joined(&device, count) {
        check.say(joined);
    }
    check.data = json!({
        "count": count,
        "soc": soc,
        "vector_cores": cores,
        "free_bytes": memory.map(|(free, _)| free),
        "total_bytes": memory.map(|(_, total)| total),
    });
    let free = memory.map(|(free, _)| free);
    Ok((device, DeviceFacts { count, soc, free }))
}

/// What joins device 0 and the others, if the library says it.
fn joined(device: &Device, count: u32) -> Option<String> {
    let mut told = Vec::new();
    for peer in 1..count {
        let link = match device.link_type(i32::try_from(peer).ok()?) {
            Ok(link) => link?.to_string(),
            Err(error) => format!("what cannot be seen ({error})"),
        };
        told.push((peer, link));
    }
    let groups = text::grouped(told.into_iter()).into_iter();
    let parts: Vec<String> = groups
        .map(|(peers, link)| format!("{link} with {}", text::numbers("device", peers.into_iter())))
        .collect();
    (!parts.is_empty()).then(|| format!("device 0 is joined by {}", parts.join(", by ")))
}

fn kernels(device: &Device, soc: &str, survey: &Survey) -> Check {
    let mut check = Check::new("kernels");
    let is_mock = survey.backend.name == "mock";
    let on_chip = kernel::locate(soc);
    let loaded = Kernels::load(device);
    match &loaded {
        Ok(kernels) => check.say(format!(
            "all of them, from {}{}",
            if is_mock { "the CPU twin " } else { "" },
            kernels.path().display()
        )),
        Err(error) => check.fail(error.to_string()),
    }
    if is_mock {
        check.say(match &on_chip {
            Ok(path) => format!("an {soc} itself would run {}", path.display()),
            Err(error) => format!("an {soc} itself would have none: {error}"),
        });
    }
    let source = loaded
        .as_ref()
        .map(|kernels| kernels.path().display().to_string());
    let on_chip = on_chip.map(|path| path.display().to_string());
    check.data = json!({"source": source.ok(), "on_chip": on_chip.ok()});
    check
}
