//! The handles over the mock, with ranks as threads of this process: each uses a device of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::stream::Keep;
use super::*;
use crate::error::ErrorKind;

fn device(id: i32) -> Device {
    Device::open(id).unwrap()
}

fn floats(span: &Span) -> Vec<f32> {
    let mut values = vec![0.0; span.len() / 4];
    span.read(&mut values).unwrap();
    values
}

#[test]
fn a_device_says_what_it_is() {
    let device = device(0);
    assert_eq!(device.id(), 0);
    assert!(Device::count().unwrap() > 0);
    assert!(device.vector_cores().unwrap() > 0);
    assert!(device.soc_name().unwrap().starts_with("Ascend"));
    device.synchronize(Duration::from_secs(60)).unwrap();
    assert_eq!(format!("{device:?}"), "Device(0)");
}

#[test]
fn a_device_that_does_not_exist_is_an_error_with_its_code() {
    for id in [-1, i32::MAX] {
        let error = Device::open(id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Acl);
        let vendor = error.vendor_code().unwrap();
        assert_eq!((vendor.function, vendor.code), ("aclrtSetDevice", 107001));
    }
}

#[test]
fn memory_is_written_and_read_in_parts() {
    let device = device(0);
    let data: Vec<f32> = (0..100u8).map(f32::from).collect();
    let buffer = Buffer::from_slice(&device, &data).unwrap();
    assert_eq!((buffer.len(), buffer.is_empty()), (400, false));
    assert_eq!(buffer.span().address() % 64, 0);
    let part = buffer.span().slice(40..80).unwrap();
    assert_eq!(floats(&part), data[10..20]);
    part.write(&[-1.0f32; 10]).unwrap();
    let inner = part.slice(4..8).unwrap();
    assert_eq!(inner.address(), buffer.span().address() + 44);
    let all = floats(&buffer.span());
    assert_eq!((all[9], all[10], all[19], all[20]), (9.0, -1.0, -1.0, 20.0));
    let zeroed = Buffer::zeroed(&device, 12).unwrap();
    assert_eq!(floats(&zeroed.span()), [0.0; 3]);
}

