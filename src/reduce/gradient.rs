//! The gradient reducer: AdaSum (or the mean) of every tensor over all ranks, in place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::book::Book;
use super::bucket::{Bucket, Pass, Progress, data_type};
use super::checksum;
use super::device_memory::{Budget, DeviceMemory};
use super::memory::Memory;
use super::phases::Clock;
use super::pipeline::wavefront;
use super::stage;
use super::watch::Mark;
use super::{Options, Reduction, World};
use crate::ascend::{Buffer, Span, Stream};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::plan::{Choices, DType, Layout, Planner, TensorSpec, buckets, fingerprint};

/// Reduces the gradients of a fixed list of tensors.
pub struct GradientReducer {
    pub(super) world: World,
    pub(super) specs: Vec<TensorSpec>,
    pub(super) buckets: Vec<Bucket>,
    /// Bucket `i` uses slot `i` modulo their number.
    slots: Vec<Memory>,
    book: Book,
    pub(super) reduction: Program,
    collection: Program,
    scattered: bool,
    barrier: Option<Arc<Mark>>,
    pub(super) create_timeout: Duration,
    stall_timeout: Duration,
    pub(super) device_memory: DeviceMemory,
    /// The results of the last reduction, where checksums of them are to be compared.
    unchecked: Mutex<Option<Vec<Span>>>,
    checksum: bool,
}

/// The stages of a pass over all buckets.
pub(super) struct Program {
    /// Bucket and stage, in the order in which they are issued.
    pub(super) stages: Vec<(usize, usize)>,
    /// The steps in that order, for those who watch.
    marks: Arc<[Arc<Mark>]>,
}

impl Program {
    fn new(buckets: &[Bucket], pass: Pass, depth: usize, barrier: Option<&Arc<Mark>>) -> Self {
        let lengths: Vec<usize> = buckets.iter().map(|b| b.stages(pass).len()).collect();
        let stages = wavefront(&lengths, depth);
        let marks = stages
            .iter()
            .map(|&(bucket, stage)| Arc::clone(&buckets[bucket].stages(pass)[stage].mark));
        Program {
            marks: marks.chain(barrier.cloned()).collect(),
            stages,
        }
    }
}

/// A part of a tensor that this rank holds after a scattered reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owned {
    /// Index of the tensor in the list of the reducer.
    pub tensor: usize,
    /// First element of the part, counted in the tensor.
    pub start: u64,
    /// Number of elements.
    pub len: u64,
}

impl GradientReducer {
    /// Plans the reduction of `tensors`, allocates its buffers and warms up every link that it uses.
    ///
    /// Collective: all ranks must call it with the same tensors and options. Tensors of one element type
    /// share fused buffers. Arithmetic is fp32 whatever the type; each round (and, with more than 8 ranks a
    /// server, each 8 of them) rounds to the type of the wire once. Device memory: that of [`DeviceMemory`].
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
        let choices = options.choose(world, tensors)?;
        world.agree(
            fingerprint(shape, tensors, &options.agreed(choices)),
            options.create_timeout,
        )?;
        let (buckets, device_memory) = make_buckets(world, tensors, options, choices)?;
        let entries = buckets.iter().map(|bucket| bucket.entries.len()).sum();
        let barrier = match options.barrier {
            true => Some(world.mark("barrier", 0)?),
            false => None,
        };
        let depth = options.pipeline_depth;
        let mut reducer = GradientReducer {
            reduction: Program::new(&buckets, Pass::Reduction, depth, barrier.as_ref()),
            collection: Program::new(&buckets, Pass::Collection, depth, barrier.as_ref()),
            world: world.clone(),
            specs: tensors.to_vec(),
            slots: make_slots(world, &buckets, options.pipeline_depth)?,
            buckets,
            book: Book::new(world.device(), entries)?,
            scattered: options.scattered,
            barrier,
            create_timeout: options.create_timeout,
            stall_timeout: options.stall_timeout,
            device_memory,
            unchecked: Mutex::new(None),
            checksum: options.checksum,
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
        let enqueued = self.enqueue(Pass::Reduction, Some(gradients), stream, None);
        // Work of the world's own streams uses them, too, and `stream` waits for that.
        stream.keep(gradients);
        if self.checksum {
            *self.unchecked() = Some(gradients.to_vec());
        }
        enqueued.context(|| format!("rank {}", self.world.rank()))
    }

