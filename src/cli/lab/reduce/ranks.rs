//! The ranks: threads of this process, each with a device of the mock, running what training runs.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sha1::{Digest, Sha1};

use crate::ascend::{Buffer, Device, RootInfo, Span, Stream};
use crate::cli::io::failed;
use crate::cli::lab::reduce::tensor::Tensor;
use crate::cli::launch::ranks::{
    BACKEND, MOCK_DEVICES, MOCK_DEVICES_VARIABLE, VISIBLE_VARIABLE, this_program,
};
use crate::error::{Error, ErrorKind, Result};
use crate::reduce::{GradientReducer, Options, TensorSpec, World};

/// The most devices that the mock plays.
pub(crate) const MAX_RANKS: usize = 1024;
/// How long all of it may take while something moves; that nothing does is found by the limit on stalls.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// How long other ranks may take to say more of a failure than the first that says something.
const GRACE: Duration = Duration::from_secs(5);

/// Makes sure that this process runs on the mock and sees a device for each of `ranks`.
///
/// The mock takes its settings from the environment, so where they do not suffice this program starts anew in
/// the same process with other ones, and the call does not return. Nothing must have been done before it.
///
/// # Errors
/// If this program cannot be started anew.
pub(crate) fn prepare(ranks: usize) -> Result<()> {
    let variable = |name| std::env::var(name).ok();
    let devices =
        variable(MOCK_DEVICES_VARIABLE).map_or(Some(MOCK_DEVICES), |value| value.parse().ok());
    let on_mock = variable(BACKEND).as_deref() == Some("mock");
    let all_visible = std::env::var_os(VISIBLE_VARIABLE).is_none();
    if on_mock && all_visible && devices.is_some_and(|devices| devices >= ranks) {
        return Ok(());
    }
    let error = Command::new(this_program()?)
        .args(std::env::args_os().skip(1))
        .env(BACKEND, "mock")
        .env(MOCK_DEVICES_VARIABLE, ranks.max(MOCK_DEVICES).to_string())
        .env_remove(VISIBLE_VARIABLE)
        .exec();
    Err(failed("cannot start this program anew", error))
}

/// Reduces `inputs`, one list of tensors a rank, over a world with `locals` ranks a server.
///
/// # Errors
/// What failed, whose ranks may be left waiting: the process should end. `Mismatch` if
/// ranks hold different results.
pub(crate) fn reduce(
    inputs: &Arc<Vec<Vec<Tensor>>>,
    locals: u32,
    options: &Options,
) -> Result<Vec<Tensor>> {
    let shared = Arc::new(Shared {
        inputs: Arc::clone(inputs),
        locals,
        options: options.clone(),
        root: OnceLock::new(),
    });
    let (sender, reports) = mpsc::channel();
    for rank in 0..inputs.len() {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        let start = thread::Builder::new().name(format!("rank {rank}"));
        let started = start.spawn(move || {
            // If nobody listens any more, another rank has failed before.
            let _ = sender.send(shared.run(rank));
        });
        started.map_err(|error| failed(format!("rank {rank}: no thread"), error))?;
    }
    drop(sender);
    let reports = collect(&reports)?;
    if reports
        .iter()
        .any(|report| report.digest != reports[0].digest)
    {
        let message = "ranks hold different results";
        return Err(Error::new(ErrorKind::Mismatch, message));
    }
    let complete = reports.len() == inputs.len();
    let data = reports.into_iter().find_map(|report| report.result);
    // A rank that reports nothing has panicked, and has said so.
    let data = data.filter(|_| complete);
    let data = data.ok_or_else(|| Error::new(ErrorKind::InvalidState, "a rank ended badly"))?;
    let with_data = |(tensor, data): (&Tensor, Vec<u8>)| Tensor {
        name: tensor.name.clone(),
        shape: tensor.shape.clone(),
        dtype: tensor.dtype,
        data,
    };
    Ok(inputs[0].iter().zip(data).map(with_data).collect())
}

/// The reports of all ranks, or why there are none.
fn collect(reports: &mpsc::Receiver<Result<RankResult>>) -> Result<Vec<RankResult>> {
    let mut good = Vec::new();
    let mut cause = loop {
        match reports.recv() {
            Ok(Ok(report)) => good.push(report),
            Ok(Err(error)) => break error,
            Err(_) => return Ok(good),
        }
    };
    // A rank that gives up waiting takes its communicators along, and others may speak of that before it says why.
    let end = Instant::now() + GRACE;
    while cause.kind() != ErrorKind::Timeout {
        match reports.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Err(error)) if error.kind() == ErrorKind::Timeout => cause = error,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    Err(cause)
}

/// Input and options of all ranks.
struct Shared {
    inputs: Arc<Vec<Vec<Tensor>>>,
    locals: u32,
    options: Options,
    root: OnceLock<Result<RootInfo>>,
}

/// The end of a rank.
struct RankResult {
    /// Hash of all elements of the result.
    digest: [u8; 20],
    /// The elements themselves, tensor by tensor, from rank 0.
    result: Option<Vec<Vec<u8>>>,
}

impl Shared {
    /// One rank from beginning to end.
    fn run(&self, rank: usize) -> Result<RankResult> {
        let number = |value: usize| {
            u32::try_from(value).map_err(|_| Error::invalid(format!("{value} ranks are too many")))
        };
        let (rank, size) = (number(rank)?, number(self.inputs.len())?);
        let device = Device::open(rank.cast_signed())?;
        // Every rank asks; the first to come makes it.
        let root = self.root.get_or_init(|| RootInfo::new(&device));
        let root = root.as_ref().map_err(Clone::clone)?;
        let world = World::from_root_info(device, root, size, rank, self.locals)?;
        let report = self.reduce(&world)?;
        world.finish(self.options.stall_timeout)?;
        Ok(report)
    }

    fn reduce(&self, world: &World) -> Result<RankResult> {
        let tensors = &self.inputs[world.rank() as usize];
        let specs: Vec<TensorSpec> = tensors.iter().map(Tensor::spec).collect();
        let mut reducer = GradientReducer::new(world, &specs, &self.options)?;
        let spans = tensors
            .iter()
            .map(|tensor| upload(world.device(), &tensor.data))
            .collect::<Result<Vec<Span>>>()?;
        let stream = Stream::new(world.device())?;
        reducer.reduce(&spans, &stream)?;
        reducer.synchronize(&stream, PATIENCE)?;
        let mut hash = Sha1::new();
        let mut result = (world.rank() == 0).then(Vec::new);
        for span in &spans {
            let mut data = vec![0; span.len()];
            span.read(&mut data)?;
            hash.update(&data);
            if let Some(result) = &mut result {
                result.push(data);
            }
        }
        let digest = hash.finalize().into();
        Ok(RankResult { digest, result })
    }
}

fn upload(device: &Device, data: &[u8]) -> Result<Span> {
    let span = Buffer::new(device, data.len().max(64))?.span();
    let span = span.slice(0..data.len())?;
    span.write(data)?;
    Ok(span)
}
