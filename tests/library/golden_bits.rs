//! The bits of twenty reductions, kept since version 0.1.0: a change that is not meant to touch results leaves them alone.
//!
//! Results are bit-identical on all machines (docs/architecture.md), so the bits may be committed. A change that is meant to touch
//! them says why in the changelog and takes the new ones, which the failure prints.

use adasum::ascend::{Span, Stream};
use adasum::reduce::{
    DType, GradientReducer, InServer, Options, Placement, Reduction, ScalarExchange, TensorSpec,
    Wire,
};

use crate::support::{in_world, noise, put_as};

/// Elements of the tensors: none, one, odd numbers, more than a unit of 4096.
const COUNTS: [usize; 6] = [3, 0, 130, 1, 4097, 9000];

struct Case {
    shape: (u32, u32),
    dtype: DType,
    options: Options,
    bits: u64,
}

fn case(shape: (u32, u32), dtype: DType, bits: u64, change: impl FnOnce(&mut Options)) -> Case {
    let mut options = Options::default();
    change(&mut options);
    Case {
        shape,
        dtype,
        options,
        bits,
    }
}

fn cases() -> Vec<Case> {
    use DType::{BF16, F16, F32};
    vec![
        case((2, 1), F32, 0x6897_d405_c64d_8ae1, |_| {}),
        case((3, 1), F32, 0x2ca5_504a_8591_24bc, |_| {}),
        case((4, 1), F32, 0x7424_4518_2e4b_0f75, |o| o.radix = 4),
        case((5, 1), F32, 0xa968_1c12_47d6_1b53, |o| o.radix = 8),
        case((6, 1), F32, 0xa24e_0b14_4994_0c29, |o| o.radix = 3),
        case((8, 1), F32, 0x822d_7644_0da5_fa75, |o| o.radix = 8),
        case((2, 2), F32, 0x8a76_3daf_1b18_ef25, |_| {}),
        case((3, 2), F32, 0xbc55_37bd_8715_2e29, |o| {
            o.placement = Placement::Columns
        }),
        case((4, 2), F16, 0x6ee1_e016_5fe8_9de5, |_| {}),
        case((2, 4), BF16, 0x4976_e124_d8d7_c985, |o| o.radix = 2),
        case((4, 1), F16, 0x7e0b_e4f7_7a46_3a6d, |o| o.radix = 4),
        case((8, 1), BF16, 0x670b_808c_aea6_0e45, |o| o.radix = 8),
        case((4, 1), F16, 0x1144_489e_1929_4b25, |o| o.wire = Wire::F32),
        case((3, 2), BF16, 0x829d_5f4f_eb16_59d5, |o| {
            o.in_server = InServer::Sum
        }),
        case((2, 2), F32, 0x47b6_6b8d_d93b_6a85, |o| {
            o.in_server = InServer::Shards
        }),
        case((4, 1), F32, 0x2fed_14ea_8713_dbf5, |o| {
            o.scalars = ScalarExchange::Owned
        }),
        case((4, 2), F32, 0xe47a_3a8a_ff16_aaa5, |o| {
            o.scattered = true;
            o.bucket_bytes = 20_000;
        }),
        case((2, 3), F32, 0x05aa_28c6_daf5_dbb9, |o| {
            o.scale = 0.37;
            o.result_scale = 1.9;
            o.bucket_bytes = 4096;
            o.pipeline_depth = 2;
        }),
        case((2, 2), F16, 0x8be1_26d2_718b_a8a5, |o| {
            o.reduction = Reduction::Mean
        }),
        case((3, 1), F32, 0xbd4d_e064_a6cb_6026, |o| {
            o.reduction = Reduction::Sum;
            o.zero_tol = 1e-6;
        }),
    ]
}

/// Tensors of very different sizes; ranks share a direction, and some nearly cancel.
fn gradient(rank: u32, tensor: usize, count: usize) -> Vec<f32> {
    let sign = if tensor == 4 && rank % 2 == 1 {
        -0.97
    } else {
        1.0
    };
    let size = [1e-3, 1.0, 0.01, 1e4, 0.1, 10.0][tensor];
    let value = |element: usize| {
        let shared = noise(&[7, tensor as u64, element as u64]);
        let own = noise(&[u64::from(rank), 3, tensor as u64, element as u64]);
        size * (sign * shared + 0.1 * own)
    };
    (0..count).map(value).collect()
}

/// FNV-1a of all bytes of all ranks.
fn hash(ranks: &[Vec<u8>]) -> u64 {
    ranks
        .iter()
        .flatten()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[test]
fn results_have_the_bits_that_they_always_had() {
    let mut found = Vec::new();
    let cases = cases();
    assert_eq!(cases.len(), 20);
    for Case {
        shape: (servers, locals),
        dtype,
        options,
        ..
    } in &cases
    {
        let ranks = in_world(*servers, *locals, |world| {
            let specs: Vec<TensorSpec> = COUNTS
                .iter()
                .enumerate()
                .map(|(index, &count)| TensorSpec::new(format!("t{index}"), count as u64, *dtype))
                .collect();
            let gradients: Vec<_> = COUNTS
                .iter()
                .enumerate()
                .map(|(index, &count)| {
                    put_as(
                        world.device(),
                        &gradient(world.rank(), index, count),
                        *dtype,
                    )
                })
                .collect();
            let mut reducer = GradientReducer::new(world, &specs, options).unwrap();
            let stream = Stream::new(world.device()).unwrap();
            reducer.reduce(&gradients, &stream).unwrap();
            let limit = std::time::Duration::from_secs(100);
            reducer.synchronize(&stream, limit).unwrap();
            if options.scattered {
                reducer.collect(&gradients, &stream).unwrap();
                reducer.synchronize(&stream, limit).unwrap();
            }
            let bytes = |span: &Span| {
                let mut bytes = vec![0_u8; span.len()];
                span.read(&mut bytes).unwrap();
                bytes
            };
            gradients.iter().flat_map(bytes).collect()
        });
        found.push(hash(&ranks));
    }
    let expected: Vec<u64> = cases.iter().map(|case| case.bits).collect();
    assert!(found == expected, "{found:#018x?}");
}
