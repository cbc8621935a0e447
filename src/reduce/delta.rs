//! The delta-weight reducer: AdaSum of what an optimizer did to the weights.

use std::time::Duration;

use crate::ascend::{Span, Stream};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::plan::TensorSpec;
use crate::reduce::engine::arguments::check_tensors;
use crate::reduce::engine::tensor_copies::{Store, TensorCopies};
use crate::reduce::gradient::GradientReducer;
use crate::reduce::gradient::statistics::TensorStatistics;
use crate::reduce::mean::{MeanReducer, MeanTensor};
use crate::reduce::options::{DeltaForm, InServer, MeanOptions, Options};
use crate::reduce::world::World;

/// Reduces the change that an optimizer makes to weights: AdaSum where the optimizer is not linear in the gradients.
///
/// A step is [`begin`](Self::begin), the caller's optimizer, [`end`](Self::end). The delta of a weight is old - new;
/// the new weight is old - AdaSum of the deltas over the servers. Weights that are equal on all ranks before a step
/// are equal after it, bit for bit.
///
/// All element types work, also as weights: differences are fp32 arithmetic, rounded once to the type of the weight.
/// The optimizer keeps what it keeps (momentum and the like) as it made it from its own step.
pub struct DeltaWeightReducer {
    world: World,
    specs: Vec<TensorSpec>,
    /// The mean of gradients in the server; none where each rank steps on its own.
    gradients: Option<MeanReducer>,
    deltas: GradientReducer,
    old: TensorCopies,
    delta: TensorCopies,
    state: State,
}

/// Where a reducer stands between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between steps.
    Idle,
    /// Behind `begin`: old weights are saved.
    Open,
    /// A call failed half-way.
    Failed,
}

impl DeltaWeightReducer {
    /// Prepares the reduction of the weights `tensors`; their gradients have the same sizes and types.
    ///
    /// Collective: all ranks of the world call it with the same arguments. `options` are those of the reduction of
    /// deltas; its `in_server` must be [`InServer::Mean`], because `form` decides what happens in a server. Device
    /// memory: two copies of all weights beside the buffers of the reductions ([`GradientReducer::new`],
    /// [`MeanReducer::new`]).
    ///
    /// # Errors
    /// As [`GradientReducer::new`].
    pub fn new(
        world: &World,
        tensors: &[TensorSpec],
        form: DeltaForm,
        options: &Options,
    ) -> Result<Self> {
        if options.in_server != InServer::Mean {
            return Err(Error::invalid(format!(
                "in_server {:?}: what happens in a server is decided by the form of the deltas, {form:?}",
                options.in_server
            )));
        }
        if options.scattered {
            return Err(Error::invalid(
                "scattered: the new weights need the deltas of all elements on every rank",
            ));
        }
        let device = world.device();
        let timeout = options.create_timeout;
        // Forms make different parts of a world.
        let choices = format!("delta weights in the form {form:?}");
        world.agree(tensors, &[choices], timeout)?;
        let mut gradients = None;
        if form == DeltaForm::ServerMean && world.locals() > 1 {
            let made = server_mean(world, tensors, options);
            gradients = Some(world.all_have(made, "prepare the mean of its server", timeout)?);
        }
        let options = Options {
            in_server: match form {
                DeltaForm::ServerMean => InServer::Reduced,
                DeltaForm::Local => InServer::Mean,
            },
            ..options.clone()
        };
        let deltas = GradientReducer::new(world, tensors, &options)?;
        let copies = || TensorCopies::new(device, tensors, Store::Native);
        let both = copies().and_then(|old| Ok((old, copies()?)));
        let (old, delta) = world.all_have(both, "make two copies of the weights", timeout)?;
        Ok(DeltaWeightReducer {
            world: world.clone(),
            specs: tensors.to_vec(),
            gradients,
            deltas,
            old,
            delta,
            state: State::Idle,
        })
    }

    /// Starts a step: saves `weights` and, in the form [`DeltaForm::ServerMean`], replaces `gradients` by their mean
    /// over the server.
    ///
    /// Collective and stream-ordered: what `stream` is given next, the optimizer, sees the means and may change the
    /// weights. In the form [`DeltaForm::Local`] gradients may be left out (an empty list). Each span is a whole
    /// tensor at any address that its type allows.
    ///
    /// # Errors
    /// `InvalidState` if a step is open already; wrong spans are refused before anything is enqueued. After any other
    /// failure the reducer is of no more use.
    pub fn begin(&mut self, gradients: &[Span], weights: &[Span], stream: &Stream) -> Result<()> {
        match self.state {
            State::Idle => {}
            State::Open => {
                return Err(Error::new(
                    ErrorKind::InvalidState,
                    "begin while a step is open: call end after the optimizer, or reset to give the step up",
                ));
            }
            State::Failed => return Err(failed_before()),
        }
        check_tensors(&self.world, self.specs.iter(), weights, "weight")?;
        if self.gradients.is_some() || !gradients.is_empty() {
            check_tensors(&self.world, self.specs.iter(), gradients, "gradient")?;
        }
        self.state = State::Failed;
        if let Some(reducer) = &mut self.gradients {
            reducer
                .reduce(gradients, stream)
                .context(|| "mean of gradients in the server")?;
        }
        let (world, old) = (&self.world, &mut self.old);
        world
            .enqueue(stream, |s| old.pack(world.kernels(), s, weights, 1.0))
            .context(|| format!("rank {}: saving weights", world.own_in_root()))?;
        self.state = State::Open;
        Ok(())
    }

