//! `adasum-run reduce`: files in, a file out. Files are written and read here by the crate npyz, which the program does
//! not use.

mod faults;
mod figures;
mod files;
mod outputs;
mod results;

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::Output;

use half::f16;
use npyz::WriterBuilder;
use npyz::npz::{NpzArchive, NpzWriter};
use zip::ZipArchive;

use adasum::reduce::DType;

use crate::support::adasum_run::{Folder, adasum_run, err};
use crate::support::noise;

/// A named array; values that its dtype holds exactly.
#[derive(Debug, Clone, PartialEq)]
struct Array {
    name: String,
    shape: Vec<u64>,
    dtype: DType,
    values: Vec<f32>,
}

impl Array {
    fn vector(name: &str, values: &[f32]) -> Array {
        Array {
            name: name.to_owned(),
            shape: vec![values.len() as u64],
            dtype: DType::F32,
            values: values.to_vec(),
        }
    }

    /// Random values that depend on the rank and the name.
    fn random(name: &str, count: usize, rank: u64) -> Array {
        let key = name.bytes().map(u64::from).sum();
        let values: Vec<f32> = (0..count as u64).map(|i| noise(&[rank, key, i])).collect();
        Array::vector(name, &values)
    }
}

fn write(path: &Path, arrays: &[Array]) {
    let mut file = NpzWriter::create(path).unwrap();
    for array in arrays {
        match array.dtype {
            DType::F32 => push(&mut file, array, array.values.iter().copied()),
            _ => push(
                &mut file,
                array,
                array.values.iter().map(|&x| f16::from_f32(x)),
            ),
        }
    }
}

fn push<T: npyz::AutoSerialize>(
    file: &mut NpzWriter<BufWriter<File>>,
    array: &Array,
    values: impl Iterator<Item = T>,
) {
    let builder = file.array(&array.name, Default::default()).unwrap();
    let mut writer = builder
        .default_dtype()
        .shape(&array.shape)
        .begin_nd()
        .unwrap();
    writer.extend(values).unwrap();
    writer.finish().unwrap();
}

/// The arrays of a file, in its order, which npyz does not tell.
fn read(path: &Path) -> Vec<Array> {
    let directory = ZipArchive::new(File::open(path).unwrap()).unwrap();
    let mut file = NpzArchive::open(path).unwrap();
    let name = |index| {
        directory
            .name_for_index(index)
            .unwrap()
            .unwrap()
            .strip_suffix(".npy")
            .unwrap()
            .to_owned()
    };
    (0..directory.len())
        .map(|index| array(&mut file, name(index)))
        .collect()
}

fn array(file: &mut NpzArchive<BufReader<File>>, name: String) -> Array {
    let array = file.by_name(&name).unwrap().unwrap();
    assert_eq!(array.order(), npyz::Order::C, "{name}");
    let shape = array.shape().to_vec();
    let (dtype, values) = match array.dtype().descr().as_str() {
        "'<f4'" => (DType::F32, array.into_vec().unwrap()),
        "'<f2'" => {
            let values: Vec<f16> = array.into_vec().unwrap();
            (DType::F16, values.into_iter().map(f16::to_f32).collect())
        }
        other => panic!("{name}: dtype {other}"),
    };
    Array {
        name,
        shape,
        dtype,
        values,
    }
}

/// Inputs and outputs of one run.
struct Run {
    folder: Folder,
    files: Vec<PathBuf>,
}

impl Run {
    /// A file for each rank.
    fn new(name: &str, ranks: &[Vec<Array>]) -> Run {
        let folder = Folder::new(&format!("reduce-{name}"));
        let files: Vec<PathBuf> = (0..ranks.len())
            .map(|rank| folder.path().join(format!("rank{rank}.npz")))
            .collect();
        for (file, arrays) in files.iter().zip(ranks) {
            write(file, arrays);
        }
        Run { folder, files }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program's end, whatever it is. The result would be in `out.npz`.
    fn end(&self, options: &[&str]) -> Output {
        let mut command = adasum_run(&["reduce"]);
        command.args(&self.files).args(options);
        if !options.contains(&"-o") {
            command.args(["-o", "out.npz"]);
        }
        command
            .current_dir(self.folder.path())
            // Said of the machine's NPUs, not of the mock's.
            .env("ASCEND_RT_VISIBLE_DEVICES", "1")
            .output()
            .unwrap()
    }

    /// The result, and what was said on standard error.
    fn reduced(&self, options: &[&str]) -> (Vec<Array>, String) {
        let output = self.end(options);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(output.stdout.is_empty(), "standard output is for data");
        (read(&self.path("out.npz")), err(&output))
    }

    /// One sentence on standard error, exit code 2, no result.
    fn refused(&self, options: &[&str]) -> String {
        let output = match options.contains(&"-o") {
            true => self.end(options),
            false => self.end(&[options, &["-o", "refused.npz"]].concat()),
        };
        let text = err(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        // Of an earlier success there may be an out.npz.
        let left = std::fs::read_dir(self.folder.path()).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let new: Vec<String> = left.filter(|name| name.contains("refused")).collect();
        assert!(new.is_empty(), "{new:?} was written");
        text
    }
}
