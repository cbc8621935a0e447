//! The arithmetic of MindSpore's `AdaSumByGradWrapCell`, as a reference on the CPU.
//!
//! It is not the paper's: each server divides by the largest element of the part that it holds before the scalars of all
//! servers are added, there is an absolute epsilon, and tensors that cannot be halved are averaged. It is here to show where
//! results move when training moves away from it; `docs/mindspore-arithmetic.md` tells how far and why. No device and no
//! message is involved: the servers are computed side by side, step by step as they would run.
//!
//! Every operation rounds to the tensor's type, as the operators of the original do; a sum over elements is taken in fp32
//! and rounded once, in an order that is not that of any particular device.

use std::ops::{Add, Div, Mul, Sub};

use half::f16;

use crate::cli::lab::reduce::tensor::{Tensor, element_bytes};
use crate::error::{Context, Error, Result};
use crate::plan::DType;

const EPSILON: f32 = 1e-12;

/// Reduces the ranks' tensors, `locals` ranks a server: the mean in each server, then AdaSum over the servers.
///
/// # Errors
/// If the number of servers is not a power of two, or names the tensor that the original could not reduce.
pub(crate) fn reduce(ranks: &[Vec<Tensor>], locals: usize) -> Result<Vec<Tensor>> {
    let servers = ranks.len() / locals;
    if !servers.is_power_of_two() {
        return Err(Error::invalid(format!(
            "--arithmetic mindspore takes a power of two servers, not {servers}"
        )));
    }
    let mut results = Vec::with_capacity(ranks[0].len());
    for (index, first) in ranks[0].iter().enumerate() {
        let tensors: Vec<&Tensor> = ranks.iter().map(|rank| &rank[index]).collect();
        let data = match first.dtype {
            DType::F32 => reduce_as::<f32>(&tensors, locals),
            DType::F16 => reduce_as::<f16>(&tensors, locals),
            DType::BF16 => Err(Error::unsupported(
                "the arithmetic of the original is known for fp32 and fp16, not for bf16",
            )),
        };
        results.push(Tensor {
            data: data.context(|| format!("tensor {:?}", first.name))?,
            ..(*first).clone()
        });
    }
    Ok(results)
}

/// An element type with operations that round to it.
trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn from_f32(value: f32) -> Self;
    fn to_f32(self) -> f32;
    fn from_le(bytes: &[u8]) -> Self;
    fn le_bytes(self) -> Vec<u8>;
}

