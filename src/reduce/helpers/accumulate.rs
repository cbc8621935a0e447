//! Sums of the gradients of several micro-steps.

use crate::ascend::{Span, Stream};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::kernel::{Vectors, WeightedSum};
use crate::plan::TensorSpec;
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::engine::arguments::check_tensors;
use crate::reduce::engine::device_tables::uniform_weights;
use crate::reduce::engine::tensor_copies::{Store, TensorCopies};
use crate::reduce::world::World;

/// Sums gradients over micro-steps in fp32, before one reduction.
///
/// [`add`](Self::add) after each backward pass, [`take`](Self::take) before the reducer. AdaSum of sums is not the sum
/// of AdaSums: one reduction a step is what larger batches ask for.
pub struct GradientAccumulator {
    world: World,
    specs: Vec<TensorSpec>,
    sum: TensorCopies,
    addend: TensorCopies,
    /// The sum and the addend of each element type, and ones to weigh them with.
    pairs: Vec<(Vectors, Span)>,
    steps: u32,
}

impl GradientAccumulator {
    /// An empty sum. Local. Device memory: two fp32 copies of all tensors.
    ///
    /// # Errors
    /// If device memory is short.
    pub fn new(world: &World, tensors: &[TensorSpec]) -> Result<Self> {
        let device = world.device();
        let sum = TensorCopies::new(device, tensors, Store::Fp32)?;
        let addend = TensorCopies::new(device, tensors, Store::Fp32)?;
        let tables = TableAllocator::new(device);
        let pairs = sum.parts().iter().zip(addend.parts()).map(|(a, b)| {
            let vectors = Vectors::new(device, &[a.copies.clone(), b.copies.clone()])?;
            Ok((
                vectors,
                uniform_weights(&tables, &[1.0, 1.0], a.members.len())?,
            ))
        });
        Ok(GradientAccumulator {
            world: world.clone(),
            specs: tensors.to_vec(),
            pairs: pairs.collect::<Result<_>>()?,
            sum,
            addend,
            steps: 0,
        })
    }

    /// Adds `gradients`, whole tensors in the order of creation, to the sum. Local and stream-ordered.
    ///
    /// # Errors
    /// Wrong spans are refused before anything is enqueued; else what enqueueing says.
    pub fn add(&mut self, gradients: &[Span], stream: &Stream) -> Result<()> {
        check_tensors(&self.world, self.specs.iter(), gradients, "gradient")?;
        let world = self.world.clone();
        world
            .enqueue(stream, |stream| {
                if self.steps == 0 {
                    return self.sum.pack(world.kernels(), stream, gradients, 1.0);
                }
                self.addend.pack(world.kernels(), stream, gradients, 1.0)?;
                self.add_up(stream)
            })
            .context(|| format!("rank {}: adding gradients", world.own_in_root()))?;
        self.steps += 1;
        Ok(())
    }

    /// How many gradients the sum has.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Replaces `gradients` by `factor` times the sum, rounded once to their types, and empties the sum. Local and
    /// stream-ordered. A factor of 1 / steps gives the mean.
    ///
    /// # Errors
    /// `InvalidState` if nothing was added; wrong spans and a factor that is not finite are refused before anything is
    /// enqueued.
    pub fn take(&mut self, gradients: &[Span], factor: f32, stream: &Stream) -> Result<()> {
        if self.steps == 0 {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "no gradients were added since the sum was last taken",
            ));
        }
        check_tensors(&self.world, self.specs.iter(), gradients, "gradient")?;
        if !factor.is_finite() {
            return Err(Error::invalid(format!("factor {factor} is not finite")));
        }
        let (world, sum) = (&self.world, &mut self.sum);
        world
            .enqueue(stream, |s| {
                sum.unpack(world.kernels(), s, gradients, factor)
            })
            .context(|| format!("rank {}: taking the sum of gradients", world.own_in_root()))?;
        self.steps = 0;
        Ok(())
    }

    fn add_up(&self, stream: &Stream) -> Result<()> {
        for ((vectors, ones), part) in self.pairs.iter().zip(self.sum.parts()) {
            self.world.kernels().weighted_sum(
                stream,
                &WeightedSum {
                    vectors,
                    dtype: part.copy_type,
                    segments: &part.segments,
                    coefficients: ones,
                    out: &part.copies,
                    copies: None,
                },
            )?;
        }
        Ok(())
    }
}
