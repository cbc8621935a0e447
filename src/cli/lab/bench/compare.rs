//! Ratios to the lines of other programs.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::io::file_failed;
use crate::error::{Error, Result};

/// A measurement, of a peer or of ours.
#[derive(Debug, Deserialize)]
struct Measured {
    peer: String,
    ranks: u32,
    dtype: String,
    bytes: u64,
    layers: u32,
    min_s: f64,
    median_s: f64,
}

/// Measurements of peers from a file.
pub(crate) struct Peers(Vec<Measured>);

/// Our time over that of a peer.
#[derive(Debug, Serialize)]
pub(crate) struct Ratio {
    /// The peer.
    compare: String,
    ranks: u32,
    dtype: String,
    bytes: u64,
    layers: u32,
    /// Our minimum over the peer's; below 1 is faster.
    ratio_min: f64,
    ratio_median: f64,
}

impl Peers {
    /// Reads one JSON object a line; lines without the keys of a measurement are left out.
    ///
    /// # Errors
    /// If the file cannot be read or has no measurement.
    pub(crate) fn read(path: &Path) -> Result<Peers> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| file_failed(format!("--compare {}", path.display()), &error))?;
        let lines = text.lines();
        let all: Vec<Measured> = lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if all.is_empty() {
            return Err(Error::invalid(format!(
                "--compare {}: no line is a JSON object with peer, ranks, dtype, bytes, layers, min_s and median_s",
                path.display()
            )));
        }
        Ok(Peers(all))
    }

    /// Ratios of our measurement to those of the same ranks, type and bytes; a peer that knows no tensors (one layer)
    /// compares with any number of them.
    pub(crate) fn ratios(&self, ours: &Value) -> Vec<Ratio> {
        let Ok(ours) = Measured::deserialize(ours) else {
            return Vec::new();
        };
        let same = |peer: &&Measured| {
            peer.ranks == ours.ranks
                && peer.dtype == ours.dtype
                && peer.bytes == ours.bytes
                && (peer.layers == ours.layers || peer.layers == 1)
        };
        self.0
            .iter()
            .filter(same)
            .map(|peer| Ratio {
                compare: peer.peer.clone(),
                ranks: ours.ranks,
                dtype: ours.dtype.clone(),
                bytes: ours.bytes,
                layers: ours.layers,
                ratio_min: ours.min_s / peer.min_s,
                ratio_median: ours.median_s / peer.median_s,
            })
            .collect()
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "  {:.2} of the time of {} (median {:.2})",
            self.ratio_min, self.compare, self.ratio_median
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(peer: &str, layers: u32, min_s: f64) -> Measured {
        Measured {
            peer: peer.to_owned(),
            ranks: 2,
            dtype: "f32".to_owned(),
            bytes: 1024,
            layers,
            min_s,
            median_s: 2.0 * min_s,
        }
    }

    #[test]
    fn only_like_is_compared_with_like() {
        let mut peers = Peers(vec![
            measured("a", 161, 4.0),
            measured("sum", 1, 0.5),
            measured("b", 398, 1.0),
        ]);
        peers.0.push(Measured {
            ranks: 4,
            ..measured("c", 161, 1.0)
        });
        let ours = serde_json::json!({"peer": "adasum", "ranks": 2, "dtype": "f32", "bytes": 1024, "layers": 161,
            "min_s": 1.0, "median_s": 1.0});
        let ratios = peers.ratios(&ours);
        let found: Vec<(&str, f64, f64)> = ratios
            .iter()
            .map(|ratio| (&*ratio.compare, ratio.ratio_min, ratio.ratio_median))
            .collect();
        assert_eq!(found, [("a", 0.25, 0.125), ("sum", 2.0, 1.0)]);
        assert!(
            peers
                .ratios(&serde_json::json!({"kernel": "gram"}))
                .is_empty()
        );
    }
}
