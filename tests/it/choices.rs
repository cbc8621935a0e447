//! The reduction by every choice of the plan, against the double-precision oracle: numbers of servers, ranks a server,
//! radices, placements, orders, scalars; all element types in one call.

use crate::oracle;
use crate::support::{get_as, in_world, noise, put_as, rounded};
use adasum::ErrorKind;
use adasum::ascend::Stream;
use adasum::plan::mindspore::{Context, ParallelMode};
use adasum::reduce::{
    DType, GradientReducer, Options, Order, Placement, ScalarExchange, TensorSpec, Wire, World,
};

/// Sizes below and above the number of ranks and of a unit.
const COUNTS: [u64; 5] = [1, 3, 29, 257, 5000];

const TYPES: [(DType, oracle::Bounds); 3] = [
    (DType::F32, oracle::FP32),
    (DType::F16, oracle::FP16),
    (DType::BF16, oracle::BF16),
];

/// Families of gradients: random, correlated, parallel of both signs, nearly cancelling.
const FAMILIES: u64 = 4;

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
struct Tensor {
    family: u64,
    count: u64,
    dtype: DType,
    bounds: oracle::Bounds,
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

/// All families, sizes and types: types change from tensor to tensor.
fn tensors() -> Vec<Tensor> {
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
/// Equal results are wanted of choices that `same` puts together.
fn against_oracle(
    servers: u32,
    locals: u32,
    tensors: &[Tensor],
    choices: &[Options],
    same: impl Fn(&Options) -> (u32, Placement),
) {
    let results = in_world(servers, locals, |world| {
        let run = |options| {
            let out = reduced(world, tensors, options);
            // One copy is enough for the oracle.
            (bits(&out), (world.rank() == 0).then_some(out))
        };
        choices.iter().map(run).collect::<Vec<_>>()
    });
    let truths: Vec<_> = (0..)
        .zip(tensors)
        .map(|(number, tensor)| {
            let means: Vec<Vec<f64>> = (0..servers)
                .map(|server| {
                    let ranks: Vec<Vec<f32>> = (server * locals..(server + 1) * locals)
                        .map(|rank| tensor.on(number, rank, locals))
                        .collect();
                    let ranks: Vec<&[f32]> = ranks.iter().map(Vec::as_slice).collect();
                    oracle::mean(&ranks)
                })
                .collect();
            (oracle::adasum(&means), means)
        })
        .collect();
    for (number, options) in choices.iter().enumerate() {
        let at = format!(
            "{servers} x {locals}, radix {}, {:?}, {:?}, {:?}",
            options.radix, options.placement, options.order, options.scalars
        );
        for (rank, result) in results.iter().enumerate() {
            assert!(
                result[number].0 == results[0][number].0,
                "{at}: rank {rank} differs from rank 0"
            );
        }
        let alike = (0..number).find(|&other| same(&choices[other]) == same(options));
        if let Some(other) = alike {
            assert!(
                results[0][number].0 == results[0][other].0,
                "{at}: differs from {:?}",
                choices[other]
            );
        }
        let out = results[0][number].1.as_ref().unwrap();
        for ((tensor, out), (truth, means)) in tensors.iter().zip(out).zip(&truths) {
            let error = oracle::error(out, truth, means, tensor.bounds);
            assert!(
                error <= 1.0,
                "{at}: family {}, {} elements of {:?}: {error} times the allowed error",
                tensor.family,
                tensor.count,
                tensor.dtype
            );
        }
    }
}

fn radix(radix: u32) -> Options {
    Options {
        radix,
        ..Options::default()
    }
}

/// What is computed: everything but how data gets there.
fn computed(options: &Options) -> (u32, Placement) {
    (options.radix, options.placement)
}

/// Every number of servers to 33: two radices up to 16, one beyond, all of them in the end.
#[test]
fn every_number_of_servers() {
    let tensors = tensors();
    for servers in 2..=33 {
        let choices = [radix(2 + servers % 7), radix(2 + (servers + 3) % 7)];
        let some = if servers > 16 { 1 } else { 2 };
        against_oracle(servers, 1, &tensors, &choices[..some], computed);
    }
}

#[test]
fn many_servers() {
    for servers in [48, 64, 97] {
        against_oracle(servers, 1, &tensors(), &[radix(8)], computed);
    }
}

/// Order and scalars change nothing; placement and radix keep the bounds.
#[test]
fn every_choice_gives_the_result() {
    let tensors = tensors();
    for (servers, locals) in [(4, 2), (6, 1), (5, 4), (2, 8)] {
        let mut choices = Vec::new();
        for placement in [Placement::Hierarchical, Placement::Columns] {
            for radix in [2, 8] {
                for (order, scalars) in [
                    (Order::Batch, ScalarExchange::Gathered),
                    (Order::Pairwise, ScalarExchange::Gathered),
                    (Order::Batch, ScalarExchange::Owned),
                    (Order::Pairwise, ScalarExchange::Owned),
                ] {
                    choices.push(Options {
                        radix,
                        placement,
                        order: Some(order),
                        scalars,
                        // Several buckets of a type.
                        bucket_bytes: 40_000,
                        ..Options::default()
                    });
                }
            }
        }
        choices.push(radix(Options::AUTO_RADIX));
        against_oracle(servers, locals, &tensors, &choices, computed);
    }
}

/// All of the above for every radix, placement and number of ranks a server: minutes to hours.
#[test]
#[ignore = "minutes to hours: run by `.ci/run --full`"]
fn the_whole_matrix() {
    let tensors = tensors();
    for servers in (2..=33).chain([48, 64, 97]) {
        for locals in [1, 2, 4, 8] {
            let mut choices: Vec<Options> = (2..=8).map(radix).collect();
            choices.push(Options {
                placement: Placement::Columns,
                order: Some(Order::Pairwise),
                scalars: ScalarExchange::Owned,
                ..radix(8)
            });
            against_oracle(servers, locals, &tensors, &choices, computed);
        }
    }
}

/// The 398 tensors of BERT-large, each 1/512 as long.
fn bert() -> Vec<u64> {
    let hidden = 1024_u64;
    let mut counts = vec![30_522 * hidden, 512 * hidden, 2 * hidden, hidden, hidden];
    for _ in 0..24 {
        for _ in 0..4 {
            counts.extend([hidden * hidden, hidden]);
        }
        counts.extend([hidden, hidden]);
        counts.extend([4 * hidden * hidden, 4 * hidden]);
        counts.extend([4 * hidden * hidden, hidden]);
        counts.extend([hidden, hidden]);
    }
    counts.extend([hidden * hidden, hidden]);
    counts.extend([hidden * hidden, hidden, hidden, hidden, 30_522]);
    counts.extend([2 * hidden, 2]);
    counts.iter().map(|count| (count / 512).max(1)).collect()
}

#[test]
fn the_tensors_of_bert_large() {
    let counts = bert();
    assert_eq!(counts.len(), 398);
    let tensors = |types: fn(u64, u64) -> usize| -> Vec<Tensor> {
        (0..)
            .zip(&counts)
            .map(|(number, &count)| {
                let (dtype, bounds) = TYPES[types(number, count)];
                Tensor {
                    family: number % FAMILIES,
                    count,
                    dtype,
                    bounds,
                }
            })
            .collect()
    };
    let owned = Options {
        scalars: ScalarExchange::Owned,
        ..radix(4)
    };
    // Of a few elements all gradients are nearly parallel and may leave next to nothing. Rounding the server's mean to
    // 16 bits, as the native wire does, then turns what is left, so those are fp32 here ...
    let few = |number: u64, count: u64| {
        if count < 8 { 0 } else { number as usize % 3 }
    };
    against_oracle(4, 2, &tensors(few), &[radix(4), owned.clone()], computed);
    // ... and with a wire of fp32 there is no such rounding.
    let wire = Options {
        wire: Wire::F32,
        ..owned
    };
    let any = |number: u64, _| number as usize % 3;
    against_oracle(4, 2, &tensors(any), &[wire], computed);
}

/// A mismatch names the first difference, and who has what, on every rank.
#[test]
fn what_ranks_disagree_on_is_named() {
    let differs = |change: fn(&mut Vec<TensorSpec>, &mut Options), what: &[&str]| {
        let errors = in_world(4, 1, |world| {
            let mut specs: Vec<TensorSpec> = (0..300)
                .map(|i| TensorSpec::new(format!("layer{i}.weight"), 16, DType::F32))
                .collect();
            let mut options = Options::default();
            if world.rank() == 2 {
                change(&mut specs, &mut options);
            }
            GradientReducer::new(world, &specs, &options)
                .map(|_| ())
                .unwrap_err()
        });
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Mismatch);
            for part in what {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
    };
    differs(
        |specs, _| {
            specs[250].count = 17;
            specs[251].name = "other".to_owned();
        },
        &[
            "ranks [0, 1, 3] have tensor 250 \"layer250.weight\" with 16 elements of f32",
            "ranks [2] have tensor 250 \"layer250.weight\" with 17 elements of f32",
        ],
    );
    differs(
        |specs, _| specs[7].dtype = DType::BF16,
        &["tensor 7 \"layer7.weight\"", "16 elements of bf16"],
    );
    differs(
        |specs, _| specs[3].name = "x".repeat(1000),
        &["tensor 3 \"layer3.weight\"", "tensor 3 \"xxx"],
    );
    differs(
        |specs, _| specs.truncate(299),
        &[
            "tensor 299 \"layer299.weight\"",
            "ranks [2] have no more tensors",
        ],
    );
    differs(
        |_, options| options.radix = 4,
        &["option radix 2", "ranks [2] have option radix 4"],
    );
    differs(
        |_, options| options.placement = Placement::Columns,
        &["option placement Hierarchical", "option placement Columns"],
    );
}

/// MindSpore's surroundings, the paper's result.
#[test]
fn the_profile_mindspore() {
    let context = |device_num| Context {
        mode: ParallelMode::DataParallel,
        enable_parallel_optimizer: false,
        pipeline_stages: 1,
        device_num,
    };
    let options = in_world(2, 8, |world| {
        let other = Options::mindspore(world, &context(32)).unwrap_err();
        assert!(
            other
                .to_string()
                .contains("4 servers of 8 devices, the world 2 of 8"),
            "{other}"
        );
        let few = Options::mindspore(world, &context(8)).unwrap_err();
        assert_eq!(
            few.to_string(),
            "The device_num must be at least 16 and must be the power of 2 when applying adasum."
        );
        Options::mindspore(world, &context(16)).unwrap()
    });
    assert_eq!(options[0].placement, Placement::Columns);
    assert!(options[0].barrier);
    against_oracle(2, 8, &tensors(), &options[..1], computed);
}
