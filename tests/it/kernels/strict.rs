//! Builds the strict twin of the kernels, which refuses what the hardware would refuse, and programs that run on it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use adasum::ascend::{DataType, Span};
use adasum::kernel::layout::{UNIT, record_words};

use super::machine::{Machine, extent, packed};
use super::reference::random;

pub(super) const KERNELS: [&str; 9] = [
    "coefficients",
    "finite_check",
    "fold",
    "gram",
    "guard",
    "pack",
    "subtract",
    "unpack",
    "weighted_sum",
];

const FLAGS: [&str; 7] = [
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-DADASUM_TWIN",
    "-DADASUM_TWIN_STRICT",
    "-pthread",
];

/// A folder of this repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub(super) fn kernel_sources() -> PathBuf {
    repository("csrc/kernels")
}

/// Where what is built lies, by a hash of all sources: what is there need not be built again.
pub(super) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        (compiler(), FLAGS).hash(&mut hasher);
        for folder in ["csrc/kernels", "csrc/kernels/strict", "tests/c"] {
            for (name, text) in sources(&repository(folder)) {
                (name, text).hash(&mut hasher);
            }
        }
        let name = format!("strict-{:016x}", hasher.finish());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    })
}

/// Names and texts of the C++ files of a folder, in order.
pub(super) fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "cpp" || end == "h")
        })
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn compiler() -> OsString {
    std::env::var_os("CXX").unwrap_or_else(|| "c++".into())
}

/// Runs the compiler without optimising, with `arguments`; headers come from `first`, then from the kernels' folder.
pub(super) fn compile<S: AsRef<OsStr>>(first: &Path, arguments: &[S]) -> Output {
    Command::new(compiler())
        .args(FLAGS)
        .arg("-I")
        .arg(first)
        .arg("-I")
        .arg(kernel_sources())
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", compiler().display()))
}

/// `name` in the folder, made by the compiler from `arguments` unless it is there.
fn built(name: &str, arguments: &[&Path]) -> PathBuf {
    let result = folder().join(name);
    if !result.exists() {
        // Another process may be at it as well.
        let draft = folder().join(format!("{name}.{}", std::process::id()));
        let output = compile(
            &kernel_sources(),
            &[&[Path::new("-o"), &draft], arguments].concat(),
        );
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}:\n{log}");
        fs::rename(&draft, &result).unwrap();
    }
    result
}

fn object(name: &str, source: &Path) -> PathBuf {
    built(name, &[Path::new("-O3"), Path::new("-c"), source])
}

fn kernel_object(kernel: &str) -> PathBuf {
    object(
        &format!("{kernel}.o"),
        &kernel_sources().join(format!("{kernel}.cpp")),
    )
}

fn all_kernels() -> Vec<PathBuf> {
    std::thread::scope(|scope| {
        let threads = KERNELS.map(|kernel| scope.spawn(move || kernel_object(kernel)));
        threads.map(|thread| thread.join().unwrap()).to_vec()
    })
}

/// What every program on the twin is linked with: its core, and the driver of `tests/c`.
pub(super) fn driver_objects() -> &'static [PathBuf; 2] {
    static OBJECTS: OnceLock<[PathBuf; 2]> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        [
            object("engine.o", &kernel_sources().join("strict/engine.cpp")),
            object("driver.o", &repository("tests/c/kernel_driver.cpp")),
        ]
    })
}

/// The kernel binary of the strict twin, for the mock.
pub(super) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let mut parts = all_kernels();
        parts.push(driver_objects()[0].clone());
        let arguments: Vec<&Path> = std::iter::once(Path::new("-shared"))
            .chain(parts.iter().map(PathBuf::as_path))
            .collect();
        built("adasum_kernels_strict.o", &arguments)
    })
}

/// The driver with the kernels as they are.
pub(super) fn driver() -> &'static Path {
    static DRIVER: OnceLock<PathBuf> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let mut parts = all_kernels();
        parts.extend(driver_objects().iter().cloned());
        let arguments: Vec<&Path> = parts.iter().map(PathBuf::as_path).collect();
        built("driver", &arguments)
    })
}

/// What a program prints if all goes well, else what it complains about.
pub(super) fn run(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        let end = output.status;
        Err(format!(
            "{}{}({end})",
            text(&output.stderr),
            text(&output.stdout)
        ))
    }
}

#[test]
fn device_memory_is_read_once_and_written_once() {
    let output = run(driver(), &["--bytes"]).unwrap_or_else(|error| panic!("{error}"));
    assert!(output.lines().count() >= 30);
    for line in output.lines() {
        let (kernel, numbers) = line.split_once(' ').unwrap();
        let numbers: Vec<u64> = numbers.split(' ').map(|n| n.parse().unwrap()).collect();
        let [bytes, radix, elements, read, written] = numbers[..] else {
            panic!("{line}");
        };
        let share = |count: u64| count as f64 / (bytes * elements) as f64;
        println!(
            "{kernel}, {bytes}-byte elements, r = {radix}: {:.4} reads and {:.4} writes per element",
            share(read),
            share(written)
        );
        let vectors = bytes * radix * elements;
        // Beside the vectors only tables: a window of segments and a tensor's weights for each block.
        assert!((vectors..vectors + 2048).contains(&read), "{line}");
        let expected = match kernel {
            "weighted_sum" => bytes * elements,
            _ => elements.div_ceil(UNIT) * 4 * record_words(radix as usize) as u64,
        };
        assert_eq!(written, expected, "{line}");
    }
}

/// Every type, radix and kind of length on both twins, which the machine compares.
#[test]
fn twins_agree_on_every_type_and_radix() {
    let machine = Machine::new();
    let sizes = [0, 1, 2, 3, 7, 16, 17, 255, 256, 257, 4095, 4096, 4097];
    let segments = packed(&sizes, 5);
    for dtype in [DataType::F32, DataType::F16, DataType::Bf16] {
        for radix in 2..=8 {
            let vectors: Vec<Span> = (0..radix as u64)
                .map(|i| {
                    let values = random(extent(&segments), 2000 + i, 1.0);
                    machine.upload_as(dtype, &values, radix)
                })
                .collect();
            machine.tree(dtype, &vectors, &segments);
        }
    }
}

/// The kernels' sources compile for each chip that has what they use.
#[test]
fn types_exist_on_every_chip() {
    for arch in ["2201", "3510"] {
        for kernel in KERNELS {
            let define = format!("-D__NPU_ARCH__={arch}");
            let source = kernel_sources().join(format!("{kernel}.cpp"));
            let output = compile(
                &kernel_sources(),
                &[
                    OsStr::new("-fsyntax-only"),
                    OsStr::new(&define),
                    source.as_os_str(),
                ],
            );
            let log = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{kernel} for {arch}:\n{log}");
        }
    }
}
