//! Gradients that have only some rows: indices and values of all ranks, one after the other.

use std::sync::Arc;
use std::time::Duration;

use crate::ascend::{Buffer, DataType, Span, Stream, Transfer};
use crate::error::{Context, Error, Result};
use crate::kernel::layout::Segment;
use crate::kernel::{Move, SegmentTable, Tensors, Vectors, WeightedSum};
use crate::plan::{DType, TensorSpec};
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::engine::bucket::data_type;
use crate::reduce::engine::device_tables::uniform_weights;
use crate::reduce::mean::{factor, group_world};
use crate::reduce::options::MeanOptions;
use crate::reduce::world::World;
use crate::reduce::world::watch::WatchedStage;

/// How many rows a rank brings to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// So many in every call on every rank: calls only enqueue.
    Exactly(u64),
    /// Any number up to this one, another in each call and on each rank: each call waits once on the host, until the
    /// ranks have told each other their numbers.
    UpTo(u64),
}

impl Rows {
    fn most(self) -> u64 {
        match self {
            Rows::Exactly(rows) | Rows::UpTo(rows) => rows,
        }
    }
}

/// Type of row numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexType {
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
}

impl IndexType {
    fn data_type(self) -> DataType {
        match self {
            IndexType::I32 => DataType::I32,
            IndexType::I64 => DataType::I64,
        }
    }
}

/// A gradient of some rows of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseSpec {
    /// Name for messages.
    pub name: String,
    /// Elements of a row.
    pub width: u64,
    /// Type of the elements.
    pub dtype: DType,
    /// Type of the row numbers.
    pub index: IndexType,
    /// Rows of a rank.
    pub rows: Rows,
}

/// The rows of all ranks, in the order of the ranks, in memory of the reducer: good until its next call.
#[derive(Debug, Clone)]
pub struct SparseRows {
    /// Number of rows.
    pub rows: u64,
    /// Their numbers; one that several ranks have occurs several times.
    pub indices: Span,
    /// Their elements, multiplied by 1 / degree for a mean.
    pub values: Span,
}

/// Gathers a sparse gradient over a group of ranks: what MindSpore's `DistributedGradReducer` does with a `RowTensor`.
///
/// Rows are not added up: an optimizer that takes sparse gradients adds those of equal number.
pub struct SparseReducer {
    world: World,
    spec: SparseSpec,
    indices: Span,
    values: Span,
    /// All values, to be multiplied.
    vectors: Vectors,
    weight: Option<Span>,
    /// The segment of all values of the last call.
    all: SegmentTable,
    counts: Option<Counts>,
    watched: Arc<WatchedStage>,
    timeout: Duration,
}

/// What calls with any number of rows need.
struct Counts {
    own: Span,
    every: Span,
}

impl SparseReducer {
    /// Prepares the gathering of one gradient and warms up its links.
    ///
    /// Collective among the group of `options`, whose fusion does not matter here. Device memory: room for the rows of
    /// all ranks, as many of each as it may bring.
    ///
    /// # Errors
    /// `Mismatch` on all ranks if they do not agree; `InvalidArgument` as [`MeanReducer::new`](crate::reduce::MeanReducer::new)
    /// and for rows of no elements.
    pub fn new(world: &World, spec: &SparseSpec, options: &MeanOptions) -> Result<Self> {
        let world = group_world(world, options)?;
        let factor = factor(options, world.size())?;
        if spec.width == 0 {
            return Err(Error::invalid(format!(
                "\"{}\": rows of no elements",
                spec.name
            )));
        }
        let choices = format!("sparse {:?} {:?} {factor}", spec.rows, spec.index);
        let tensor = TensorSpec::new(&spec.name, spec.width, spec.dtype);
        world.agree(&[tensor], &[choices], options.create_timeout)?;
        let made = SparseReducer::make(&world, spec, options, factor);
        let mut reducer =
            world.all_have(made, "make its part of the reducer", options.create_timeout)?;
        let rank = world.own_in_root();
        reducer
            .warm_up()
            .context(|| format!("rank {rank}: warm-up of \"{}\"", spec.name))?;
        reducer.timeout = options.stall_timeout;
        Ok(reducer)
    }

