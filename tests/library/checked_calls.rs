//! Calls with tensors of all types and of several families of gradients, held against the double-precision oracle.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::support::oracle;
use crate::support::{get_as, in_world, noise, put_as, rounded};
use adasum::ascend::Stream;
use adasum::plan::{Layout, Planner, Shape};
use adasum::reduce::{DType, GradientReducer, Options, Placement, TensorSpec, Wire, World};

/// Sizes below and above the number of ranks and of a unit.
const COUNTS: [u64; 5] = [1, 3, 29, 257, 5000];

pub(crate) const TYPES: [(DType, oracle::Bounds); 3] = [
    (DType::F32, oracle::FP32),
    (DType::F16, oracle::FP16),
    (DType::BF16, oracle::BF16),
];

/// Families of gradients: random, correlated, parallel of both signs, nearly cancelling.
pub(crate) const FAMILIES: u64 = 4;
const NEARLY_CANCELLING: u64 = 3;

fn value(family: u64, server: u64, local: u64, tensor: u64, index: u64) -> f32 {
    let own = noise(&[server, local, tensor, index]);
    let common = noise(&[77, tensor, index]);
    match family {
        0 => own,
        1 => common + 0.5 * own,
        // Short ones against long ones: no subtree is near zero, where the rule jumps and rounding decides.
        2 if server % 3 == 1 => -0.25 * common,
        2 => common * (1.0 + 0.25 * (server % 5) as f32),
        _ => {
            let sign = if server % 2 == 1 { -1.0 } else { 1.0 };
            sign * (common + 0.125 * own)
        }
    }
}

/// One tensor of a call.
#[derive(Clone, Copy)]
pub(crate) struct Tensor {
    pub(crate) family: u64,
    pub(crate) count: u64,
    pub(crate) dtype: DType,
    pub(crate) bounds: oracle::Bounds,
}

impl Tensor {
    fn on(self, number: u64, rank: u32, locals: u32) -> Vec<f32> {
        let (server, local) = (u64::from(rank / locals), u64::from(rank % locals));
        (0..self.count)
            .map(|index| {
                let value = value(self.family, server, local, number, index);
                rounded(value, self.dtype)
            })
            .collect()
    }
}

impl Tensor {
    /// The servers' vectors, of tensor `number` of a call.
    fn means(self, number: u64, servers: u32, locals: u32) -> Vec<Vec<f64>> {
        let mean = |server: u32| {
            let ranks: Vec<Vec<f32>> = (server * locals..(server + 1) * locals)
                .map(|rank| self.on(number, rank, locals))
                .collect();
            let ranks: Vec<&[f32]> = ranks.iter().map(Vec::as_slice).collect();
            oracle::mean(&ranks)
        };
        (0..servers).map(mean).collect()
    }

    /// Whether its vectors are rounded to 16 bits wherever they are sent.
    fn is_rounded_on_the_way(self, options: &Options) -> bool {
        self.dtype != DType::F32 && options.wire == Wire::Native && self.count >= 64
    }
}

/// All families, sizes and types: types change from tensor to tensor.
pub(crate) fn tensors() -> Vec<Tensor> {
    let mut tensors = Vec::new();
    for family in 0..FAMILIES {
        for count in COUNTS {
            tensors.extend(TYPES.map(|(dtype, bounds)| Tensor {
                family,
                count,
                dtype,
                bounds,
            }));
        }
    }
    tensors
}

