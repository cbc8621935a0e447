//! The gradient reducer: AdaSum (or the mean) of every tensor over all ranks, in place.

use std::time::Duration;

use super::book::Book;
use super::bucket::{Bucket, Progress, data_type};
use super::memory::Memory;
use super::pipeline::wavefront;
use super::stage;
use super::{Options, Reduction, World};
use crate::ascend::{Buffer, Span, Stream};
use crate::error::{Context, Error, Result};
use crate::plan::{DType, Layout, Planner, TensorSpec, buckets, fingerprint};

/// Reduces the gradients of a fixed list of tensors.
pub struct GradientReducer {
    world: World,
    specs: Vec<TensorSpec>,
    buckets: Vec<Bucket>,
    /// Bucket `i` uses slot `i` modulo their number.
    slots: Vec<Memory>,
    book: Book,
    /// Bucket and stage, in the order in which they are issued.
    order: Vec<(usize, usize)>,
    barrier: bool,
    timeout: Duration,
}

impl GradientReducer {
    /// Plans the reduction of `tensors`, allocates its buffers and warms up every link that it uses.
    ///
    /// Collective: all ranks must call it with the same tensors and options. Tensors of one element type
    /// share fused buffers. Arithmetic is fp32 whatever the type; each round (and, with more than 8 ranks a
    /// server, each 8 of them) rounds to the type of the wire once. Device memory: for each of `pipeline_depth`
    /// buckets a fused buffer and a receive buffer for all but one vector of the largest step; small tables.
    ///
    /// # Errors
    /// `Mismatch` on all ranks if they do not agree on tensors and options; `InvalidArgument` for an option out
    /// of range.
    pub fn new(world: &World, tensors: &[TensorSpec], options: &Options) -> Result<Self> {
        options.check()?;
        let shape = world.shape();
        if options.reduction == Reduction::Adasum
            && shape.servers == 1
            && shape.locals > 1
            && !options.allow_plain_mean
        {
            return Err(Error::invalid(format!(
                "one server of {} ranks: AdaSum combines servers, so the result would be a plain mean; set \
                 allow_plain_mean, or make each rank a server of its own",
                shape.locals
            )));
        }
        world.agree(
            fingerprint(shape, tensors, &options.agreed()),
            options.create_timeout,
        )?;
        let buckets = make_buckets(world, tensors, options)?;
        let lengths: Vec<usize> = buckets.iter().map(|bucket| bucket.stages.len()).collect();
        let entries = buckets.iter().map(|bucket| bucket.entries.len()).sum();
        let mut reducer = GradientReducer {
            world: world.clone(),
            specs: tensors.to_vec(),
            slots: make_slots(world, &buckets, options.pipeline_depth)?,
            buckets,
            book: Book::new(world.device(), entries)?,
            order: wavefront(&lengths, options.pipeline_depth),
            barrier: options.barrier,
            timeout: options.create_timeout,
        };
        reducer
            .warm_up()
            .context(|| format!("rank {}: warm-up of the reducer", world.rank()))?;
        Ok(reducer)
    }

    /// Replaces each tensor of `gradients` by its reduction, in the order of creation.
    ///
    /// Collective and stream-ordered: enqueues behind what `stream` holds and returns; what `stream` is
    /// given next sees the results. Each span is a whole tensor in device memory of the world's device,
    /// aligned to its elements, and is kept alive until `stream` is synchronised. The tensors of a bucket that lie
    /// one right behind the other in one allocation are reduced where they are, without a copy, if their sizes are
    /// multiples of 64 bytes (the last one's may be any).
    ///
    /// # Errors
    /// Wrong spans are refused before anything is enqueued. Any later failure of this call poisons the
    /// world, because other ranks may already be in the same reduction. A failure of the work itself, like
    /// a peer that never comes, shows when `stream` is synchronised: results are good only after that.
    pub fn reduce(&mut self, gradients: &[Span], stream: &Stream) -> Result<()> {
        self.world.check()?;
        self.check(gradients)?;
        let enqueued = self.enqueue(Some(gradients), stream);
        // Work of the world's own streams uses them, too, and `stream` waits for that.
        stream.keep(gradients);
        enqueued.context(|| format!("rank {}", self.world.rank()))
    }

    /// Waits until what `stream` holds is done, at most `timeout`, and looks at all streams of the world.
    ///
    /// This is the call to make before results are used on the host.
    ///
    /// # Errors
    /// The first failure of any of that work, or `Timeout`. Either poisons the world: every later call fails.
    pub fn synchronize(&self, stream: &Stream, timeout: Duration) -> Result<()> {
        self.world.synchronize(stream, timeout)
    }

    /// Whether each tensor was non-finite on any rank in the last reduction; the same on all ranks.
    ///
    /// Waits for the reduction. A tensor with a NaN or an infinity on one rank is non-finite as a whole on
    /// all ranks afterwards; the other tensors are not touched by it.
    pub fn nonfinite(&self) -> Result<Vec<bool>> {
        self.world.drain(self.timeout)?;
        let mut flags = vec![false; self.specs.len()];
        for bucket in &self.buckets {
            for (&member, flag) in bucket.members.iter().zip(bucket.nonfinite()?) {
                flags[member] = flag;
            }
        }
        Ok(flags)
    }

