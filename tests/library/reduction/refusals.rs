//! What is refused, and peers that disagree or leave.

use crate::support::{in_world, reducer, specs, upload};
use adasum::ErrorKind;
use adasum::ascend::{Device, Stream};
use adasum::reduce::{GradientReducer, Options, TensorSpec, World};

fn refusal(
    servers: u32,
    locals: u32,
    tensors: &[TensorSpec],
    options: &Options,
) -> Vec<adasum::Error> {
    in_world(servers, locals, |world| {
        GradientReducer::new(world, tensors, options)
            .map(|_| ())
            .unwrap_err()
    })
}

#[test]
fn wrong_options_are_refused_by_name() {
    let radix_nine = Options {
        radix: 9,
        ..Options::default()
    };
    for error in refusal(2, 1, &specs(&[4]), &radix_nine) {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("radix 9"), "{error}");
    }
    for error in refusal(1, 2, &specs(&[4]), &Options::default()) {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("allow_plain_mean"), "{error}");
    }
}

#[test]
fn wrong_gradients_are_refused_before_anything_is_sent() {
    in_world(2, 1, |world: &World| {
        let stream = Stream::new(world.device()).unwrap();
        let mut reducer = reducer(world, &[16, 32]);
        let spans = upload(world.device(), &[vec![1.0; 16], vec![1.0; 32]]);
        let mut says = |gradients: &[adasum::ascend::Span], what: &str| {
            let error = reducer.reduce(gradients, &stream).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        says(&spans[..1], "1 gradients were given for 2 tensors");
        says(&[spans[1].clone(), spans[0].clone()], "tensor \"t0\"");
        let odd = spans[1].slice(2..66).unwrap();
        says(&[odd, spans[1].clone()], "multiple of 4");
        let elsewhere = Device::open(1 - world.device().id()).unwrap();
        let elsewhere = upload(&elsewhere, &[vec![1.0; 16], vec![1.0; 32]]);
        says(&elsewhere, "tensor \"t0\": gradient belongs to device");
        // The reducer is still good.
        reducer.reduce(&spans, &stream).unwrap();
        stream.synchronize().unwrap();
    });
}

#[test]
fn ranks_that_disagree_are_named_on_all_ranks() {
    let errors = in_world(4, 1, |world| {
        let count = if world.rank() == 2 { 17 } else { 16 };
        GradientReducer::new(world, &specs(&[count]), &Options::default())
            .map(|_| ())
            .unwrap_err()
    });
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().contains("[2]"), "{error}");
    }
}

/// A rank that leaves: the others' wait fails and says who is missing, it does not succeed with wrong data.
#[test]
fn a_peer_that_leaves_is_an_error_where_the_result_is_awaited() {
    let errors = in_world(2, 1, |world| {
        let mut reducer = reducer(world, &[1000]);
        if world.rank() == 1 {
            return None;
        }
        let stream = Stream::new(world.device()).unwrap();
        let spans = upload(world.device(), &[vec![1.0; 1000]]);
        let enqueued = reducer.reduce(&spans, &stream);
        Some(
            enqueued
                .and_then(|()| stream.synchronize())
                .expect_err("rank 1 is gone"),
        )
    });
    let error = errors[0].as_ref().unwrap();
    assert!(error.vendor_code().is_some(), "{error}");
    assert!(error.to_string().contains("rank 1"), "{error}");
}
