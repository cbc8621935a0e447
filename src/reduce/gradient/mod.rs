//! The gradient reducer: AdaSum (or the mean) of every tensor over all ranks, in place.

mod describe;
mod observation;
mod observed;
mod plans;
pub(super) mod scattered;
pub(super) mod statistics;
mod subsets;
pub(super) mod timed;

use std::ops::Add;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ascend::{Span, Stream};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::plan::{Choices, Form, Reach, TensorSpec};
use crate::reduce::engine::allocator::DeviceMemory;
use crate::reduce::engine::arguments::{check_tensors, cut, flat_bytes};
use crate::reduce::engine::bucket::{Bucket, Pass};
use crate::reduce::engine::checksum;
use crate::reduce::engine::clock::Clock;
use crate::reduce::engine::message_log::MessageLog;
use crate::reduce::engine::program::{Program, Run};
use crate::reduce::engine::slots::Slots;
use crate::reduce::gradient::observation::Observation;
use crate::reduce::gradient::plans::{PlanNumber, Plans, WHOLE};
use crate::reduce::options::{InServer, Options, Reduction};
use crate::reduce::world::World;

/// Reduces the gradients of a fixed list of tensors: all of them in a call, or some of them in each of several.
pub struct GradientReducer {
    world: World,
    specs: Vec<TensorSpec>,
    options: Options,
    /// What the options leave open, settled for all tensors.
    choices: Choices,
    plans: Plans,
    slots: Slots,
    /// Where callers put the gradients of all tensors, if that was asked for.
    buffers: Option<Slots>,
    /// The addresses of their places there.
    places: Vec<Option<u64>>,
    /// Which plan each tensor was last reduced by.
    latest: Vec<PlanNumber>,
    observation: Observation,
    /// The result of each tensor's last reduction, where checksums are to be compared.
    unchecked: Mutex<Vec<Option<Span>>>,
    /// What messages left, where they are to be compared.
    messages: MessageLog,
}

/// A bucket, with those of its tensors (as indices of the reducer's list) for which its reduction was the last.
type LastBucket<'a> = (&'a Bucket, Vec<Option<usize>>);

