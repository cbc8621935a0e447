//! One fused buffer and the steps of its reduction, made ready once.
//!
//! Creation turns a [`Plan`] into device tables and lists of transfers; [`Bucket::run`] only enqueues.

use std::sync::Arc;

use super::tables::{FoldList, Segments, uniform_weights};
use super::{InServer, Reduction, World};
use crate::ascend::{Buffer, Comm, DataType, Span, Stream, Transfer};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::kernel::layout::{COEFFICIENT_FLAGS, COEFFICIENT_WORDS, MAX_RADIX, record_words};
use crate::kernel::{Coefficients, Fold, Gram, Vectors, WeightedSum};
use crate::plan::{self, Combine, DType, Exchange, Layout, Plan, Planner, Range, UNIT};

const _: () = assert!(UNIT == crate::kernel::layout::UNIT);

/// Bytes of an fp32 word of records and coefficients.
const WORD: usize = 4;

/// The buffers and prepared steps of one fused buffer.
pub(super) struct Bucket {
    layout: Layout,
    tensors: Vec<Span>,
    mean: Option<Step>,
    rounds: Vec<Step>,
    returns: Vec<Vec<Transfer>>,
    gather: Vec<Transfer>,
}

/// An exchange and the weighted sum of what it brought.
struct Step {
    name: String,
    dtype: DataType,
    transfers: Vec<Transfer>,
    segments: Segments,
    /// Computes the weights on the device; absent where they are constant.
    scalars: Option<Scalars>,
    sums: Vec<Sum>,
}

/// One launch of `weighted_sum`.
struct Sum {
    vectors: Vectors,
    weights: Span,
    out: Span,
}

/// From the vectors on a slice to the coefficients of all tensors.
struct Scalars {
    comm: Arc<Comm>,
    dtype: DataType,
    vectors: Vectors,
    /// A record for each unit of the slice.
    partials: Span,
    /// This rank's contribution: a record for each of its segments.
    records: Span,
    /// The contributions of all members of the group.
    gathered: Span,
    list: FoldList,
    coefficients: Span,
    tensors: u64,
}

impl Bucket {
    /// Allocates and prepares everything that `plan` needs; makes its communicators.
    pub(super) fn new(
        world: &World,
        planner: &Planner,
        reduction: Reduction,
        in_server: InServer,
    ) -> Result<Self> {
        let device = world.device();
        let plan = &planner.plan(world.rank())?;
        let layout = planner.layout();
        let size = layout.dtype().size();
        // Zeroed, because the gaps between tensors are sent along.
        let fused = Buffer::zeroed(device, bytes(layout.elements(), size)?.max(64))?.span();
        let scratch = Buffer::zeroed(device, scratch_bytes(plan, size)?.max(64))?.span();
        let maker = Maker {
            world,
            planner,
            layout,
            fused: &fused,
            scratch: &scratch,
            size,
        };
        let mean = plan
            .mean
            .as_ref()
            .filter(|_| in_server != InServer::Reduced)
            .map(|mean| {
                let ranks = vec![1; mean.operands as usize];
                let is_sum = reduction == Reduction::Sum || in_server == InServer::Sum;
                maker.constant("in the server".to_owned(), mean, &ranks, is_sum)
            })
            .transpose()?;
        let rounds = plan
            .rounds
            .iter()
            .enumerate()
            .filter(|(_, round)| round.combine.operands > 1)
            .map(|(index, round)| maker.round(index, round, reduction))
            .collect::<Result<Vec<Step>>>()?;
        let returns = plan
            .returns
            .iter()
            .map(|exchange| maker.transfers_in_place(exchange))
            .collect::<Result<Vec<_>>>()?;
        let gather = match &plan.gather {
            Some(exchange) => maker.transfers_in_place(exchange)?,
            None => Vec::new(),
        };
        let tensors = layout
            .tensors()
            .iter()
            .map(|&tensor| maker.part(tensor))
            .collect::<Result<Vec<Span>>>()?;
        Ok(Bucket {
            layout: layout.clone(),
            tensors,
            mean,
            rounds,
            returns,
            gather,
        })
    }

    /// Where each tensor lies in the fused buffer.
    pub(super) fn tensors(&self) -> &[Span] {
        &self.tensors
    }

    /// Enqueues the whole reduction of the fused buffer.
    pub(super) fn run(&self, world: &World, stream: &Stream) -> Result<()> {
        for step in self.mean.iter().chain(&self.rounds) {
            step.run(world, stream).context(|| step.name.clone())?;
        }
        for (index, transfers) in self.returns.iter().enumerate() {
            exchange(world, transfers, stream).context(|| format!("return {index}"))?;
        }
        exchange(world, &self.gather, stream).context(|| "gather in the server")
    }

