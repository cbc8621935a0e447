//! Results of other people's programs: `tests/golden/README.md` says what they are and how to compare.

use std::collections::BTreeMap;
use std::path::PathBuf;

use half::f16;
use npyz::npz::NpzArchive;

use adasum::reduce::DType;

use crate::support::oracle;
use crate::support::{in_world, reduce, reducer};

fn path(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", file]
        .iter()
        .collect()
}

/// One case of Horovod's core: inputs by rank, tensor sizes, result.
pub(crate) struct Case {
    pub(crate) inputs: Vec<Vec<f32>>,
    pub(crate) layers: Vec<usize>,
    pub(crate) out: Vec<f32>,
}

/// The cases of fp32 or fp16, by name.
pub(crate) fn horovod(ranks: u32, dtype: DType) -> BTreeMap<String, Case> {
    let kind = match dtype {
        DType::F32 => "float32",
        _ => "float16",
    };
    let file = path(&format!("adasum_np{ranks}_{kind}.npz"));
    let mut archive = NpzArchive::open(&file).unwrap();
    let names: Vec<String> = archive
        .array_names()
        .filter_map(|name| name.strip_suffix("__in").map(str::to_owned))
        .collect();
    let mut cases = BTreeMap::new();
    for name in names {
        let mut values = |key: &str| floats(&mut archive, &format!("{name}__{key}"), dtype);
        let (input, out) = (values("in"), values("out"));
        let layers: Vec<i32> = array(&mut archive, &format!("{name}__layers"));
        let elements = input.len() / ranks as usize;
        cases.insert(
            name.clone(),
            Case {
                inputs: input.chunks(elements).map(<[f32]>::to_vec).collect(),
                layers: layers
                    .iter()
                    .map(|&n| usize::try_from(n).unwrap())
                    .collect(),
                out,
            },
        );
    }
    cases
}

/// The numbers of a file of any other kind: shape and values by name.
pub(crate) fn arrays(file: &str) -> BTreeMap<String, (Vec<u64>, Vec<f64>)> {
    let mut archive = NpzArchive::open(path(file)).unwrap();
    let names: Vec<String> = archive.array_names().map(str::to_owned).collect();
    let mut arrays = BTreeMap::new();
    for name in names {
        let array = archive.by_name(&name).unwrap().unwrap();
        let shape = array.shape().to_vec();
        let values = match array.dtype().descr().as_str() {
            "'<f4'" => array
                .into_vec::<f32>()
                .unwrap()
                .into_iter()
                .map(f64::from)
                .collect(),
            "'<f8'" => array.into_vec().unwrap(),
            _ => continue,
        };
        arrays.insert(name, (shape, values));
    }
    arrays
}

fn floats(
    archive: &mut NpzArchive<std::io::BufReader<std::fs::File>>,
    name: &str,
    dtype: DType,
) -> Vec<f32> {
    match dtype {
        DType::F32 => array(archive, name),
        _ => array(archive, name).into_iter().map(f16::to_f32).collect(),
    }
}

fn array<T: npyz::Deserialize + Clone>(
    archive: &mut NpzArchive<std::io::BufReader<std::fs::File>>,
    name: &str,
) -> Vec<T> {
    let file = archive.by_name(name).unwrap();
    let file = file.unwrap_or_else(|| panic!("no array {name}"));
    let (order, shape) = (file.order(), file.shape().to_vec());
    let values: Vec<T> = file.into_vec().unwrap();
    match (order, &shape[..]) {
        (npyz::Order::Fortran, &[rows, columns]) => {
            let (rows, columns) = (rows as usize, columns as usize);
            let places = (0..rows).flat_map(|row| (0..columns).map(move |c| c * rows + row));
            places.map(|place| values[place].clone()).collect()
        }
        (npyz::Order::Fortran, [_, ..]) if shape.len() > 1 => panic!("{name}: {shape:?}"),
        _ => values,
    }
}

/// The parts of a fused vector.
pub(crate) fn split<T: Clone>(fused: &[T], layers: &[usize]) -> Vec<Vec<T>> {
    let mut rest = fused;
    layers
        .iter()
        .map(|&count| {
            let (part, left) = rest.split_at(count);
            rest = left;
            part.to_vec()
        })
        .collect()
}

