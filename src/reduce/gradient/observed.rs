//! Reductions that keep their gradients, for the figures that need all servers' vectors at once.

use crate::ascend::{DataType, Device, Span, Stream};
use crate::error::{Error, Result};
use crate::kernel::layout::{
    COEFFICIENT_WEIGHT, coefficient_scale, coefficient_words, record_words,
};
use crate::kernel::{Fold, Gram, Vectors, WeightedSum};
use crate::plan::{DType, TensorSpec};
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::engine::program::Program;
use crate::reduce::engine::tensor_copies::{CopiesOfType, Store, TensorCopies};
use crate::reduce::gradient::GradientReducer;
use crate::reduce::gradient::plans::PlanNumber;
use crate::reduce::gradient::statistics::{Together, exchange, gram};
use crate::reduce::options::{InServer, Options, Reduction, Wire};

/// The Gram kernel takes at least two vectors: one vector twice.
const TWICE: usize = 2;

impl GradientReducer {
    /// Whether the next reductions keep a copy of their gradients, so that [`GradientReducer::statistics`] has every
    /// figure also of reductions of several rounds. Off at first.
    ///
    /// Local, but all ranks must choose the same before `statistics`. A reduction that is observed takes one more copy of its
    /// gradients; device memory for that, as much as the tensors have, is allocated by the first and freed when this is turned
    /// off.
    pub fn observe(&mut self, on: bool) {
        self.observation.switch(on);
        if !on {
            self.plans.all_mut().for_each(Program::forget);
        }
    }

    /// Keeps a copy of the gradients that plan `number` is about to reduce, if that is asked for.
    pub(super) fn save(
        &mut self,
        number: PlanNumber,
        gradients: &[Span],
        stream: &Stream,
    ) -> Result<()> {
        let Some(plan) = self.plans.get_mut(number) else {
            return Ok(());
        };
        match self.observation.begin(&plan.tensors) {
            true => plan.save(&self.world, &self.specs, gradients, stream),
            false => Ok(()),
        }
    }

    /// The mean and the cosines of all servers' vectors, whose norms are given for each tensor, from saved gradients. Collective.
    pub(super) fn together_by_gradients(&self, norms: &[Vec<f64>]) -> Result<Vec<Together>> {
        let world = &self.world;
        let (device, kernels) = (world.device(), world.kernels());
        let saved = self.saved()?;
        let own_server = (world.rank() / world.locals()) as usize;
        let units: Vec<f64> = norms.iter().map(|of| 1.0 / of[own_server]).collect();
        let copies = TensorCopies::new(device, &self.specs, Store::Fp32);
        let made = copies.and_then(|vectors| {
            let scaling = Scaling::new(device, &vectors, &units)?;
            Ok((vectors, scaling))
        });
        let what = "make a copy of all tensors for their statistics";
        let (mut vectors, scaling) = world.all_have(made, what, self.options.stall_timeout)?;
        let mut sum = GradientReducer::new(world, &as_fp32(&self.specs), &self.summing())?;
        let stream = Stream::new(device)?;
        let mut squares = Vec::new();
        for scaling in [None, Some(&scaling)] {
            world.enqueue(&stream, |s| {
                vectors.pack(kernels, s, &saved, self.weight())?;
                match scaling {
                    None => Ok(()),
                    Some(scaling) => scaling.run(self, &vectors, s),
                }
            })?;
            sum.reduce(vectors.places(), &stream)?;
            sum.synchronize(&stream, self.options.stall_timeout)?;
            squares.push(self.squares(&vectors, &stream)?);
        }
        let servers = f64::from(world.servers());
        let tensors = squares[0].iter().zip(&squares[1]).zip(norms);
        Ok(tensors
            .map(|((&of_sum, &of_directions), norms)| {
                let present = norms.iter().filter(|&&norm| norm != 0.0).count() as f64;
                Together {
                    mean: of_sum.sqrt() / servers,
                    // |u_1 + .. + u_m|^2 is m and twice the cosines of all pairs; 0 / 0 where there is none.
                    cosine: match present >= 2.0 {
                        true => (of_directions - present) / (present * (present - 1.0)),
                        false => f64::NAN,
                    },
                }
            })
            .collect())
    }

    /// The saved gradients in the order of the list.
    fn saved(&self) -> Result<Vec<Span>> {
        let mut found: Vec<Option<Span>> = vec![None; self.specs.len()];
        for (number, plan) in self.plans.all() {
            let places = plan.saved().into_iter().flat_map(TensorCopies::places);
            for (&tensor, place) in plan.tensors.iter().zip(places) {
                if self.latest[tensor] == number {
                    found[tensor] = Some(place.clone());
                }
            }
        }
        let all: Option<Vec<Span>> = found.into_iter().collect();
        all.ok_or_else(|| Error::invalid("gradients of an observed reduction were not saved"))
    }

