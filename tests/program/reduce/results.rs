//! What comes out, against other programs and the oracle.

use std::collections::BTreeMap;

use half::f16;

use super::{Array, Run, read};
use crate::library::golden;
use crate::support::oracle;
use adasum::reduce::DType;

fn in_double(array: &Array) -> Vec<f64> {
    array.values.iter().map(|&x| f64::from(x)).collect()
}

/// All cases of a golden file as the tensors `case/layer` of one reduction.
fn against_horovod(ranks: u32, dtype: DType, options: &[&str]) {
    let cases = golden::horovod(ranks, dtype);
    assert_eq!(cases.len(), 17, "all cases are read");
    let rank = |rank: usize| -> Vec<Array> {
        let layers = cases.iter().flat_map(|(name, case)| {
            let parts = golden::split(&case.inputs[rank], &case.layers);
            let named = parts.into_iter().enumerate();
            named.map(move |(layer, values)| Array {
                dtype,
                ..Array::vector(&format!("{name}/{layer}"), &values)
            })
        });
        layers.collect()
    };
    let inputs: Vec<Vec<Array>> = (0..ranks as usize).map(rank).collect();
    let name = format!("horovod-{ranks}-{}{}", dtype.name(), options.concat());
    let run = Run::new(&name, &inputs);
    let (out, said) = run.reduced(options);
    let theirs = cases.iter().flat_map(|(name, case)| {
        let parts = golden::split(&case.out, &case.layers);
        parts.into_iter().map(move |part| (name, part))
    });
    let bounds = match dtype {
        DType::F32 => oracle::FP32,
        _ => oracle::FP16,
    };
    assert_eq!(out.len(), inputs[0].len());
    for (index, (ours, (case, theirs))) in out.iter().zip(theirs).enumerate() {
        assert_eq!((&ours.name, ours.dtype), (&inputs[0][index].name, dtype));
        let warned = said.contains(&format!("warning: tensor {:?}", ours.name));
        let bad = theirs.iter().any(|x| x.is_nan());
        assert_eq!(warned, bad, "{}: {said}", ours.name);
        if bad {
            assert!(ours.values.iter().all(|x| !x.is_finite()), "{}", ours.name);
            continue;
        }
        let vectors: Vec<Vec<f64>> = inputs.iter().map(|rank| in_double(&rank[index])).collect();
        let truth = oracle::adasum(&vectors);
        let error = oracle::error(&ours.values, &truth, &vectors, bounds);
        assert!(
            error <= 1.0,
            "{}: {error} times the allowed error",
            ours.name
        );
        // The oracle holds against their result as well.
        let error = oracle::error(&theirs, &truth, &vectors, bounds);
        assert!(
            error <= 1.0,
            "{}: theirs, {error} times the allowed error",
            ours.name
        );
        if golden::exact(case, ranks) {
            assert_eq!(ours.values, theirs, "{}: must be exact", ours.name);
        }
    }
}

#[test]
fn horovods_vectors_of_two_ranks() {
    against_horovod(2, DType::F32, &[]);
    against_horovod(2, DType::F16, &[]);
}

#[test]
fn horovods_vectors_of_four_ranks() {
    for dtype in [DType::F32, DType::F16] {
        against_horovod(4, dtype, &[]);
        against_horovod(4, dtype, &["--radix", "auto"]);
    }
}

/// Eleven ranks are more than the mock has devices by default, and a prime: rounds of unequal subtrees.
#[test]
fn any_number_of_files_and_any_radix() {
    let rank = |rank| {
        vec![
            Array::random("a", 10_001, rank),
            Array::random("b", 3, rank),
        ]
    };
    let inputs: Vec<Vec<Array>> = (0..11).map(rank).collect();
    let run = Run::new("many", &inputs);
    for radix in ["auto", "2", "3", "8"] {
        let (out, _) = run.reduced(&["--radix", radix]);
        for (index, tensor) in out.iter().enumerate() {
            let vectors: Vec<Vec<f64>> =
                inputs.iter().map(|rank| in_double(&rank[index])).collect();
            let error = oracle::error_fp32(&tensor.values, &oracle::adasum(&vectors), &vectors);
            assert!(error <= 1.0, "radix {radix}, tensor {index}: {error}");
        }
    }
    // Without it the reduction is that of reducers with their own default.
    let (default, two) = (run.reduced(&[]).0, run.reduced(&["--radix", "2"]).0);
    for (default, two) in default.iter().zip(&two) {
        assert_eq!(default.values, two.values, "{}", default.name);
    }
    for wrong in ["1", "9", "x"] {
        let output = run.end(&["--radix", wrong]);
        assert_eq!(output.status.code(), Some(2), "radix {wrong}");
    }
}

