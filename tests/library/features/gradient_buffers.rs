//! Gradients in the reducer's own buffers, which other ranks read.

use super::{PATIENCE, download, gradients, specs, upload};
use crate::support::in_world;
use adasum::ErrorKind;
use adasum::ascend::{Buffer, Stream};
use adasum::reduce::{DType, Form, GradientReducer, Options, Wire};

fn options() -> Options {
    Options {
        exchange: Some(Form::Shared),
        gradient_buffers: true,
        bucket_bytes: 4096,
        ..Options::default()
    }
}

#[test]
fn gradients_in_the_buffers_are_reduced_as_elsewhere() {
    in_world(4, 1, |world| {
        let stream = Stream::new(world.device()).unwrap();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let own = upload(world.device(), &gradients(world.rank()), dtype);
            let mut reducer = GradientReducer::new(world, &specs(dtype), &options()).unwrap();
            let places = reducer.gradient_buffers().unwrap();
            // A 16-bit tensor of 7 elements is sent as fp32.
            let found: Vec<bool> = places.iter().map(Option::is_some).collect();
            assert_eq!(found, [true, dtype == DType::F32, true], "{dtype:?}");
            let values = upload(world.device(), &gradients(world.rank()), dtype);
            let placed: Vec<_> = places
                .into_iter()
                .zip(values)
                .map(|(place, value)| match place {
                    Some(place) => {
                        let mut bytes = vec![0_u8; value.len()];
                        value.read(&mut bytes).unwrap();
                        place.write(&bytes).unwrap();
                        place
                    }
                    None => value,
                })
                .collect();
            // A reduction of others overwrites what is in the buffers.
            let results = [&placed, &own].map(|gradients| {
                reducer.reduce(gradients, &stream).unwrap();
                reducer.synchronize(&stream, PATIENCE).unwrap();
                download(gradients, dtype)
            });
            assert_eq!(results[0], results[1], "{dtype:?}");
        }
    });
}

#[test]
fn gradients_that_are_changed_on_their_way_have_no_place() {
    in_world(2, 1, |world| {
        let f32_wire = Options {
            wire: Wire::F32,
            ..options()
        };
        let reducer = GradientReducer::new(world, &specs(DType::F16), &f32_wire).unwrap();
        assert!(
            reducer
                .gradient_buffers()
                .unwrap()
                .iter()
                .all(Option::is_none)
        );
        for (scale, result_scale) in [(0.5, 1.0), (1.0, 0.5)] {
            let scaled = Options {
                scale,
                result_scale,
                ..options()
            };
            let reducer = GradientReducer::new(world, &specs(DType::F32), &scaled).unwrap();
            let error = reducer.gradient_buffers().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidState);
            assert!(error.to_string().contains("scale"), "{error}");
        }
    });
}

/// The others learn it at once, and do not wait for that rank until a limit ends them.
#[test]
fn a_rank_that_cannot_share_is_named() {
    in_world(4, 1, |world| {
        let device = world.device();
        // The communicators have their buffers.
        let _first = GradientReducer::new(world, &specs(DType::F32), &options()).unwrap();
        let (free, _) = device.memory().unwrap().unwrap();
        // Less than a page is left.
        let full = (world.rank() == 2).then(|| Buffer::new(device, free - (1 << 20)).unwrap());
        let refused = GradientReducer::new(world, &specs(DType::F32), &options());
        let refused = refused.err().unwrap().to_string();
        let expected = match full {
            Some(_) => "aclrtMalloc",
            None => "rank 2 could not share",
        };
        assert!(refused.contains(expected), "{refused}");
    });
}