    /// Flags of the last round, in which every rank sees every tensor. The stream must be drained.
    pub(super) fn nonfinite(&self) -> Result<Vec<bool>> {
        let Some(scalars) = self.rounds.last().and_then(|step| step.scalars.as_ref()) else {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "only AdaSum over several servers looks for non-finite tensors",
            ));
        };
        let mut words = vec![0.0_f32; self.layout.tensors().len() * COEFFICIENT_WORDS];
        scalars.coefficients.read(&mut words)?;
        Ok(words
            .chunks_exact(COEFFICIENT_WORDS)
            .map(|coefficient| coefficient[COEFFICIENT_FLAGS] != 0.0)
            .collect())
    }
}

impl Step {
    fn run(&self, world: &World, stream: &Stream) -> Result<()> {
        exchange(world, &self.transfers, stream)?;
        if let Some(scalars) = &self.scalars {
            scalars.run(world, &self.segments, stream)?;
        }
        if self.segments.count == 0 {
            return Ok(());
        }
        for sum in &self.sums {
            world.kernels().weighted_sum(
                stream,
                &WeightedSum {
                    vectors: &sum.vectors,
                    dtype: self.dtype,
                    segments: &self.segments.table,
                    coefficients: &sum.weights,
                    out: &sum.out,
                    segment_count: self.segments.count,
                    unit_count: self.segments.units,
                },
            )?;
        }
        Ok(())
    }
}

impl Scalars {
    fn run(&self, world: &World, segments: &Segments, stream: &Stream) -> Result<()> {
        if self.list.stride == 0 {
            return Ok(());
        }
        let kernels = world.kernels();
        if segments.count > 0 {
            kernels.gram(
                stream,
                &Gram {
                    vectors: &self.vectors,
                    dtype: self.dtype,
                    segments: &segments.table,
                    partials: &self.partials,
                    segment_count: segments.count,
                    unit_count: segments.units,
                },
            )?;
            kernels.fold(
                stream,
                &Fold {
                    partials: &self.partials,
                    segments: &segments.table,
                    records: &self.records,
                    radix: self.vectors.radix(),
                    segment_count: segments.count,
                },
            )?;
        }
        self.comm
            .all_gather(&self.records, &self.gathered, DataType::F32, stream)?;
        kernels.coefficients(
            stream,
            &Coefficients {
                records: &self.gathered,
                refs: &self.list.refs,
                indices: &self.list.indices,
                out: &self.coefficients,
                radix: self.vectors.radix(),
                tensor_count: self.tensors,
            },
        )
    }
}

fn exchange(world: &World, transfers: &[Transfer], stream: &Stream) -> Result<()> {
    if transfers.is_empty() {
        return Ok(());
    }
    world.comm().batch(transfers, stream)
}

/// What the steps of one bucket are made from.
struct Maker<'a> {
    world: &'a World,
    planner: &'a Planner,
    layout: &'a Layout,
    fused: &'a Span,
    scratch: &'a Span,
    size: u64,
}

