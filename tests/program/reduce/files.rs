//! File formats: what other programs write is read, and what does not fit together is refused.

use std::io::Write;
use std::path::{Path, PathBuf};

use adasum::reduce::DType;
use half::bf16;
use safetensors::SafeTensors;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{Array, Run, read};
use crate::support::adasum_run::{Folder, adasum_run, adasum_run_within, err};

/// Name, shape and dtype of the tensors in the files that `make_files.py` wrote.
const MADE: [(&str, &[u64], DType); 6] = [
    ("layer.0.weight", &[3, 4], DType::F32),
    ("ends.in.npy", &[6], DType::F32),
    ("scope/scalar", &[], DType::F32),
    ("half", &[2, 3, 2], DType::F16),
    ("empty", &[0, 5], DType::F32),
    ("big", &[41, 103], DType::F32),
];

/// The sum over both ranks, in the order of `MADE`.
fn made_sum() -> Vec<Array> {
    let value =
        |tensor: usize, rank: usize, k: usize| ((7 * k + 3 * rank + tensor) % 11) as f32 - 5.0;
    let tensors = MADE
        .iter()
        .enumerate()
        .map(|(tensor, &(name, shape, dtype))| {
            let count = shape.iter().product::<u64>() as usize;
            let sum = |k| (value(tensor, 0, k) + value(tensor, 1, k)) / 4.0;
            Array {
                name: name.to_owned(),
                shape: shape.to_vec(),
                dtype,
                values: (0..count).map(sum).collect(),
            }
        });
    tensors.collect()
}

fn golden(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name]
        .iter()
        .collect()
}

/// Stored and deflated members, long headers, both byte orders, both orders of elements, dots in names.
#[test]
fn files_of_numpy_are_read() {
    let mut run = Run::new("numpy", &[]);
    run.files = vec![golden("numpy_0.npz"), golden("numpy_1.npz")];
    let (out, _) = run.reduced(&["--reduction", "sum"]);
    assert_eq!(out, made_sum());
}

