//! Reductions of some of a reducer's tensors, and of tensors that lie in one buffer.

use std::sync::Barrier;
use std::time::Duration;

use adasum::ErrorKind;
use adasum::ascend::{Buffer, Device, Span, Stream};
use adasum::reduce::{DType, Form, GradientReducer, Options, TensorSpec, World};

use crate::library::execution::counter;
use crate::support::{get_as, in_world, noise, put_as, rounded, run_alone};

const PATIENCE: Duration = Duration::from_secs(120);

const TENSORS: [(usize, DType); 7] = [
    (9001, DType::F32),
    (3, DType::BF16),
    (1, DType::F32),
    (0, DType::F16),
    (257, DType::F16),
    (5000, DType::BF16),
    (64, DType::F32),
];

fn specs() -> Vec<TensorSpec> {
    let spec = |(index, &(count, dtype))| TensorSpec::new(format!("t{index}"), count as u64, dtype);
    TENSORS.iter().enumerate().map(spec).collect()
}

fn values(rank: u32, tensor: usize) -> Vec<f32> {
    let (count, dtype) = TENSORS[tensor];
    let value = |i| noise(&[5, tensor as u64, i]) + noise(&[rank.into(), tensor as u64, i]);
    (0..count as u64)
        .map(|i| rounded(value(i), dtype))
        .collect()
}

fn put(world: &World, tensors: &[usize]) -> Vec<Span> {
    let put = |&t: &usize| put_as(world.device(), &values(world.rank(), t), TENSORS[t].1);
    tensors.iter().map(put).collect()
}

fn get(spans: &[Span], tensors: &[usize]) -> Vec<Vec<f32>> {
    let tensors = tensors.iter().zip(spans);
    tensors
        .map(|(&t, span)| get_as(span, TENSORS[t].1))
        .collect()
}

fn new(world: &World, options: &Options) -> GradientReducer {
    GradientReducer::new(world, &specs(), options).unwrap()
}

const ALL: [usize; 7] = [0, 1, 2, 3, 4, 5, 6];

fn reduced_whole(world: &World, reducer: &mut GradientReducer) -> Vec<Vec<f32>> {
    let stream = Stream::new(world.device()).unwrap();
    let spans = put(world, &ALL);
    reducer.reduce(&spans, &stream).unwrap();
    reducer.synchronize(&stream, PATIENCE).unwrap();
    get(&spans, &ALL)
}

fn reduced_some(world: &World, reducer: &mut GradientReducer, some: &[usize]) -> Vec<Vec<f32>> {
    let stream = Stream::new(world.device()).unwrap();
    let spans = put(world, some);
    reducer.reduce_some(some, &spans, &stream).unwrap();
    reducer.synchronize(&stream, PATIENCE).unwrap();
    get(&spans, some)
}

/// Scalars agree to far below an ulp, so outputs differ by a rounding tie at most.
fn assert_alike(out: &[f32], whole: &[f32], dtype: DType, what: &str) {
    let ulp = match dtype {
        DType::F32 => f32::EPSILON,
        DType::F16 => 9.765_625e-4,
        DType::BF16 => 7.812_5e-3,
    };
    let largest = whole.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    assert_eq!(out.len(), whole.len(), "{what}");
    for (a, b) in out.iter().zip(whole) {
        assert!((a - b).abs() <= ulp * largest, "{what}: {a}, not {b}");
    }
}

#[test]
fn subsets_give_what_the_whole_gives() {
    let shared = Some(Form::Shared);
    for (servers, locals, radix, exchange, gradient_buffers) in [
        (4, 2, 2, None, false),
        (3, 1, 3, None, false),
        (1, 1, 2, None, false),
        (4, 2, 2, shared, false),
        (3, 1, 3, shared, true),
        (2, 2, 2, shared, true),
    ] {
        let standard = Options::default();
        // With these several buckets follow each other in one buffer.
        let (bucket_bytes, pipeline_depth) = match gradient_buffers {
            true => (20_000, 1),
            false => (standard.bucket_bytes, standard.pipeline_depth),
        };
        let options = Options {
            radix,
            exchange,
            gradient_buffers,
            bucket_bytes,
            pipeline_depth,
            ..standard
        };
        in_world(servers, locals, |world| {
            let mut reducer = new(world, &options);
            let whole = reduced_whole(world, &mut reducer);
            // Backwards, as frameworks hand over buckets; larger than any bucket before; nothing.
            for some in [&[2][..], &[6, 5], &[4, 1, 3], &[0, 6, 1], &[3], &[]] {
                let first = reduced_some(world, &mut reducer, some);
                for (out, &t) in first.iter().zip(some) {
                    let what = format!("{servers} x {locals}, tensor {t} of {some:?}");
                    assert_alike(out, &whole[t], TENSORS[t].1, &what);
                }
                assert_eq!(first, reduced_some(world, &mut reducer, some), "again");
            }
            assert_eq!(whole, reduced_whole(world, &mut reducer), "whole again");
            // The whole list is no subset of its own.
            assert_eq!(whole, reduced_some(world, &mut reducer, &ALL));
        });
    }
}