    /// What needs no other rank: tables and buffers.
    fn make(world: &World, spec: &SparseSpec, options: &MeanOptions, factor: f32) -> Result<Self> {
        let device = world.device();
        let tables = TableAllocator::new(device);
        let room = |bytes: u64| -> Result<Span> {
            let most = bytes.checked_mul(spec.rows.most());
            let all = most.and_then(|bytes| bytes.checked_mul(u64::from(world.size())));
            let all = all
                .and_then(|bytes| usize::try_from(bytes).ok())
                .ok_or_else(|| {
                    Error::invalid(format!(
                        "\"{}\": {:?} rows are too many",
                        spec.name, spec.rows
                    ))
                })?;
            Buffer::zeroed(device, all.max(64))?.span().slice(0..all)
        };
        let values = room(spec.row_bytes())?;
        let elements = values.len() as u64 / spec.dtype.size();
        let counts = match spec.rows {
            Rows::Exactly(_) => None,
            Rows::UpTo(_) => Some(Counts {
                own: tables.upload(&[0_u64])?,
                every: tables.upload(&vec![0_u64; world.size() as usize])?,
            }),
        };
        let is_scaled = factor.to_bits() != 1.0_f32.to_bits();
        let weight = is_scaled.then(|| uniform_weights(&tables, &[factor], 1));
        Ok(SparseReducer {
            indices: room(spec.index.data_type().size() as u64)?,
            vectors: Vectors::new(device, std::slice::from_ref(&values))?,
            weight: weight.transpose()?,
            all: SegmentTable::one(device, elements)?,
            counts,
            watched: world.watched(&format!("rows of \"{}\"", spec.name), values.len() as u64)?,
            spec: spec.clone(),
            timeout: options.create_timeout,
            values,
            world: world.clone(),
        })
    }

    /// Gathers `indices` and `values` of all ranks: one index a row, rows one after the other.
    ///
    /// Collective among the group. With [`Rows::Exactly`] it is stream-ordered: it enqueues and returns, and what
    /// `stream` is given next sees the rows. With [`Rows::UpTo`] it waits once for `stream`, until all ranks have come
    /// to the call and exchanged their numbers of rows (one all-gather of 8 bytes a rank); the rows themselves are then
    /// enqueued, each rank's exact number. Which of both it is was agreed on at creation.
    ///
    /// # Errors
    /// Wrong spans are refused before anything is enqueued. A rank that brings a wrong number of rows fails alone,
    /// and the others wait for it until the stall timeout of their options, which fails the world.
    pub fn reduce(&mut self, indices: &Span, values: &Span, stream: &Stream) -> Result<SparseRows> {
        let rows = self.check(indices, values)?;
        let (rank, name) = (self.world.own_in_root(), self.spec.name.clone());
        let context = || format!("rank {rank}: \"{name}\"");
        match &self.counts {
            None => self.gather(indices, values, stream).context(context),
            Some(counts) => {
                let every = self
                    .exchange_counts(counts, rows, stream)
                    .context(context)?;
                // The others are in the exchange, or about to be.
                let world = self.world.clone();
                self.exchange(indices, values, &every, stream)
                    .inspect_err(|error| world.fail(error))
                    .context(context)
            }
        }
    }

    /// The number of rows on this rank.
    fn check(&self, indices: &Span, values: &Span) -> Result<u64> {
        let name = &self.spec.name;
        for (span, what) in [
            (indices, "the span of indices"),
            (values, "the span of values"),
        ] {
            let same = self.world.device().require_same(span.device(), what);
            same.context(|| format!("\"{name}\""))?;
        }
        let index = self.spec.index.data_type().size();
        let rows = (indices.len() / index) as u64;
        if !indices.len().is_multiple_of(index)
            || values.len() as u64 != rows.saturating_mul(self.spec.row_bytes())
        {
            return Err(Error::invalid(format!(
                "\"{name}\": {} bytes of indices and {} of values are not the same number of rows of {} bytes",
                indices.len(),
                values.len(),
                self.spec.row_bytes()
            )));
        }
        let allowed = match self.spec.rows {
            Rows::Exactly(exact) => rows == exact,
            Rows::UpTo(most) => rows <= most,
        };
        if !allowed {
            return Err(Error::invalid(format!(
                "\"{name}\": {rows} rows, not {:?}",
                self.spec.rows
            )));
        }
        Ok(rows)
    }

    /// The same number of rows on all ranks.
    fn gather(&self, indices: &Span, values: &Span, stream: &Stream) -> Result<SparseRows> {
        let comm = self.world.comm();
        self.world
            .enqueue_watched(&self.watched, self.timeout, stream, |stream| {
                comm.all_gather(indices, &self.indices, self.spec.index.data_type(), stream)?;
                comm.all_gather(values, &self.values, data_type(self.spec.dtype), stream)?;
                self.scale(stream)
            })?;
        let ranks = u64::from(self.world.size());
        self.rows(ranks * self.spec.rows.most())
    }

    /// What every rank brings. Waits.
    fn exchange_counts(&self, counts: &Counts, rows: u64, stream: &Stream) -> Result<Vec<u64>> {
        // Nothing reads the own number any more: the call before has waited for all that did.
        counts.own.write(&[rows])?;
        self.world
            .enqueue_watched(&self.watched, self.timeout, stream, |stream| {
                let comm = self.world.comm();
                comm.all_gather(&counts.own, &counts.every, DataType::U64, stream)
            })?;
        self.world
            .synchronize(stream, self.timeout)
            .context(|| "waiting for the numbers of rows of all ranks")?;
        let mut every = vec![0_u64; self.world.size() as usize];
        counts.every.read(&mut every)?;
        let most = self.spec.rows.most();
        match (0..).zip(&every).find(|&(_, &rows)| rows > most) {
            None => Ok(every),
            Some((rank, rows)) => Err(Error::invalid(format!(
                "rank {} brings {rows} rows, at most {most} were agreed on",
                self.world.rank_in_root(rank)
            ))),
        }
    }

