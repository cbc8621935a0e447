//! What was measured of a reduction of one size.

use serde::{Deserialize, Serialize};

use crate::cli::lab::bench::counted::Counted;

/// One size of a reduction, as a line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) peer: String,
    pub(crate) ranks: u32,
    pub(crate) dtype: String,
    /// Bytes of gradients of a rank.
    pub(crate) bytes: u64,
    /// Tensors.
    pub(crate) layers: u32,
    pub(crate) reps: usize,
    pub(crate) min_s: f64,
    pub(crate) median_s: f64,
    pub(crate) max_s: f64,
    /// Elements that are not what double precision gives, on all ranks together; `None` if they were not checked.
    pub(crate) wrong: Option<u64>,
    /// Bytes of gradients over the median.
    pub(crate) algorithm_gb_per_s: f64,
    /// Bytes that a rank must send over the median.
    pub(crate) bus_gb_per_s: f64,
    pub(crate) devices_per_server: u32,
    pub(crate) radix: u32,
    pub(crate) exchange: String,
    /// Bytes of tensors that share a fused buffer, and how many of those are under way.
    pub(crate) bucket_bytes: u64,
    pub(crate) pipeline_depth: usize,
    /// Bytes of device memory of the reducer.
    pub(crate) device_bytes: u64,
    /// For one reduction; a peer's program need not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counted: Option<Counted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phases: Option<Seconds>,
}

/// Seconds of each phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Seconds {
    pub(crate) copies: f64,
    pub(crate) exchange: f64,
    pub(crate) gram: f64,
    pub(crate) scalars: f64,
    pub(crate) combine: f64,
    #[serde(rename = "return")]
    pub(crate) back: f64,
}

impl Measured {
    /// With the rates of this median time.
    pub(crate) fn at_median(self, seconds: f64) -> Measured {
        let rate = self.bytes as f64 / seconds * 1e-9;
        Measured {
            median_s: seconds,
            algorithm_gb_per_s: rate,
            bus_gb_per_s: rate * bus_factor(self.ranks),
            ..self
        }
    }
}

/// Bytes that each of `ranks` must send in an all-reduce, over the bytes of its gradients (nccl-tests, doc/PERFORMANCE.md).
/// AdaSum's exchanges send as many where the servers and the ranks of a server divide evenly; its scalars are not counted.
fn bus_factor(ranks: u32) -> f64 {
    2.0 * (1.0 - 1.0 / f64::from(ranks))
}

#[cfg(test)]
impl Measured {
    /// For tests: 1 MB over 4 ranks.
    pub(crate) fn sample(median_s: f64) -> Measured {
        let line = serde_json::json!({
            "peer": "adasum", "ranks": 4, "dtype": "f32", "bytes": 1_000_000, "layers": 161, "reps": 20,
            "min_s": median_s, "median_s": median_s, "max_s": median_s, "wrong": 0,
            "algorithm_gb_per_s": 0.0, "bus_gb_per_s": 0.0, "devices_per_server": 1, "radix": 2, "exchange": "auto",
            "bucket_bytes": 1, "pipeline_depth": 1, "device_bytes": 1,
        });
        let line: Measured = serde_json::from_value(line).expect("a line");
        line.at_median(median_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Cost, DType, Layout, Machine, Planner, Shape};

    /// The most bytes of gradients that a rank sends, over the bytes of its gradients.
    fn most_sent(servers: u32, locals: u32, radix: u32) -> f64 {
        const ELEMENTS: u64 = 5040 * 4096;
        let shape = Shape::new(servers, locals).unwrap();
        let layout = Layout::new(DType::F32, &[ELEMENTS]).unwrap();
        let planner = Planner::new(shape, layout, radix).unwrap();
        let sent = |rank| {
            let cost = Cost::of(&planner.plan(rank).unwrap(), &Machine::mock());
            cost.steps
                .iter()
                .map(|step| step.payload.sent())
                .sum::<u64>()
        };
        (0..shape.size()).map(sent).max().unwrap() as f64 / (4 * ELEMENTS) as f64
    }

    /// What docs/costs.md says about busbw.
    #[test]
    fn adasum_sends_what_busbw_counts() {
        for (servers, locals, radix) in [
            (2, 1, 2),
            (8, 1, 2),
            (8, 1, 8),
            (9, 1, 3),
            (2, 8, 2),
            (4, 3, 2),
        ] {
            let sent = most_sent(servers, locals, radix);
            let ratio = sent / bus_factor(servers * locals);
            assert!(
                (ratio - 1.0).abs() < 1e-3,
                "{servers} x {locals}, radix {radix}: {ratio}"
            );
        }
        let more = most_sent(5, 1, 2) / bus_factor(5);
        assert_eq!(format!("{more:.2}"), "1.22");
        let most = (2..=16).map(|servers| most_sent(servers, 1, 2) / bus_factor(servers));
        assert!(most.fold(0.0, f64::max) <= more);
    }

    #[test]
    fn rates_are_those_of_an_all_reduce() {
        let line = Measured::sample(0.0005);
        assert!((line.algorithm_gb_per_s - 2.0).abs() < 1e-12);
        assert!((line.bus_gb_per_s - 3.0).abs() < 1e-12);
        let pair = Measured { ranks: 2, ..line }.at_median(0.001);
        assert!((pair.algorithm_gb_per_s - 1.0).abs() < 1e-12);
        assert!((pair.bus_gb_per_s - 1.0).abs() < 1e-12);
    }
}
