//! Which libraries are in use, and what they can do.

use serde_json::json;

use crate::ascend::{self, Survey};
use crate::cli::tools::doctor::report::Check;

/// Adds the checks "backend" and "symbols"; what was found, if that can be used.
pub(crate) fn check(checks: &mut Vec<Check>) -> Option<Survey> {
    let survey = match ascend::survey() {
        Ok(survey) => survey,
        Err(error) => {
            checks.push(Check::failed("backend", error));
            checks.push(Check::skipped("symbols", "there is no backend"));
            return None;
        }
    };
    checks.push(backend(&survey));
    checks.push(symbols(&survey));
    Some(survey)
}

fn backend(survey: &Survey) -> Check {
    let mut check = Check::new("backend");
    let name = survey.backend.name;
    check.say(format!("{name}: {}", survey.why));
    check.say(format!("ACL   {}", survey.backend.acl.display()));
    check.say(format!("HCCL  {}", survey.backend.hccl.display()));
    let acl = survey
        .acl_version
        .map(|(major, minor, patch)| format!("{major}.{minor}.{patch}"));
    let known = |version: &Option<String>| version.clone().unwrap_or_else(|| "unknown".to_owned());
    check.say(format!(
        "CANN {}, HCCL {}, interface of ACL {}",
        known(&survey.cann),
        known(&survey.hccl),
        known(&acl)
    ));
    if let Some(version) = survey.mock_version {
        check.say(format!(
            "this is the mock of ACL and HCCL, version {version}: it plays these versions on the processor"
        ));
    }
    check.data = json!({
        "name": name,
        "why": survey.why,
        "acl": survey.backend.acl,
        "hccl": survey.backend.hccl,
        "acl_version": acl,
        "cann": survey.cann,
        "hccl_version": survey.hccl,
        "mock_version": survey.mock_version,
    });
    check
}

fn symbols(survey: &Survey) -> Check {
    let mut check = Check::new("symbols");
    let missing: Vec<_> = survey.optional.iter().filter(|s| !s.present).collect();
    let present = survey.optional.len() - missing.len();
    // Loading fails where a function that is needed is missing.
    check.say(format!(
        "all functions that are needed, and {present} of {} that need not be there",
        survey.optional.len()
    ));
    for symbol in &missing {
        check.say(format!(
            "without {} (in CANN since {})",
            symbol.name, symbol.since
        ));
    }
    let entry = |symbol: &ascend::Symbol| json!({"name": symbol.name, "since": symbol.since, "present": symbol.present});
    check.data = json!({"optional": survey.optional.iter().map(entry).collect::<Vec<_>>()});
    check
}
