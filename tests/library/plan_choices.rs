//! The reduction by every choice of the plan, against the double-precision oracle: numbers of servers, ranks a server,
//! radices, placements, orders, scalars; all element types in one call.

use std::time::Duration;

use crate::library::checked_calls::{FAMILIES, TYPES, Tensor, against_oracle, radix, tensors};
use crate::support::{in_world, noise, specs, upload};
use adasum::ErrorKind;
use adasum::ascend::Stream;
use adasum::plan::mindspore::{ParallelContext, ParallelMode};
use adasum::plan::{Machine, Reach};
use adasum::reduce::{
    DType, Form, GradientReducer, InServer, Options, Overflow, Placement, Reduction,
    ScalarExchange, TensorSpec, Wire,
};

/// Every number of servers to 33: two radices up to 16, one beyond, all of them in the end.
#[test]
fn every_number_of_servers() {
    let tensors = tensors();
    for servers in 2..=33 {
        let choices = [radix(2 + servers % 7), radix(2 + (servers + 3) % 7)];
        let some = if servers > 16 { 1 } else { 2 };
        against_oracle(servers, 1, &tensors, &choices[..some]);
    }
}

#[test]
fn many_servers() {
    for servers in [48, 64, 97] {
        against_oracle(servers, 1, &tensors(), &[radix(8)]);
    }
}