#[test]
fn ranks_of_a_server_are_averaged_first() {
    let inputs: Vec<Vec<Array>> = (0..6)
        .map(|rank| vec![Array::random("t", 5000, rank)])
        .collect();
    let run = Run::new("servers", &inputs);
    let values: Vec<&[f32]> = inputs
        .iter()
        .map(|rank| rank[0].values.as_slice())
        .collect();
    for locals in [2, 3] {
        let (out, _) = run.reduced(&["--devices-per-server", &locals.to_string()]);
        let servers: Vec<Vec<f64>> = values.chunks(locals).map(oracle::mean).collect();
        let error = oracle::error_fp32(&out[0].values, &oracle::adasum(&servers), &servers);
        assert!(error <= 1.0, "{locals} a server: {error}");
    }
    let text = run.refused(&["--devices-per-server", "4"]);
    assert!(
        text.contains("--devices-per-server 4 does not divide the number of files, 6"),
        "{text}"
    );
    let text = run.refused(&["--devices-per-server", "6"]);
    assert!(text.contains("--reduction mean"), "{text}");
}

/// Whole numbers and a number of ranks that is a power of two: both are exact.
#[test]
fn mean_and_sum() {
    let whole = |rank: u64| {
        let mut array = Array::random("t", 5000, rank);
        array
            .values
            .iter_mut()
            .for_each(|x| *x = (*x * 1000.0).round());
        let mut half = Array::vector("h", &array.values[..100]);
        half.dtype = DType::F16;
        half.values
            .iter_mut()
            .for_each(|x| *x = (*x / 20.0).round());
        vec![array, half]
    };
    let inputs: Vec<Vec<Array>> = (0..4).map(whole).collect();
    let run = Run::new("mean", &inputs);
    for locals in ["1", "2", "4"] {
        for (reduction, factor) in [("sum", 1.0), ("mean", 0.25)] {
            let options = ["--reduction", reduction, "--devices-per-server", locals];
            let (out, _) = run.reduced(&options);
            for (index, tensor) in out.iter().enumerate() {
                let sum = |i: usize| inputs.iter().map(|rank| rank[index].values[i]).sum::<f32>();
                let expected: Vec<f32> =
                    (0..tensor.values.len()).map(|i| factor * sum(i)).collect();
                assert_eq!(tensor.values, expected, "{reduction}, {locals} a server");
            }
        }
    }
}

#[test]
fn a_single_file_is_its_own_result() {
    let mut half = Array::vector("b.weight.npy", &[0.5, -2.0, f32::INFINITY]);
    half.dtype = DType::F16;
    let input = vec![Array::random("a", 100, 0), half];
    let (out, said) = Run::new("single", std::slice::from_ref(&input)).reduced(&[]);
    assert_eq!(out, input);
    assert!(
        said.contains("warning: tensor \"b.weight.npy\" is not finite"),
        "{said}"
    );
}

/// MindSpore's own results, which its arithmetic alone gives.
#[test]
fn mindspores_arithmetic_gives_mindspores_results() {
    let golden = golden::arrays("mindspore_basic_g2.npz");
    let parameters = |prefix: &str| -> BTreeMap<&str, &(Vec<u64>, Vec<f64>)> {
        let with = golden
            .iter()
            .filter_map(|(name, array)| Some((name.strip_prefix(prefix)?, array)));
        with.collect()
    };
    let rank = |rank: u32| -> Vec<Array> {
        let arrays = parameters(&format!("in/r{rank}/")).into_iter();
        let convert = |(name, (shape, values)): (&str, &(Vec<u64>, Vec<f64>))| Array {
            name: name.to_owned(),
            shape: shape.clone(),
            dtype: DType::F32,
            values: values.iter().map(|&x| x as f32).collect(),
        };
        arrays.map(convert).collect()
    };
    let inputs = [rank(0), rank(1)];
    let run = Run::new("mindspore", &inputs);
    let (out, said) = run.reduced(&["--arithmetic", "mindspore"]);
    assert!(said.contains("not the paper's AdaSum"), "{said}");
    let theirs = parameters("out/");
    assert_eq!((out.len(), theirs.len()), (7, 7));
    let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut apart = 0;
    for (index, tensor) in out.iter().enumerate() {
        let (shape, expected) = theirs[tensor.name.as_str()];
        assert_eq!(&tensor.shape, shape);
        let distance = |to: &[f64]| {
            let difference: Vec<f64> = in_double(tensor)
                .iter()
                .zip(to)
                .map(|(x, y)| x - y)
                .collect();
            norm(&difference)
        };
        let data = inputs
            .iter()
            .map(|rank| norm(&in_double(&rank[index])))
            .fold(0.0, f64::max);
        assert!(
            distance(expected) <= 3e-7 * data,
            "{}: {}",
            tensor.name,
            distance(expected)
        );
        apart += usize::from(distance(&parameters("paper/")[tensor.name.as_str()].1) > 1e-3 * data);
    }
    assert!(
        apart >= 4,
        "the two arithmetics differ where they are known to: {apart}"
    );
}

