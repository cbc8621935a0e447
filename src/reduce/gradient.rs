//! The gradient reducer: AdaSum (or the mean) of every tensor over all ranks, in place.

use std::time::Duration;

use super::World;
use super::bucket::Bucket;
use crate::ascend::{Span, Stream};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::plan::{DType, Layout, Planner, TensorSpec, fingerprint};

/// How gradients of different servers are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reduction {
    /// The mean in each server, AdaSum of the servers' means (arXiv 2006.02924).
    #[default]
    Adasum,
    /// The mean over all ranks.
    Mean,
}

/// Choices of a [`GradientReducer`]; the same on all ranks.
#[derive(Debug, Clone)]
pub struct Options {
    /// How servers are combined.
    pub reduction: Reduction,
    /// The most subtrees that a round merges, 2 to 8.
    pub radix: u32,
    /// With a single server of several ranks AdaSum has nothing to combine and the result is a plain
    /// mean. That is refused unless it is asked for here.
    pub allow_plain_mean: bool,
    /// Limit on the collective warm-up at creation.
    pub create_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            reduction: Reduction::Adasum,
            radix: 2,
            allow_plain_mean: false,
            create_timeout: Duration::from_secs(300),
        }
    }
}

/// Reduces the gradients of a fixed list of tensors.
pub struct GradientReducer {
    world: World,
    specs: Vec<TensorSpec>,
    bucket: Bucket,
    timeout: Duration,
    poisoned: bool,
}

impl GradientReducer {
    /// Plans the reduction of `tensors`, allocates its buffers and warms up every link that it uses.
    ///
    /// Collective: all ranks must call it with the same tensors and options. Device memory: the fused
    /// buffer (all tensors), half of one server's chunk or all but one of its chunks as receive buffers,
    /// and small tables.
    ///
    /// # Errors
    /// `Mismatch` on all ranks if they do not agree on tensors and options. `Unsupported` for element types
    /// other than f32 and a radix above 2, which are not built yet.
    pub fn new(world: &World, tensors: &[TensorSpec], options: &Options) -> Result<Self> {
        let shape = world.shape();
        if options.reduction == Reduction::Adasum
            && shape.servers == 1
            && shape.locals > 1
            && !options.allow_plain_mean
        {
            return Err(Error::invalid(format!(
                "one server of {} ranks: AdaSum combines servers, so the result would be a plain mean; set \
                 allow_plain_mean, or make each rank a server of its own",
                shape.locals
            )));
        }
        for tensor in tensors {
            if tensor.dtype != DType::F32 {
                return Err(Error::unsupported(format!(
                    "tensor \"{}\": element type {} is not supported yet, only f32 is",
                    tensor.name,
                    tensor.dtype.name()
                )));
            }
        }
        let choices = format!("{:?} {}", options.reduction, options.radix);
        world.agree(
            fingerprint(shape, tensors, &choices),
            options.create_timeout,
        )?;
        let counts: Vec<u64> = tensors.iter().map(|tensor| tensor.count).collect();
        let layout = Layout::new(DType::F32, &counts)?;
        let planner = Planner::new(shape, layout, options.radix)?;
        let bucket = Bucket::new(world, &planner, options.reduction)?;
        let mut reducer = GradientReducer {
            world: world.clone(),
            specs: tensors.to_vec(),
            bucket,
            timeout: options.create_timeout,
            poisoned: false,
        };
        reducer
            .warm_up()
            .context(|| format!("rank {}: warm-up of the reducer", world.rank()))?;
        Ok(reducer)
    }

    /// Replaces each tensor of `gradients` by its reduction, in the order of creation.
    ///
    /// Collective and stream-ordered: enqueues behind what `stream` holds and returns; what `stream` is
    /// given next sees the results. Each span is a whole tensor in device memory of the world's device,
    /// starting at a multiple of 64 bytes, and is kept alive until `stream` is synchronised.
    ///
    /// # Errors
    /// Wrong spans are refused before anything is enqueued. Any later failure of this call poisons the
    /// reducer, because other ranks may already be in the same reduction. A failure of the work itself, like
    /// a peer that never comes, shows when `stream` is synchronised: results are good only after that.
    pub fn reduce(&mut self, gradients: &[Span], stream: &Stream) -> Result<()> {
        if self.poisoned {
            return Err(Error::new(
                ErrorKind::Poisoned,
                "an earlier reduction failed; make a new world and reducer",
            ));
        }
        self.check(gradients)?;
        let bucket = &self.bucket;
        let result = self.world.enqueue(stream, |stream| {
            for (gradient, place) in gradients.iter().zip(bucket.tensors()) {
                stream.copy(place, gradient)?;
            }
            bucket.run(&self.world, stream)?;
            for (gradient, place) in gradients.iter().zip(bucket.tensors()) {
                stream.copy(gradient, place)?;
            }
            Ok(())
        });
        self.poisoned = result.is_err();
        result.context(|| format!("rank {}", self.world.rank()))
    }

    /// Whether each tensor was non-finite on any rank in the last reduction; the same on all ranks.
    ///
    /// Waits for the reduction. A tensor with a NaN or an infinity on one rank is non-finite as a whole on
    /// all ranks afterwards; the other tensors are not touched by it.
    pub fn nonfinite(&self) -> Result<Vec<bool>> {
        self.world.drain(self.timeout)?;
        self.bucket.nonfinite()
    }

    fn check(&self, gradients: &[Span]) -> Result<()> {
        if gradients.len() != self.specs.len() {
            return Err(Error::invalid(format!(
                "{} gradients were given for {} tensors",
                gradients.len(),
                self.specs.len()
            )));
        }
        for (gradient, spec) in gradients.iter().zip(&self.specs) {
            let bytes = spec.count * spec.dtype.size();
            if gradient.len() as u64 != bytes {
                return Err(Error::invalid(format!(
                    "tensor \"{}\": the gradient has {} bytes, {} elements of {} are {bytes}",
                    spec.name,
                    gradient.len(),
                    spec.count,
                    spec.dtype.name()
                )));
            }
            if bytes > 0 && !gradient.address().is_multiple_of(64) {
                return Err(Error::unsupported(format!(
                    "tensor \"{}\": its address {:#x} is not a multiple of 64 bytes",
                    spec.name,
                    gradient.address()
                )));
            }
        }
        Ok(())
    }

    /// One reduction of zeros: builds every link and buffer while failing is still cheap.
    fn warm_up(&mut self) -> Result<()> {
        let stream = Stream::new(self.world.device())?;
        self.world
            .enqueue(&stream, |stream| self.bucket.run(&self.world, stream))?;
        stream.synchronize_timeout(self.timeout)
    }
}
