//! Damaged files: every one is an error or is read, none is a panic or takes more memory than there are bytes.

use std::fs;
use std::path::Path;

use crate::cache::TemporaryFolder;
use crate::cli::lab::reduce::file;
use crate::cli::lab::reduce::tensor::{Shape, Tensor};
use crate::plan::DType;

fn tensors() -> Vec<Tensor> {
    let tensor = |name: &str, sizes: Vec<u64>, dtype: DType| Tensor {
        name: name.to_owned(),
        data: vec![0x3C; usize::try_from(sizes.iter().product::<u64>() * dtype.size()).unwrap()],
        shape: Shape::new(sizes),
        dtype,
    };
    vec![
        tensor("layer.weight", vec![3, 5], DType::F32),
        tensor("scalar", vec![], DType::F32),
        tensor("half", vec![7], DType::F16),
    ]
}

/// A generator that needs no seed from outside.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

/// Damages a good file `times` times; returns how many were still read.
fn damage(path: &Path, times: usize) -> usize {
    let good = fs::read(path).unwrap();
    let mut random = Random(0x5EED);
    let mut read = 0;
    for _ in 0..times {
        let mut bytes = good.clone();
        match random.below(4) {
            0 => bytes.truncate(random.below(good.len())),
            1 => {
                // Lengths and offsets are what such bytes lie about.
                let at = random.below(good.len() - 8);
                bytes[at..at + 1 + random.below(8)].fill(0xFF);
            }
            2 => {
                let (from, to) = (random.below(good.len()), random.below(good.len()));
                let count = random.below(good.len() - from.max(to));
                bytes.copy_within(from..from + count, to);
            }
            _ => {
                for _ in 0..1 + random.below(3) {
                    bytes[random.below(good.len())] ^= 1 << random.below(8);
                }
            }
        }
        fs::write(path, &bytes).unwrap();
        match file::read(path) {
            Ok(_) => read += 1,
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with(path.to_str().unwrap()), "{text}");
            }
        }
    }
    read
}

#[test]
fn damaged_npz_files_are_told_apart() {
    let folder = TemporaryFolder::new("adasum-malformed").unwrap();
    let path = folder.path().join("rank.npz");
    file::write(&path, &tensors()).unwrap();
    assert_eq!(file::read(&path).unwrap(), tensors());
    let read = damage(&path, 1000);
    // What is read had its damage where nothing depends on it, like dates.
    assert!(read < 333, "{read}");
}

#[test]
fn damaged_safetensors_files_are_told_apart() {
    let folder = TemporaryFolder::new("adasum-malformed").unwrap();
    let path = folder.path().join("rank.safetensors");
    file::write(&path, &tensors()).unwrap();
    assert_eq!(file::read(&path).unwrap().len(), tensors().len());
    // The format has no checksum: damaged elements are elements.
    let read = damage(&path, 1000);
    assert!(read < 666, "{read}");
}

#[test]
fn every_truncation_is_an_error() {
    let folder = TemporaryFolder::new("adasum-malformed").unwrap();
    for name in ["rank.npz", "rank.safetensors"] {
        let path = folder.path().join(name);
        file::write(&path, &tensors()).unwrap();
        let good = fs::read(&path).unwrap();
        for length in 0..good.len() {
            fs::write(&path, &good[..length]).unwrap();
            assert!(file::read(&path).is_err(), "{name} of {length} bytes");
        }
    }
}
