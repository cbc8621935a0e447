//! Bytes as a sequence of calls of the C interface, on a world of one rank over the mock.
//!
//! What C promises is kept: pointers are NULL or good, handles NULL or live, arrays as long as said (or so long that no array
//! could be). Everything else is up to the bytes: order, kinds, numbers, alignments. Then every call answers with a
//! status that is none of a defect's, says why it refuses, and leaves outputs alone when it does.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use adasum::ascend::{Buffer, Device, Span};
use adasum::ffi::*;
use adasum::reduce::{OPTIONS, OptionInfo};
use adasum::sys;
use adasum::sys::acl::aclrtStream;

const SLOTS: usize = 3;
const TENSORS: usize = 4;
/// Elements of the largest tensor that is reduced; larger ones must be refused, or are not given memory.
const MOST: u64 = 300;
const SLAB: usize = 64 << 10;
const LIMIT: u64 = 20_000;

/// One input; gives what its calls answered.
pub(crate) fn run(data: &[u8]) -> Vec<adasum_status> {
    let mut machine = Machine::new(data);
    // Each call costs milliseconds at most, and so must an input.
    for _ in 0..40 {
        if machine.bytes.is_empty() {
            break;
        }
        machine.call();
    }
    machine.end();
    machine.answers
}

/// Device memory and a stream that outlive every input.
struct Ground {
    _device: Device,
    memory: Span,
    stream: usize,
}

impl Ground {
    fn stream(&self) -> *mut c_void {
        self.stream as *mut c_void
    }

    /// Waits for all that was enqueued.
    fn settle(&self) {
        let acl = &sys::backend().unwrap().acl;
        let code = unsafe { acl.aclrtSynchronizeStream(aclrtStream(self.stream())) };
        assert_eq!(code.0, 0);
    }
}

fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(|| {
        let device = Device::open(0).unwrap();
        let mut stream = aclrtStream(null_mut());
        let code = unsafe { sys::backend().unwrap().acl.aclrtCreateStream(&mut stream) };
        assert_eq!(code.0, 0);
        Ground {
            memory: Buffer::zeroed(&device, SLAB).unwrap().span(),
            stream: stream.0 as usize,
            _device: device,
        }
    })
}

/// What a handle was made for, and so what its calls must be given: elements of each tensor and bytes of one.
#[derive(Clone, Default)]
struct Sizes(Vec<(u64, u64)>);

impl Sizes {
    /// Whether all tensors fit into the memory.
    fn fit(&self) -> bool {
        self.0.iter().all(|(count, _)| *count <= MOST)
    }

    /// Bytes of a tensor.
    fn bytes(&self, index: usize) -> u64 {
        let (count, size) = self.0.get(index).copied().unwrap_or_default();
        count.saturating_mul(size)
    }
}

/// A reducer.
#[derive(Clone)]
struct Made {
    handle: *mut adasum_reducer,
    sizes: Sizes,
}

/// Opens a journal that nobody keeps.
fn open_journal(journal: &mut *mut adasum_journal) -> adasum_status {
    let thread = std::thread::current().id();
    let folder = format!("adasum-c-abi-{}-{thread:?}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/dev/null", folder.join("rank_0.jsonl")).unwrap();
    let name = CString::new(folder.as_os_str().as_encoded_bytes()).unwrap();
    let status = unsafe { adasum_journal_open(name.as_ptr(), 0, journal) };
    std::fs::remove_dir_all(&folder).unwrap();
    status
}

struct Machine<'a> {
    bytes: &'a [u8],
    options: [*mut adasum_options; SLOTS],
    world: *mut adasum_world,
    part: *mut adasum_world,
    reducers: Vec<Made>,
    clip: (*mut adasum_norm_clip, Sizes),
    accumulator: (*mut adasum_gradient_accumulator, Sizes),
    journal: *mut adasum_journal,
    answers: Vec<adasum_status>,
}