/// The buckets of a subset follow each other in one buffer, whatever those of the whole list do: each waits until nobody reads what
/// was there before.
#[test]
fn subsets_wait_before_a_buffer_is_used_again() {
    run_alone("library::subsets::counted_collectives");
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_collectives() {
    let calls = [false, true].map(|gradient_buffers| {
        let options = Options {
            exchange: Some(Form::Shared),
            gradient_buffers,
            bucket_bytes: 20_000,
            pipeline_depth: 1,
            ..Options::default()
        };
        let all = Barrier::new(4);
        let calls = in_world(2, 2, |world| {
            let mut reducer = new(world, &options);
            let some = [0, 6, 1];
            reduced_some(world, &mut reducer, &some);
            all.wait();
            let before = counter("collective_calls");
            all.wait();
            reduced_some(world, &mut reducer, &some);
            all.wait();
            let calls = counter("collective_calls") - before;
            all.wait();
            calls
        });
        calls[0]
    });
    assert!(calls[0] > 0);
    assert_eq!(calls[0], calls[1]);
}

/// The tensors with one behind the other in one buffer, and that buffer.
fn in_one(device: &Device, rank: u32, tensors: &[usize]) -> (Span, Vec<Span>) {
    let bytes = |&t: &usize| TENSORS[t].0 * TENSORS[t].1.size() as usize;
    let all: usize = tensors.iter().map(bytes).sum();
    let buffer = Buffer::zeroed(device, all.max(64)).unwrap().span();
    let mut at = 0;
    let parts = tensors.iter().map(|t| {
        let part = buffer.slice(at..at + bytes(t)).unwrap();
        at += bytes(t);
        let mut data = vec![0_u8; part.len()];
        let values = put_as(device, &values(rank, *t), TENSORS[*t].1);
        values.read(&mut data).unwrap();
        part.write(&data).unwrap();
        part
    });
    let parts = parts.collect();
    (buffer.slice(0..all).unwrap(), parts)
}

#[test]
fn tensors_of_one_buffer_are_found_in_it() {
    in_world(2, 2, |world| {
        // By type, so that each starts at a multiple of its elements.
        let order = [0, 2, 6, 1, 3, 4, 5];
        let specs: Vec<TensorSpec> = order.iter().map(|&t| specs()[t].clone()).collect();
        let mut reducer = GradientReducer::new(world, &specs, &Options::default()).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let spans = put(world, &order);
        reducer.reduce(&spans, &stream).unwrap();
        let (buffer, parts) = in_one(world.device(), world.rank(), &order);
        assert_eq!(reducer.flat_bytes(), buffer.len() as u64);
        reducer.reduce_flat(&buffer, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();
        assert_eq!(get(&parts, &order), get(&spans, &order));

        // Numbers 6 and 4 of the reducer are the tensors 5 and 3 of the list above.
        let spans = put(world, &[5, 3]);
        reducer.reduce_some(&[6, 4], &spans, &stream).unwrap();
        let (buffer, parts) = in_one(world.device(), world.rank(), &[5, 3]);
        assert_eq!(reducer.flat_bytes_of(&[6, 4]).unwrap(), buffer.len() as u64);
        reducer.reduce_some_flat(&[6, 4], &buffer, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();
        assert_eq!(get(&parts, &[5, 3]), get(&spans, &[5, 3]));

        let short = buffer.slice(0..buffer.len() - 2).unwrap();
        let error = reducer
            .reduce_some_flat(&[6, 4], &short, &stream)
            .unwrap_err();
        assert!(error.to_string().contains("10000"), "{error}");
        // An odd number of bf16 elements before fp32.
        let (buffer, _) = in_one(world.device(), world.rank(), &[1, 2]);
        let error = reducer
            .reduce_some_flat(&[3, 1], &buffer, &stream)
            .unwrap_err();
        assert!(error.to_string().contains("\"t2\""), "{error}");
        assert!(error.to_string().contains("multiple of 4"), "{error}");
    });
}

#[test]
fn wrong_subsets_are_refused_by_name_and_do_no_harm() {
    in_world(2, 1, |world| {
        let mut reducer = new(world, &Options::default());
        let stream = Stream::new(world.device()).unwrap();
        let spans = put(world, &[1, 6]);
        let mut says = |some: &[usize], spans: &[Span], what: &str| {
            let error = reducer.reduce_some(some, spans, &stream).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(what), "{error}");
        };
        says(&[1, 7], &spans, "tensor 7 of a reducer of 7 tensors");
        says(&[1, 1], &spans, "tensor 1 \"t1\" comes twice");
        says(&[1], &spans, "2 gradients were given for 1 tensors");
        says(&[6, 1], &spans, "tensor \"t6\"");
        reduced_some(world, &mut reducer, &[1, 6]);
    });
}

#[test]
fn ranks_that_name_other_tensors_are_told() {
    let errors = in_world(3, 1, |world| {
        let specs = vec![TensorSpec::new("same", 8, DType::F32); 2];
        let mut reducer = GradientReducer::new(world, &specs, &Options::default()).unwrap();
        let some = [usize::from(world.rank() == 1)];
        let error = reducer.prepare_some(&some).unwrap_err();
        // They are still together.
        reducer.prepare_some(&[1, 0]).unwrap();
        error
    });
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().contains("ranks [1] have"), "{error}");
        assert!(error.to_string().contains("number 1"), "{error}");
    }
}

