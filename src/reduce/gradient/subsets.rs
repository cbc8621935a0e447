//! Reductions of some of a reducer's tensors, each by a plan of its own that is kept.

use crate::ascend::{Span, Stream};
use crate::error::{Context, Error, Result};
use crate::plan::TensorSpec;
use crate::reduce::Options;
use crate::reduce::engine::arguments::{check_tensors, cut, flat_bytes};
use crate::reduce::engine::bucket::Pass;
use crate::reduce::engine::program::Program;
use crate::reduce::gradient::GradientReducer;
use crate::reduce::gradient::plans::{PlanNumber, WHOLE};

impl GradientReducer {
    /// As [`GradientReducer::reduce`], for some of the tensors: those at the indices `tensors` of the list of creation, in
    /// any order, whose gradients are `gradients`. For frameworks that hand over gradients in buckets while the backward
    /// pass still runs.
    ///
    /// Collective and stream-ordered: all ranks call it with the same indices in the same order. The first call for a
    /// subset prepares it, see [`GradientReducer::prepare_some`], and so waits for all ranks; later ones do not
    /// wait. Each tensor's result is that of a reduction of all tensors, but for the last bit of the largest
    /// element: only coefficients depend on the order of sums.
    ///
    /// # Errors
    /// `InvalidArgument` for an index that is out of range or comes twice; else as [`GradientReducer::reduce`] and
    /// [`GradientReducer::prepare_some`].
    pub fn reduce_some(
        &mut self,
        tensors: &[usize],
        gradients: &[Span],
        stream: &Stream,
    ) -> Result<()> {
        self.run_some(tensors, Pass::Reduction, gradients, stream)
    }

    /// As [`GradientReducer::reduce_some`], for gradients that lie one right behind the other in `buffer`, in the order of
    /// `tensors` and without gaps, as the buckets of PyTorch's DDP do.
    ///
    /// # Errors
    /// `InvalidArgument` if the buffer is not [`GradientReducer::flat_bytes_of`] long; else as there.
    pub fn reduce_some_flat(
        &mut self,
        tensors: &[usize],
        buffer: &Span,
        stream: &Stream,
    ) -> Result<()> {
        let gradients = cut(self.specs_of(tensors)?.into_iter(), buffer)?;
        self.reduce_some(tensors, &gradients, stream)
    }

    /// Bytes of the tensors at these indices one right behind the other.
    ///
    /// # Errors
    /// `InvalidArgument` for an index that is out of range or comes twice.
    pub fn flat_bytes_of(&self, tensors: &[usize]) -> Result<u64> {
        Ok(flat_bytes(self.specs_of(tensors)?.into_iter()))
    }

    /// Plans the reduction of the tensors at these indices and warms it up, so that the first
    /// [`GradientReducer::reduce_some`] of them does not wait. Nothing is done for a subset that is prepared already.
    ///
    /// Collective. Waits for all ranks and for all earlier work of the world. The plans of
    /// [`Options::subset_plans`](crate::reduce::Options::subset_plans) subsets are kept; a new one beyond that takes the place of
    /// the one that was used longest ago. Device memory of a plan: tables, about 1 % of its tensors; fused buffers
    /// are shared with the whole list (with `gradient_buffers` with other subsets only), and grow if a bucket of the subset is larger than
    /// any before.
    ///
    /// # Errors
    /// `Mismatch` on all ranks if they do not agree on the subset, and on the others if one has no memory for it: the world
    /// stays usable. Another failure poisons it.
    pub fn prepare_some(&mut self, tensors: &[usize]) -> Result<()> {
        self.number_of(tensors).map(|_| ())
    }

    pub(super) fn run_some(
        &mut self,
        tensors: &[usize],
        pass: Pass,
        spans: &[Span],
        stream: &Stream,
    ) -> Result<()> {
        self.world.check()?;
        let specs = self.specs_of(tensors)?;
        check_tensors(&self.world, specs.into_iter(), spans, pass.takes())?;
        let number = self.number_of(tensors)?;
        if number == WHOLE {
            self.check_places(spans, pass)?;
        }
        self.run(number, pass, spans, stream, None)
    }

    /// The plan of these tensors, made if there is none.
    pub(super) fn number_of(&mut self, tensors: &[usize]) -> Result<PlanNumber> {
        match self.plans.find(tensors) {
            Some(number) => self.world.check().map(|()| number),
            None => self.prepare(tensors),
        }
    }

    fn prepare(&mut self, tensors: &[usize]) -> Result<PlanNumber> {
        let world = self.world.clone();
        world.check()?;
        let specs: Vec<TensorSpec> = self
            .specs_of(tensors)?
            .into_iter()
            .zip(tensors)
            .map(|(spec, index)| TensorSpec {
                // Ranks that name other tensors of the same name and size differ, too.
                name: format!("{} (number {index} of the reducer)", spec.name),
                ..spec.clone()
            })
            .collect();
        let limit = self.options.create_timeout;
        world.agree(&specs, &self.options.agreed(self.choices), limit)?;
        // What is queued may still read the tables of a plan that goes.
        world.drain(limit)?;
        self.plans.make_room();
        // Its buckets have no buffers of their own: one follows the other in those of the slots.
        let options = Options {
            gradient_buffers: false,
            ..self.options.clone()
        };
        let made = Program::new(
            &world,
            &self.specs,
            tensors.to_vec(),
            &options,
            self.choices,
            &of(&self.specs, tensors),
        );
        let plan = world.all_have(made, "make its part of the plan of a subset", limit)?;
        self.slots.fit(&world, &plan.buckets, limit)?;
        let number = self.plans.insert(plan);
        self.warm_up(number)
            .inspect_err(|error| world.fail(error))
            .context(|| format!("rank {}: warm-up of a subset", world.own_in_root()))?;
        Ok(number)
    }

    fn specs_of(&self, tensors: &[usize]) -> Result<Vec<&TensorSpec>> {
        let mut seen = vec![false; self.specs.len()];
        let spec = |&tensor: &usize| {
            let Some(spec) = self.specs.get(tensor) else {
                return Err(Error::invalid(format!(
                    "tensor {tensor} of a reducer of {} tensors",
                    self.specs.len()
                )));
            };
            if std::mem::replace(&mut seen[tensor], true) {
                return Err(Error::invalid(format!(
                    "tensor {tensor} \"{}\" comes twice among the tensors of one call",
                    spec.name
                )));
            }
            Ok(spec)
        };
        tensors.iter().map(spec).collect()
    }
}

/// Which tensors a bucket is of, for messages.
fn of(specs: &[TensorSpec], tensors: &[usize]) -> String {
    let name = |index: Option<&usize>| index.map_or("", |&index| &specs[index].name);
    match tensors.len() {
        0 | 1 => format!(" of tensor \"{}\"", name(tensors.first())),
        count => format!(
            " of {count} tensors, \"{}\" to \"{}\"",
            name(tensors.first()),
            name(tensors.last())
        ),
    }
}
