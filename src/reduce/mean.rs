//! The mean reducer: the mean or sum of gradients over a group of ranks.

use std::time::Duration;

use crate::ascend::{Span, Stream};
use crate::error::{Error, Result};
use crate::plan::TensorSpec;
use crate::reduce::engine::arguments::check_tensors;
use crate::reduce::gradient::GradientReducer;
use crate::reduce::options::{MeanOptions, Options, Reduction, Wire};
use crate::reduce::world::World;

/// A gradient of a [`MeanReducer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeanTensor {
    /// Name, size and type.
    pub spec: TensorSpec,
    /// The tensor is another one on each rank (MindSpore's `layerwise_parallel`): its gradient is left as it is.
    pub layerwise_parallel: bool,
    /// The tensor's own fusion id (MindSpore's `comm_fusion`), 0 for never; see [`Fusion`](crate::reduce::Fusion).
    pub fusion: Option<u32>,
}

impl From<TensorSpec> for MeanTensor {
    /// A gradient that is reduced, without a fusion id of its own.
    fn from(spec: TensorSpec) -> Self {
        MeanTensor {
            spec,
            layerwise_parallel: false,
            fusion: None,
        }
    }
}

/// Replaces gradients by their mean or sum over a group of ranks: MindSpore's `DistributedGradReducer`.
///
/// Every gradient is cast to fp32, summed over the group (in its servers, then along
/// the tree of servers), multiplied by fp32(1 / degree) for a
/// mean, and rounded once to its own type. Results are bit-identical on all ranks of the group.
pub struct MeanReducer {
    world: World,
    specs: Vec<TensorSpec>,
    groups: Vec<Group>,
}

/// The gradients that travel together.
struct Group {
    /// Their positions in the list of the reducer.
    members: Vec<usize>,
    reducer: GradientReducer,
}

impl MeanReducer {
    /// Prepares the reduction of `tensors` over the group and warms up its links.
    ///
    /// Collective among the ranks of the group; ranks outside of it must not call. Device memory: as
    /// [`GradientReducer::new`] with [`Wire::F32`].
    ///
    /// # Errors
    /// `InvalidArgument` for a degree below 1, a group that this rank is not in, and split indices out of order;
    /// else as [`GradientReducer::new`].
    pub fn new(world: &World, tensors: &[MeanTensor], options: &MeanOptions) -> Result<Self> {
        let world = group_world(world, options)?;
        let reduced: Vec<usize> = (0..tensors.len())
            .filter(|&index| !tensors[index].layerwise_parallel)
            .collect();
        let own: Vec<Option<u32>> = reduced.iter().map(|&i| tensors[i].fusion).collect();
        let sum = Options {
            reduction: Reduction::Sum,
            wire: Wire::F32,
            result_scale: factor(options, world.size())?,
            create_timeout: options.create_timeout,
            stall_timeout: options.stall_timeout,
            ..Options::default()
        };
        // Groups are agreed on one by one below; a rank that has fewer of them would go on alone.
        let split = options.fusion.groups(&own)?;
        let specs: Vec<TensorSpec> = tensors.iter().map(|tensor| tensor.spec.clone()).collect();
        let mut choices: Vec<String> = (0..tensors.len())
            .map(|tensor| format!("no mean of tensor {tensor}"))
            .collect();
        for (number, group) in split.iter().enumerate() {
            for &position in group {
                let tensor = reduced[position];
                choices[tensor] = format!("mean of tensor {tensor} in group {number}");
            }
        }
        world.agree(&specs, &choices, options.create_timeout)?;
        let mut groups = Vec::new();
        for group in split {
            let members: Vec<usize> = group.iter().map(|&position| reduced[position]).collect();
            let specs: Vec<TensorSpec> = members.iter().map(|&i| tensors[i].spec.clone()).collect();
            groups.push(Group {
                members,
                reducer: GradientReducer::new(&world, &specs, &sum)?,
            });
        }
        Ok(MeanReducer {
            specs,
            world,
            groups,
        })
    }

    /// Replaces each of `gradients` by its mean or sum, in the order of creation.
    ///
    /// Collective among the group and stream-ordered, as [`GradientReducer::reduce`]. Each span is a whole
    /// tensor at any address that its type allows; it is kept alive until `stream` is synchronised.
    ///
    /// # Errors
    /// Wrong spans are refused before anything is enqueued; else as [`GradientReducer::reduce`].
    pub fn reduce(&mut self, gradients: &[Span], stream: &Stream) -> Result<()> {
        check_tensors(&self.world, self.specs.iter(), gradients, "gradient")?;
        for group in &mut self.groups {
            let members: Vec<Span> = group
                .members
                .iter()
                .map(|&i| gradients[i].clone())
                .collect();
            group.reducer.reduce(&members, stream)?;
        }
        Ok(())
    }

    /// Waits for what `stream` holds, as [`GradientReducer::synchronize`].
    ///
    /// # Errors
    /// As [`GradientReducer::synchronize`].
    pub fn synchronize(&self, stream: &Stream, timeout: Duration) -> Result<()> {
        self.world.synchronize(stream, timeout)
    }

    /// Whether each gradient has a NaN or an infinity since its last reduction, the same on all ranks of the group, as
    /// [`GradientReducer::nonfinite`]; looked at before it is multiplied by 1 / degree and rounded to its type. Gradients
    /// that are not reduced are not looked at.
    ///
    /// Collective among the group.
    ///
    /// # Errors
    /// As [`GradientReducer::nonfinite`].
    pub fn nonfinite(&self) -> Result<Vec<bool>> {
        let mut flags = vec![false; self.specs.len()];
        for group in &self.groups {
            for (&member, flag) in group.members.iter().zip(group.reducer.nonfinite()?) {
                flags[member] = flag;
            }
        }
        Ok(flags)
    }
}

/// The world of the group.
pub(super) fn group_world(world: &World, options: &MeanOptions) -> Result<World> {
    match &options.group {
        Some(ranks) => world.part(ranks, locals_of(world, ranks)),
        None => Ok(world.clone()),
    }
}

/// What sums are multiplied by.
pub(super) fn factor(options: &MeanOptions, ranks: u32) -> Result<f32> {
    let degree = options.degree.unwrap_or(i64::from(ranks));
    if degree <= 0 {
        // MindSpore's words.
        return Err(Error::invalid(format!(
            "For 'DistributedGradReducer', parameter 'degree' in DistributedGradReducer should large than 0 and be \
             int, degree: {degree}."
        )));
    }
    // Rounded to fp32 once.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding is what is wanted"
    )]
    let inverse = (1.0 / degree as f64) as f32;
    Ok(if options.mean { inverse } else { 1.0 })
}

/// Members of `ranks` in each server of `world`, if they are equally many in each; else all count as one server.
fn locals_of(world: &World, ranks: &[u32]) -> u32 {
    let size = u32::try_from(ranks.len()).unwrap_or(u32::MAX).max(1);
    let server = |rank: &u32| rank / world.locals();
    let mut servers: Vec<&[u32]> = ranks.chunk_by(|a, b| server(a) == server(b)).collect();
    let Some(first) = servers.pop() else {
        return size;
    };
    if servers.iter().all(|other| other.len() == first.len()) {
        u32::try_from(first.len()).unwrap_or(size)
    } else {
        size
    }
}
