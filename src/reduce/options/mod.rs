//! Choices of a reducer.

pub(super) mod fusion;
pub(super) mod settings;
pub(super) mod table;

use std::time::Duration;

use crate::error::{Error, Result};
use crate::plan::{Choices, DType, Form, Machine, Placement, TensorSpec};
use crate::reduce::options::fusion::Fusion;

/// How gradients of different servers are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reduction {
    /// The mean in each server, AdaSum of the servers' means (arXiv 2006.02924).
    #[default]
    Adasum,
    /// The mean over all ranks.
    Mean,
    /// The sum over all ranks. Each step adds in fp32 and rounds to the element type once, so fp16 may overflow.
    Sum,
}

impl Reduction {
    /// The weight of a vector that is already the mean or sum of `count` ranks or servers, in a step that
    /// combines `total` of them. `None` where weights depend on the gradients.
    pub(super) fn weight(self, count: u32, total: u32) -> Option<f32> {
        match self {
            Reduction::Adasum => None,
            // Numbers of ranks are exact in f32, so the weight is rounded once.
            Reduction::Mean => Some(count as f32 / total as f32),
            Reduction::Sum => Some(1.0),
        }
    }
}

/// What becomes of the gradients of one server before servers are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InServer {
    /// Their mean; their sum with [`Reduction::Sum`].
    #[default]
    Mean,
    /// Their sum for AdaSum, which makes its result D times as large; else as [`InServer::Mean`].
    Sum,
    /// Nothing: all ranks of a server hold the same gradients already, bit for bit. That is not checked; each
    /// rank contributes the part that it owns. [`Reduction::Mean`] then is the mean of the servers and
    /// [`Reduction::Sum`] their sum.
    Reduced,
    /// Nothing: the ranks of a server hold different parts of the same tensors, all of one size, as in tensor-parallel
    /// models. Each rank is reduced with those of its number in other servers, and AdaSum's scalars are summed over all
    /// parts, so that its coefficients are those of whole tensors. A tensor that is the same on all ranks of a server
    /// may stand among them.
    Shards,
}

/// Element type of what ranks send each other and compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wire {
    /// The tensor's type: half the traffic for 16-bit types. The mean of a server and the result of each round are
    /// rounded to it, and where vectors nearly cancel the rule enlarges what that took away: for exact results of such
    /// gradients take [`Wire::F32`]. Tensors of fewer than 64 elements, which nearly cancel by chance, are fp32 on the wire.
    #[default]
    Native,
    /// fp32: one rounding in all, at the end.
    F32,
}

/// With fewer elements a tensor is fp32 on the wire. Two random vectors have a cosine of about 1 / sqrt(elements), and the
/// rule jumps where a subtree vanishes: of 2 elements in bf16 one reduction in a hundred is off by more than 1 % of
/// the largest gradient, of 64 none in millions. So few elements cost no time on the way.
const FEW: u64 = 64;

impl Wire {
    /// Type of the fused buffer for `tensor`.
    pub fn of(self, tensor: &TensorSpec) -> DType {
        match self {
            Wire::Native if tensor.count >= FEW => tensor.dtype,
            Wire::Native | Wire::F32 => DType::F32,
        }
    }
}

/// What becomes of NaN and infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The tensors that have one are non-finite on all ranks afterwards and can be asked for.
    #[default]
    Report,
    /// Beside that, the ranks can vote before they reduce: see [`OverflowVote`](crate::reduce::OverflowVote).
    Vote,
}

/// How the scalars of a round are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScalarExchange {
    /// The faster one by the cost model.
    #[default]
    Auto,
    /// Every rank gathers all records and computes all weights.
    Gathered,
    /// Each tensor has an owner who gets its records and computes its weights, which all ranks gather.
    Owned,
}

