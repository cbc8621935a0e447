//! Options that go together, and what a world must be for them.

use crate::error::{Error, Result};
use crate::plan::mindspore::{
    DEVICES_PER_SERVER, ParallelContext, ParallelMode, check_boost, wrap_cell_servers,
};
use crate::plan::{Form, Placement};
use crate::reduce::options::Options;
use crate::reduce::options::settings::{Profile, Settings};
use crate::reduce::world::World;

impl Options {
    /// The profile `mindspore`: what MindSpore's wrap cells ask of their surroundings, with the paper's arithmetic.
    ///
    /// Servers of 8 ranks, columns, pairs that exchange halves one after the other, a barrier of all ranks at the end.
    /// The warning of the checks is logged.
    ///
    /// # Errors
    /// The four errors of the wrap cells, word for word and in their order; and if `world` is not the stage that
    /// `context` describes.
    pub fn mindspore(world: &World, context: &ParallelContext) -> Result<Self> {
        let expected = wrap_cell_servers(context, |warning| log::warn!("{warning}"))?;
        if (world.servers(), world.locals()) != (expected, DEVICES_PER_SERVER) {
            return Err(Error::invalid(format!(
                "profile mindspore: the context has {expected} servers of {DEVICES_PER_SERVER} devices, the world {} of {}",
                world.servers(),
                world.locals()
            )));
        }
        Ok(Options {
            radix: 2,
            placement: Placement::Columns,
            exchange: Some(Form::Pairwise),
            barrier: true,
            ..Options::default()
        })
    }
}

impl Settings {
    /// The options of reducers in `world`.
    ///
    /// # Errors
    /// What the profile, and boost where a configuration was read, find wrong with the world.
    pub fn options(&self, world: &World) -> Result<Options> {
        if let Some(boost) = self.boost.as_ref().filter(|boost| boost.adasum) {
            check_boost(boost, &self.context(world, ParallelMode::DataParallel))?;
        }
        let mut options = self.options.clone();
        if self.profile == Profile::MindSpore {
            let context = self.context(world, ParallelMode::SemiAutoParallel);
            let profile = Options::mindspore(world, &context)?;
            options.radix = profile.radix;
            options.placement = profile.placement;
            options.exchange = profile.exchange;
            options.barrier = profile.barrier;
        }
        Ok(options)
    }

    fn context(&self, world: &World, mode: ParallelMode) -> ParallelContext {
        self.context.unwrap_or(ParallelContext {
            mode,
            enable_parallel_optimizer: false,
            pipeline_stages: 1,
            device_num: world.size(),
        })
    }
}