/// Cases whose result is exact for any right program.
pub(crate) fn exact(case: &str, ranks: u32) -> bool {
    let always = ["zero_all", "identical", "antiparallel"];
    let of_two = ["zero_one_rank", "disjoint"];
    always.iter().any(|kind| case.starts_with(kind))
        || (ranks == 2 && of_two.iter().any(|kind| case.starts_with(kind)))
}

fn against_horovod(ranks: u32) {
    let cases = horovod(ranks, DType::F32);
    assert_eq!(cases.len(), 17, "all cases are read");
    let results = in_world(ranks, 1, |world| {
        let run = |case: &Case| {
            let inputs = split(&case.inputs[world.rank() as usize], &case.layers);
            reduce(&mut reducer(world, &case.layers), world, &inputs)
        };
        cases
            .iter()
            .map(|(name, case)| (name.clone(), run(case)))
            .collect::<BTreeMap<_, _>>()
    });
    for (name, case) in &cases {
        let bits = |rank: usize| -> Vec<u32> {
            let (out, _) = &results[rank][name];
            out.iter().flatten().map(|x| x.to_bits()).collect()
        };
        let finite_bits = bits(0);
        for rank in 1..ranks as usize {
            assert_eq!(
                bits(rank),
                finite_bits,
                "{name}: rank {rank} differs from rank 0"
            );
        }
        let (out, flags) = &results[0][name];
        let inputs: Vec<_> = case
            .inputs
            .iter()
            .map(|rank| split(rank, &case.layers))
            .collect();
        let theirs = split(&case.out, &case.layers);
        for tensor in 0..case.layers.len() {
            let at = format!("{ranks} ranks, {name}, tensor {tensor}");
            let bad = theirs[tensor].iter().any(|x| x.is_nan());
            assert_eq!(
                flags.as_ref().unwrap()[tensor],
                bad,
                "{at}: non-finite flag"
            );
            if bad {
                assert!(
                    out[tensor].iter().all(|x| !x.is_finite()),
                    "{at}: must be non-finite"
                );
                continue;
            }
            let vectors: Vec<Vec<f64>> = inputs
                .iter()
                .map(|rank| oracle::mean(&[&rank[tensor]]))
                .collect();
            let truth = oracle::adasum(&vectors);
            let error = oracle::error_fp32(&out[tensor], &truth, &vectors);
            assert!(error <= 1.0, "{at}: {error} times the allowed error");
            // The oracle holds against their result as well.
            let error = oracle::error_fp32(&theirs[tensor], &truth, &vectors);
            assert!(
                error <= 1.0,
                "{at}: theirs, {error} times the allowed error"
            );
            if exact(name, ranks) {
                // Numerically: a zero may have either sign.
                assert_eq!(out[tensor], theirs[tensor], "{at}: must be exact");
            }
        }
    }
}

#[test]
fn horovod_with_two_ranks() {
    against_horovod(2);
}

#[test]
fn horovod_with_four_ranks() {
    against_horovod(4);
}

/// MindSpore's own inputs, against the paper's result for them.
#[test]
fn mindspore_inputs_give_the_papers_result() {
    let mut archive = NpzArchive::open(path("mindspore_basic_g2.npz")).unwrap();
    let names: Vec<String> = archive
        .array_names()
        .filter_map(|name| name.strip_prefix("paper/").map(str::to_owned))
        .collect();
    assert_eq!(names.len(), 7, "all parameters are read");
    let mut input = |rank: u32| -> Vec<Vec<f32>> {
        names
            .iter()
            .map(|name| array(&mut archive, &format!("in/r{rank}/{name}")))
            .collect()
    };
    let inputs = [input(0), input(1)];
    let papers: Vec<Vec<f64>> = names
        .iter()
        .map(|name| array(&mut archive, &format!("paper/{name}")))
        .collect();

    let results = in_world(2, 1, |world| {
        let mine = &inputs[world.rank() as usize];
        let counts: Vec<usize> = mine.iter().map(Vec::len).collect();
        reduce(&mut reducer(world, &counts), world, mine).0
    });
    assert_eq!(results[0], results[1]);
    for (tensor, name) in names.iter().enumerate() {
        let vectors: Vec<Vec<f64>> = inputs
            .iter()
            .map(|rank| oracle::mean(&[&rank[tensor]]))
            .collect();
        let error = oracle::error_fp32(&results[0][tensor], &papers[tensor], &vectors);
        assert!(error <= 1.0, "{name}: {error} times the allowed error");
    }
}
