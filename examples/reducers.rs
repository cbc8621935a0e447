//! The three reducers, in a world of four threads: two servers of two devices.
//!
//! `cargo run --example reducers` runs it over the mock; on a machine with NPUs each rank is a process of its own, which
//! joins with `World::from_environment`.

use std::sync::OnceLock;
use std::time::Duration;

use adasum::Result;
use adasum::ascend::{Buffer, Device, RootInfo, Stream};
use adasum::reduce::{
    DType, DeltaForm, DeltaWeightReducer, GradientReducer, MeanOptions, MeanReducer, Options,
    TensorSpec, World,
};

const SERVERS: u32 = 2;
const LOCALS: u32 = 2;
const COUNT: usize = 6;
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let root = OnceLock::new();
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..SERVERS * LOCALS)
            .map(|rank| {
                let root = &root;
                scope.spawn(move || run(rank, root))
            })
            .collect();
        ranks.into_iter().try_for_each(|rank| match rank.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

fn run(rank: u32, root: &OnceLock<Result<RootInfo>>) -> Result<()> {
    let device = Device::open(i32::try_from(rank).unwrap_or(0))?;
    let root = root.get_or_init(|| RootInfo::new(&device)).clone()?;
    let world = World::from_root_info(device, &root, SERVERS * LOCALS, rank, LOCALS)?;
    reduce(&world)?;
    world.finish(PATIENCE)
}

fn reduce(world: &World) -> Result<()> {
    let stream = Stream::new(world.device())?;
    let tensors = [TensorSpec::new("weight", COUNT as u64, DType::F32)];
    // The servers' gradients are orthogonal, those of a server equal.
    let server = world.rank() / LOCALS;
    let own: Vec<f32> = (0..COUNT)
        .map(|i| if i % 2 == server as usize { 1.0 } else { 0.0 })
        .collect();
    let gradient = [Buffer::from_slice(world.device(), &own)?.span()];
    let mut result = [0.0_f32; COUNT];

    // AdaSum of the servers' means: orthogonal gradients are added.
    let mut adasum = GradientReducer::new(world, &tensors, &Options::default())?;
    adasum.reduce(&gradient, &stream)?;
    adasum.synchronize(&stream, PATIENCE)?;
    gradient[0].read(&mut result)?;
    assert_eq!(result, [1.0; COUNT]);

    // The mean over all ranks halves them.
    gradient[0].write(&own)?;
    let mut mean = MeanReducer::new(
        world,
        &tensors.clone().map(Into::into),
        &MeanOptions::default(),
    )?;
    mean.reduce(&gradient, &stream)?;
    mean.synchronize(&stream, PATIENCE)?;
    gradient[0].read(&mut result)?;
    assert_eq!(result, [0.5; COUNT]);

    // AdaSum of what the optimizer did: here a step of 0.5 along the mean of the server.
    gradient[0].write(&own)?;
    let weights = [Buffer::from_slice(world.device(), &[10.0_f32; COUNT])?.span()];
    let mut delta =
        DeltaWeightReducer::new(world, &tensors, DeltaForm::ServerMean, &Options::default())?;
    delta.begin(&gradient, &weights, &stream)?;
    delta.synchronize(&stream, PATIENCE)?;
    gradient[0].read(&mut result)?;
    weights[0].write(&result.map(|gradient| 10.0 - 0.5 * gradient))?;
    delta.end(&weights, &stream)?;
    delta.synchronize(&stream, PATIENCE)?;
    weights[0].read(&mut result)?;
    assert_eq!(result, [9.5; COUNT]);

    if world.rank() == 0 {
        println!("all ranks: adasum 1, mean 0.5, weights 9.5");
    }
    Ok(())
}
