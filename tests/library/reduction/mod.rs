//! The reduction against a double-precision oracle, over worlds of threads.

mod refusals;
mod results;
mod shapes;

use crate::support::oracle;
use crate::support::{get_as, in_world, noise, put_as, rounded};
use adasum::ascend::Stream;
use adasum::reduce::{DType, GradientReducer, Options, TensorSpec, World};

const COUNTS: [usize; 6] = [1, 2, 3, 7, 257, 100_003];

/// A family of gradients: the value of one element on one rank.
struct Kind {
    name: &'static str,
    value: fn(At) -> f32,
}

#[derive(Clone, Copy)]
struct At {
    server: u64,
    servers: u64,
    local: u64,
    tensor: u64,
    index: u64,
}

impl At {
    fn own(self) -> f32 {
        noise(&[self.server, self.local, self.tensor, self.index])
    }

    /// The same on all ranks.
    fn common(self) -> f32 {
        noise(&[77, self.tensor, self.index])
    }
}

const KINDS: [Kind; 14] = [
    Kind {
        name: "random",
        value: |at| at.own(),
    },
    Kind {
        name: "correlated",
        value: |at| at.common() + 0.5 * at.own(),
    },
    Kind {
        name: "all zero",
        value: |_| 0.0,
    },
    Kind {
        name: "one server zero",
        value: |at| if at.server == 1 { 0.0 } else { at.own() },
    },
    Kind {
        name: "one tensor zero",
        value: |at| if at.tensor == 4 { 0.0 } else { at.own() },
    },
    Kind {
        name: "identical",
        value: |at| at.common(),
    },
    Kind {
        name: "orthogonal",
        value: |at| {
            if at.index % at.servers == at.server {
                at.own()
            } else {
                0.0
            }
        },
    },
    Kind {
        name: "parallel of both signs",
        // Of lengths that leave no subtree at zero: there the rule jumps, and rounding decides.
        value: |at| {
            let length = 1.0 + 0.3 * (at.server * at.server) as f32;
            at.common() * if at.server % 3 == 1 { -length } else { length }
        },
    },
    Kind {
        name: "opposite",
        value: |at| at.common() * if at.server % 2 == 1 { -1.0 } else { 1.0 },
    },
    Kind {
        name: "huge",
        value: |at| 1e30 * at.own(),
    },
    Kind {
        name: "tiny",
        value: |at| 1e-30 * at.own(),
    },
    Kind {
        name: "huge and tiny servers",
        value: |at| at.own() * if at.server % 2 == 0 { 1e30 } else { 1e-30 },
    },
    Kind {
        name: "huge and tiny tensors",
        value: |at| at.own() * if at.tensor % 2 == 0 { 1e30 } else { 1e-30 },
    },
    Kind {
        name: "huge and tiny units",
        value: |at| {
            at.own()
                * if at.index / 4096 % 2 == 0 {
                    1e30
                } else {
                    1e-30
                }
        },
    },
];

fn gradients(kind: &Kind, servers: u32, locals: u32, rank: u32) -> Vec<Vec<f32>> {
    (0..)
        .zip(COUNTS)
        .map(|(tensor, count)| {
            (0..count as u64)
                .map(|index| {
                    (kind.value)(At {
                        server: u64::from(rank / locals),
                        servers: u64::from(servers),
                        local: u64::from(rank % locals),
                        tensor,
                        index,
                    })
                })
                .collect()
        })
        .collect()
}

/// Kinds whose values fit fp16 come first.
const KINDS_OF_FP16: usize = 9;

/// One world and how it reduces.
#[derive(Debug, Clone, Copy)]
struct Setup {
    servers: u32,
    locals: u32,
    radix: u32,
    dtype: DType,
}

impl Setup {
    fn kinds(self) -> &'static [Kind] {
        match self.dtype {
            DType::F16 => &KINDS[..KINDS_OF_FP16],
            DType::F32 | DType::BF16 => &KINDS,
        }
    }

    fn bounds(self) -> oracle::Bounds {
        match self.dtype {
            DType::F32 => oracle::FP32,
            DType::F16 => oracle::FP16,
            DType::BF16 => oracle::BF16,
        }
    }

    fn gradients(self, kind: &Kind, rank: u32) -> Vec<Vec<f32>> {
        gradients(kind, self.servers, self.locals, rank)
            .into_iter()
            .map(|tensor| tensor.into_iter().map(|x| rounded(x, self.dtype)).collect())
            .collect()
    }

    /// All kinds on this rank: the result of each, and a hash of its bits.
    fn run(self, world: &World) -> Vec<(u64, Option<Vec<Vec<f32>>>)> {
        let tensors: Vec<TensorSpec> = (0..)
            .zip(COUNTS)
            .map(|(i, count)| TensorSpec::new(format!("t{i}"), count as u64, self.dtype))
            .collect();
        let options = Options {
            radix: self.radix,
            ..Options::default()
        };
        let mut reducer = GradientReducer::new(world, &tensors, &options).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let reduce_kind = |kind: &Kind| {
            let inputs = self.gradients(kind, world.rank());
            let spans: Vec<_> = inputs
                .iter()
                .map(|values| put_as(world.device(), values, self.dtype))
                .collect();
            reducer.reduce(&spans, &stream).unwrap();
            stream.synchronize().unwrap();
            let flags = reducer.nonfinite().unwrap();
            assert_eq!(flags, [false; COUNTS.len()], "{self:?}, {}", kind.name);
            let out: Vec<Vec<f32>> = spans.iter().map(|span| get_as(span, self.dtype)).collect();
            // The ranks are compared by their bits; one copy for the oracle is enough.
            let bits: Vec<u32> = out.iter().flatten().map(|x| x.to_bits()).collect();
            (hash(&bits), (world.rank() == 0).then_some(out))
        };
        self.kinds().iter().map(reduce_kind).collect()
    }
}

/// Runs all kinds on one world and holds every rank's result against the oracle.
fn against_oracle(setup: Setup) {
    let results = in_world(setup.servers, setup.locals, |world| setup.run(world));
    for (number, kind) in setup.kinds().iter().enumerate() {
        let at = format!("{setup:?}, {}", kind.name);
        for (rank, result) in results.iter().enumerate() {
            assert_eq!(
                result[number].0, results[0][number].0,
                "{at}: rank {rank} differs from rank 0"
            );
        }
        let inputs: Vec<_> = (0..setup.servers * setup.locals)
            .map(|rank| setup.gradients(kind, rank))
            .collect();
        let out = results[0][number].1.as_ref().unwrap();
        for tensor in 0..COUNTS.len() {
            let means: Vec<Vec<f64>> = inputs
                .chunks(setup.locals as usize)
                .map(|server| {
                    let ranks: Vec<&[f32]> =
                        server.iter().map(|rank| rank[tensor].as_slice()).collect();
                    oracle::mean(&ranks)
                })
                .collect();
            let truth = oracle::adasum(&means);
            let error = oracle::error(&out[tensor], &truth, &means, setup.bounds());
            assert!(
                error <= 1.0,
                "{at}: tensor {tensor} has {error} times the allowed error"
            );
        }
    }
}

/// fp32 in rounds of two.
fn pairwise(servers: u32, locals: u32) {
    against_oracle(Setup {
        servers,
        locals,
        radix: 2,
        dtype: DType::F32,
    });
}

fn hash(bits: &[u32]) -> u64 {
    bits.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &word| {
        (hash ^ u64::from(word)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
