//! Pages that say what the sources do: their commands and figures, the layers, the variables; and what CI starts.

mod checks;
mod documents;
mod layers;
mod variables;

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust sources below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}
