//! Results that stay on the rank that computed them.

use super::{COUNTS, PATIENCE, download, gradients, reduced, specs, upload};
use crate::support::in_world;
use adasum::ErrorKind;
use adasum::ascend::Stream;
use adasum::reduce::{DType, GradientReducer, Options};

#[test]
fn scattered_results_tile_the_tensors_and_can_be_collected() {
    for (servers, locals, radix) in [(4, 2, 2), (3, 1, 3), (2, 4, 2), (5, 1, 2)] {
        let parts = in_world(servers, locals, |world| {
            let options = Options {
                radix,
                // Several buckets.
                bucket_bytes: 4096,
                ..Options::default()
            };
            let own = gradients(world.rank());
            let whole = reduced(world, &own, &options);
            let options = Options {
                scattered: true,
                ..options
            };
            let mut reducer = GradientReducer::new(world, &specs(DType::F32), &options).unwrap();
            let stream = Stream::new(world.device()).unwrap();
            let spans = upload(world.device(), &own, DType::F32);
            reducer.reduce(&spans, &stream).unwrap();
            reducer.synchronize(&stream, PATIENCE).unwrap();
            let out = download(&spans, DType::F32);
            // A sharded optimizer steps what it owns; everything else is to come from the others.
            let mut stepped: Vec<Vec<f32>> = COUNTS.iter().map(|&n| vec![f32::NAN; n]).collect();
            for part in reducer.owned() {
                let range = part.start as usize..(part.start + part.len) as usize;
                let result = &out[part.tensor][range.clone()];
                assert_eq!(result, &whole[part.tensor][range.clone()]);
                stepped[part.tensor][range].copy_from_slice(result);
            }
            let spans = upload(world.device(), &stepped, DType::F32);
            reducer.collect(&spans, &stream).unwrap();
            reducer.synchronize(&stream, PATIENCE).unwrap();
            assert_eq!(download(&spans, DType::F32), whole);
            reducer.owned()
        });
        let mut owners: Vec<Vec<u32>> = COUNTS.iter().map(|&n| vec![0; n]).collect();
        for part in parts.iter().flatten() {
            for element in part.start..part.start + part.len {
                owners[part.tensor][element as usize] += 1;
            }
        }
        assert!(owners.iter().flatten().all(|&owners| owners == 1));
    }
    in_world(2, 1, |world| {
        let mut reducer =
            GradientReducer::new(world, &specs(DType::F32), &Options::default()).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let error = reducer.collect(&[], &stream).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
    });
}