#[test]
fn spans_hold_their_bounds() {
    let buffer = Buffer::new(&device(0), 16).unwrap();
    let span = buffer.span();
    for (start, end) in [(0, 17), (17, 17), (9, 8), (usize::MAX, usize::MAX)] {
        let error = span.slice(start..end).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert!(span.slice(16..16).unwrap().is_empty());
    assert!(span.write(&[0u8; 15]).is_err());
    assert!(span.read(&mut [0u64; 3]).is_err());
    let empty = Buffer::from_slice::<f32>(&device(0), &[]).unwrap();
    assert!(empty.is_empty());
    empty.span().read::<u8>(&mut []).unwrap();
}

#[test]
fn a_stream_works_in_order() {
    let device = device(0);
    let stream = Stream::new(&device).unwrap();
    let source = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let target = Buffer::from_slice(&device, &[9.0f32; 4]).unwrap();
    stream.copy(&target.span(), &source.span()).unwrap();
    stream.zero(&source.span()).unwrap();
    stream
        .copy(
            &target.span().slice(0..4).unwrap(),
            &source.span().slice(4..8).unwrap(),
        )
        .unwrap();
    stream.synchronize().unwrap();
    assert!(stream.query().unwrap());
    assert_eq!(floats(&target.span()), [0.0, 2.0, 3.0, 4.0]);
    assert_eq!(floats(&source.span()), [0.0; 4]);
    let error = stream
        .copy(&target.span(), &target.span().slice(0..8).unwrap())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// A context of a device that a framework has made and that is current on this thread.
struct ForeignContext(crate::sys::acl::aclrtContext);

impl ForeignContext {
    fn new(id: i32) -> Self {
        let acl = &sys::backend().unwrap().acl;
        let mut context = crate::sys::acl::aclrtContext(std::ptr::null_mut());
        // SAFETY: writes one handle to a live local.
        let code = unsafe { acl.aclrtCreateContext(&mut context, id) };
        assert_eq!(code.0, 0);
        let context = ForeignContext(context);
        assert!(context.is_current());
        context
    }

    fn is_current(&self) -> bool {
        let acl = &sys::backend().unwrap().acl;
        let mut current = crate::sys::acl::aclrtContext(std::ptr::null_mut());
        // SAFETY: writes one handle to a live local.
        let code = unsafe { acl.aclrtGetCurrentContext(&mut current) };
        assert_eq!(code.0, 0);
        current == self.0
    }
}

impl Drop for ForeignContext {
    fn drop(&mut self) {
        let acl = &sys::backend().unwrap().acl;
        // SAFETY: made by this object; whatever a test made in it is gone.
        let code = unsafe { acl.aclrtDestroyContext(self.0) };
        assert_eq!(code.0, 0);
    }
}

/// Streams belong to the context that is current when they are made (runtime, api_impl.cc: `Context_() != curCtx`), so
/// a call that left another context behind would break the caller's next one.
#[test]
fn every_call_leaves_the_context_of_the_thread_as_it_was() {
    thread::spawn(|| {
        let foreign = ForeignContext::new(1);
        let own = device(0);
        assert!(foreign.is_current());
        let stream = Stream::new(&own).unwrap();
        let buffer = Buffer::zeroed(&own, 64).unwrap();
        stream.zero(&buffer.span()).unwrap();
        let event = Event::new(&own).unwrap();
        stream.record(&event).unwrap();
        stream.synchronize().unwrap();
        assert!(foreign.is_current());
        assert!(
            stream
                .copy(&buffer.span(), &Buffer::new(&device(2), 64).unwrap().span())
                .is_err()
        );
        drop((event, buffer, stream, own));
        assert!(foreign.is_current());
    })
    .join()
    .unwrap();
}

#[test]
fn the_device_of_a_thread_is_taken_with_its_context() {
    thread::spawn(|| {
        assert!(Device::current().is_err(), "a new thread has none");
        let foreign = ForeignContext::new(3);
        let current = Device::current().unwrap();
        assert_eq!(current.id(), 3);
        assert!(foreign.is_current());
        let stream = Stream::new(&current).unwrap();
        let buffer = Buffer::from_slice(&current, &[7_u32]).unwrap();
        stream.zero(&buffer.span()).unwrap();
        // Another thread makes its calls in that context, too.
        thread::scope(|scope| {
            scope.spawn(|| stream.synchronize().unwrap());
        });
        let mut value = [1_u32];
        buffer.span().read(&mut value).unwrap();
        assert_eq!(value, [0]);
        drop((buffer, stream, current));
        assert!(foreign.is_current());
    })
    .join()
    .unwrap();
}

/// The runtime refuses a limit of 0 ms (api_error.cc:1439), so this must not reach it.
#[test]
fn a_limit_of_zero_only_looks() {
    let done = std::sync::Barrier::new(2);
    ranks(2, |comm, stream| {
        stream.synchronize_timeout(Duration::ZERO).unwrap();
        let buffer = Buffer::zeroed(comm.device(), 16).unwrap();
        let span = buffer.span();
        comm.barrier(&stream).unwrap();
        stream.synchronize().unwrap();
        if comm.rank() == 1 {
            comm.barrier(&stream).unwrap();
            let error = stream.synchronize_timeout(Duration::ZERO).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        }
        done.wait();
        if comm.rank() == 0 {
            comm.barrier(&stream).unwrap();
        }
        stream.zero(&span).unwrap();
        stream.synchronize().unwrap();
        stream.synchronize_timeout(Duration::ZERO).unwrap();
    });
}

/// HCCL frees links and buffers under queued operations (hcomm, op_base.cc:3684: only a call in progress is waited for).
#[test]
fn a_communicator_ends_after_its_work() {
    let done = std::sync::Barrier::new(2);
    ranks(2, |comm, stream| {
        comm.barrier(&stream).unwrap();
        stream.synchronize().unwrap();
        if comm.rank() == 1 {
            comm.barrier(&stream).unwrap();
            let error = comm.abort().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidState, "{error}");
            assert!(stream.abort().unwrap().is_some());
            comm.abort().unwrap();
            assert_eq!(kind_of(comm.barrier(&stream)), ErrorKind::InvalidState);
        }
        done.wait();
    });
}

/// HCCL does not end a communicator that a call of another thread is in, unless that builds links: here the call waits for a place
/// in the queue of its stream.
#[test]
fn a_communicator_that_a_call_is_in_ends_later() {
    const PLACES: usize = 2047; // of a stream of the A2
    let done = std::sync::Barrier::new(2);
    ranks(2, |comm, stream| {
        comm.barrier(&stream).unwrap();
        stream.synchronize().unwrap();
        if comm.rank() == 1 {
            let alone = || comm.sub(&[1], 7, 0, &CommConfig::default());
            let part = alone().unwrap();
            let buffer = Buffer::new(comm.device(), 8).unwrap();
            comm.barrier(&stream).unwrap(); // rank 0 does not come
            for _ in 1..PLACES {
                stream.zero(&buffer.span()).unwrap();
            }
            let begun = std::sync::Barrier::new(2);
            thread::scope(|scope| {
                let call = scope.spawn(|| {
                    begun.wait();
                    part.barrier(&stream)
                });
                begun.wait();
                thread::sleep(Duration::from_secs(1));
                let error = part.abort().unwrap_err();
                assert_eq!(error.vendor_code().unwrap().code, 20, "{error}");
                assert!(stream.abort().unwrap().is_some());
                assert!(call.join().unwrap().is_err());
            });
            part.abort().unwrap();
            drop(alone().unwrap()); // HCCL has forgotten the name
            comm.abort().unwrap();
        }
        done.wait();
    });
}

/// What an aborted operation of HCCL may still use on A3.
#[test]
fn an_abort_takes_what_is_kept_also_from_a_thread_that_waits() {
    let done = std::sync::Barrier::new(2);
    ranks(2, |comm, stream| {
        let used = Arc::new(());
        let users = || Arc::strong_count(&used) - 1;
        let mut counted = None;
        comm.barrier(&stream).unwrap();
        stream.synchronize().unwrap();
        if comm.rank() == 1 {
            comm.barrier(&stream).unwrap(); // rank 0 does not come
            let keep = Arc::clone(&used) as Arc<dyn Keep>;
            stream.enqueue([keep], |_, _| Ok(())).unwrap();
            let remains = thread::scope(|scope| {
                let waiter = scope.spawn(|| stream.synchronize());
                thread::sleep(Duration::from_millis(500));
                let remains = stream.abort().unwrap();
                // One that comes late finds nothing to wait for.
                let _ = waiter.join().unwrap();
                remains
            });
            stream.synchronize().unwrap();
            let before = users();
            drop(remains);
            counted = Some((before, users()));
            comm.abort().unwrap();
        }
        done.wait();
        // Not before: the other rank would wait for ever.
        assert!(
            counted.is_none_or(|counted| counted == (1, 0)),
            "{counted:?}"
        );
    });
}

#[test]
fn queued_work_is_known_by_its_streams() {
    let done = std::sync::Barrier::new(2);
    ranks(2, |comm, stream| {
        let queued = Queued::default();
        assert!(queued.has_ended());
        comm.barrier(&stream).unwrap();
        queued.note(&stream);
        stream.synchronize().unwrap();
        assert!(queued.has_ended());
        if comm.rank() == 1 {
            queued.begin(&stream);
            comm.barrier(&stream).unwrap();
            queued.note(&stream);
            assert!(!queued.has_ended());
            let aborted = queued.abort();
            assert!(matches!(&aborted[..], [Ok(Some(_))]), "{aborted:?}");
            assert!(queued.has_ended());
            // What a stream did that is gone: ended with it.
            let other = Stream::new(comm.device()).unwrap();
            other
                .zero(&Buffer::new(comm.device(), 8).unwrap().span())
                .unwrap();
            queued.note(&other);
            drop(other);
            assert!(queued.has_ended());
        }
        done.wait();
    });
}

#[test]
fn events_order_streams() {
    let device = device(0);
    let (first, second) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let big = 8 << 20;
    let source = Buffer::from_slice(&device, &vec![7u8; big]).unwrap();
    let middle = Buffer::zeroed(&device, big).unwrap();
    let target = Buffer::zeroed(&device, big).unwrap();
    let event = Event::new(&device).unwrap();
    assert!(event.is_complete().unwrap());
    for _ in 0..3 {
        first.copy(&middle.span(), &source.span()).unwrap();
        first.record(&event).unwrap();
        second.wait(&event).unwrap();
        second.copy(&target.span(), &middle.span()).unwrap();
        second.synchronize().unwrap();
        assert!(event.is_complete().unwrap());
        event.synchronize().unwrap();
        let mut found = vec![0u8; big];
        target.span().read(&mut found).unwrap();
        assert!(found.iter().all(|byte| *byte == 7));
        first.zero(&middle.span()).unwrap();
        first.synchronize().unwrap();
    }
}

#[test]
fn queued_work_keeps_its_memory() {
    let device = device(0);
    let stream = Stream::new(&device).unwrap();
    let span = Buffer::zeroed(&device, 64).unwrap().span();
    let allocation = Arc::downgrade(&span.allocation());
    stream.zero(&span).unwrap();
    stream.zero(&span).unwrap();
    drop(span);
    assert_eq!(allocation.strong_count(), 1);
    stream.synchronize().unwrap();
    assert_eq!(allocation.strong_count(), 0);
}

/// Frameworks wait for their streams themselves: whoever knows that its work has ended says so.
#[test]
fn a_stream_lets_go_of_what_has_ended() {
    let device = device(0);
    let owner = Stream::new(&device).unwrap();
    // SAFETY: the owner lives longer.
    let stream = unsafe { Stream::borrow(&device, owner.raw().0) };
    let queued = Queued::default();
    let used = || {
        let span = Buffer::zeroed(&device, 64).unwrap().span();
        stream.zero(&span).unwrap();
        Arc::downgrade(&span.allocation())
    };
    let ended = used();
    queued.note(&stream);
    let noted = queued.noted();
    owner.synchronize().unwrap();
    let later = used();
    assert_eq!((ended.strong_count(), later.strong_count()), (1, 1));
    noted.let_go();
    assert_eq!((ended.strong_count(), later.strong_count()), (0, 1));
    stream.synchronize().unwrap();
    assert_eq!(later.strong_count(), 0);
}

#[test]
fn handles_work_on_any_thread() {
    let device = device(1);
    let stream = Stream::new(&device).unwrap();
    let buffer = Buffer::zeroed(&device, 4096).unwrap();
    thread::scope(|scope| {
        for part in 0..4u8 {
            let (stream, buffer) = (&stream, &buffer);
            scope.spawn(move || {
                let start = usize::from(part) * 1024;
                let span = buffer.span().slice(start..start + 1024).unwrap();
                span.write(&[part; 1024]).unwrap();
                stream.copy(&span, &span).unwrap();
                stream.synchronize().unwrap();
            });
        }
    });
    let mut bytes = [0u8; 4096];
    buffer.span().read(&mut bytes).unwrap();
    assert!(
        bytes
            .iter()
            .zip(0..)
            .all(|(byte, index)| i32::from(*byte) == index / 1024)
    );
}

#[test]
fn a_thread_may_change_between_devices() {
    let (first, second) = (device(0), device(1));
    for _ in 0..2 {
        for device in [&first, &second] {
            let buffer = Buffer::from_slice(device, &[device.id()]).unwrap();
            let mut id = [-1];
            buffer.span().read(&mut id).unwrap();
            assert_eq!(id[0], device.id());
        }
    }
    let stream = Stream::new(&first).unwrap();
    let foreign = Buffer::new(&second, 8).unwrap();
    let error = stream.zero(&foreign.span()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a span belongs to device 1, not to device 0"
    );
    assert!(stream.record(&Event::new(&second).unwrap()).is_err());
}

#[test]
fn a_missing_kernel_binary_or_kernel_is_named() {
    let device = device(0);
    let error = Module::load(&device, Path::new("/no/such.o")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("/no/such.o"), "{error}");
    let kernels = Path::new(concat!(env!("OUT_DIR"), "/adasum_kernels.o"));
    let module = Module::load(&device, kernels).unwrap();
    let error = module.function("no_such_kernel").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Acl);
    assert!(error.to_string().contains("no_such_kernel"), "{error}");
    assert!(Module::load(&device, Path::new(file!())).is_err());
}

