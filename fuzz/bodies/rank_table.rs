//! Any bytes as a rank table: checked, read and merged, and what comes out is right by its own rules.

use std::path::Path;

use adasum::topo::{Cluster, Product, RankTable, merge};

const NAME: &str = "table.json";

/// One input.
pub fn run(data: &[u8]) {
    for product in [Product::Any, Product::Ascend910A] {
        let report = RankTable::check(NAME, data, product);
        for fault in report.faults().iter().chain(report.warnings()) {
            let line = report.line(fault);
            assert!(line.starts_with(NAME) && !line.contains('\n'), "{line:?}");
        }
        let right = report.faults().is_empty();
        assert_eq!(report.table().is_some(), right);
        if let Some(table) = report.table() {
            check(table);
        }
        if product == Product::Any {
            let read = RankTable::parse(NAME, data);
            assert_eq!(read.is_ok(), right);
            if let Err(error) = read {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
    let path = Path::new(NAME);
    match merge([(path, data)]) {
        // Ranks in the order of the file: what was right alone stays right.
        Ok(_) => assert!(RankTable::parse(NAME, data).is_ok()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // The same servers twice are never one job.
    assert!(merge([(path, data), (path, data)]).is_err());
}

fn check(table: &RankTable) {
    let size = table.size();
    assert!(size > 0);
    let mut rank = 0;
    for server in table.servers() {
        assert_eq!(server.first_rank(), rank);
        for device in &server.devices {
            assert_eq!(device.rank, rank);
            let (found, same) = table.find(rank).unwrap();
            assert_eq!(
                (found.index, same.device_id),
                (server.index, device.device_id)
            );
            rank += 1;
        }
    }
    assert_eq!(rank, size);
    assert!(table.find(size).is_err());
    match table.locals() {
        Ok(locals) => assert_eq!(locals as usize * table.servers().len(), size as usize),
        Err(error) => assert!(error.to_string().contains("different numbers of devices")),
    }
    let cluster = Cluster::new(table.clone(), size - 1).unwrap();
    assert_eq!((cluster.rank(), cluster.size()), (size - 1, size));
}