impl GradientReducer {
    /// Plans the reduction of `tensors`, allocates its buffers and warms up every link that it uses.
    ///
    /// Collective: all ranks must call it with the same tensors and options. Tensors of one element type
    /// share fused buffers. Arithmetic is fp32 whatever the type; each round (and, with more than 8 ranks a
    /// server, each 8 of them) rounds to the type of the wire once. Device memory: that of [`DeviceMemory`].
    ///
    /// # Errors
    /// `Mismatch` on all ranks if they do not agree on tensors and options, and on the others if one has no memory for it: the
    /// world stays usable. `InvalidArgument` for an option out of range.
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
                 allow_plain_mean, or make the world with devices_per_server 1: then each rank is a server",
                shape.locals
            )));
        }
        let choices = options.choose(world, tensors, Reach::All)?;
        world.agree(tensors, &options.agreed(choices), options.create_timeout)?;
        // Only ranks that agree can ask each other where they are.
        let choices = match options.exchange {
            Some(Form::Shared) => options.choose(world, tensors, options.reach(world)?)?,
            _ => choices,
        };
        let made = GradientReducer::make(world, tensors, options, choices);
        let mut reducer =
            world.all_have(made, "make its part of the reducer", options.create_timeout)?;
        let slots = reducer.buffers.as_mut().unwrap_or(&mut reducer.slots);
        let buckets = &reducer.plans.whole().buckets;
        slots.fit(world, buckets, options.create_timeout)?;
        reducer
            .warm_up(WHOLE)
            .context(|| format!("rank {}: warm-up of the reducer", world.own_in_root()))?;
        if options.gradient_buffers && !options.is_scaled() {
            let places = reducer.gradient_buffers()?.into_iter();
            reducer.places = places.map(|place| Some(place?.address())).collect();
        }
        Ok(reducer)
    }

    /// What needs no other rank: plan and tables.
    fn make(
        world: &World,
        tensors: &[TensorSpec],
        options: &Options,
        choices: Choices,
    ) -> Result<Self> {
        let all = (0..tensors.len()).collect();
        Ok(GradientReducer {
            plans: Plans::new(
                Program::new(world, tensors, all, options, choices, "")?,
                options.subset_plans,
            ),
            slots: Slots::new(options.pipeline_depth),
            buffers: options
                .gradient_buffers
                .then(|| Slots::for_each_bucket(options.pipeline_depth)),
            places: vec![None; tensors.len()],
            latest: vec![WHOLE; tensors.len()],
            observation: Observation::new(tensors.len()),
            unchecked: Mutex::new(vec![None; tensors.len()]),
            messages: MessageLog::default(),
            world: world.clone(),
            specs: tensors.to_vec(),
            options: options.clone(),
            choices,
        })
    }

    /// Replaces each tensor of `gradients` by its reduction, in the order of creation.
    ///
    /// Collective and stream-ordered: enqueues behind what `stream` holds and returns, and waits only where the
    /// stream's queue is full (2048 tasks on A2 and A3); what `stream` is given next sees the results. Each span is a whole tensor in device memory of the world's device,
    /// aligned to its elements (on chips that [copy whole blocks](crate::kernel::Chip::copies_whole_blocks) to 64 bytes),
    /// and is kept alive until `stream` is synchronised. The tensors of a bucket that lie
    /// one right behind the other in one allocation are reduced where they are, without a copy, if their sizes are
    /// multiples of 64 bytes (the last one's may be any); with [`Options::padded`] sizes may be any.
    ///
    /// # Errors
    /// Wrong spans are refused before anything is enqueued. Any later failure of this call poisons the
    /// world, because other ranks may already be in the same reduction. A failure of the work itself, like
    /// a peer that never comes, shows when `stream` is synchronised: results are good only after that.
    pub fn reduce(&mut self, gradients: &[Span], stream: &Stream) -> Result<()> {
        self.run_whole(Pass::Reduction, gradients, stream, None)
    }

    /// As [`GradientReducer::reduce`], for tensors that lie one right behind the other in `buffer`, in the order of
    /// creation and without gaps. With several element types each tensor must still start at a multiple of its own.
    ///
    /// # Errors
    /// `InvalidArgument` if the buffer is not [`GradientReducer::flat_bytes`] long; else as there.
    pub fn reduce_flat(&mut self, buffer: &Span, stream: &Stream) -> Result<()> {
        let gradients = cut(self.specs.iter(), buffer)?;
        self.reduce(&gradients, stream)
    }

    /// Bytes of all tensors one right behind the other.
    pub fn flat_bytes(&self) -> u64 {
        flat_bytes(self.specs.iter())
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
        if !self.options.checksum {
            return Ok(());
        }
        let compared = self.messages.compare(&self.world, timeout);
        compared.inspect_err(|error| self.world.fail(error))?;
        let results = std::mem::replace(&mut *self.unchecked(), vec![None; self.specs.len()]);
        let reduced = self.specs.iter().zip(&results);
        let reduced = reduced.filter_map(|(spec, span)| Some((spec, span.as_ref()?)));
        self.compare_all(&reduced.collect::<Vec<_>>(), timeout)
    }

    /// Compares a checksum of each tensor of `results` between all ranks, on the host.
    ///
    /// Collective. What is queued is not waited for.
    ///
    /// # Errors
    /// `Mismatch` on all ranks, naming the first tensor that differs and the ranks that have it otherwise than most. It
    /// poisons the world.
    pub fn compare(&self, results: &[Span], timeout: Duration) -> Result<()> {
        check_tensors(&self.world, self.specs.iter(), results, "result")?;
        let results: Vec<_> = self.specs.iter().zip(results).collect();
        self.compare_all(&results, timeout)
    }

    fn compare_all(&self, results: &[(&TensorSpec, &Span)], timeout: Duration) -> Result<()> {
        let compared = checksum::compare(&self.world, results, timeout);
        compared.inspect_err(|error| self.world.fail(error))
    }

    fn unchecked(&self) -> MutexGuard<'_, Vec<Option<Span>>> {
        // Whatever it holds are results.
        self.unchecked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether each tensor was non-finite on any rank in its last reduction; the same on all ranks.
    ///
    /// Waits for the reductions. Local after AdaSum of several servers, whose rounds have told all ranks. Else (means, sums, a single
    /// server) collective, after the same reductions: ranks exchange what each found in its part of the results. After AdaSum a tensor with
    /// a NaN or an infinity on one rank is non-finite as a whole on all ranks; after mean and sum only such elements are, and
    /// those that the reduction made of finite ones count, too. The other tensors are not touched. Results of mean and sum are looked at
    /// before `result_scale` and, with [`Wire::F32`](crate::reduce::options::Wire::F32), before they are rounded to a 16-bit type.
    /// AdaSum looks at the vectors of its rounds: an element that the last round takes out of the range of a 16-bit type is not
    /// found, and a vote ([`OverflowVote`](crate::reduce::OverflowVote)) on the results does find it.
    ///
    /// # Errors
    /// `InvalidState` if the plan of a tensor's last reduction is gone, see [`Options::subset_plans`].
    pub fn nonfinite(&self) -> Result<Vec<bool>> {
        let buckets = self.last_buckets()?;
        self.solve_all(&buckets)?;
        let mut flags = vec![false; self.specs.len()];
        for (bucket, tensors) in buckets {
            for (tensor, flag) in tensors.into_iter().zip(bucket.nonfinite()?) {
                if let Some(tensor) = tensor {
                    flags[tensor] = flag;
                }
            }
        }
        if flags.is_empty() || self.options.merges_servers(&self.world) {
            return Ok(flags);
        }
        let own: Vec<u8> = flags.iter().copied().map(u8::from).collect();
        let all = self.world.gather(&own, self.options.stall_timeout)?;
        let any = |tensor: usize| {
            all.iter()
                .skip(tensor)
                .step_by(own.len())
                .any(|&flag| flag != 0)
        };
        Ok((0..own.len()).map(any).collect())
    }

    /// Waits for the reductions of `buckets` and computes the weights and statistics of all tensors: in the course of a
    /// reduction each rank solves only for those that it combines.
    fn solve_all(&self, buckets: &[LastBucket<'_>]) -> Result<()> {
        let stream = Stream::new(self.world.device())?;
        self.world.enqueue(&stream, |stream| {
            let mut solves = buckets.iter().flat_map(|(bucket, _)| bucket.solves());
            solves.try_for_each(|solve| solve.issue_all(self.world.kernels(), stream))
        })?;
        self.world.synchronize(&stream, self.options.stall_timeout)
    }

    /// Places for gradients in the reducer's own buffers, in the order of creation: gradients that lie there are reduced
    /// where they are. With [`Form::Shared`](crate::reduce::Form::Shared) there is no other memory of which that holds. Where a
    /// tensor lies does not change as long as the reducer lives; what lies between tensors may be overwritten. A rank
    /// may give other memory in any call, which overwrites what is here. A tensor that is sent as another type
    /// ([`Wire`](crate::reduce::options::Wire)) has no place.
    ///
    /// # Errors
    /// `InvalidState` without [`Options::gradient_buffers`], or where tensors are scaled.
    pub fn gradient_buffers(&self) -> Result<Vec<Option<Span>>> {
        let refused = |why: &str| Error::new(ErrorKind::InvalidState, why.to_owned());
        let slots = self.buffers.as_ref();
        let slots = slots.ok_or_else(|| refused("the option gradient_buffers is not set"))?;
        if self.options.is_scaled() {
            return Err(refused(
                "the option scale or result_scale is set: gradients have no place in the reducer's buffers",
            ));
        }
        let plan = self.plan(WHOLE)?;
        let mut places: Vec<Option<Span>> = vec![None; self.specs.len()];
        for (index, bucket) in plan.buckets.iter().enumerate() {
            if !bucket.native {
                continue;
            }
            let spans = slots.places(index, bucket)?;
            for (&member, span) in bucket.members.iter().zip(spans) {
                places[plan.tensors[member]] = Some(span);
            }
        }
        Ok(places)
    }

    /// The device memory that this reducer takes on this rank now.
    pub fn device_memory(&self) -> DeviceMemory {
        let tables = self.plans.all().map(|(_, plan)| plan.tables);
        let slots = self.buffers.iter().chain([&self.slots]);
        let slots = slots.map(Slots::device_memory);
        tables
            .chain(slots)
            .fold(DeviceMemory::default(), DeviceMemory::add)
    }

    /// The buckets of all last reductions.
    fn last_buckets(&self) -> Result<Vec<LastBucket<'_>>> {
        let mut numbers = self.latest.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let mut found = Vec::new();
        for number in numbers {
            let plan = self.plan(number)?;
            for bucket in &plan.buckets {
                let tensors = bucket.members.iter().map(|&member| plan.tensors[member]);
                let last = |tensor: usize| (self.latest[tensor] == number).then_some(tensor);
                found.push((bucket, tensors.map(last).collect()));
            }
        }
        Ok(found)
    }

    fn plan(&self, number: PlanNumber) -> Result<&Program> {
        self.plans.get(number).ok_or_else(|| {
            let lost = self.latest.iter().position(|&latest| latest == number);
            let name = lost.map_or("", |tensor| &self.specs[tensor].name);
            Error::new(
                ErrorKind::InvalidState,
                format!(
                    "tensor \"{name}\": the plan of its last reduction has made room for others; more than \
                     subset_plans {} subsets are in use",
                    self.options.subset_plans
                ),
            )
        })
    }

    /// Enqueues a pass on all tensors, which it checks; with a clock one stage after the other.
    fn run_whole(
        &mut self,
        pass: Pass,
        tensors: &[Span],
        stream: &Stream,
        clock: Option<&Clock>,
    ) -> Result<()> {
        self.world.check()?;
        check_tensors(&self.world, self.specs.iter(), tensors, pass.takes())?;
        self.check_places(tensors, pass)?;
        self.run(WHOLE, pass, tensors, stream, clock)
    }

    /// Enqueues a pass by plan `number` on checked tensors; with a clock one stage after the other.
    fn run(
        &mut self,
        number: PlanNumber,
        pass: Pass,
        tensors: &[Span],
        stream: &Stream,
        clock: Option<&Clock>,
    ) -> Result<()> {
        let saved = match pass {
            Pass::Reduction => self.save(number, tensors, stream),
            Pass::Collection => Ok(()),
        };
        // Others may be in the same reduction already.
        let saved = saved.inspect_err(|error| self.world.fail(error));
        let enqueued =
            saved.and_then(|()| self.enqueue(number, pass, Some(tensors), stream, clock));
        // Work of the world's own streams uses them, too, and `stream` waits for that.
        stream.keep(tensors);
        if pass == Pass::Reduction
            && let Some(plan) = self.plans.get(number)
        {
            // Scattered and sharded results are not the same on all ranks.
            let alike = !self.options.scattered && self.options.in_server != InServer::Shards;
            let checksum = self.options.checksum && alike;
            let unchecked = self.unchecked.get_mut();
            let unchecked = unchecked.unwrap_or_else(PoisonError::into_inner);
            for (&tensor, span) in plan.tensors.iter().zip(tensors) {
                self.latest[tensor] = number;
                if checksum {
                    unchecked[tensor] = Some(span.clone());
                }
            }
        }
        enqueued.context(|| format!("rank {}", self.world.own_in_root()))
    }

    /// Enqueues a pass by plan `number`; without tensors on whatever the fused buffers hold. With a clock one stage after
    /// the other.
    fn enqueue(
        &mut self,
        number: PlanNumber,
        pass: Pass,
        tensors: Option<&[Span]>,
        stream: &Stream,
        clock: Option<&Clock>,
    ) -> Result<()> {
        let timeout = match tensors {
            Some(_) => self.options.stall_timeout,
            None => self.options.create_timeout,
        };
        let slots = match &self.buffers {
            Some(buffers) if number == WHOLE => buffers,
            _ => &self.slots,
        };
        match self.plans.get_mut(number) {
            Some(plan) => {
                let run = Run {
                    pass,
                    tensors,
                    timeout,
                    clock,
                    messages: (tensors.is_some() && self.options.checksum)
                        .then_some(&self.messages),
                };
                plan.enqueue(&self.world, slots, &run, stream)
            }
            None => Ok(()),
        }
    }

    /// Refuses tensors that lie in the reducer's own buffers, but not at their places: copies would overwrite them.
    fn check_places(&self, tensors: &[Span], pass: Pass) -> Result<()> {
        let Some(buffers) = &self.buffers else {
            return Ok(());
        };
        for ((spec, tensor), place) in self.specs.iter().zip(tensors).zip(&self.places) {
            let address = tensor.address();
            if !tensor.is_empty() && Some(address) != *place && buffers.hold(address) {
                return Err(Error::invalid(format!(
                    "tensor \"{}\": its {} lies in the reducer's own buffers, but not at its place there",
                    spec.name,
                    pass.takes()
                )));
            }
        }
        Ok(())
    }

    /// One reduction of zeros by each pass: builds every link and buffer while failing is still cheap.
    fn warm_up(&mut self, number: PlanNumber) -> Result<()> {
        let stream = Stream::new(self.world.device())?;
        self.enqueue(number, Pass::Reduction, None, &stream, None)?;
        if self.options.scattered {
            self.enqueue(number, Pass::Collection, None, &stream, None)?;
        }
        self.world.synchronize(&stream, self.options.create_timeout)
    }
}