#[test]
fn root_info_travels_as_bytes() {
    let info = RootInfo::new(&device(0)).unwrap();
    let copy = RootInfo::from_bytes(info.as_bytes()).unwrap();
    assert_eq!(copy, info);
    assert!(RootInfo::from_bytes(&[0; 100]).is_err());
}

/// Runs `work` on `size` ranks and returns what they return, by rank.
fn ranks<T: Send>(size: u32, work: impl Fn(Comm, Stream) -> T + Sync) -> Vec<T> {
    let root_device = device(0);
    let root = RootInfo::new(&root_device).unwrap();
    on_threads(size, |rank| {
        let device = device(i32::try_from(rank).unwrap());
        let config = CommConfig {
            buffer_mb: Some(1),
            ..CommConfig::default()
        };
        let comm = Comm::from_root_info(&device, &root, size, rank, &config).unwrap();
        let stream = Stream::new(&device).unwrap();
        work(comm, stream)
    })
}

fn on_threads<T: Send>(size: u32, work: impl Fn(u32) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..size)
            .map(|rank| scope.spawn(move || work(rank)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

fn rank_values(comm: &Comm, count: u8) -> Buffer {
    let rank = f32::from(u8::try_from(comm.rank()).unwrap());
    let values: Vec<f32> = (0..count)
        .map(|index| 100.0 * rank + f32::from(index))
        .collect();
    Buffer::from_slice(comm.device(), &values).unwrap()
}

#[test]
fn collectives_give_every_rank_what_is_due() {
    ranks(4, |comm, stream| {
        let own = rank_values(&comm, 8);
        let sum = Buffer::zeroed(comm.device(), 32).unwrap();
        comm.all_reduce(
            &own.span(),
            &sum.span(),
            DataType::F32,
            ReduceOp::Sum,
            &stream,
        )
        .unwrap();
        let all = Buffer::zeroed(comm.device(), 128).unwrap();
        comm.all_gather(&own.span(), &all.span(), DataType::F32, &stream)
            .unwrap();
        let part = Buffer::zeroed(comm.device(), 8).unwrap();
        comm.reduce_scatter(
            &own.span(),
            &part.span(),
            DataType::F32,
            ReduceOp::Max,
            &stream,
        )
        .unwrap();
        comm.barrier(&stream).unwrap();
        comm.broadcast(&own.span(), DataType::F32, 2, &stream)
            .unwrap();
        stream.synchronize().unwrap();

        let expected: Vec<f32> = (0..8u8)
            .map(|index| 600.0 + 4.0 * f32::from(index))
            .collect();
        assert_eq!(floats(&sum.span()), expected);
        let expected: Vec<f32> = (0..32u8)
            .map(|index| 100.0 * f32::from(index / 8) + f32::from(index % 8))
            .collect();
        assert_eq!(floats(&all.span()), expected);
        let start = 2.0 * f32::from(u8::try_from(comm.rank()).unwrap());
        assert_eq!(floats(&part.span()), [300.0 + start, 301.0 + start]);
        assert_eq!(floats(&own.span())[..2], [200.0, 201.0]);
        comm.async_error().unwrap();
        comm.destroy().unwrap();
    });
}

#[test]
fn ranks_send_and_receive() {
    ranks(3, |comm, stream| {
        let (rank, size) = (comm.rank(), comm.size());
        let own = rank_values(&comm, 4);
        let got = Buffer::zeroed(comm.device(), 16).unwrap();
        let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
        if rank == 0 {
            comm.send(&own.span(), DataType::F32, next, &stream)
                .unwrap();
            comm.recv(&got.span(), DataType::F32, last, &stream)
                .unwrap();
        } else {
            comm.recv(&got.span(), DataType::F32, last, &stream)
                .unwrap();
            comm.send(&own.span(), DataType::F32, next, &stream)
                .unwrap();
        }
        stream.synchronize().unwrap();
        let first = 100.0 * f32::from(u8::try_from(last).unwrap());
        assert_eq!(floats(&got.span())[0], first);

        let exchange = |peer, span: &Buffer| {
            let (send, recv) = (own.span(), span.span());
            [Transfer::send(peer, send), Transfer::receive(peer, recv)]
        };
        let peers: Vec<u32> = (0..size).filter(|peer| *peer != rank).collect();
        let buffers: Vec<Buffer> = peers
            .iter()
            .map(|_| Buffer::zeroed(comm.device(), 16).unwrap())
            .collect();
        let batch: Vec<Transfer<Span>> = peers
            .iter()
            .zip(&buffers)
            .flat_map(|(peer, buffer)| exchange(*peer, buffer))
            .collect();
        comm.batch(&batch, DataType::F32, &stream).unwrap();
        stream.synchronize().unwrap();
        for (peer, buffer) in peers.iter().zip(&buffers) {
            let first = 100.0 * f32::from(u8::try_from(*peer).unwrap());
            assert_eq!(floats(&buffer.span())[0], first);
        }
        let empty = own.span().slice(0..0).unwrap();
        comm.send(&empty, DataType::F32, next, &stream).unwrap();
        comm.batch(&[], DataType::F32, &stream).unwrap();
        // Nobody leaves while others still exchange.
        comm.barrier(&stream).unwrap();
        stream.synchronize().unwrap();
    });
}

#[test]
fn sub_communicators_have_ranks_of_their_own() {
    ranks(4, |comm, stream| {
        let parity = comm.rank() % 2;
        let (members, index) = ([parity, parity + 2], comm.rank() / 2);
        let config = CommConfig {
            name: Some(format!("adasum_test_parity_{parity}")),
            buffer_mb: Some(1),
            ..CommConfig::default()
        };
        let sub = comm
            .sub(&members, u64::from(parity), index, &config)
            .unwrap();
        assert_eq!((sub.rank(), sub.size()), (index, 2));
        assert_eq!(sub.name(), format!("adasum_test_parity_{parity}"));
        let own = rank_values(&comm, 1);
        sub.all_reduce(
            &own.span(),
            &own.span(),
            DataType::F32,
            ReduceOp::Sum,
            &stream,
        )
        .unwrap();
        stream.synchronize().unwrap();
        let expected = if parity == 0 { 200.0 } else { 400.0 };
        assert_eq!(floats(&own.span()), [expected]);

        let kind = |result: crate::Result<Comm>| result.unwrap_err().kind();
        assert_eq!(kind(sub.sub(&[0], 9, 0, &config)), ErrorKind::Unsupported);
        for (members, index) in [
            (&[1u32, 0][..], 0),
            (&[0, 4], 0),
            (&[], 0),
            (&members, 5),
            (&members, 1 - index),
        ] {
            assert_eq!(
                kind(comm.sub(members, 9, index, &config)),
                ErrorKind::InvalidArgument
            );
        }
        comm.barrier(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(kind_of(comm.destroy()), ErrorKind::InvalidState);
        sub.destroy().unwrap();
    });
}

fn kind_of(result: crate::Result<()>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Rank 0 gives rank 1 two elements and rank 1 gives rank 2 three; rank 2 gives nobody any, and its send to rank 3 is empty.
#[test]
fn an_all_to_all_moves_parts_of_any_length_and_ranks_without_any_come_too() {
    ranks(4, |comm, stream| {
        let own = rank_values(&comm, 8).span();
        let got = Buffer::zeroed(comm.device(), 32).unwrap().span();
        let dtype = DataType::F32;
        let send = |peer, first: usize, count: usize| {
            Transfer::send(peer, own.slice(4 * first..4 * (first + count)).unwrap())
        };
        let recv = |peer, first: usize, count: usize| {
            Transfer::receive(peer, got.slice(4 * first..4 * (first + count)).unwrap())
        };
        let transfers = match comm.rank() {
            0 => vec![send(1, 5, 2)],
            1 => vec![recv(0, 1, 2), send(2, 0, 3)],
            2 => vec![recv(1, 4, 3), send(3, 0, 0)],
            _ => Vec::new(),
        };
        comm.all_to_all(&transfers, dtype, &stream).unwrap();
        stream.synchronize().unwrap();
        let expected: [f32; 8] = match comm.rank() {
            1 => [0.0, 5.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            2 => [0.0, 0.0, 0.0, 0.0, 100.0, 101.0, 102.0, 0.0],
            _ => [0.0; 8],
        };
        assert_eq!(floats(&got), expected);
    });
}

#[test]
fn a_library_without_groups_is_said_to_have_none() {
    ranks(2, |comm, stream| {
        // The mock is CANN 8.3 unless told otherwise.
        assert!(!groups_run(comm.device()).unwrap());
        let own = rank_values(&comm, 8).span();
        let send = Transfer::send(1 - comm.rank(), own);
        let error = comm
            .group(&[send], DataType::F32, &stream)
            .unwrap_err()
            .to_string();
        assert!(error.contains("9.0"), "{error}");
        // Nothing is left open: what is given now runs.
        let sum = Buffer::zeroed(comm.device(), 32).unwrap().span();
        let own = rank_values(&comm, 8).span();
        comm.all_reduce(&own, &sum, DataType::F32, ReduceOp::Sum, &stream)
            .unwrap();
        stream.synchronize().unwrap();
        assert_eq!(floats(&sum)[0], 100.0);
    });
}

#[test]
fn wrong_arguments_are_refused_before_the_vendor_sees_them() {
    ranks(2, |comm, stream| {
        let buffer = Buffer::zeroed(comm.device(), 16).unwrap();
        let span = buffer.span();
        let invalid =
            |result: crate::Result<()>| assert_eq!(kind_of(result), ErrorKind::InvalidArgument);
        invalid(comm.send(&span, DataType::F32, 2, &stream));
        invalid(comm.recv(&span.slice(0..6).unwrap(), DataType::F32, 0, &stream));
        invalid(comm.broadcast(&span, DataType::F32, 7, &stream));
        let half = span.slice(0..8).unwrap();
        invalid(comm.all_reduce(&span, &half, DataType::F32, ReduceOp::Sum, &stream));
        invalid(comm.all_gather(&span, &span, DataType::F32, &stream));
        invalid(comm.reduce_scatter(&half, &half, DataType::F32, ReduceOp::Sum, &stream));
        let peer = 1 - comm.rank();
        let twice = || Transfer::send(peer, half.clone());
        invalid(comm.batch(&[twice(), twice()], DataType::F32, &stream));
        invalid(comm.all_to_all(&[twice(), twice()], DataType::F32, &stream));
        invalid(comm.group(&[twice(), twice()], DataType::F32, &stream));
        let from = |span: &Span| Transfer::send(peer, span.clone());
        let to_self = Transfer::send(
            comm.rank(),
            Buffer::zeroed(comm.device(), 16).unwrap().span(),
        );
        // Two allocations, which no distance joins.
        invalid(comm.all_to_all(&[from(&half), to_self], DataType::F32, &stream));
        let elsewhere = Stream::new(&device(5)).unwrap();
        invalid(comm.send(&span, DataType::F32, peer, &elsewhere));
    });
    let root = RootInfo::new(&device(0)).unwrap();
    let error = Comm::from_root_info(&device(0), &root, 2, 2, &CommConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_wait_for_a_peer_that_does_not_come_ends() {
    let done = std::sync::Barrier::new(2);
    ranks(2, |comm, stream| {
        let buffer = Buffer::zeroed(comm.device(), 16).unwrap();
        let span = buffer.span();
        // Makes the link, so that the next call returns although nobody answers.
        let transfer = |comm: &Comm| match comm.rank() {
            0 => comm.send(&span, DataType::F32, 1, &stream),
            _ => comm.recv(&span, DataType::F32, 0, &stream),
        };
        transfer(&comm).unwrap();
        stream.synchronize().unwrap();
        if comm.rank() == 1 {
            transfer(&comm).unwrap();
            let error = stream
                .synchronize_timeout(Duration::from_millis(50))
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
            assert!(!stream.query().unwrap());
            // Ends the stream by force; the buffer stays, because the work may still write to it.
            let allocation = Arc::downgrade(&span.allocation());
            drop(stream);
            drop((buffer, span));
            assert_eq!(allocation.strong_count(), 1);
        }
        // A communicator that is destroyed would end the wait with an error.
        done.wait();
    });
}

/// A rank table of one server with `ranks` devices, in a file of its own.
fn rank_table(test: &str, ranks: u32) -> PathBuf {
    // Jobs are told apart by the content of their table.
    let server = format!("{test}_{}", std::process::id());
    let device = |rank| {
        format!(
            r#"{{"device_id":"{rank}","device_ip":"10.0.0.{}","rank_id":"{rank}"}}"#,
            rank + 1
        )
    };
    let devices: Vec<String> = (0..ranks).map(device).collect();
    let devices = devices.join(",");
    let text = format!(
        r#"{{"version":"1.0","status":"completed","server_count":"1",
        "server_list":[{{"server_id":"{server}","device":[{devices}]}}]}}"#
    );
    let path = std::env::temp_dir().join(format!("adasum-table-{server}.json"));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_rank_table_makes_a_communicator() {
    let table = rank_table("good", 2);
    on_threads(2, |rank| {
        let device = device(i32::try_from(rank).unwrap());
        let stream = Stream::new(&device).unwrap();
        let config = CommConfig {
            buffer_mb: Some(1),
            ..CommConfig::default()
        };
        let comm = Comm::from_rank_table(&device, &table, rank, &config).unwrap();
        assert_eq!((comm.rank(), comm.size()), (rank, 2));
        let own = rank_values(&comm, 1);
        comm.broadcast(&own.span(), DataType::F32, 1, &stream)
            .unwrap();
        stream.synchronize().unwrap();
        assert_eq!(floats(&own.span()), [100.0]);
    });
    std::fs::remove_file(&table).unwrap();
}

#[test]
fn a_bad_rank_table_is_named() {
    let missing = Path::new("/no/such/table.json");
    let error = Comm::from_rank_table(&device(0), missing, 0, &CommConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("/no/such/table.json"), "{error}");
    let table = rank_table("bad", 1);
    let error = Comm::from_rank_table(&device(0), &table, 7, &CommConfig::default()).unwrap_err();
    std::fs::remove_file(&table).unwrap();
    assert_eq!(error.kind(), ErrorKind::Hccl);
    assert_eq!(
        error.vendor_code().map(|vendor| vendor.function),
        Some("HcclCommInitClusterInfoConfig")
    );
}

/// The ranks of this process share memory without the library, which maps a key once per process.
#[test]
fn shared_memory_is_imported_within_the_process() {
    let (owner, other) = (device(0), device(1));
    let buffer = Buffer::shareable(&owner, 4000, Sharing::Machine).unwrap();
    let key = buffer.key().unwrap().clone();
    assert_eq!((buffer.len(), key.len()), (4000, 4000));
    assert_eq!(buffer.span().address() % (2 << 20), 0);
    assert_eq!(floats(&buffer.span()), [0.0; 1000]);
    buffer.span().write(&[7.0f32; 1000]).unwrap();

    let span = Span::import(&other, &key, 400).unwrap();
    assert_eq!((span.len(), span.device().id()), (400, 1));
    let target = Buffer::zeroed(&other, 400).unwrap();
    let stream = Stream::new(&other).unwrap();
    stream.copy(&target.span(), &span).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(floats(&target.span()), [7.0; 100]);
    // The span keeps the memory, though not the buffer.
    drop(buffer);
    stream.copy(&target.span(), &span).unwrap();
    stream.synchronize().unwrap();
    drop((span, stream));
    let error = Span::import(&other, &key, 400).unwrap_err();
    let vendor = error.vendor_code().unwrap();
    assert_eq!(
        (vendor.function, vendor.code),
        ("aclrtIpcMemImportByKey", 507_899)
    );
}

/// Runs in a process of its own, which `shares_with_a_child` starts.
#[test]
fn adds_one_to_shared_memory() {
    let Some(key) = std::env::var_os(KEY_VARIABLE) else {
        return;
    };
    let key = key.into_string().unwrap();
    let bytes: Vec<u8> = key.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let key = MemoryKey::from_bytes(&bytes).unwrap();
    let device = device(1);
    let shared = Span::import(&device, &key, key.len()).unwrap();
    let again = Span::import(&device, &key, 4);
    match key.sharing() {
        Sharing::Machine => assert_eq!(again.unwrap().address(), shared.address()),
        // The second import has the first one's handle, and memory is mapped once.
        Sharing::Supernode => assert_eq!(
            again.unwrap_err().vendor_code().unwrap().function,
            "aclrtMapMem"
        ),
    }
    let own = Buffer::zeroed(&device, shared.len()).unwrap();
    let stream = Stream::new(&device).unwrap();
    stream.copy(&own.span(), &shared).unwrap();
    stream.synchronize().unwrap();
    let values: Vec<f32> = floats(&own.span())
        .iter()
        .map(|value| value + 1.0)
        .collect();
    own.span().write(&values).unwrap();
    stream.copy(&shared, &own.span()).unwrap();
    stream.synchronize().unwrap();
    assert!(shared.read(&mut vec![0.0f32; values.len()]).is_err());
}

const KEY_VARIABLE: &str = "SHARED_MEMORY_OF_THE_TEST";

/// A test of this file in a process of its own.
fn child(test: &str, variable: (&str, &str)) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("ascend::tests::{test}"), "--nocapture"])
        .env(variable.0, variable.1)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn shares_with_a_child(sharing: Sharing) {
    let owner = device(0);
    let free = || owner.memory().unwrap().unwrap().0;
    let before = free();
    // Streams may take a little.
    let page = 2 << 20;
    let buffer = Buffer::shareable(&owner, 4000, sharing).unwrap();
    assert!((page..page + page / 2).contains(&(before - free())));
    assert_eq!(floats(&buffer.span()), [0.0; 1000]);
    buffer.span().write(&[2.5f32; 1000]).unwrap();
    let bytes = buffer.key().unwrap().to_bytes();
    let key: Vec<String> = bytes.iter().map(u8::to_string).collect();
    child("adds_one_to_shared_memory", (KEY_VARIABLE, &key.join(" ")));
    assert_eq!(floats(&buffer.span()), [3.5; 1000]);
    drop(buffer);
    assert!(before - free() < page / 2);
}

#[test]
fn shared_memory_is_imported_by_another_process() {
    child("shares_with_the_machine", (SHARE_VARIABLE, "machine"));
    child(
        "shares_with_the_supernode",
        ("ASCEND_MOCK_SOC", "Ascend910_9391"),
    );
}

const SHARE_VARIABLE: &str = "SHARE_MEMORY_IN_THE_TEST";

/// Only where no other test of the process takes memory meanwhile.
#[test]
fn shares_with_the_machine() {
    if std::env::var_os(SHARE_VARIABLE).is_some() {
        shares_with_a_child(Sharing::Machine);
    }
}

#[test]
fn shares_with_the_supernode() {
    let supernode = device(0).supernode().unwrap();
    let is_a3 = device(0).soc_name().unwrap() == "Ascend910_9391";
    assert_eq!(supernode.is_some(), is_a3);
    if is_a3 {
        shares_with_a_child(Sharing::Supernode);
        return;
    }
    let error = Buffer::shareable(&device(0), 64, Sharing::Supernode).unwrap_err();
    let vendor = error.vendor_code().unwrap();
    assert_eq!(
        (vendor.function, vendor.code),
        ("aclrtMemExportToShareableHandleV2", 207_000)
    );
}

#[test]
fn keys_of_shared_memory_travel_as_bytes() {
    let buffer = Buffer::shareable(&device(0), 0, Sharing::Machine).unwrap();
    let key = buffer.key().unwrap();
    assert!(key.is_empty() && buffer.is_empty());
    let bytes = key.to_bytes();
    assert_eq!(&MemoryKey::from_bytes(&bytes).unwrap(), key);
    assert!(!format!("{key:?}").contains(str::from_utf8(&bytes[1..9]).unwrap()));
    let error = Span::import(&device(1), key, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let (mut endless, mut other) = (bytes, bytes);
    endless[65] = b'0';
    other[0] = 3;
    for wrong in [&bytes[1..], &[0; MemoryKey::BYTES], &endless, &other] {
        let error = MemoryKey::from_bytes(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert!(Buffer::new(&device(0), 64).unwrap().key().is_none());
}

#[test]
fn a_stream_keeps_nothing_of_borrowed_memory() {
    let device = device(0);
    let buffer = Buffer::zeroed(&device, 64).unwrap();
    let stream = Stream::new(&device).unwrap();
    // SAFETY: the buffer outlives the stream's work.
    let span = unsafe { Span::borrow(&device, buffer.span().pointer(), 64) };
    let uses = || Arc::strong_count(&span.allocation());
    let before = uses();
    stream.zero(&span).unwrap();
    stream.keep(std::slice::from_ref(&span));
    assert_eq!(uses(), before);
    let own = buffer.span();
    stream.zero(&own).unwrap();
    assert!(Arc::strong_count(&own.allocation()) > 3);
    stream.synchronize().unwrap();
}