/// Flags and checksums are of each tensor's last reduction, whatever the call was.
#[test]
fn flags_and_checksums_follow_each_tensor() {
    in_world(2, 2, |world| {
        let options = Options {
            checksum: true,
            ..Options::default()
        };
        let mut reducer = new(world, &options);
        let stream = Stream::new(world.device()).unwrap();
        let bad = |world: &World, t: usize| {
            let mut values = values(world.rank(), t);
            if world.rank() == 3 {
                values[1] = f32::NAN;
            }
            put_as(world.device(), &values, TENSORS[t].1)
        };
        assert_eq!(reducer.nonfinite().unwrap(), [false; 7]);
        let spans = [put(world, &[0]).remove(0), bad(world, 4)];
        reducer.reduce_some(&[0, 4], &spans, &stream).unwrap();
        let spans = [bad(world, 5)];
        reducer.reduce_some(&[5], &spans, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();
        let mut flags = [false; 7];
        (flags[4], flags[5]) = (true, true);
        assert_eq!(reducer.nonfinite().unwrap(), flags);
        reduced_some(world, &mut reducer, &[4]);
        flags[4] = false;
        assert_eq!(reducer.nonfinite().unwrap(), flags);
        reduced_whole(world, &mut reducer);
        assert_eq!(reducer.nonfinite().unwrap(), [false; 7]);

        // What one rank changes behind the reducer's back is found, also of a subset.
        let spans = put(world, &[6]);
        reducer.reduce_some(&[6], &spans, &stream).unwrap();
        stream.synchronize().unwrap();
        if world.rank() == 2 {
            spans[0].write(&[7.0_f32; 64]).unwrap();
        }
        let error = reducer.synchronize(&stream, PATIENCE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(
            error
                .to_string()
                .contains("\"t6\": the results of ranks [2]"),
            "{error}"
        );
    });
}

#[test]
fn plans_of_subsets_are_bounded() {
    in_world(2, 1, |world| {
        let options = Options {
            subset_plans: 2,
            ..Options::default()
        };
        let mut reducer = new(world, &options);
        let first = reduced_some(world, &mut reducer, &[0]);
        reduced_some(world, &mut reducer, &[6]);
        assert_eq!(reduced_some(world, &mut reducer, &[0]), first);
        assert_eq!(reducer.nonfinite().unwrap(), [false; 7]);
        // Takes the place of 6, not of 0.
        reduced_some(world, &mut reducer, &[5]);
        let error = reducer.nonfinite().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
        assert!(error.to_string().contains("\"t6\""), "{error}");
        assert_eq!(reduced_some(world, &mut reducer, &[0]), first);
        reduced_some(world, &mut reducer, &[6]);
        assert_eq!(reduced_some(world, &mut reducer, &[0]), first);
    });
    in_world(1, 1, |world| {
        let options = Options {
            subset_plans: 0,
            ..Options::default()
        };
        let made = GradientReducer::new(world, &specs(), &options).map(|_| ());
        let error = made.unwrap_err().to_string();
        assert!(error.contains("subset_plans is 0"), "{error}");
    });
}

#[test]
fn scattered_subsets_are_collected() {
    let parts = in_world(2, 2, |world| {
        let mut reducer = new(world, &Options::default());
        let some = [5, 0, 2];
        let whole = reduced_some(world, &mut reducer, &some);
        let options = Options {
            scattered: true,
            ..Options::default()
        };
        let mut reducer = new(world, &options);
        let stream = Stream::new(world.device()).unwrap();
        let spans = put(world, &some);
        reducer.reduce_some(&some, &spans, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();
        let out = get(&spans, &some);
        let mut stepped: Vec<Vec<f32>> = out.iter().map(|t| vec![0.0; t.len()]).collect();
        let owned = reducer.owned_some(&some).unwrap();
        for part in &owned {
            let at = some.iter().position(|&t| t == part.tensor).unwrap();
            let range = part.start as usize..(part.start + part.len) as usize;
            stepped[at][range.clone()].copy_from_slice(&out[at][range]);
        }
        let tensors = some.iter().zip(&stepped);
        let spans: Vec<Span> = tensors
            .map(|(&t, values)| put_as(world.device(), values, TENSORS[t].1))
            .collect();
        reducer.collect_some(&some, &spans, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();
        assert_eq!(get(&spans, &some), whole);
        owned
    });
    let owned: u64 = parts.iter().flatten().map(|part| part.len).sum();
    assert_eq!(owned, 5000 + 9001 + 1);
}