/// Forms of exchange and scalars change nothing; placement and radix keep the bounds.
#[test]
fn every_choice_gives_the_result() {
    let tensors = tensors();
    for (servers, locals) in [(4, 2), (6, 1), (5, 4), (2, 8)] {
        let mut choices = Vec::new();
        for placement in [Placement::Hierarchical, Placement::Columns] {
            for radix in [2, 8] {
                for (exchange, scalars) in [
                    (Form::Batch, ScalarExchange::Gathered),
                    (Form::Pairwise, ScalarExchange::Gathered),
                    (Form::Batch, ScalarExchange::Owned),
                    (Form::Pairwise, ScalarExchange::Owned),
                    (Form::AllToAll, ScalarExchange::Owned),
                    (Form::AllToAll, ScalarExchange::Gathered),
                    (Form::Shared, ScalarExchange::Gathered),
                    (Form::Shared, ScalarExchange::Owned),
                ] {
                    choices.push(Options {
                        radix,
                        placement,
                        exchange: Some(exchange),
                        scalars,
                        // Several buckets of a type.
                        bucket_bytes: 40_000,
                        ..Options::default()
                    });
                }
            }
        }
        choices.push(radix(Options::AUTO_RADIX));
        against_oracle(servers, locals, &tensors, &choices);
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
    let tensor = |(number, &count): (u64, &u64)| {
        let (dtype, bounds) = TYPES[number as usize % 3];
        Tensor {
            family: number % FAMILIES,
            count,
            dtype,
            bounds,
        }
    };
    let tensors: Vec<Tensor> = (0..).zip(&counts).map(tensor).collect();
    let owned = Options {
        scalars: ScalarExchange::Owned,
        ..radix(4)
    };
    let wire = Options {
        wire: Wire::F32,
        ..radix(4)
    };
    against_oracle(4, 2, &tensors, &[radix(4), owned, wire]);
}

/// A mismatch names the first difference, and who has what, on every rank.
#[test]
fn what_ranks_disagree_on_is_named() {
    let differs = |change: &(dyn Fn(&mut Vec<TensorSpec>, &mut Options) + Sync), what: &[&str]| {
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
        &|specs, _| {
            specs[250].count = 17;
            specs[251].name = "other".to_owned();
        },
        &[
            "ranks [0, 1, 3] have tensor 250 \"layer250.weight\" with 16 elements of f32",
            "ranks [2] have tensor 250 \"layer250.weight\" with 17 elements of f32",
        ],
    );
    differs(
        &|specs, _| specs[7].dtype = DType::BF16,
        &["tensor 7 \"layer7.weight\"", "16 elements of bf16"],
    );
    differs(
        &|specs, _| specs[3].name = "x".repeat(1000),
        &[
            "tensor 3 \"layer3.weight\"",
            "tensor 3 \"xxx",
            "xxx\" with 16 elements of f32",
        ],
    );
    differs(
        &|specs, _| {
            specs[3].name = "x".repeat(1000);
            specs[3].count = 17;
        },
        &["xxx\" with 17 elements of f32"],
    );
    differs(
        &|specs, _| specs.truncate(299),
        &[
            "tensor 299 \"layer299.weight\"",
            "ranks [2] have no more tensors",
        ],
    );
    differs(
        &|_, options| options.radix = 4,
        &["option radix 2", "ranks [2] have option radix 4"],
    );
    differs(
        &|_, options| options.exchange = Some(Form::Shared),
        &["ranks [2] have option exchange shared in servers, "],
    );
    differs(
        &|_, options| options.overflow = Overflow::Vote,
        &[
            "option overflow Report",
            "ranks [2] have option overflow Vote",
        ],
    );
    type Change = fn(&mut Options);
    let named: [(Change, &str); 13] = [
        (|o| o.reduction = Reduction::Mean, "option reduction Mean"),
        (|o| o.in_server = InServer::Sum, "option in_server Sum"),
        (|o| o.scattered = true, "option scattered true"),
        (|o| o.zero_tol = 1e-6, "option zero_tol 0.000001"),
        (|o| o.result_scale = 2.0, "option result_scale 2"),
        (|o| o.wire = Wire::F32, "option wire F32"),
        (|o| o.bucket_bytes = 4096, "option bucket_bytes 4096"),
        (|o| o.pipeline_depth = 3, "option pipeline_depth 3"),
        (|o| o.barrier = true, "option barrier true"),
        (|o| o.checksum = true, "option checksum true"),
        (|o| o.subset_plans = 7, "option subset_plans 7"),
        (
            |o| o.gradient_buffers = true,
            "option gradient_buffers true",
        ),
        (
            |o| o.scalars = ScalarExchange::Owned,
            "option scalars of more than 0",
        ),
    ];
    for (change, what) in named {
        differs(&|_, options| change(options), &[what]);
    }
    differs(
        &|_, options| options.placement = Placement::Columns,
        &["option placement Hierarchical", "option placement Columns"],
    );
}

/// What is read is compared with what its owner has, whether one rank has a whole operand or several do.
#[test]
fn what_is_shared_passes_its_checksums() {
    let shapes = [(2, 1), (5, 1), (3, 2), (1, 10)];
    let reductions = [Reduction::Adasum, Reduction::Mean, Reduction::Sum];
    let cases = shapes.map(|shape| reductions.map(|reduction| (shape, reduction)));
    for ((servers, locals), reduction) in cases.into_iter().flatten() {
        let options = Options {
            reduction,
            exchange: Some(Form::Shared),
            checksum: true,
            allow_plain_mean: true,
            ..radix(4)
        };
        in_world(servers, locals, |world| {
            let counts = [5000, 3, 9001];
            let inputs: Vec<Vec<f32>> = (0..)
                .zip(counts)
                .map(|(tensor, count)| {
                    let key = |index| [u64::from(world.rank()), tensor, index];
                    (0..count).map(|index| noise(&key(index))).collect()
                })
                .collect();
            let specs = specs(&counts.map(|count| usize::try_from(count).unwrap()));
            let mut reducer = GradientReducer::new(world, &specs, &options).unwrap();
            let stream = Stream::new(world.device()).unwrap();
            let spans = upload(world.device(), &inputs);
            for _ in 0..2 {
                reducer.reduce(&spans, &stream).unwrap();
                reducer
                    .synchronize(&stream, Duration::from_secs(60))
                    .unwrap();
            }
        });
    }
}

/// Where ranks read the memory of their own server only, rounds between servers are messages.
#[test]
fn what_is_shared_in_servers_only() {
    let options = Options {
        exchange: Some(Form::Shared),
        machine: Some(Machine {
            reach: Reach::Server,
            ..Machine::mock()
        }),
        ..radix(2)
    };
    let checksum = Options {
        checksum: true,
        ..options.clone()
    };
    for (servers, locals) in [(2, 2), (3, 4), (4, 2)] {
        against_oracle(
            servers,
            locals,
            &tensors(),
            &[options.clone(), checksum.clone()],
        );
    }
    let columns = Options {
        placement: Placement::Columns,
        ..options
    };
    in_world(2, 2, |world| {
        let error = GradientReducer::new(world, &specs(&[5000]), &columns).err();
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(
            error.to_string().contains("placement is columns"),
            "{error}"
        );
    });
}

/// MindSpore's surroundings, the paper's result.
#[test]
fn the_profile_mindspore() {
    let context = |device_num| ParallelContext {
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
    against_oracle(2, 8, &tensors(), &options[..1]);
}