    /// Every rank sends its rows to where they belong on all others.
    fn exchange(
        &mut self,
        indices: &Span,
        values: &Span,
        every: &[u64],
        stream: &Stream,
    ) -> Result<SparseRows> {
        let rank = self.world.rank() as usize;
        let first = every.iter().take(rank).sum::<u64>();
        let total = every.iter().sum::<u64>();
        let index_bytes = self.spec.index.data_type().size() as u64;
        let dtype = data_type(self.spec.dtype);
        let moves = [
            // Indices are moved bit by bit as fp32 words.
            (indices, &self.indices, index_bytes, DataType::F32),
            (values, &self.values, self.spec.row_bytes(), dtype),
        ];
        let device = self.world.device();
        let mut work = Vec::new();
        for (own, all, row, element) in moves {
            let words = row / element.size() as u64;
            let segment = Segment {
                offset: first * words,
                len: every[rank] * words,
                ..Segment::default()
            };
            work.push(RowCopy {
                transfers: transfers(own, all, row, every, rank)?,
                tensor: Tensors::new(device, std::slice::from_ref(own))?,
                segments: SegmentTable::new(device, &[segment])?,
                all: all.clone(),
                element,
            });
        }
        let elements = total * self.spec.width;
        if total > 0 {
            self.all = SegmentTable::one(device, elements)?;
        }
        self.world
            .enqueue_watched(&self.watched, self.timeout, stream, |stream| {
                for copy in &work {
                    copy.run(&self.world, stream)?;
                }
                if total > 0 {
                    self.scale(stream)
                } else {
                    Ok(())
                }
            })?;
        self.rows(total)
    }

    /// Multiplies all values by 1 / degree, for a mean.
    fn scale(&self, stream: &Stream) -> Result<()> {
        let Some(weight) = &self.weight else {
            return Ok(());
        };
        self.world.kernels().weighted_sum(
            stream,
            &WeightedSum {
                vectors: &self.vectors,
                dtype: data_type(self.spec.dtype),
                segments: &self.all,
                coefficients: weight,
                out: &self.values,
                copies: None,
            },
        )
    }

    fn rows(&self, rows: u64) -> Result<SparseRows> {
        let part = |span: &Span, row: u64| -> Result<Span> {
            span.slice(0..usize::try_from(rows * row).unwrap_or(usize::MAX))
        };
        Ok(SparseRows {
            rows,
            indices: part(&self.indices, self.spec.index.data_type().size() as u64)?,
            values: part(&self.values, self.spec.row_bytes())?,
        })
    }

    /// One call with as many rows as there can be: builds every link while failing is still cheap.
    fn warm_up(&mut self) -> Result<()> {
        let (device, most) = (self.world.device(), self.spec.rows.most());
        let room = |row: u64| -> Result<Span> {
            let bytes = usize::try_from(row * most).unwrap_or(usize::MAX);
            Buffer::zeroed(device, bytes.max(64))?
                .span()
                .slice(0..bytes)
        };
        let indices = room(self.spec.index.data_type().size() as u64)?;
        let values = room(self.spec.row_bytes())?;
        let stream = Stream::new(device)?;
        self.reduce(&indices, &values, &stream)?;
        self.world.synchronize(&stream, self.timeout)
    }
}

/// The own rows to their place among all, and the exchange of the others.
struct RowCopy {
    transfers: Vec<Transfer<Span>>,
    tensor: Tensors,
    segments: SegmentTable,
    all: Span,
    element: DataType,
}

impl RowCopy {
    fn run(&self, world: &World, stream: &Stream) -> Result<()> {
        world.comm().batch(&self.transfers, self.element, stream)?;
        world.kernels().pack(
            stream,
            &Move {
                tensors: &self.tensor,
                tensor_type: self.element,
                fused: &self.all,
                fused_type: self.element,
                factor: 1.0,
                segments: &self.segments,
            },
        )
    }
}

impl SparseSpec {
    fn row_bytes(&self) -> u64 {
        self.width.saturating_mul(self.dtype.size())
    }
}

/// `own` to all others, and theirs to their places in `all`.
fn transfers(
    own: &Span,
    all: &Span,
    row: u64,
    every: &[u64],
    rank: usize,
) -> Result<Vec<Transfer<Span>>> {
    let mut transfers = Vec::new();
    let mut start = 0;
    for (peer, &rows) in every.iter().enumerate() {
        let end = start + usize::try_from(rows * row).unwrap_or(usize::MAX);
        let place = all.slice(start..end)?;
        start = end;
        if peer == rank {
            continue;
        }
        let peer = u32::try_from(peer).unwrap_or(u32::MAX);
        transfers.push(Transfer::send(peer, own.clone()));
        transfers.push(Transfer::receive(peer, place));
    }
    Ok(transfers)
}