    /// Ends a step: replaces `weights`, which the optimizer has changed, by old - AdaSum of the deltas.
    ///
    /// Collective and stream-ordered, behind the optimizer's work on `stream`.
    ///
    /// # Errors
    /// `InvalidState` if no step is open; wrong spans are refused before anything is enqueued. After any other
    /// failure the reducer is of no more use and weights may be those of the optimizer or of the step. A failure of
    /// the work itself shows when `stream` is synchronised, as with [`GradientReducer::reduce`].
    pub fn end(&mut self, weights: &[Span], stream: &Stream) -> Result<()> {
        match self.state {
            State::Open => {}
            State::Idle => {
                return Err(Error::new(
                    ErrorKind::InvalidState,
                    "end without begin: there are no old weights to take a difference from",
                ));
            }
            State::Failed => return Err(failed_before()),
        }
        check_tensors(&self.world, self.specs.iter(), weights, "weight")?;
        self.state = State::Failed;
        let rank = self.world.own_in_root();
        self.take_deltas(weights, stream)
            .context(|| format!("rank {rank}: deltas"))?;
        self.deltas
            .reduce(self.delta.places(), stream)
            .context(|| "reduction of deltas")?;
        self.write_weights(weights, stream)
            .context(|| format!("rank {rank}: new weights"))?;
        self.state = State::Idle;
        Ok(())
    }

    /// Gives up an open step, as after weights were loaded from a checkpoint: the saved ones no longer count.
    ///
    /// Local, but all ranks must do the same. Between steps it does nothing. A reducer that failed stays failed.
    pub fn reset(&mut self) {
        if self.state == State::Open {
            self.state = State::Idle;
        }
    }

    /// Waits for what `stream` holds, as [`GradientReducer::synchronize`]; the checksums of [`Options::checksum`] are those
    /// of the new weights.
    ///
    /// # Errors
    /// As [`GradientReducer::synchronize`].
    pub fn synchronize(&self, stream: &Stream, timeout: Duration) -> Result<()> {
        // The copies that deltas were reduced in hold the new weights since.
        self.deltas.synchronize(stream, timeout)
    }

    /// Whether the deltas of the next steps are kept for [`DeltaWeightReducer::statistics`], as
    /// [`GradientReducer::observe`].
    pub fn observe(&mut self, on: bool) {
        self.deltas.observe(on);
    }

    /// Figures of the deltas of the last step, as [`GradientReducer::statistics`].
    ///
    /// # Errors
    /// As [`GradientReducer::statistics`].
    pub fn statistics(&self) -> Result<Vec<TensorStatistics>> {
        self.deltas.statistics()
    }

    /// Non-finite deltas of the last step, as [`GradientReducer::nonfinite`]; their weights are non-finite now.
    ///
    /// # Errors
    /// As [`GradientReducer::nonfinite`].
    pub fn nonfinite(&self) -> Result<Vec<bool>> {
        self.deltas.nonfinite()
    }

    /// delta = old - new.
    fn take_deltas(&mut self, weights: &[Span], stream: &Stream) -> Result<()> {
        let (world, old, delta) = (&self.world, &self.old, &mut self.delta);
        world.enqueue(stream, |stream| {
            delta.pack(world.kernels(), stream, weights, 1.0)?;
            delta.subtract_from(old, world.kernels(), stream)
        })
    }

    /// weights = old - delta, which is reduced by now.
    fn write_weights(&mut self, weights: &[Span], stream: &Stream) -> Result<()> {
        let (world, old, delta) = (&self.world, &self.old, &mut self.delta);
        world.enqueue(stream, |stream| {
            delta.subtract_from(old, world.kernels(), stream)?;
            delta.unpack(world.kernels(), stream, weights, 1.0)
        })
    }
}

/// The mean reducer of this rank's server.
fn server_mean(world: &World, tensors: &[TensorSpec], options: &Options) -> Result<MeanReducer> {
    let first = world.rank() / world.locals() * world.locals();
    let tensors: Vec<MeanTensor> = tensors.iter().cloned().map(MeanTensor::from).collect();
    let options = MeanOptions {
        group: Some((first..first + world.locals()).collect()),
        create_timeout: options.create_timeout,
        stall_timeout: options.stall_timeout,
        ..MeanOptions::default()
    };
    MeanReducer::new(world, &tensors, &options)
}

fn failed_before() -> Error {
    Error::new(
        ErrorKind::Poisoned,
        "an earlier step failed half-way; load the weights again and make a new world and reducer",
    )
}