#[test]
fn mindspores_arithmetic_says_what_it_does_not_do() {
    let three = |rank| vec![Array::random("odd", 3, rank)];
    let run = Run::new("mindspore-odd", &(0..4).map(three).collect::<Vec<_>>());
    let text = run.refused(&["--arithmetic", "mindspore"]);
    assert!(text.contains("\"odd\": servers 0 to 3"), "{text}");
    let text = run.refused(&["--arithmetic", "mindspore", "--reduction", "mean"]);
    assert!(text.contains("--reduction adasum"), "{text}");
    let none = [
        ("--radix", "2"),
        ("--zero-tol", "0.001"),
        ("--stall-timeout", "2"),
    ];
    for (option, value) in none {
        let text = run.refused(&["--arithmetic", "mindspore", option, value]);
        assert!(text.contains("has none of"), "{text}");
    }
    let run = Run::new("mindspore-three", &(0..3).map(three).collect::<Vec<_>>());
    let text = run.refused(&["--arithmetic", "mindspore"]);
    assert!(text.contains("power of two servers, not 3"), "{text}");
}

/// In fp16 the epsilon of the original is 0, so zero gradients become NaN; the paper's stay 0.
#[test]
fn mindspores_arithmetic_is_that_of_the_dtype() {
    let zeros = Array {
        dtype: DType::F16,
        ..Array::vector("t", &[0.0; 8])
    };
    let run = Run::new(
        "mindspore-half",
        &[vec![zeros.clone()], vec![zeros.clone()]],
    );
    assert_eq!(run.reduced(&[]).0, [zeros]);
    let (out, said) = run.reduced(&["--arithmetic", "mindspore"]);
    assert!(out[0].values.iter().all(|x| x.is_nan()));
    assert!(said.contains("warning: tensor \"t\""), "{said}");
    assert!(f16::from_f32(1e-12) == f16::ZERO);
}

/// A vanishing parallel vector halves the other one, unless it counts as zero.
#[test]
fn vanishing_vectors_count_as_zero_where_asked() {
    let whole = vec![Array::vector("w", &[3.0, -4.0])];
    let vanishing = vec![Array::vector("w", &[3e-9, -4e-9])];
    let run = Run::new("zero-tol", &[whole.clone(), vanishing]);
    let (halved, _) = run.reduced(&[]);
    for (half, value) in halved[0].values.iter().zip(&whole[0].values) {
        assert!((half - value / 2.0).abs() < 1e-6, "{half} of {value}");
    }
    assert_eq!(run.reduced(&["--zero-tol", "1e-12"]).0, whole);
    let text = run.refused(&["--zero-tol", "1"]);
    assert!(text.contains("from 0 to below 1"), "{text}");
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let rank = |rank| vec![Array::random("b", 5000, rank), Array::random("a", 7, rank)];
    let run = Run::new("same", &(0..3).map(rank).collect::<Vec<_>>());
    for name in ["x.npz", "x.safetensors"] {
        let bytes = || {
            let output = run.end(&["-o", name]);
            assert_eq!(output.status.code(), Some(0));
            std::fs::read(run.path(name)).unwrap()
        };
        assert_eq!(bytes(), bytes(), "{name}");
    }
    assert_eq!(
        read(&run.path("x.npz"))[0].name,
        "b",
        "the order of the files is kept"
    );
}