/// A reduction of `tensors` on this rank.
fn reduced(world: &World, tensors: &[Tensor], options: &Options) -> Vec<Vec<f32>> {
    let specs: Vec<TensorSpec> = tensors
        .iter()
        .enumerate()
        .map(|(i, tensor)| TensorSpec::new(format!("t{i}"), tensor.count, tensor.dtype))
        .collect();
    let mut reducer = GradientReducer::new(world, &specs, options).unwrap();
    let stream = Stream::new(world.device()).unwrap();
    let spans: Vec<_> = (0..)
        .zip(tensors)
        .map(|(number, tensor)| {
            let values = tensor.on(number, world.rank(), world.locals());
            put_as(world.device(), &values, tensor.dtype)
        })
        .collect();
    reducer.reduce(&spans, &stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(reducer.nonfinite().unwrap(), vec![false; tensors.len()]);
    let outs = spans.iter().zip(tensors);
    outs.map(|(span, tensor)| get_as(span, tensor.dtype))
        .collect()
}

fn bits(values: &[Vec<f32>]) -> Vec<u32> {
    values.iter().flatten().map(|x| x.to_bits()).collect()
}

/// Runs all `choices` in one world and holds every result against the oracle.
///
/// Equal results are wanted of choices that compute the same.
pub(crate) fn against_oracle(servers: u32, locals: u32, tensors: &[Tensor], choices: &[Options]) {
    let results = in_world(servers, locals, |world| {
        let run = |options| {
            let out = reduced(world, tensors, options);
            // One copy is enough for the oracle.
            (bits(&out), (world.rank() == 0).then_some(out))
        };
        choices.iter().map(run).collect::<Vec<_>>()
    });
    let means: Vec<Vec<Vec<f64>>> = (0..)
        .zip(tensors)
        .map(|(number, tensor)| tensor.means(number, servers, locals))
        .collect();
    let truths: Vec<Vec<f64>> = means.iter().map(|means| oracle::adasum(means)).collect();
    for (number, options) in choices.iter().enumerate() {
        let at = format!(
            "{servers} x {locals}, radix {}, {:?}, {:?}, {:?}, wire {:?}",
            options.radix, options.placement, options.exchange, options.scalars, options.wire
        );
        for (rank, result) in results.iter().enumerate() {
            assert!(
                result[number].0 == results[0][number].0,
                "{at}: rank {rank} differs from rank 0"
            );
        }
        let alike = (0..number).find(|&other| computed(&choices[other]) == computed(options));
        if let Some(other) = alike {
            assert!(
                results[0][number].0 == results[0][other].0,
                "{at}: differs from {:?}",
                choices[other]
            );
        }
        let out = results[0][number].1.as_ref().unwrap();
        let rounds = (options.radix != Options::AUTO_RADIX).then(|| rounds(servers, options.radix));
        for (index, tensor) in tensors.iter().enumerate() {
            let (means, truth) = (&means[index], &truths[index]);
            let error = |truth: &[f64]| oracle::error(&out[index], truth, means, tensor.bounds);
            let what = format!(
                "{at}: family {}, {} elements of {:?}",
                tensor.family, tensor.count, tensor.dtype
            );
            let rounds = rounds
                .as_ref()
                .filter(|_| tensor.is_rounded_on_the_way(options));
            if let Some(rounds) = rounds {
                let rounded = rounded_on_the_way(means, rounds, tensor.dtype);
                let error = error(&rounded);
                assert!(
                    error <= OF_ITS_OWN,
                    "{what}: {error} beside the wire's rounding"
                );
            }
            if tensor.family != NEARLY_CANCELLING || rounds.is_none() {
                let error = error(truth);
                assert!(error <= 1.0, "{what}: {error} times the allowed error");
            }
        }
    }
}

/// What a reduction may add to what the wire's rounding does, as a part of the bounds: elements that arithmetic in fp32 and in
/// double precision round to different sides.
const OF_ITS_OWN: f64 = 0.5;

/// The servers of each subtree that a round makes, over all rounds.
fn rounds(servers: u32, radix: u32) -> BTreeSet<(usize, usize)> {
    let shape = Shape::new(servers, 1).unwrap();
    let layout = Layout::new(DType::F32, &[1]).unwrap();
    let planner = Planner::new(shape, layout, radix).unwrap();
    let plans = (0..servers).map(|rank| planner.plan(rank).unwrap());
    let merged = plans.flat_map(|plan| {
        plan.rounds.into_iter().map(|round| {
            let last = round.members.last().unwrap();
            (
                round.members[0].first as usize,
                (last.first + last.count) as usize,
            )
        })
    });
    merged.collect()
}

/// AdaSum in double precision with the rounding of a 16-bit wire: of the servers' vectors and of what each round makes.
///
/// That alone leaves the bounds where gradients nearly cancel, whatever the arithmetic: with a' = a + d and |d| <= u |a|
/// a pair's result moves by up to (3/2 + |b| / |a|) |d|, and the next level takes that error for a vector of the length that
/// the cancelling left. Only a wire of fp32 keeps it out.
fn rounded_on_the_way(
    means: &[Vec<f64>],
    rounds: &BTreeSet<(usize, usize)>,
    dtype: DType,
) -> Vec<f64> {
    let round = |v: &mut Vec<f64>| {
        // The inputs and weights are fp32, so one rounding of the value as fp32 is the same but for double rounding.
        v.iter_mut()
            .for_each(|x| *x = f64::from(rounded(*x as f32, dtype)));
    };
    let mut sent = means.to_vec();
    sent.iter_mut().for_each(round);
    oracle::adasum_with(&sent, |servers: Range<usize>, vector| {
        if rounds.contains(&(servers.start, servers.end)) {
            round(vector);
        }
    })
}

pub(crate) fn radix(radix: u32) -> Options {
    Options {
        radix,
        ..Options::default()
    }
}

/// What is computed: everything but how data gets there.
fn computed(options: &Options) -> (u32, Placement, bool) {
    (options.radix, options.placement, options.wire == Wire::F32)
}
