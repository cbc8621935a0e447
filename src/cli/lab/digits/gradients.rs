//! Gradients on the host, reduced over the device.

use std::time::Duration;

use crate::ascend::{Buffer, Span, Stream};
use crate::cli::lab::digits::network::Network;
use crate::error::Result;
use crate::reduce::{DType, GradientReducer, Options, TensorSpec, World};

/// Device memory for the gradients of a network, and what reduces them.
pub struct Gradients {
    /// The reducer of the network's tensors.
    pub reducer: GradientReducer,
    /// The stream that carries the reductions.
    pub stream: Stream,
    spans: Vec<Span>,
}

impl Gradients {
    /// Memory and reducer for `network`, on every rank of `world` alike.
    ///
    /// # Errors
    /// If device memory or the reducer cannot be had.
    pub fn new(world: &World, network: &Network, options: &Options) -> Result<Gradients> {
        let specs: Vec<TensorSpec> = std::iter::zip(network.names(), &network.tensors)
            .map(|(name, tensor)| TensorSpec::new(name, tensor.len() as u64, DType::F32))
            .collect();
        let spans = network
            .tensors
            .iter()
            .map(|tensor| Ok(Buffer::new(world.device(), size_of_val(&tensor[..]))?.span()));
        Ok(Gradients {
            spans: spans.collect::<Result<_>>()?,
            reducer: GradientReducer::new(world, &specs, options)?,
            stream: Stream::new(world.device())?,
        })
    }

    /// Replaces this rank's gradients by the reduced ones, which are the same on all ranks.
    ///
    /// # Errors
    /// If the reduction fails, or has not ended after `limit`.
    pub fn reduce(&mut self, host: &mut [Vec<f32>], limit: Duration) -> Result<()> {
        for (span, values) in self.spans.iter().zip(host.iter()) {
            span.write(values)?;
        }
        self.reducer.reduce(&self.spans, &self.stream)?;
        self.reducer.synchronize(&self.stream, limit)?;
        for (span, values) in self.spans.iter().zip(host) {
            span.read(values)?;
        }
        Ok(())
    }
}