    /// Sums this reducer's vectors as they are, in fp32.
    fn summing(&self) -> Options {
        Options {
            reduction: Reduction::Sum,
            wire: Wire::F32,
            scale: 1.0,
            result_scale: 1.0,
            scattered: false,
            checksum: false,
            ..self.options.clone()
        }
    }

    /// What a rank's gradients count in the vector of its server.
    fn weight(&self) -> f32 {
        let ranks = match self.options.in_server {
            InServer::Mean => self.world.locals(),
            InServer::Sum | InServer::Reduced | InServer::Shards => 1,
        };
        // Numbers of ranks are exact in f32.
        self.options.scale / ranks as f32
    }

    /// The squared norms of `vectors`, which are the same on all ranks, or parts of the same ones. Collective.
    fn squares(&self, vectors: &TensorCopies, stream: &Stream) -> Result<Vec<f64>> {
        let mut own = vec![[0.0]; self.specs.len()];
        for part in vectors.parts() {
            for (&tensor, square) in part.filled.iter().zip(self.squares_of(part, stream)?) {
                own[tensor] = [square];
            }
        }
        let all = exchange(&self.world, &own, self.options.stall_timeout)?;
        // The ranks of a server hold parts, each of which other servers have as well.
        let parts = match self.options.in_server {
            InServer::Shards => self.world.locals() as usize,
            InServer::Mean | InServer::Sum | InServer::Reduced => 1,
        };
        let of = |tensor: usize| all[..parts].iter().map(|rank| rank[tensor][0]).sum();
        Ok((0..own.len()).map(of).collect())
    }

    fn squares_of(&self, part: &CopiesOfType, stream: &Stream) -> Result<Vec<f64>> {
        let (device, kernels) = (self.world.device(), self.world.kernels());
        let words = record_words(TWICE);
        let bytes = |count: u64| {
            usize::try_from(count)
                .unwrap_or(usize::MAX)
                .saturating_mul(words * size_of::<f32>())
        };
        let vectors = Vectors::new(device, &[part.copies.clone(), part.copies.clone()])?;
        let tables = TableAllocator::new(device);
        let partials = tables.zeroed(bytes(part.segments.units))?;
        let records = tables.zeroed(bytes(part.segments.count))?;
        self.world.enqueue(stream, |stream| {
            kernels.gram(
                stream,
                &Gram {
                    vectors: &vectors,
                    dtype: part.copy_type,
                    segments: &part.segments,
                    partials: &partials,
                },
            )?;
            kernels.fold(
                stream,
                &Fold {
                    partials: &partials,
                    segments: &part.segments,
                    records: &records,
                    radix: TWICE,
                },
            )
        })?;
        self.world.synchronize(stream, self.options.stall_timeout)?;
        let mut read = vec![0.0_f32; records.len() / size_of::<f32>()];
        records.read(&mut read)?;
        let squares = read.chunks_exact(words);
        Ok(squares
            .map(|record| gram(TWICE, std::iter::once(record))[0])
            .collect())
    }
}

/// A factor for each tensor.
struct Scaling(Vec<(Vectors, Span)>);

impl Scaling {
    fn new(device: &Device, vectors: &TensorCopies, factors: &[f64]) -> Result<Self> {
        let tables = TableAllocator::new(device);
        let parts = vectors.parts().iter().map(|part| {
            let weights: Vec<f32> = part
                .members
                .iter()
                .flat_map(|&tensor| weight_of(factors[tensor]))
                .collect();
            let copies = Vectors::new(device, std::slice::from_ref(&part.copies))?;
            Ok((copies, tables.upload(&weights)?))
        });
        Ok(Scaling(parts.collect::<Result<_>>()?))
    }

    fn run(
        &self,
        reducer: &GradientReducer,
        vectors: &TensorCopies,
        stream: &Stream,
    ) -> Result<()> {
        for (part, (copies, weights)) in vectors.parts().iter().zip(&self.0) {
            reducer.world.kernels().weighted_sum(
                stream,
                &WeightedSum {
                    vectors: copies,
                    dtype: DataType::F32,
                    segments: &part.segments,
                    coefficients: weights,
                    out: &part.copies,
                    copies: None,
                },
            )?;
        }
        Ok(())
    }
}

/// The coefficients of one vector times `factor`; times 0 where that is no number.
fn weight_of(factor: f64) -> [f32; coefficient_words(1)] {
    let mut words = [0.0; coefficient_words(1)];
    if factor.is_finite() && factor != 0.0 {
        // As weight * scale^2, so that any factor fits.
        let scale = (factor.abs().log2() / 2.0).floor().exp2();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounding is what is wanted"
        )]
        let (weight, scale) = ((factor / scale / scale) as f32, scale as f32);
        words[COEFFICIENT_WEIGHT] = weight;
        words[coefficient_scale(1)] = scale;
    }
    words
}

fn as_fp32(specs: &[TensorSpec]) -> Vec<TensorSpec> {
    let specs = specs.iter();
    specs
        .map(|spec| TensorSpec::new(spec.name.clone(), spec.count, DType::F32))
        .collect()
}