#[test]
fn files_of_safetensors_are_read_and_written() {
    let mut run = Run::new("safetensors", &[]);
    run.files = vec![
        golden("safetensors_0.safetensors"),
        golden("safetensors_1.safetensors"),
    ];
    let output = run.end(&["--reduction", "sum", "-o", "sum.safetensors"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let bytes = std::fs::read(run.path("sum.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.len(), MADE.len());
    for wanted in made_sum() {
        let tensor = file.tensor(&wanted.name).unwrap();
        let shape: Vec<u64> = tensor.shape().iter().map(|&size| size as u64).collect();
        assert_eq!(shape, wanted.shape, "{}", wanted.name);
        if wanted.name == "big" {
            assert_eq!(tensor.dtype(), safetensors::Dtype::BF16);
            let values = tensor
                .data()
                .chunks_exact(2)
                .map(|b| bf16::from_le_bytes([b[0], b[1]]));
            assert!(values.map(bf16::to_f32).eq(wanted.values));
        } else if wanted.dtype == DType::F32 {
            let values = tensor.data().chunks_exact(4);
            let values = values.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            assert!(values.eq(wanted.values), "{}", wanted.name);
        }
    }
    let text = run.refused(&[]);
    assert!(
        text.contains("tensor \"big\"") && text.contains("no bf16"),
        "{text}"
    );
}

#[test]
fn formats_may_be_mixed() {
    let rank = |rank| vec![Array::random("t", 50, rank)];
    let mut run = Run::new("mixed", &[rank(0), rank(1)]);
    let (expected, _) = run.reduced(&[]);
    // One of a single file is a conversion.
    let mut one = adasum_run(&["reduce"]);
    one.arg(&run.files[1])
        .arg("-o")
        .arg(run.path("1.safetensors"));
    assert!(one.status().unwrap().success());
    run.files[1] = run.path("1.safetensors");
    assert_eq!(run.reduced(&[]).0, expected);
}

#[test]
fn files_that_do_not_fit_together_are_refused() {
    let good = || vec![Array::random("w", 6, 0), Array::random("b", 2, 0)];
    let with = |other: Vec<Array>| Run::new("unfit", &[good(), other]).refused(&[]);
    let text = with(vec![Array::random("w", 6, 1)]);
    assert!(text.contains("rank1.npz: no tensor \"b\", which"), "{text}");
    let text = with([good(), vec![Array::random("extra", 1, 1)]].concat());
    assert!(
        text.contains("rank1.npz: tensor \"extra\" is not in"),
        "{text}"
    );
    let mut other = good();
    other[0].shape = vec![2, 3];
    let text = with(other);
    assert!(
        text.contains("tensor \"w\" has shape (2, 3), in") && text.contains("it has (6,)"),
        "{text}"
    );
    let mut other = good();
    other[1].dtype = DType::F16;
    let text = with(other);
    assert!(
        text.contains("tensor \"b\" has dtype f16, in") && text.contains("it has f32"),
        "{text}"
    );
    // The order does not matter.
    let reversed = good().into_iter().rev().collect();
    let run = Run::new("reversed", &[good(), reversed]);
    assert_eq!(run.reduced(&[]).0, good());
}

#[test]
fn names_that_are_no_files_of_tensors_are_refused() {
    let mut run = Run::new("names", &[vec![Array::random("w", 6, 0)]]);
    let text = run.refused(&["-o", "refused.txt"]);
    assert!(
        text.contains("refused.txt: the name must end in .npz or .safetensors"),
        "{text}"
    );
    run.files.push(run.path("missing.npz"));
    let text = run.refused(&[]);
    assert!(text.contains("missing.npz: No such file"), "{text}");
}

/// An archive of members as they are given.
fn archive(path: &Path, members: &[(&str, &[u8])], options: SimpleFileOptions) {
    let mut archive = ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, bytes) in members {
        archive.start_file(*name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

/// A `.npy` file with a header of its own.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u16).to_le_bytes();
    [
        b"\x93NUMPY\x01\x00",
        length.as_slice(),
        header.as_bytes(),
        data,
    ]
    .concat()
}

fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
}

/// What `reduce` says of a file that it does not take.
fn refusal(path: &Path) -> String {
    let output = adasum_run(&["reduce"])
        .arg(path)
        .arg("-o")
        .arg(path.with_file_name("x.npz"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    err(&output)
}

#[test]
fn members_that_are_no_arrays_are_refused_by_name() {
    let folder = Folder::new("reduce-members");
    let path = folder.path().join("rank.npz");
    let refused = |name: &str, bytes: &[u8]| {
        archive(&path, &[(name, bytes)], SimpleFileOptions::default());
        let text = refusal(&path);
        assert!(
            text.contains("rank.npz: ") && text.contains("array \"x\""),
            "{text}"
        );
        text
    };
    assert!(refused("x.npy", b"text").contains("does not start like an array"));
    assert!(
        refused("x.npy", &npy(&header("'|O'", "(1,)"), b"\x80\x04N.")).contains("Python objects")
    );
    assert!(refused("x.npy", &npy(&header("'<i8'", "(1,)"), &[0; 8])).contains("\"<i8\""));
    assert!(refused("x.npy", &npy(&header("'<f4'", "(2,)"), &[0; 7])).contains("the array has 7"));
    assert!(refused("x.npy", &npy(&header("'<f4'", "(2,)"), &[0; 9])).contains("the array has 9"));
    let huge = npy(&header("'<f4'", "(1000000000000,)"), &[0; 64]);
    assert!(refused("x", &huge).contains("4000000000000 bytes"));
    let more = npy(&header("'<f4'", "(10000000000, 10000000000)"), &[0; 64]);
    assert!(refused("x", &more).contains("too many"));
}

#[test]
fn two_members_of_one_name_are_refused() {
    let folder = Folder::new("reduce-twice");
    let path = folder.path().join("rank.npz");
    let array = npy(&header("'<f4'", "(1,)"), &[0, 0, 128, 63]);
    let said = || refusal(&path);
    archive(
        &path,
        &[("a.npy", &array), ("a", &array)],
        SimpleFileOptions::default(),
    );
    assert!(said().contains("two arrays \"a\""), "{}", said());
    // Writers refuse two equal names, so one is renamed in the bytes.
    archive(
        &path,
        &[("a.npy", &array), ("b.npy", &array)],
        SimpleFileOptions::default(),
    );
    let mut bytes = std::fs::read(&path).unwrap();
    for at in 0..bytes.len() - 5 {
        if bytes[at..].starts_with(b"b.npy") {
            bytes[at] = b'a';
        }
    }
    std::fs::write(&path, bytes).unwrap();
    assert!(said().contains("duplicate file names"), "{}", said());
}

/// A file of the format: a header, as it is given, and elements.
fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u64).to_le_bytes();
    [&length, header.as_bytes(), data].concat()
}

#[test]
fn two_tensors_of_one_name_are_refused() {
    let mut run = Run::new("same-name", &[]);
    run.files = vec![run.path("rank.safetensors")];
    let one = r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
    let next = one.replace("[0,4]", "[4,8]");
    for (data, second) in [(4, one), (8, &next)] {
        let header = format!(r#"{{"w":{one},"w":{second}}}"#);
        std::fs::write(&run.files[0], safetensors(&header, &vec![0; data])).unwrap();
        let text = run.refused(&[]);
        assert!(
            text.contains("rank.safetensors: it holds two tensors \"w\""),
            "{text}"
        );
    }
}

/// What a file says it holds is compared with the memory that is left before it is read.
#[test]
fn files_that_do_not_fit_into_memory_are_refused() {
    const ELEMENTS: usize = 64 << 20;
    let folder = Folder::new("reduce-memory");
    let path = |name: &str| folder.path().join(name);
    // 256 MB of zeros, deflated a MB at a time.
    let mut file = ZipWriter::new(std::fs::File::create(path("honest.npz")).unwrap());
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    file.start_file("w.npy", options).unwrap();
    file.write_all(&npy(&header("'<f4'", &format!("({ELEMENTS},)")), &[]))
        .unwrap();
    for _ in 0..ELEMENTS >> 18 {
        file.write_all(&[0; 1 << 20]).unwrap();
    }
    file.finish().unwrap();
    assert!(path("honest.npz").metadata().unwrap().len() < 1 << 20);
    let bytes = 4 * ELEMENTS;
    let sparse = std::fs::File::create(path("honest.safetensors")).unwrap();
    let text =
        format!(r#"{{"w":{{"dtype":"F32","shape":[{ELEMENTS}],"data_offsets":[0,{bytes}]}}}}"#);
    let start = safetensors(&text, &[]);
    (&sparse).write_all(&start).unwrap();
    sparse.set_len((start.len() + bytes) as u64).unwrap();
    for (name, takes) in [
        ("honest.npz", "268.4 MB"),
        ("honest.safetensors", "536.9 MB"),
    ] {
        let mut command =
            adasum_run_within("ulimit -v 262144", &["reduce", "--arithmetic", "mindspore"]);
        command
            .args([path(name), path(name)])
            .arg("-o")
            .arg(path("out.npz"));
        let output = command.output().unwrap();
        let text = err(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        let wanted = format!("{name}: reading it takes {takes} of memory, but the address space");
        assert!(
            text.contains(&wanted) && text.contains(" MB left"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    assert!(!path("out.npz").exists());
}

/// An archive's directory says less, or more, than its members hold.
#[test]
fn members_of_another_length_than_said_are_refused() {
    let folder = Folder::new("reduce-lies");
    let path = folder.path().join("rank.npz");
    let array = npy(&header("'<f4'", "(1000,)"), &[0; 4000]);
    let deflated =
        SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    archive(&path, &[("w.npy", &array)], deflated);
    let good = std::fs::read(&path).unwrap();
    let size = (array.len() as u32).to_le_bytes();
    for said in [
        0,
        100,
        array.len() as u32 - 4,
        array.len() as u32 + 4,
        1 << 30,
    ] {
        let mut bytes = good.clone();
        // In the member's header and in the directory.
        let mut places = 0;
        for at in 0..good.len() - 4 {
            if good[at..].starts_with(&size) {
                bytes[at..at + 4].copy_from_slice(&said.to_le_bytes());
                places += 1;
            }
        }
        assert_eq!(places, 2);
        std::fs::write(&path, bytes).unwrap();
        let text = refusal(&path);
        assert!(text.contains("array \"w\""), "{text}");
    }
}

/// Members whose sizes stand in the headers of ZIP64.
#[test]
fn long_headers_and_deflated_members_are_read() {
    let folder = Folder::new("reduce-zip64");
    let path = folder.path().join("rank.npz");
    let array = npy(&header("'<f4'", "(1,)"), &1.5_f32.to_le_bytes());
    for method in [
        zip::CompressionMethod::Stored,
        zip::CompressionMethod::Deflated,
    ] {
        let options = SimpleFileOptions::default()
            .large_file(true)
            .compression_method(method);
        archive(&path, &[("a.b.npy", &array)], options);
        let out = folder.path().join("out.npz");
        let status = adasum_run(&["reduce"])
            .arg(&path)
            .arg("-o")
            .arg(&out)
            .status()
            .unwrap();
        assert!(status.success());
        assert_eq!(read(&out), [Array::vector("a.b", &[1.5])]);
    }
}