/// Choices of a [`GradientReducer`](crate::reduce::GradientReducer); the same on all ranks but for `scale`, `padded`
/// and the limits of time.
#[derive(Debug, Clone)]
pub struct Options {
    /// How servers are combined.
    pub reduction: Reduction,
    /// How the ranks of a server are combined before that.
    pub in_server: InServer,
    /// AdaSum of two vectors is one of them if the squared norm of the other is at most so many times its own: such a
    /// vector counts as zero. At least 0 and below 1; 0, the default, lets only exact zeros count.
    pub zero_tol: f32,
    /// The most subtrees that a round merges, 2 to 8, or [`Options::AUTO_RADIX`]. Part of the result's last bits.
    pub radix: u32,
    /// Where vectors lie while servers are merged.
    pub placement: Placement,
    /// How exchanges are made; `None` for the calls of HCCL that the cost model takes for fastest on the processor: see
    /// [`Machine::forms`]. Results do not depend on it.
    ///
    /// With [`Form::Shared`] kernels read the buffers of other ranks where they lie: of all ranks if they are on one machine or
    /// in one A3 supernode, else of those of the same server, and exchanges between servers are as without it. They do not read
    /// over PCIe: that is refused in a server, where the library tells it. Other ranks map the
    /// reducer's own buffers, read gradients there and write results of AdaSum between servers to them: tensors that do not lie there
    /// ([`Options::gradient_buffers`]) are copied into them. After a failure a rank that is late may still write to them, so
    /// they are never freed then.
    /// Nothing of it has run on an NPU, so it is never chosen by itself.
    pub exchange: Option<Form>,
    /// How scalars are summed.
    pub scalars: ScalarExchange,
    /// What the cost model knows of the machine; `None` for what the device's name says.
    pub machine: Option<Machine>,
    /// With a single server of several ranks AdaSum has nothing to combine and the result is a plain
    /// mean. That is refused unless it is asked for here.
    pub allow_plain_mean: bool,
    /// Element type on the way between ranks.
    pub wire: Wire,
    /// What this rank's gradients are multiplied by, in fp32, before anything else. May differ between ranks.
    pub scale: f32,
    /// What results are multiplied by, in fp32, on their way back to the tensors.
    pub result_scale: f32,
    /// Bytes of tensors that share a fused buffer; a larger tensor has one of its own.
    pub bucket_bytes: u64,
    /// Fused buffers that are under way at a time, at least 1: device memory grows with it, results do not depend on it.
    pub pipeline_depth: usize,
    /// Tensors may be reduced where they are although there are gaps between them: what lies between the end of a tensor
    /// and the next multiple of 64 bytes from its start on may be overwritten. Tensors of a bucket that lie in one
    /// allocation, each at that place behind the one before it, then are not copied. Tensors that are
    /// [borrowed](crate::ascend::Span::borrow) are taken to lie in one allocation if each is at that place. May differ between ranks.
    pub padded: bool,
    /// The reducer has a buffer for each bucket, whatever the depth, in which callers may put gradients: see
    /// [`GradientReducer::gradient_buffers`](crate::reduce::GradientReducer::gradient_buffers).
    pub gradient_buffers: bool,
    /// Leaves each result on the rank that computed it, for optimizers that are sharded: see
    /// [`GradientReducer::owned`](crate::reduce::GradientReducer::owned). Saves half of the traffic.
    pub scattered: bool,
    /// Ends each reduction with a barrier of all ranks.
    pub barrier: bool,
    /// Makes [`GradientReducer::synchronize`](crate::reduce::GradientReducer::synchronize) collective: it compares
    /// checksums of all messages since the last one between those who sent and those who received them, and of the last
    /// results between all ranks, unless these are scattered or parts of tensors. All of these are read to the host, which waits for each message in
    /// [`GradientReducer::reduce`](crate::reduce::GradientReducer::reduce): for finding damage, not for every day.
    pub checksum: bool,
    /// Whether the ranks vote before they reduce: for those who do so by an [`OverflowVote`](crate::reduce::OverflowVote), as the C interface
    /// does.
    pub overflow: Overflow,
    /// Plans of subsets that are kept, at least 1: see
    /// [`GradientReducer::reduce_some`](crate::reduce::GradientReducer::reduce_some). One more takes the place of the one that was
    /// used longest ago.
    pub subset_plans: usize,
    /// Limit on the collective warm-up at creation.
    pub create_timeout: Duration,
    /// A reduction in which nothing moves for so long has failed: a thread watches, and the error says what this rank
    /// waits for. What the caller's stream holds before it counts, too. Below `HCCL_EXEC_TIMEOUT` (1836 s unless set) it comes before that of HCCL, above it after it.
    pub stall_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            reduction: Reduction::Adasum,
            in_server: InServer::Mean,
            zero_tol: 0.0,
            radix: 2,
            placement: Placement::Hierarchical,
            exchange: None,
            scalars: ScalarExchange::Auto,
            machine: None,
            allow_plain_mean: false,
            wire: Wire::Native,
            scale: 1.0,
            result_scale: 1.0,
            bucket_bytes: 25 << 20,
            pipeline_depth: 4,
            padded: false,
            gradient_buffers: false,
            scattered: false,
            barrier: false,
            checksum: false,
            overflow: Overflow::Report,
            subset_plans: 256,
            create_timeout: Duration::from_secs(300),
            stall_timeout: Options::STALL_TIMEOUT,
        }
    }
}