    /// Enqueues all stages of all buckets; without gradients on whatever the fused buffers hold.
    fn enqueue(&mut self, gradients: Option<&[Span]>, stream: &Stream) -> Result<()> {
        let mut flat = Vec::with_capacity(self.buckets.len());
        let mut memories = Vec::with_capacity(self.buckets.len());
        for (index, bucket) in self.buckets.iter().enumerate() {
            let own = gradients
                .map(|gradients| bucket.flat(gradients))
                .transpose()?
                .flatten();
            let slot = &self.slots[index % self.slots.len()];
            flat.push(own.is_some());
            memories.push(Memory {
                fused: match own {
                    Some(own) => own,
                    None => slot.fused.slice(0..bucket.fused_bytes()?)?,
                },
                scratch: slot.scratch.clone(),
            });
        }
        let entries = self
            .buckets
            .iter()
            .zip(&memories)
            .flat_map(|(bucket, memory)| {
                let entries = bucket.entries.iter();
                entries.map(move |entry| entry.address(gradients, memory))
            });
        let addresses = entries.collect();
        let world = &self.world;
        world.enqueue_lanes(stream, |lanes| {
            self.book.update(addresses, lanes.kernels)?;
            let mut progress: Vec<Progress<'_>> = (0..)
                .zip(self.buckets.iter().zip(&memories))
                .map(|(index, (bucket, memory))| {
                    let context = stage::Context {
                        kernels: world.kernels(),
                        comm: world.comm(),
                        book: &self.book,
                        memory,
                        dtype: data_type(bucket.layout.dtype()),
                    };
                    let copies = gradients.is_some() && !flat[index];
                    Progress::new(bucket, context, copies)
                })
                .collect();
            for &(bucket, stage) in &self.order {
                progress[bucket]
                    .issue(stage, lanes)
                    .context(|| format!("bucket {bucket}"))?;
            }
            if self.barrier {
                world.comm().barrier(lanes.payload)?;
            }
            Ok(())
        })
    }

    fn check(&self, gradients: &[Span]) -> Result<()> {
        if gradients.len() != self.specs.len() {
            return Err(Error::invalid(format!(
                "{} gradients were given for {} tensors",
                gradients.len(),
                self.specs.len()
            )));
        }
        for (gradient, spec) in gradients.iter().zip(&self.specs) {
            let bytes = spec.count * spec.dtype.size();
            if gradient.len() as u64 != bytes {
                return Err(Error::invalid(format!(
                    "tensor \"{}\": the gradient has {} bytes, {} elements of {} are {bytes}",
                    spec.name,
                    gradient.len(),
                    spec.count,
                    spec.dtype.name()
                )));
            }
            if !gradient.address().is_multiple_of(spec.dtype.size()) {
                return Err(Error::invalid(format!(
                    "tensor \"{}\": its address {:#x} is not a multiple of {} bytes, the size of an element",
                    spec.name,
                    gradient.address(),
                    spec.dtype.size()
                )));
            }
        }
        Ok(())
    }

    /// One reduction of zeros: builds every link and buffer while failing is still cheap.
    fn warm_up(&mut self) -> Result<()> {
        let stream = Stream::new(self.world.device())?;
        self.enqueue(None, &stream)?;
        self.synchronize(&stream, self.timeout)
    }
}

/// Tensors of one type share buckets, in the order of the list.
fn make_buckets(world: &World, tensors: &[TensorSpec], options: &Options) -> Result<Vec<Bucket>> {
    let mut made = Vec::new();
    let mut entries = 0;
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let members: Vec<usize> = (0..tensors.len())
            .filter(|&index| tensors[index].dtype == dtype)
            .collect();
        let wire = options.wire.dtype(dtype);
        let sizes: Vec<u64> = members
            .iter()
            .map(|&index| tensors[index].count.saturating_mul(wire.size()))
            .collect();
        for part in buckets(&sizes, options.bucket_bytes) {
            let members = members[part].to_vec();
            let counts: Vec<u64> = members.iter().map(|&index| tensors[index].count).collect();
            let layout = Layout::new(wire, &counts)?;
            let planner = Planner::new(world.shape(), layout, options.radix)?;
            let bucket = Bucket::new(world, &planner, dtype, members, entries, options)?;
            entries += bucket.entries.len();
            made.push(bucket);
        }
    }
    Ok(made)
}

/// The buffers of the buckets that are under way at a time.
fn make_slots(world: &World, buckets: &[Bucket], depth: usize) -> Result<Vec<Memory>> {
    let mut sizes = vec![(0, 0); depth.min(buckets.len())];
    for (index, bucket) in buckets.iter().enumerate() {
        let (fused, scratch) = &mut sizes[index % depth.min(buckets.len())];
        *fused = bucket.fused_bytes()?.max(*fused);
        *scratch = bucket.scratch_bytes.max(*scratch);
    }
    let span = |bytes: usize| Ok(Buffer::zeroed(world.device(), bytes.max(64))?.span());
    let slots = sizes.into_iter().map(|(fused, scratch)| {
        Ok(Memory {
            fused: span(fused)?,
            scratch: span(scratch)?,
        })
    });
    slots.collect()
}
