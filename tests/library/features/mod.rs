//! Features beside the plain reduction of all ranks: parts of a world, votes, clipping, accumulation, rows, options.

mod clip_and_overflow;
mod gradient_buffers;
mod inputs;
mod over_pcie;
mod parts;
mod physical_devices;
mod scattered;
mod sparse_rows;
mod steps;

use std::time::Duration;

use adasum::ascend::{Device, Span, Stream};
use adasum::reduce::{DType, GradientReducer, Options, TensorSpec, World};

use crate::support::oracle;
use crate::support::{get_as, noise, put_as};

const PATIENCE: Duration = Duration::from_secs(60);
const COUNTS: [usize; 3] = [5000, 7, 300];

fn specs(dtype: DType) -> Vec<TensorSpec> {
    let counts = COUNTS.iter().enumerate();
    counts
        .map(|(t, &count)| TensorSpec::new(format!("t{t}"), count as u64, dtype))
        .collect()
}

fn gradient(rank: u32, tensor: usize) -> Vec<f32> {
    (0..COUNTS[tensor] as u64)
        .map(|i| {
            let (rank, tensor) = (u64::from(rank), tensor as u64);
            noise(&[tensor, i]) + noise(&[rank, tensor, i])
        })
        .collect()
}

fn gradients(rank: u32) -> Vec<Vec<f32>> {
    (0..COUNTS.len()).map(|t| gradient(rank, t)).collect()
}

fn upload(device: &Device, tensors: &[Vec<f32>], dtype: DType) -> Vec<Span> {
    tensors.iter().map(|x| put_as(device, x, dtype)).collect()
}

fn download(spans: &[Span], dtype: DType) -> Vec<Vec<f32>> {
    spans.iter().map(|span| get_as(span, dtype)).collect()
}

/// One reduction of `tensors` on this rank.
fn reduced(world: &World, tensors: &[Vec<f32>], options: &Options) -> Vec<Vec<f32>> {
    let mut reducer = GradientReducer::new(world, &specs(DType::F32), options).unwrap();
    let stream = Stream::new(world.device()).unwrap();
    let spans = upload(world.device(), tensors, DType::F32);
    reducer.reduce(&spans, &stream).unwrap();
    reducer.synchronize(&stream, PATIENCE).unwrap();
    download(&spans, DType::F32)
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// Holds a result against the AdaSum in fp64 of the means of consecutive `locals` of `inputs`.
fn assert_adasum(out: &[Vec<f32>], inputs: &[Vec<Vec<f32>>], locals: usize, what: &str) {
    for (t, out) in out.iter().enumerate() {
        let means: Vec<Vec<f64>> = inputs
            .chunks(locals)
            .map(|server| {
                let ranks: Vec<&[f32]> = server.iter().map(|rank| rank[t].as_slice()).collect();
                oracle::mean(&ranks)
            })
            .collect();
        let error = oracle::error_fp32(out, &oracle::adasum(&means), &means);
        assert!(error <= 1.0, "{what}, tensor {t}: {error}");
    }
}