impl Maker<'_> {
    /// A step with constant weights: the sum, or the mean of vectors that are themselves means of so many.
    fn constant(
        &self,
        name: String,
        combine: &Combine,
        counts: &[u32],
        is_sum: bool,
    ) -> Result<Step> {
        let total: u32 = counts.iter().sum();
        // Numbers of ranks are exact in f32, so each weight is rounded once.
        let weight = |count: u32| count as f32 / total as f32;
        let weights: Vec<f32> = counts
            .iter()
            .map(|&count| if is_sum { 1.0 } else { weight(count) })
            .collect();
        Ok(Step {
            name,
            dtype: self.dtype(),
            transfers: self.transfers(combine)?,
            segments: Segments::new(self.world.device(), self.layout, combine.slice)?,
            scalars: None,
            sums: self.constant_sums(
                &self.operands(combine)?,
                &self.part(combine.slice)?,
                &weights,
            )?,
        })
    }

    /// The launches of a sum with constant weights of any number of vectors, at most `MAX_RADIX` a launch.
    ///
    /// Partial sums go over the first vector, and only the last launch writes the own slice: the own
    /// vector is somewhere among the operands and must last until it is read. Each launch rounds to the
    /// element type once.
    fn constant_sums(&self, operands: &[Span], own: &Span, weights: &[f32]) -> Result<Vec<Sum>> {
        let device = self.world.device();
        let mut sums: Vec<Sum> = Vec::new();
        let mut rest = operands;
        let mut weights = weights;
        while !rest.is_empty() {
            let carried = sums.last().map(|sum| sum.out.clone());
            let take = (MAX_RADIX - usize::from(carried.is_some())).min(rest.len());
            let mut inputs = rest[..take].to_vec();
            let mut factors = weights[..take].to_vec();
            if let Some(carried) = carried {
                inputs.insert(0, carried);
                factors.insert(0, 1.0);
            }
            rest = &rest[take..];
            weights = &weights[take..];
            sums.push(Sum {
                vectors: Vectors::new(device, &inputs)?,
                weights: uniform_weights(device, &factors, self.layout.tensors().len())?,
                out: if rest.is_empty() {
                    own.clone()
                } else {
                    inputs[0].clone()
                },
            });
        }
        Ok(sums)
    }

    fn round(&self, index: usize, round: &plan::Round, reduction: Reduction) -> Result<Step> {
        let name = format!("round {index}");
        let combine = &round.combine;
        if reduction != Reduction::Adasum {
            let servers: Vec<u32> = round.members.iter().map(|subtree| subtree.count).collect();
            return self.constant(name, combine, &servers, reduction == Reduction::Sum);
        }
        let device = self.world.device();
        let segments = Segments::new(device, self.layout, combine.slice)?;
        let operands = self.operands(combine)?;
        let scalars = self.scalars(index, round, &segments, &operands)?;
        let sum = Sum {
            vectors: scalars.vectors.clone(),
            weights: scalars.coefficients.clone(),
            out: self.part(combine.slice)?,
        };
        Ok(Step {
            name,
            dtype: self.dtype(),
            transfers: self.transfers(combine)?,
            segments,
            scalars: Some(scalars),
            sums: vec![sum],
        })
    }

    fn scalars(
        &self,
        index: usize,
        round: &plan::Round,
        segments: &Segments,
        operands: &[Span],
    ) -> Result<Scalars> {
        let device = self.world.device();
        let record = record_words(operands.len()) * WORD;
        let group = round.scalars;
        let slices = self.planner.slices(group, index + 1);
        let list = FoldList::new(device, self.layout, &slices)?;
        let tensors = self.layout.tensors().len();
        let stride = bytes(list.stride, record as u64)?;
        let table = |bytes: usize| -> Result<Span> {
            Buffer::zeroed(device, bytes.max(64))?
                .span()
                .slice(0..bytes)
        };
        Ok(Scalars {
            comm: self.world.group(group)?,
            dtype: self.dtype(),
            vectors: Vectors::new(device, operands)?,
            partials: table(bytes(segments.units, record as u64)?)?,
            records: table(stride)?,
            gathered: table(stride * group.count as usize)?,
            list,
            coefficients: table(tensors * COEFFICIENT_WORDS * WORD)?,
            tensors: tensors as u64,
        })
    }

    fn dtype(&self) -> DataType {
        match self.layout.dtype() {
            DType::F32 => DataType::F32,
            DType::F16 => DataType::F16,
            DType::BF16 => DataType::Bf16,
        }
    }

    /// The part of the fused buffer.
    fn part(&self, range: Range) -> Result<Span> {
        let start = bytes(range.start(), self.size)?;
        let end = bytes(range.end(), self.size)?;
        self.fused.slice(start..end)
    }

    /// Where operand `number` of a combine lies: the own one in place, the others one after the other in
    /// the receive buffer.
    fn operand(&self, combine: &Combine, number: u32) -> Result<Span> {
        if number == combine.own {
            return self.part(combine.slice);
        }
        let slot = number - u32::from(number > combine.own);
        let len = bytes(combine.slice.len(), self.size)?;
        let start = len * slot as usize;
        self.scratch.slice(start..start + len)
    }

    fn operands(&self, combine: &Combine) -> Result<Vec<Span>> {
        (0..combine.operands)
            .map(|number| self.operand(combine, number))
            .collect()
    }

    fn transfers(&self, combine: &Combine) -> Result<Vec<Transfer>> {
        self.transfers_into(&combine.exchange, |receive| {
            let operand = self.operand(combine, receive.operand)?;
            let start = bytes(receive.range.start() - combine.slice.start(), self.size)?;
            operand.slice(start..start + bytes(receive.range.len(), self.size)?)
        })
    }

    fn transfers_in_place(&self, exchange: &Exchange) -> Result<Vec<Transfer>> {
        self.transfers_into(exchange, |receive| self.part(receive.range))
    }

    fn transfers_into(
        &self,
        exchange: &Exchange,
        place: impl Fn(&plan::Transfer) -> Result<Span>,
    ) -> Result<Vec<Transfer>> {
        let mut transfers = Vec::new();
        for send in &exchange.sends {
            transfers.push(Transfer::Send {
                peer: send.peer,
                span: self.part(send.range)?,
                dtype: self.dtype(),
            });
        }
        for receive in &exchange.receives {
            transfers.push(Transfer::Recv {
                peer: receive.peer,
                span: place(receive)?,
                dtype: self.dtype(),
            });
        }
        Ok(transfers)
    }
}

/// Bytes of the receive buffer: all other operands of the largest combine.
fn scratch_bytes(plan: &Plan, size: u64) -> Result<usize> {
    let combines = plan
        .mean
        .iter()
        .chain(plan.rounds.iter().map(|round| &round.combine));
    let elements = combines
        .map(|combine| u64::from(combine.operands - 1) * combine.slice.len())
        .max()
        .unwrap_or(0);
    bytes(elements, size)
}

fn bytes(count: u64, size: u64) -> Result<usize> {
    count
        .checked_mul(size)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| Error::invalid(format!("{count} elements of {size} bytes are too many")))
}
