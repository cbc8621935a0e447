//! AdaSum of one gradient of each rank: `adasum-run launch -n 2 -- target/debug/examples/gradient`.

use std::time::Duration;

use adasum::ascend::{Buffer, Stream};
use adasum::reduce::{DType, GradientReducer, Options, Settings, TensorSpec, World};

const LIMIT: Duration = Duration::from_secs(60);

fn main() -> adasum::Result<()> {
    // Each rank counts as a server. Otherwise servers are machines, whose own ranks are averaged first.
    let settings = Settings {
        devices_per_server: Some(1),
        ..Settings::default()
    };
    let world = World::from_environment(&settings)?;
    let stream = Stream::new(world.device())?;
    let tensors = [TensorSpec::new("dense.weight", 4, DType::F32)];
    let mut reducer = GradientReducer::new(&world, &tensors, &Options::default())?;

    // In a training the backward pass leaves gradients on the device. These stand at right angles, so AdaSum adds them.
    let mut values = [0.0_f32; 4];
    values[world.rank() as usize % 4] = 1.0;
    let gradient = Buffer::from_slice(world.device(), &values)?;
    // Queued on the stream, where the kernels of an optimizer can follow: the host does not wait.
    reducer.reduce(&[gradient.span()], &stream)?;

    // Only who looks at the result waits.
    reducer.synchronize(&stream, LIMIT)?;
    gradient.span().read(&mut values)?;
    println!("{values:?}");

    drop(reducer);
    world.finish(LIMIT)
}