impl Number for f32 {
    fn from_f32(value: f32) -> Self {
        value
    }
    fn to_f32(self) -> f32 {
        self
    }
    fn from_le(bytes: &[u8]) -> Self {
        f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
    fn le_bytes(self) -> Vec<u8> {
        self.to_le_bytes().into()
    }
}

// Through fp32 and back is right: fp32 has more than twice the digits of fp16.
impl Number for f16 {
    fn from_f32(value: f32) -> Self {
        f16::from_f32(value)
    }
    fn to_f32(self) -> f32 {
        f16::to_f32(self)
    }
    fn from_le(bytes: &[u8]) -> Self {
        f16::from_le_bytes([bytes[0], bytes[1]])
    }
    fn le_bytes(self) -> Vec<u8> {
        self.to_le_bytes().into()
    }
}

fn reduce_as<T: Number>(ranks: &[&Tensor], locals: usize) -> Result<Vec<u8>> {
    let sizes = ranks[0].shape.sizes();
    let servers: Vec<Vec<T>> = ranks.chunks(locals).map(mean_in_server).collect();
    let result = adasum(servers, sizes)?;
    Ok(result.into_iter().flat_map(Number::le_bytes).collect())
}

/// The mean in a server as the original computes it: a sum in fp32, times the rounded inverse of the number of ranks.
fn mean_in_server<T: Number>(ranks: &[&Tensor]) -> Vec<T> {
    let elements = |tensor: &Tensor| -> Vec<T> {
        let bytes = tensor.data.chunks_exact(element_bytes(tensor.dtype));
        bytes.map(T::from_le).collect()
    };
    let first = elements(ranks[0]);
    if ranks.len() == 1 {
        return first;
    }
    let mut sum: Vec<f32> = first.iter().map(|x| x.to_f32()).collect();
    for rank in &ranks[1..] {
        let values = elements(rank);
        sum.iter_mut()
            .zip(values)
            .for_each(|(s, x)| *s += x.to_f32());
    }
    let factor = 1.0 / ranks.len() as f32;
    sum.into_iter().map(|s| T::from_f32(s * factor)).collect()
}

/// What a server holds of a tensor during the reduction.
#[derive(Clone)]
struct Part<T> {
    values: Vec<T>,
    /// The sizes above 1 of its dimensions.
    sizes: Vec<u64>,
}

/// What a server goes through in a step.
enum Step<T> {
    /// The part cannot be halved: all servers of the group average what they hold.
    Average,
    /// Scaled by the largest element of the own part, or what is left of it.
    Combine {
        local: Part<T>,
        received: Vec<T>,
        /// dot, square of the left vector, square of the right one.
        partial: [T; 3],
    },
}

fn adasum<T: Number>(servers: Vec<Vec<T>>, sizes: &[u64]) -> Result<Vec<T>> {
    let sizes: Vec<u64> = sizes.iter().copied().filter(|&size| size > 1).collect();
    if servers[0].is_empty() {
        return Ok(Vec::new());
    }
    let part = |values| Part {
        values,
        sizes: sizes.clone(),
    };
    let mut parts: Vec<Part<T>> = servers.into_iter().map(part).collect();
    let steps = parts.len().ilog2();
    let mut halved: Vec<Vec<bool>> = Vec::new();
    for step in 0..steps {
        halved.push(parts.iter().map(|part| !part.sizes.is_empty()).collect());
        parts = forward(&parts, 1 << step)?;
    }
    for (step, halved) in (0..steps).zip(halved).rev() {
        parts = rollback(&parts, 1 << step, &halved);
    }
    Ok(parts.swap_remove(0).values)
}

/// The left server of a pair keeps the right half, the right one the left half.
fn is_left(server: usize, distance: usize) -> bool {
    (server / distance).is_multiple_of(2)
}

fn forward<T: Number>(parts: &[Part<T>], distance: usize) -> Result<Vec<Part<T>>> {
    let mut next = Vec::with_capacity(parts.len());
    for first in (0..parts.len()).step_by(2 * distance) {
        let group = first..first + 2 * distance;
        let steps: Vec<Step<T>> = group.clone().map(|s| step(parts, s, distance)).collect();
        let averaging = |step: &&Step<T>| matches!(step, Step::Average);
        let averages = steps.iter().filter(averaging).count();
        if averages != 0 && averages != steps.len() {
            return Err(Error::unsupported(format!(
                "servers {} to {} hold parts of one and of several elements: in MindSpore they call different \
                 operations of one group, which hangs",
                group.start,
                group.end - 1
            )));
        }
        if averages != 0 {
            let average = average(&parts[group]);
            next.extend(steps.iter().map(|_| average.clone()));
            continue;
        }
        let partials = steps.iter().filter_map(|step| match step {
            Step::Average => None,
            Step::Combine { partial, .. } => Some(*partial),
        });
        let zero = [T::from_f32(0.0); 3];
        let sums = partials.fold(zero, |sum, partial| {
            std::array::from_fn(|i| sum[i] + partial[i])
        });
        for (server, step) in group.zip(steps) {
            if let Step::Combine {
                local, received, ..
            } = step
            {
                next.push(combine(local, &received, sums, is_left(server, distance)));
            }
        }
    }
    Ok(next)
}

fn step<T: Number>(parts: &[Part<T>], server: usize, distance: usize) -> Step<T> {
    let left = is_left(server, distance);
    let peer = if left {
        server + distance
    } else {
        server - distance
    };
    let Some((local, _)) = halves(&parts[server], left) else {
        return Step::Average;
    };
    // Both hold the same part of their vectors, so the peer can halve it too.
    let received = halves(&parts[peer], !left).map_or_else(Vec::new, |(_, sent)| sent);
    let epsilon = T::from_f32(EPSILON);
    let scale = largest(&local.values) + epsilon;
    let scaled = |values: &[T]| -> Vec<T> { values.iter().map(|&x| x / scale).collect() };
    let (a, b) = (scaled(&local.values), scaled(&received));
    let (own, other) = (dot(&a, &a) + epsilon, dot(&b, &b) + epsilon);
    let (of_left, of_right) = if left { (own, other) } else { (other, own) };
    Step::Combine {
        partial: [dot(&a, &b) + epsilon, of_left, of_right],
        local,
        received,
    }
}

/// The half that is kept and the values of the half that is sent; `None` for a single element.
fn halves<T: Number>(part: &Part<T>, left: bool) -> Option<(Part<T>, Vec<T>)> {
    let (&size, inner) = part.sizes.split_first()?;
    let half = size / 2;
    let row = part.values.len() / usize::try_from(size).ok()?;
    let (lower, upper) = part.values.split_at(row * usize::try_from(half).ok()?);
    let (kept, sent, count) = if left {
        (upper, lower, size - half)
    } else {
        (lower, upper, half)
    };
    let sizes = [count].into_iter().chain(inner.iter().copied());
    let kept = Part {
        values: kept.to_vec(),
        sizes: sizes.filter(|&size| size > 1).collect(),
    };
    Some((kept, sent.to_vec()))
}

fn average<T: Number>(parts: &[Part<T>]) -> Part<T> {
    let mut sum = parts[0].clone();
    for part in &parts[1..] {
        let pairs = sum.values.iter_mut().zip(&part.values);
        pairs.for_each(|(sum, &value)| *sum = *sum + value);
    }
    let count = T::from_f32(parts.len() as f32);
    sum.values.iter_mut().for_each(|sum| *sum = *sum / count);
    sum
}

fn combine<T: Number>(mut local: Part<T>, received: &[T], sums: [T; 3], left: bool) -> Part<T> {
    let [dot, of_left, of_right] = sums;
    let (one, two) = (T::from_f32(1.0), T::from_f32(2.0));
    let weight_left = one - dot / (two * of_left);
    let weight_right = one - dot / (two * of_right);
    for (value, &other) in local.values.iter_mut().zip(received) {
        let (a, b) = if left {
            (*value, other)
        } else {
            (other, *value)
        };
        *value = weight_left * a + weight_right * b;
    }
    local
}

/// Puts the halves together again; a part that could not be halved stays.
fn rollback<T: Number>(parts: &[Part<T>], distance: usize, halved: &[bool]) -> Vec<Part<T>> {
    let whole = |server: usize| {
        let mine = &parts[server];
        if !halved[server] {
            return mine.clone();
        }
        let values = if is_left(server, distance) {
            [parts[server + distance].values.as_slice(), &mine.values].concat()
        } else {
            [mine.values.as_slice(), &parts[server - distance].values].concat()
        };
        let sizes = Vec::new();
        Part { values, sizes }
    };
    (0..parts.len()).map(whole).collect()
}

/// A NaN is the largest of all.
fn largest<T: Number>(values: &[T]) -> T {
    let larger = |a: f32, b: f32| if a.is_nan() || a >= b { a } else { b };
    let values = values.iter().map(|x| x.to_f32());
    T::from_f32(values.reduce(larger).unwrap_or(f32::NEG_INFINITY))
}

fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    let products: Vec<f32> = a.iter().zip(b).map(|(&x, &y)| (x * y).to_f32()).collect();
    T::from_f32(sum(&products))
}

