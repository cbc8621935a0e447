//! Options that go together.

use super::{Options, World};
use crate::error::{Error, Result};
use crate::plan::mindspore::{Context, DEVICES_PER_SERVER, Exception, servers, wrap_cell_servers};
use crate::plan::{Form, Placement};

impl Options {
    /// The profile `mindspore`: what MindSpore's wrap cells ask of their surroundings, with the paper's arithmetic.
    ///
    /// Servers of 8 ranks, columns, pairs that exchange halves one after the other, a barrier of all ranks at the end.
    /// The warning of the checks is logged.
    ///
    /// # Errors
    /// The four errors of the wrap cells, word for word and in their order; and if `world` is not the stage that
    /// `context` describes.
    pub fn mindspore(world: &World, context: &Context) -> Result<Self> {
        wrap_cell_servers(context, |warning| log::warn!("{warning}"))
            .map_err(Exception::into_error)?;
        let expected = servers(context);
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
