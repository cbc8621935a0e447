//! Fuzz targets `npz`, `safetensors`, `records` and `boost`: files of other programs are taken or refused in a sentence, and whatever
//! they say they hold, no more memory is taken than there is.

use std::fs;
use std::path::PathBuf;

use adasum::Result;
use adasum::plan::mindspore::{BoostConfig, BoostLevel};

/// A file of this thread with these bytes.
fn file(name: &str, data: &[u8]) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id());
    let name_of_folder = format!("fuzz-files-{}-{thread}", std::process::id());
    let folder = std::env::temp_dir().join(name_of_folder);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    fs::write(&file, data).unwrap();
    file
}

fn said<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
            // Values are cut.
            assert!(text.len() < 4096, "{text}");
            None
        }
    }
}

fn tensors(name: &str, data: &[u8]) -> bool {
    let file = file(name, data);
    let found = said(adasum::cli::tensors_in(&file));
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
    assert_ne!(found, Some(0));
    found.is_some()
}

/// Whether it was taken.
#[allow(dead_code, reason = "each target uses one of these")]
pub(super) fn npz(data: &[u8]) -> bool {
    tensors("a.npz", data)
}

/// Whether it was taken.
#[allow(dead_code, reason = "each target uses one of these")]
pub(super) fn safetensors(data: &[u8]) -> bool {
    tensors("a.safetensors", data)
}

/// Whether there is something to draw.
#[allow(dead_code, reason = "each target uses one of these")]
pub(super) fn records(data: &[u8]) -> bool {
    let file = file("rank_0.jsonl", data);
    let folder = file.parent().unwrap();
    fs::write(folder.join("steps_0.1.0.jsonl"), data).unwrap();
    let charts = adasum::cli::charts_in(folder);
    fs::remove_dir_all(folder).unwrap();
    // Whatever is in it, the others' records count.
    charts.unwrap() > 0
}

/// Whether it was taken.
#[allow(dead_code, reason = "each target uses one of these")]
pub(super) fn boost(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let Some(config) = said(BoostConfig::parse(text)) else {
        return false;
    };
    let levels = [BoostLevel::O0, BoostLevel::O1, BoostLevel::O2];
    let taken = levels.map(|level| said(config.resolve(level)).is_some());
    taken.contains(&true)
}
