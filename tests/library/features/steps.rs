//! What a step of every reducer may not do.

use super::{PATIENCE, gradients, specs, upload};
use crate::library::execution::counter;
use crate::support::{in_world, run_alone};
use adasum::ascend::Stream;
use adasum::reduce::{
    DType, DeltaForm, DeltaWeightReducer, GradientAccumulator, GradientReducer, MeanOptions,
    MeanReducer, MeanTensor, NormClip, Options, OverflowVote,
};

/// Counters are those of a process, so this test has one of its own.
#[test]
fn steps_of_all_reducers_wait_for_nothing_and_allocate_nothing() {
    run_alone("library::features::steps::counted_steps");
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_steps() {
    const NAMES: [&str; 3] = [
        "host_synchronizations",
        "device_allocations",
        "host_allocations",
    ];
    let barrier = std::sync::Barrier::new(4);
    let results = in_world(2, 2, |world| {
        let stream = Stream::new(world.device()).unwrap();
        let weights = upload(world.device(), &gradients(9), DType::F32);
        let spans = upload(world.device(), &gradients(world.rank()), DType::F32);
        let specs = specs(DType::F32);
        let tensors: Vec<MeanTensor> = specs.iter().cloned().map(Into::into).collect();
        let options = Options::default();
        let mut mean = MeanReducer::new(world, &tensors, &MeanOptions::default()).unwrap();
        let form = DeltaForm::ServerMean;
        let mut delta = DeltaWeightReducer::new(world, &specs, form, &options).unwrap();
        let mut vote = OverflowVote::new(world, &specs, PATIENCE).unwrap();
        let mut clip = NormClip::new(world, &specs, 1.0).unwrap();
        let mut sum = GradientAccumulator::new(world, &specs).unwrap();
        let mut reducer = GradientReducer::new(world, &specs, &options).unwrap();
        let mut step = || {
            sum.add(&spans, &stream).unwrap();
            sum.add(&spans, &stream).unwrap();
            sum.take(&spans, 0.5, &stream).unwrap();
            vote.cast(&spans, &stream).unwrap();
            mean.reduce(&spans, &stream).unwrap();
            clip.clip(&spans, &stream).unwrap();
            delta.begin(&spans, &weights, &stream).unwrap();
            delta.end(&weights, &stream).unwrap();
            reducer.reduce_some(&[1], &spans[1..2], &stream).unwrap();
        };
        step();
        stream.synchronize().unwrap();
        barrier.wait();
        let before = NAMES.map(counter);
        barrier.wait();
        step();
        step();
        barrier.wait();
        let after = NAMES.map(counter);
        barrier.wait();
        stream.synchronize().unwrap();
        (before, after)
    });
    for (before, after) in results {
        assert_eq!(before, after, "{NAMES:?}");
    }
}