/// Pairwise, so that the error hardly grows with the length.
fn sum(values: &[f32]) -> f32 {
    if values.len() <= 32 {
        return values.iter().sum();
    }
    let (a, b) = values.split_at(values.len() / 2);
    sum(a) + sum(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced<T: Number>(servers: &[&[f32]], sizes: &[u64]) -> Vec<f32> {
        let convert = |server: &&[f32]| server.iter().map(|&x| T::from_f32(x)).collect();
        let servers = servers.iter().map(convert).collect();
        let result = adasum::<T>(servers, sizes).unwrap();
        result.into_iter().map(Number::to_f32).collect()
    }

    /// What the original is known for, defect by defect.
    #[test]
    fn the_defects_of_the_original_are_reproduced() {
        // A single element is averaged, where the paper takes what is not zero.
        assert_eq!(reduced::<f32>(&[&[0.0], &[8.0]], &[]), [4.0]);
        // Two elements over four servers: different elements are averaged.
        let two: &[f32] = &[1.0, 10.0];
        assert_eq!(reduced::<f32>(&[two; 4], &[2]), [5.5, 5.5]);
        // Zero gradients: in fp16 the epsilon is 0, and so are both norms.
        let zero: &[f32] = &[0.0; 8];
        assert_eq!(reduced::<f32>(&[zero; 2], &[8]), [0.0; 8]);
        assert!(reduced::<f16>(&[zero; 2], &[8]).iter().all(|x| x.is_nan()));
        // A NaN anywhere is everywhere.
        let mut bad = [1.0; 8];
        bad[3] = f32::NAN;
        let good: &[f32] = &[1.0; 8];
        assert!(
            reduced::<f32>(&[good, &bad], &[8])
                .iter()
                .all(|x| x.is_nan())
        );
        // Scales of the parts differ, so the weights are not the paper's: 3.75333, 0.53833, 2.735, 2.35667.
        let scaled = reduced::<f32>(&[&[4.0, 1.0, 3.0, 2.0], &[1.0, -1.0, 0.5, 2.0]], &[4]);
        // As an independent model of the original has it.
        let expected = [3.878_096_6, 0.632_445_5, 2.841_156_7, 2.343_542_6];
        for (x, y) in scaled.iter().zip(expected) {
            assert!((x - y).abs() < 1e-6_f32, "{scaled:?}");
        }
    }

    #[test]
    fn parts_of_one_and_two_elements_in_a_group_are_refused() {
        let three: Vec<f32> = vec![1.0, 2.0, 3.0];
        let error = adasum(vec![three; 4], &[3]).unwrap_err().to_string();
        assert!(error.contains("servers 0 to 3"), "{error}");
    }

    #[test]
    fn identical_and_orthogonal_vectors_are_right_all_the_same() {
        let g: &[f32] = &[1.0, -2.0, 3.0, 0.5, 4.0, -1.0, 2.0, 8.0];
        for (x, y) in reduced::<f32>(&[g; 4], &[2, 4]).iter().zip(g) {
            assert!((x - y).abs() <= 1e-6 * y.abs(), "{x} {y}");
        }
        let sum = reduced::<f32>(&[&[1.0, 0.0, 3.0, 0.0], &[0.0, 2.0, 0.0, 4.0]], &[4]);
        assert_eq!(sum, [1.0, 2.0, 3.0, 4.0]);
    }
}