impl Options {
    /// As `radix`: the fastest one by the cost model, for all tensors together.
    pub const AUTO_RADIX: u32 = 0;
    /// `stall_timeout`, if nothing else is said.
    pub const STALL_TIMEOUT: Duration = Duration::from_secs(1800);

    /// An error that names the option that is out of range.
    pub(super) fn check(&self) -> Result<()> {
        if self.pipeline_depth == 0 {
            return Err(Error::invalid("pipeline_depth is 0: it must be at least 1"));
        }
        if self.subset_plans == 0 {
            return Err(Error::invalid("subset_plans is 0: it must be at least 1"));
        }
        for (name, factor) in [("scale", self.scale), ("result_scale", self.result_scale)] {
            if !factor.is_finite() {
                return Err(Error::invalid(format!("{name} {factor} is not finite")));
            }
        }
        if self.scattered && self.placement != Placement::Hierarchical {
            return Err(Error::invalid(format!(
                "scattered results with placement {:?}: there all ranks of a server hold the same parts",
                self.placement
            )));
        }
        if !(0.0..1.0).contains(&self.zero_tol) {
            return Err(Error::invalid(format!(
                "zero_tol {} is not at least 0 and below 1",
                self.zero_tol
            )));
        }
        Ok(())
    }

    /// Whether gradients or results are multiplied.
    pub(super) fn is_scaled(&self) -> bool {
        (self.scale, self.result_scale) != (1.0, 1.0)
    }

    /// The weight of each of a server's `ranks` vectors; `None` if they are reduced already.
    pub(super) fn weight_in_server(&self, ranks: u32) -> Option<f32> {
        match self.in_server {
            InServer::Reduced | InServer::Shards => None,
            InServer::Sum if self.reduction == Reduction::Adasum => Some(1.0),
            InServer::Mean | InServer::Sum => {
                let weight = self.reduction.weight(1, ranks);
                // AdaSum takes the mean in the server too.
                Some(weight.unwrap_or(1.0 / ranks as f32))
            }
        }
    }

    /// What all ranks must agree on, a text of each choice.
    pub(super) fn agreed(&self, choices: Choices) -> Vec<String> {
        vec![
            format!("reduction {:?}", self.reduction),
            format!("in_server {:?}", self.in_server),
            format!("scattered {}", self.scattered),
            format!("zero_tol {}", self.zero_tol),
            format!("result_scale {}", self.result_scale),
            format!("radix {}", choices.radix),
            format!("rounds {:?}", choices.order),
            format!("placement {:?}", choices.placement),
            format!("exchange {}", choices.forms),
            format!("scalars of more than {} bytes owned", choices.owned_above),
            format!("wire {:?}", self.wire),
            format!("bucket_bytes {}", self.bucket_bytes),
            format!("pipeline_depth {}", self.pipeline_depth),
            format!("barrier {}", self.barrier),
            format!("checksum {}", self.checksum),
            format!("subset_plans {}", self.subset_plans),
            format!("gradient_buffers {}", self.gradient_buffers),
            format!("overflow {:?}", self.overflow),
        ]
    }
}

/// What each rank's optimizer steps on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeltaForm {
    /// The mean of the gradients of its server, which [`DeltaWeightReducer::begin`](crate::reduce::DeltaWeightReducer::begin) makes. The optimizer then does
    /// the same on all ranks of a server, bit for bit, and its state stays equal there.
    #[default]
    ServerMean,
    /// Each rank's own gradients, as in Horovod. `begin` leaves them as they are; the mean of a server is that of its
    /// deltas. The state of the optimizers differs from rank to rank: a checkpoint needs that of every rank.
    Local,
}

/// Choices of a [`MeanReducer`](crate::reduce::MeanReducer); the same on all ranks of its group.
#[derive(Debug, Clone)]
pub struct MeanOptions {
    /// Whether sums are multiplied by 1 / degree.
    pub mean: bool,
    /// The degree; the number of ranks of the group if there is none.
    pub degree: Option<i64>,
    /// Which gradients travel together.
    pub fusion: Fusion,
    /// The ranks that are reduced over, ascending; all ranks of the world if there are none.
    pub group: Option<Vec<u32>>,
    /// Limit on the collective warm-up at creation.
    pub create_timeout: Duration,
    /// As [`Options::stall_timeout`].
    pub stall_timeout: Duration,
}

impl Default for MeanOptions {
    fn default() -> Self {
        MeanOptions {
            mean: true,
            degree: None,
            fusion: Fusion::All,
            group: None,
            create_timeout: Options::default().create_timeout,
            stall_timeout: Options::STALL_TIMEOUT,
        }
    }
}