    /// The parts of tensors that this rank is the owner of, in the order of the buckets.
    ///
    /// The parts of all ranks tile all tensors. With [`Options::scattered`] these, and no other elements, are results
    /// after [`GradientReducer::reduce`]; what the other elements of the gradients are then is not said.
    pub fn owned(&self) -> Vec<Owned> {
        let parts = self.buckets.iter().flat_map(|bucket| {
            let tensors = bucket.layout.tensors().iter().zip(&bucket.members);
            tensors.map(|(range, &tensor)| {
                let part = range.intersection(bucket.owned);
                Owned {
                    tensor,
                    start: part.start().saturating_sub(range.start()),
                    len: part.len(),
                }
            })
        });
        parts.filter(|part| part.len > 0).collect()
    }

    /// Brings the owned parts of `tensors` to all ranks: for weights that a sharded optimizer has stepped, each rank the
    /// parts that it owns. Sizes and types are those of the gradients.
    ///
    /// Collective and stream-ordered, as [`GradientReducer::reduce`].
    ///
    /// # Errors
    /// `InvalidState` without [`Options::scattered`]; else as [`GradientReducer::reduce`].
    pub fn collect(&mut self, tensors: &[Span], stream: &Stream) -> Result<()> {
        if !self.scattered {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "results are not scattered: collect needs the option `scattered`",
            ));
        }
        self.world.check()?;
        self.check(tensors)?;
        let enqueued = self.enqueue(Pass::Collection, Some(tensors), stream, None);
        stream.keep(tensors);
        enqueued.context(|| format!("rank {}", self.world.rank()))
    }

    /// Waits until what `stream` holds is done, at most `timeout`, and looks at all streams of the world.
    ///
    /// This is the call to make before results are used on the host. `timeout` is the time after which the step is given
    /// up, in full milliseconds.
    ///
    /// # Errors
    /// The first failure of any of that work; `Timeout` after `timeout`, or when the watchdog has found a stall. Either
    /// poisons the world: every later call fails. Work that is left on `stream` then is dropped where the library can do
    /// that, and the stream is good for other work.
    pub fn synchronize(&self, stream: &Stream, timeout: Duration) -> Result<()> {
        self.world.synchronize(stream, timeout)?;
        let results = self.unchecked().take();
        results.map_or(Ok(()), |results| self.compare(&results, timeout))
    }

    /// Compares a checksum of each tensor of `results` between all ranks, on the host.
    ///
    /// Collective. What is queued is not waited for.
    ///
    /// # Errors
    /// `Mismatch` on all ranks, naming the first tensor that differs and the ranks that have it otherwise than most. It
    /// poisons the world.
    pub fn compare(&self, results: &[Span], timeout: Duration) -> Result<()> {
        self.check(results)?;
        let compared = checksum::compare(&self.world, &self.specs, results, timeout);
        compared.inspect_err(|error| self.world.fail(error))
    }

    fn unchecked(&self) -> MutexGuard<'_, Option<Vec<Span>>> {
        // Changed in one step only.
        self.unchecked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether each tensor was non-finite on any rank in the last reduction; the same on all ranks.
    ///
    /// Waits for the reduction. A tensor with a NaN or an infinity on one rank is non-finite as a whole on
    /// all ranks afterwards; the other tensors are not touched by it.
    pub fn nonfinite(&self) -> Result<Vec<bool>> {
        self.solve_all()?;
        let mut flags = vec![false; self.specs.len()];
        for bucket in &self.buckets {
            for (&member, flag) in bucket.members.iter().zip(bucket.nonfinite()?) {
                flags[member] = flag;
            }
        }
        Ok(flags)
    }

    /// Waits for the reduction and computes the weights of all tensors: in its course each rank solves only for those that
    /// it combines.
    pub(super) fn solve_all(&self) -> Result<()> {
        let stream = Stream::new(self.world.device())?;
        self.world.enqueue(&stream, |stream| {
            let mut solves = self.buckets.iter().flat_map(Bucket::solves);
            solves.try_for_each(|solve| solve.issue_all(self.world.kernels(), stream))
        })?;
        self.world.synchronize(&stream, self.create_timeout)
    }

    /// Enqueues all stages of all buckets; without gradients on whatever the fused buffers hold. With a clock one after the
    /// other on `stream`.
    pub(super) fn enqueue(
        &mut self,
        pass: Pass,
        gradients: Option<&[Span]>,
        stream: &Stream,
        clock: Option<&Clock>,
    ) -> Result<()> {
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
        let timeout = match gradients {
            Some(_) => self.stall_timeout,
            None => self.create_timeout,
        };
        let program = match pass {
            Pass::Reduction => &self.reduction,
            Pass::Collection => &self.collection,
        };
        // A bucket's own stages follow each other: without others there is nothing to overlap.
        let overlap = self.slots.len() > 1 && clock.is_none();
        world.enqueue_lanes(stream, overlap, |lanes| {
            world.watch().begin(&program.marks, timeout);
            self.book.update(addresses, lanes.kernels)?;
            let mut progress: Vec<Progress<'_>> = (0..)
                .zip(self.buckets.iter().zip(&memories))
                .map(|(index, (bucket, memory))| {
                    let context = stage::Context {
                        kernels: world.kernels(),
                        comm: world.comm(),
                        watch: world.watch(),
                        book: &self.book,
                        memory,
                        dtype: data_type(bucket.layout.dtype()),
                    };
                    let copies = gradients.is_some() && !flat[index];
                    Progress::new(bucket, pass, context, copies)
                })
                .collect();
            clock.map_or(Ok(()), |clock| clock.start(lanes.payload))?;
            for (position, &(bucket, stage)) in program.stages.iter().enumerate() {
                progress[bucket].issue(stage, lanes)?;
                clock.map_or(Ok(()), |clock| clock.end(position, lanes.payload))?;
            }
            if let Some(barrier) = &self.barrier {
                let _call = world.watch().call(barrier, program.stages.len());
                world.comm().barrier(lanes.payload)?;
                lanes.payload.record(&barrier.done)?;
            }
            world.watch().end(lanes.payload)
        })
    }

    pub(super) fn check(&self, gradients: &[Span]) -> Result<()> {
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
        self.enqueue(Pass::Reduction, None, &stream, None)?;
        if self.scattered {
            self.enqueue(Pass::Collection, None, &stream, None)?;
        }
        self.synchronize(&stream, self.create_timeout)
    }
}

/// Tensors of one type share buckets, in the order of the list. With the device memory that all takes.
fn make_buckets(
    world: &World,
    tensors: &[TensorSpec],
    options: &Options,
    choices: Choices,
) -> Result<(Vec<Bucket>, DeviceMemory)> {
    let mut made = Vec::new();
    let mut planners = Vec::new();
    let mut entries = 0;
    let shape = options.shape(world);
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
            let planner = Planner::with(shape, layout, choices)?;
            let place = (made.len(), entries);
            let bucket = Bucket::new(world, &planner, dtype, members, place, options)?;
            entries += bucket.entries.len();
            made.push(bucket);
            planners.push(planner);
        }
    }
    let shards = options.shards(world);
    let budget = Budget {
        options,
        shards: u64::from(shards),
    };
    let memory = budget.of(&planners, world.rank() / shards)?;
    Ok((made, memory))
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
