//! The rank table of the job.

use std::path::Path;

use serde_json::json;

use crate::cli::launch::ranks::table_path;
use crate::cli::tools::doctor::report::Check;
use crate::cli::tools::table::check::{as_json, verdict};
use crate::reduce::World;
use crate::topo::{Cluster, Product, RankTable};

/// How many faults are shown; `table check` shows all.
const SHOWN: usize = 10;

/// The table, if there is one and it is right, and what is to say of it.
pub(crate) fn check(named: Option<&Path>, soc: Option<&str>) -> (Option<RankTable>, Check) {
    let Some(path) = named.map(Path::to_owned).or_else(table_path) else {
        let reason = "none is given (--rank-table, RANK_TABLE_FILE)";
        return (None, Check::skipped("rank table", reason));
    };
    let product = soc.map_or(Product::Any, Product::of_soc);
    let report = match RankTable::check_file(&path, product) {
        Ok(report) => report,
        Err(error) => return (None, Check::failed("rank table", error)),
    };
    let mut check = Check::new("rank table");
    check.say(format!("{}: {}", path.display(), verdict(&report)));
    for fault in report.faults().iter().take(SHOWN) {
        check.fail(report.line(fault));
    }
    for warning in report.warnings().iter().take(SHOWN) {
        check.warn(report.line(warning));
    }
    if let Some(table) = report.table()
        && let Err(error) = table.locals()
    {
        check.warn(error.to_string());
    }
    // What a rank would see: its own variables must agree with the table.
    let has_rank = std::env::var_os("RANK_ID").is_some_and(|rank| !rank.is_empty());
    if named.is_none() && has_rank && report.table().is_some() {
        match Cluster::from_env() {
            Ok(cluster) => tell_rank(&cluster, soc.is_some(), &mut check),
            Err(error) => check.fail(error.to_string()),
        }
    }
    check.data = json!({"file": path, "verdict": as_json(&report)});
    (report.table().cloned(), check)
}

/// Which rank this process is, and its device, which only ACL knows.
fn tell_rank(cluster: &Cluster, has_devices: bool, check: &mut Check) {
    let rank = cluster.rank();
    match has_devices.then(|| World::device_of(cluster)) {
        None => check.say(format!("this process is rank {rank}")),
        Some(Ok(id)) => check.say(format!("this process is rank {rank}, on its device {id}")),
        Some(Err(error)) => check.fail(error.to_string()),
    }
}
