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
    /// The sum over all ranks.
    Sum,
}

/// What becomes of the gradients of one server before servers are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InServer {
    /// Their mean.
    #[default]
    Mean,
    /// Their sum: D times the mean, which scales an AdaSum result by D.
    Sum,
    /// Nothing: all ranks of a server hold the same gradients already, bit for bit. That is not checked; each
    /// rank contributes the part that it owns. [`Reduction::Mean`] then is the mean of the servers and
    /// [`Reduction::Sum`] their sum.
    Reduced,
}

/// Choices of a [`GradientReducer`]; the same on all ranks.
#[derive(Debug, Clone)]
pub struct Options {
    /// How servers are combined.
    pub reduction: Reduction,
    /// How the ranks of a server are combined before that; [`Reduction::Sum`] sums them unless they are reduced.
    pub in_server: InServer,
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
            in_server: InServer::Mean,
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
    parts: Vec<Part>,
    timeout: Duration,
    poisoned: bool,
}

/// The tensors of one element type: they share a fused buffer.
struct Part {
    /// Indices of the tensors in the reducer's list, in the order of the buffer.
    members: Vec<usize>,
    bucket: Bucket,
}

impl Part {
    /// The tensors of `dtype`, `None` if there are none.
    fn new(
        world: &World,
        tensors: &[TensorSpec],
        dtype: DType,
        options: &Options,
    ) -> Result<Option<Self>> {
        let members: Vec<usize> = (0..tensors.len())
            .filter(|&index| tensors[index].dtype == dtype)
            .collect();
        if members.is_empty() {
            return Ok(None);
        }
        let counts: Vec<u64> = members.iter().map(|&index| tensors[index].count).collect();
        let layout = Layout::new(dtype, &counts)?;
        let planner = Planner::new(world.shape(), layout, options.radix)?;
        let bucket = Bucket::new(world, &planner, options.reduction, options.in_server)?;
        Ok(Some(Part { members, bucket }))
    }

    /// Copies the gradients in, reduces them, and copies them out.
    fn run(&self, world: &World, gradients: &[Span], stream: &Stream) -> Result<()> {
        for (&member, place) in self.members.iter().zip(self.bucket.tensors()) {
            stream.copy(place, &gradients[member])?;
        }
        self.bucket.run(world, stream)?;
        for (&member, place) in self.members.iter().zip(self.bucket.tensors()) {
            stream.copy(&gradients[member], place)?;
        }
        Ok(())
    }
}

impl GradientReducer {
    /// Plans the reduction of `tensors`, allocates its buffers and warms up every link that it uses.
    ///
    /// Collective: all ranks must call it with the same tensors and options. Tensors of one element type
    /// share a fused buffer. Arithmetic is fp32 whatever the type; each round (and, with more than 8 ranks a
    /// server, each 8 of them) rounds to the type once. Device memory: the fused buffers (all tensors),
    /// receive buffers for all but one vector of the largest step, and small tables.
    ///
    /// # Errors
    /// `Mismatch` on all ranks if they do not agree on tensors and options; `InvalidArgument` for a radix out
    /// of range.
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
        let choices = format!(
            "{:?} {:?} {}",
            options.reduction, options.in_server, options.radix
        );
        world.agree(
            fingerprint(shape, tensors, &choices),
            options.create_timeout,
        )?;
        let mut parts = Vec::new();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            parts.extend(Part::new(world, tensors, dtype, options)?);
        }
        let reducer = GradientReducer {
            world: world.clone(),
            specs: tensors.to_vec(),
            parts,
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
        let result = self.world.enqueue(stream, |stream| {
            let mut parts = self.parts.iter();
            parts.try_for_each(|part| part.run(&self.world, gradients, stream))
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
        let mut flags = vec![false; self.specs.len()];
        for part in &self.parts {
            for (&member, flag) in part.members.iter().zip(part.bucket.nonfinite()?) {
                flags[member] = flag;
            }
        }
        Ok(flags)
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
    fn warm_up(&self) -> Result<()> {
        let stream = Stream::new(self.world.device())?;
        self.world.enqueue(&stream, |stream| {
            let mut parts = self.parts.iter();
            parts.try_for_each(|part| part.bucket.run(&self.world, stream))
        })?;
        stream.synchronize_timeout(self.timeout)
    }
}