impl<'a> Machine<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Machine {
            bytes,
            options: [null_mut(); SLOTS],
            world: null_mut(),
            part: null_mut(),
            reducers: Vec::new(),
            clip: (null_mut(), Sizes::default()),
            accumulator: (null_mut(), Sizes::default()),
            journal: null_mut(),
            answers: Vec::new(),
        }
    }

    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number of any size: mostly small, sometimes at an end of its range.
    fn number(&mut self) -> u64 {
        let byte = self.byte();
        match byte {
            250 => u64::MAX,
            251 => i64::MAX as u64,
            252 => 1 << 40,
            253 => u64::from(u32::MAX),
            254 => 1 << 31,
            255 => u64::from(self.byte()) << 8,
            small => u64::from(small),
        }
    }

    fn option(&mut self) -> *mut adasum_options {
        let slot = usize::from(self.byte()) % (SLOTS + 1);
        self.options.get(slot).copied().unwrap_or(null_mut())
    }

    fn text(&mut self) -> *const c_char {
        const TEXTS: [&CStr; 6] = [c"", c"w", c"A3", c"data_parallel", c"\xff\xfe", c"O2"];
        let index = usize::from(self.byte()) % (TEXTS.len() + 1);
        TEXTS.get(index).map_or(null(), |text| text.as_ptr())
    }

    fn stream(&mut self) -> *mut c_void {
        match self.byte() % 8 {
            0 => null_mut(),
            _ => ground().stream(),
        }
    }

    /// A reducer or none, and what it was made for.
    fn reducer(&mut self) -> Made {
        let index = usize::from(self.byte()) % (SLOTS + 1);
        let none = Made {
            handle: null_mut(),
            sizes: Sizes::default(),
        };
        self.reducers.get(index).cloned().unwrap_or(none)
    }

    /// An address of the memory with room for `bytes`, at any alignment, or NULL.
    fn memory(&mut self, bytes: u64) -> *mut c_void {
        let byte = self.byte();
        if byte == 0 || bytes > SLAB as u64 / 2 {
            return null_mut();
        }
        // Mostly where tensors may start.
        let offset = if byte < 240 {
            u64::from(byte) * 64
        } else {
            u64::from(byte)
        };
        (ground().memory.address() + offset) as usize as *mut c_void
    }

    /// Addresses for the tensors, as many or one too few.
    fn addresses(&mut self, sizes: &Sizes) -> Vec<*mut c_void> {
        let mut all: Vec<_> = (0..sizes.0.len())
            .map(|index| self.memory(sizes.bytes(index)))
            .collect();
        if !sizes.fit() {
            all.fill(null_mut());
        }
        if self.byte() == 7 {
            all.pop();
        }
        all
    }

    /// The status is one that there is, none of a defect's, and a refusal says why.
    fn answered(&mut self, status: adasum_status) -> bool {
        self.answers.push(status);
        let code = status as i32;
        assert!((0..=12).contains(&code), "{code}");
        if status == adasum_status::ADASUM_OK {
            return true;
        }
        let text = unsafe { CStr::from_ptr(adasum_last_error()) };
        let text = text.to_str().expect("UTF-8");
        assert!(text.starts_with("adasum_"), "{text:?}");
        assert_ne!(status, adasum_status::ADASUM_PANIC, "{text}");
        if status == adasum_status::ADASUM_POISONED {
            self.drop_world();
        }
        false
    }

    fn call(&mut self) {
        match self.byte() % 8 {
            0 => self.make_options(),
            1 | 2 => self.set(),
            3 => self.make_world(),
            4 => self.make_reducer(),
            5 => self.ask(),
            6 => self.reduce(),
            _ => self.help(),
        }
    }

    fn make_options(&mut self) {
        let slot = usize::from(self.byte()) % SLOTS;
        unsafe { adasum_options_destroy(self.options[slot]) };
        self.options[slot] = null_mut();
        let status = unsafe { adasum_options_create(&mut self.options[slot]) };
        assert!(self.answered(status) && !self.options[slot].is_null());
    }

    fn set(&mut self) {
        let options = self.option();
        let text = self.text();
        let status = match self.byte() % 16 {
            0 => unsafe { adasum_options_load_boost(options, text, text) },
            1 => unsafe { adasum_options_load_environment(options) },
            2 => unsafe { adasum_options_set(options, text, text) },
            _ => {
                let option = &OPTIONS[usize::from(self.byte()) % OPTIONS.len()];
                let name = CString::new(option.name).unwrap();
                let value = CString::new(self.value(option)).unwrap();
                unsafe { adasum_options_set(options, name.as_ptr(), value.as_ptr()) }
            }
        };
        self.answered(status);
    }

    /// A word that the option lists, or numbers.
    fn value(&mut self, option: &OptionInfo) -> String {
        let words: Vec<&str> = option.values.split([' ', ',']).collect();
        let kind = self.byte() % 8;
        let number = self.number();
        match kind {
            0..4 => words[number as usize % words.len()].to_owned(),
            // Timeouts of a few milliseconds would make outcomes a matter of luck.
            4 | 5 if option.name.ends_with("_ms") => number.saturating_mul(LIMIT).to_string(),
            4 => number.to_string(),
            5 => f32::from_bits((number as u32) << 24 | number as u32).to_string(),
            6 => format!("{number},{},0", number.wrapping_add(1)),
            _ => format!("{},{},{},{number}", words[0], number % 2, number % 3),
        }
    }

    fn make_world(&mut self) {
        if !self.world.is_null() && !self.byte().is_multiple_of(4) {
            return;
        }
        self.drop_world();
        let options = self.option();
        let (size, rank) = match self.byte() % 8 {
            0 => (self.number() as u32, self.number() as u32),
            _ => (1, 0),
        };
        if size > 1 && rank < size {
            // Others would have to join.
            return;
        }
        let mut root = [0_u8; ADASUM_ROOT_INFO_BYTES];
        let mut world = null_mut();
        let status = unsafe {
            match self.byte() % 16 {
                0 => adasum_world_from_rank_table(self.text(), rank, options, &mut world),
                1 => adasum_world_from_comm(null_mut(), options, &mut world),
                2 => adasum_world_from_root_info(
                    0,
                    null(),
                    root.len(),
                    size,
                    rank,
                    options,
                    &mut world,
                ),
                3 => adasum_root_info_create(
                    self.number() as i32,
                    root.as_mut_ptr(),
                    self.number() as usize % root.len(),
                ),
                _ => match adasum_root_info_create(0, root.as_mut_ptr(), root.len()) {
                    adasum_status::ADASUM_OK => adasum_world_from_root_info(
                        0,
                        root.as_ptr(),
                        root.len(),
                        size,
                        rank,
                        options,
                        &mut world,
                    ),
                    other => other,
                },
            }
        };
        let made = self.answered(status);
        assert!(
            made != world.is_null() || status == adasum_status::ADASUM_OK,
            "an output without success"
        );
        self.world = world;
    }

    /// Tensors to create something for, unless they might be given memory that is too much to fill.
    fn tensors(&mut self) -> Option<(Vec<adasum_tensor>, Sizes)> {
        let count = usize::from(self.byte()) % (TENSORS + 1);
        let mut tensors = Vec::new();
        let mut sizes = Vec::new();
        for _ in 0..count {
            let tensor = adasum_tensor {
                name: self.text(),
                count: match self.byte() {
                    255 => self.number(),
                    small => u64::from(small) % MOST,
                },
                dtype: [0, 1, 27, 3][usize::from(self.byte()) % 4],
                flags: u32::from(self.byte() / 128 * (self.byte() % 4)),
            };
            sizes.push((tensor.count, if tensor.dtype == 0 { 4 } else { 2 }));
            tensors.push(tensor);
        }
        let huge = |(count, _): &(u64, u64)| (1 << 20..1 << 62).contains(count);
        (!sizes.iter().any(huge)).then_some((tensors, Sizes(sizes)))
    }

    fn make_reducer(&mut self) {
        let options = self.option();
        let kind = self.byte();
        let Some((tensors, mut sizes)) = self.tensors() else {
            return;
        };
        let length = if self.byte() == 9 {
            usize::MAX
        } else {
            tensors.len()
        };
        let mut handle = null_mut();
        let (world, list) = (self.world, tensors.as_ptr());
        let status = unsafe {
            match kind % 5 {
                0 => adasum_reducer_create_delta(world, list, length, options, &mut handle),
                1 => adasum_reducer_create_mean(world, list, length, options, &mut handle),
                2 => {
                    let (width, rows) = (self.number(), self.number());
                    if (1 << 16..1 << 62).contains(&width.saturating_mul(rows)) {
                        return;
                    }
                    sizes = Sizes(vec![(width, 8)]);
                    let (dtype, index, exact) = (
                        i32::from(self.byte() % 2),
                        i32::from(self.byte() % 3),
                        i32::from(self.byte() % 3),
                    );
                    adasum_reducer_create_sparse(
                        world,
                        self.text(),
                        width,
                        dtype,
                        index,
                        rows,
                        exact,
                        options,
                        &mut handle,
                    )
                }
                _ => adasum_reducer_create(world, list, length, options, &mut handle),
            }
        };
        if self.answered(status) {
            assert!(!handle.is_null());
            if self.reducers.len() == SLOTS {
                let oldest = self.reducers.remove(0);
                self.destroy(oldest);
            }
            self.reducers.push(Made { handle, sizes });
        } else {
            assert!(handle.is_null(), "an output without success");
        }
    }

    fn ask(&mut self) {
        let world = if self.byte().is_multiple_of(8) {
            null_mut()
        } else {
            self.world
        };
        let reducer = self.reducer();
        let (handle, tensors) = (reducer.handle, reducer.sizes.0.len());
        let (mut number, mut code, mut count) = (7_u32, 7_i32, 7_usize);
        let mut flags = [7_u8; TENSORS];
        let mut figures = [0.0_f64; TENSORS * ADASUM_STATISTICS];
        let mut text = [b'x' as c_char; 64];
        let (mut parts, mut starts, mut lengths) = ([0_usize; 8], [0_u64; 8], [0_u64; 8]);
        let length = if self.byte() == 9 {
            tensors + 1
        } else {
            tensors
        }
        .min(TENSORS);
        let capacity = usize::from(self.byte()) % (text.len() + 1);
        let stream = self.stream();
        let status = unsafe {
            match self.byte() % 20 {
                0 => adasum_world_rank(world, &mut number),
                1 => adasum_world_size(world, &mut number),
                2 => adasum_world_servers(world, &mut number),
                3 => adasum_world_devices_per_server(world, &mut number),
                4 => adasum_world_device(world, &mut code),
                5 => adasum_world_last_vendor_code(world, &mut code),
                6 => adasum_world_barrier(world, stream),
                7 => adasum_world_forget_stream(world, stream),
                8 if self.byte().is_multiple_of(8) => {
                    // What an abort leaves on the caller's stream is for its next synchronisation.
                    ground().settle();
                    adasum_world_abort(world)
                }
                9 => adasum_world_finish(world, LIMIT),
                10 => adasum_reducer_nonfinite(handle, flags.as_mut_ptr(), length),
                11 => adasum_reducer_statistics(
                    handle,
                    figures.as_mut_ptr(),
                    length * ADASUM_STATISTICS,
                    null_mut(),
                    0,
                ),
                12 => adasum_reducer_plan(handle, text.as_mut_ptr(), capacity, &mut count),
                13 => adasum_reducer_owned_count(handle, &mut count),
                14 => {
                    let own = self.byte() as usize % 9;
                    adasum_reducer_owned(
                        handle,
                        parts.as_mut_ptr(),
                        starts.as_mut_ptr(),
                        lengths.as_mut_ptr(),
                        own,
                    )
                }
                15 => adasum_reducer_delta_reset(handle),
                16 => adasum_reducer_synchronize(handle, stream, LIMIT),
                17 => {
                    ground().settle();
                    adasum_reducer_forget_stream(handle, stream)
                }
                18 if self.byte().is_multiple_of(8) => {
                    ground().settle();
                    adasum_reducer_abort(handle)
                }
                _ => {
                    self.drop_reducer();
                    adasum_status::ADASUM_OK
                }
            }
        };
        assert!(
            text[capacity..].iter().all(|byte| *byte == b'x' as c_char),
            "text behind its end"
        );
        self.answered(status);
    }

    fn reduce(&mut self) {
        let made = self.reducer();
        let addresses = self.addresses(&made.sizes);
        let more = self.addresses(&made.sizes);
        let given = addresses.len().min(more.len());
        let list = if self.byte() == 11 {
            null()
        } else {
            addresses.as_ptr()
        };
        let stream = self.stream();
        let indices: Vec<usize> = (0..given)
            .map(|_| usize::from(self.byte()) % (TENSORS + 1))
            .collect();
        let total = (0..made.sizes.0.len())
            .map(|index| made.sizes.bytes(index))
            .fold(0, u64::saturating_add);
        let asked = if self.byte() == 9 {
            self.number()
        } else {
            total
        };
        // The memory must be as long as is said, or longer than memory can be.
        let bytes = if asked > SLAB as u64 / 2 && asked < 1 << 63 {
            1
        } else {
            asked
        };
        let buffer = self.memory(if bytes >= 1 << 63 { 0 } else { bytes });
        let mut answer = 7_i32;
        let (mut rows, mut first, mut second) = (7_u64, null_mut(), null_mut());
        // Addresses that belong to the chosen tensors.
        let chosen: Vec<*mut c_void> = indices
            .iter()
            .map(|&index| {
                self.memory(match made.sizes.fit() {
                    true => made.sizes.bytes(index),
                    false => u64::MAX,
                })
            })
            .collect();
        let handle = made.handle;
        let status = unsafe {
            match self.byte() % 12 {
                0 => adasum_reducer_reduce_flat(handle, buffer, bytes, stream),
                1 => adasum_reducer_reduce_some(
                    handle,
                    indices.as_ptr(),
                    chosen.as_ptr(),
                    indices.len(),
                    stream,
                ),
                2 => adasum_reducer_prepare_some(handle, indices.as_ptr(), indices.len()),
                3 => adasum_reducer_reduce_some_flat(
                    handle,
                    indices.as_ptr(),
                    indices.len(),
                    buffer,
                    bytes,
                    stream,
                ),
                4 => adasum_reducer_overflow(
                    handle,
                    list,
                    addresses.len(),
                    stream,
                    LIMIT,
                    &mut answer,
                ),
                5 => adasum_reducer_collect(handle, list, addresses.len(), stream),
                6 => adasum_reducer_delta_begin(handle, list, more.as_ptr(), given, stream),
                7 => adasum_reducer_delta_end(handle, list, addresses.len(), stream),
                8 => {
                    // Two rows of at most 300 elements.
                    let rows_given = u64::from(self.byte() % 3);
                    let place = self.memory(if made.sizes.fit() { 4096 } else { u64::MAX });
                    adasum_reducer_gather(
                        handle,
                        place,
                        place,
                        rows_given,
                        stream,
                        &mut rows,
                        &mut first,
                        &mut second,
                    )
                }
                _ => adasum_reducer_reduce(handle, list, addresses.len(), stream),
            }
        };
        if !self.answered(status) {
            assert_eq!((answer, rows), (7, 7), "an output without success");
            assert!(
                first.is_null() && second.is_null(),
                "an output without success"
            );
        }
    }

    /// Norm clips, accumulators, parts of the world, sums over it, journals.
    fn help(&mut self) {
        match self.byte() % 8 {
            0 | 1 => self.make_helper(),
            2 => self.clip(),
            3 => self.accumulate(),
            4 => self.make_part(),
            5 => self.sum(),
            6 => self.make_journal(),
            _ => self.record(),
        }
    }

    /// The world, its part, or none.
    fn any_world(&mut self) -> *mut adasum_world {
        match self.byte() % 4 {
            0 => self.part,
            1 if self.byte() == 7 => null_mut(),
            _ => self.world,
        }
    }

    fn make_helper(&mut self) {
        let world = self.any_world();
        let Some((tensors, sizes)) = self.tensors() else {
            return;
        };
        let list = tensors.as_ptr();
        let norm = f32::from_bits(u32::from(self.byte()) << 24);
        let parts = usize::from(self.byte() % 3);
        let (mut indices, mut starts, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..parts {
            indices.push(usize::from(self.byte()) % (TENSORS + 1));
            starts.push(self.number());
            lengths.push(self.number());
        }
        let (mut clip, mut accumulator) = (null_mut(), null_mut());
        let status = unsafe {
            match self.byte() % 3 {
                0 => adasum_norm_clip_create(world, list, tensors.len(), norm, &mut clip),
                1 => adasum_norm_clip_create_of_parts(
                    world,
                    list,
                    tensors.len(),
                    indices.as_ptr(),
                    starts.as_ptr(),
                    lengths.as_ptr(),
                    parts,
                    norm,
                    LIMIT,
                    &mut clip,
                ),
                _ => {
                    adasum_gradient_accumulator_create(world, list, tensors.len(), &mut accumulator)
                }
            }
        };
        let made = !clip.is_null() || !accumulator.is_null();
        assert_eq!(self.answered(status), made, "an output without success");
        if !clip.is_null() {
            self.drop_clip();
            self.clip = (clip, sizes);
        } else if made {
            self.drop_accumulator();
            self.accumulator = (accumulator, sizes);
        }
    }

    fn clip(&mut self) {
        let (clip, sizes) = self.clip.clone();
        let addresses = self.addresses(&sizes);
        let stream = self.stream();
        let mut norm = 7.0;
        let status = unsafe {
            match self.byte() % 4 {
                0 => {
                    ground().settle();
                    adasum_norm_clip_last_norm(clip, &mut norm)
                }
                1 => {
                    ground().settle();
                    adasum_norm_clip_forget_stream(clip, stream)
                }
                _ => adasum_norm_clip_clip(clip, addresses.as_ptr(), addresses.len(), stream),
            }
        };
        assert!(self.answered(status) || norm == 7.0);
    }

    fn accumulate(&mut self) {
        let (accumulator, sizes) = self.accumulator.clone();
        let addresses = self.addresses(&sizes);
        let (list, count) = (addresses.as_ptr(), addresses.len());
        let stream = self.stream();
        let factor = f32::from_bits(u32::from(self.byte()) << 24);
        let mut steps = 7;
        let status = unsafe {
            match self.byte() % 5 {
                0 => adasum_gradient_accumulator_steps(accumulator, &mut steps),
                1 => {
                    ground().settle();
                    adasum_gradient_accumulator_forget_stream(accumulator, stream)
                }
                2 => adasum_gradient_accumulator_take(accumulator, list, count, factor, stream),
                _ => adasum_gradient_accumulator_add(accumulator, list, count, stream),
            }
        };
        assert!(self.answered(status) || steps == 7);
    }

    fn make_part(&mut self) {
        let world = self.any_world();
        let ranks: Vec<u32> = match self.byte() % 8 {
            0 => (0..self.byte() % 3).map(|_| self.number() as u32).collect(),
            _ => vec![0],
        };
        let locals = match self.byte() % 8 {
            0 => self.number() as u32,
            _ => 1,
        };
        let mut part = null_mut();
        let status =
            unsafe { adasum_world_part(world, ranks.as_ptr(), ranks.len(), locals, &mut part) };
        assert_eq!(
            self.answered(status),
            !part.is_null(),
            "an output without success"
        );
        if !part.is_null() {
            unsafe { adasum_world_destroy(self.part) };
            self.part = part;
        }
    }

    fn sum(&mut self) {
        let world = self.any_world();
        let asked = self.number();
        // The memory must be as long as is said, or longer than memory can be.
        let count = if (MOST..1 << 62).contains(&asked) {
            1
        } else {
            asked
        };
        let memory = self.memory(if count >= 1 << 62 { 0 } else { 4 * count });
        let stream = self.stream();
        let status = unsafe { adasum_world_all_reduce_sum(world, memory, count, stream) };
        self.answered(status);
    }

    fn make_journal(&mut self) {
        let mut journal = null_mut();
        let status = unsafe {
            match self.byte() % 4 {
                0 => adasum_journal_open(self.text(), u32::from(self.byte()) + 1, &mut journal),
                1 => adasum_journal_from_env(0, &mut journal),
                _ => open_journal(&mut journal),
            }
        };
        assert!(self.answered(status) || journal.is_null());
        if !journal.is_null() {
            unsafe { adasum_journal_destroy(self.journal) };
            self.journal = journal;
        }
    }

    fn record(&mut self) {
        let run = self.text();
        let (step, epoch) = (
            self.number(),
            f64::from(f32::from_bits(self.number() as u32)),
        );
        let names: Vec<_> = (0..self.byte() % 4).map(|_| self.text()).collect();
        let tensors: Vec<_> = (0..self.byte() % 4).map(|_| self.text()).collect();
        let values = [f64::from(self.byte()); 4];
        let figures =
            [f64::from(f32::from_bits(u32::from(self.byte()) << 24)); 4 * ADASUM_STATISTICS];
        let many = if self.byte() == 9 {
            usize::MAX
        } else {
            tensors.len()
        };
        let status = unsafe {
            adasum_journal_record(
                self.journal,
                run,
                step,
                epoch,
                names.as_ptr(),
                values.as_ptr(),
                names.len(),
                tensors.as_ptr(),
                figures.as_ptr(),
                many,
            )
        };
        self.answered(status);
    }

    fn drop_clip(&mut self) {
        // Its work must be done.
        ground().settle();
        let (clip, _) = std::mem::replace(&mut self.clip, (null_mut(), Sizes::default()));
        unsafe { adasum_norm_clip_destroy(clip) };
    }

    fn drop_accumulator(&mut self) {
        ground().settle();
        let empty = (null_mut(), Sizes::default());
        let (accumulator, _) = std::mem::replace(&mut self.accumulator, empty);
        unsafe { adasum_gradient_accumulator_destroy(accumulator) };
    }

    fn drop_reducer(&mut self) {
        if let Some(made) = self.reducers.pop() {
            self.destroy(made);
        }
    }

    fn destroy(&mut self, made: Made) {
        // Its work must be done.
        ground().settle();
        unsafe { adasum_reducer_destroy(made.handle) };
    }

    fn drop_world(&mut self) {
        while !self.reducers.is_empty() {
            self.drop_reducer();
        }
        self.drop_clip();
        self.drop_accumulator();
        for world in [&mut self.part, &mut self.world] {
            unsafe { adasum_world_destroy(*world) };
            *world = null_mut();
        }
    }

    fn end(&mut self) {
        self.drop_world();
        unsafe { adasum_journal_destroy(self.journal) };
        for options in self.options {
            unsafe { adasum_options_destroy(options) };
        }
    }
}
