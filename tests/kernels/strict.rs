//! Builds the strict twin of the kernels, which refuses what the hardware would refuse, and programs that run on it.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use adasum::ascend::{DataType, Span};

use super::machine::{Machine, aligned, extent, packed};
use super::reference::random;

pub(crate) const KERNELS: [&str; 9] = [
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

/// `-Og` compiles kernels as fast as no optimisation does, and they run as fast as with `-O2`.
const FLAGS: [&str; 8] = [
    "-std=c++17",
    "-Og",
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

/// Where what is built lies, by a hash of all sources and this file: what is there need not be built again.
pub(super) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        (compiler(), warnings(), include_str!("strict.rs")).hash(&mut hasher);
        for folder in [
            "csrc/kernels",
            "csrc/kernels/strict",
            "csrc/kernels/twin",
            "tests/kernels",
        ] {
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

/// The compiler and its first arguments: `CXX` may name a cache in front of it.
fn compiler() -> Vec<String> {
    let words = std::env::var("CXX").unwrap_or_default();
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        vec!["c++".to_owned()]
    } else {
        words
    }
}

/// Runs the compiler with `arguments`; headers come from `first`, then from the kernels' folder.
pub(super) fn compile<S: AsRef<OsStr>>(first: &Path, arguments: &[S]) -> Output {
    let compiler = compiler();
    Command::new(&compiler[0])
        .args(&compiler[1..])
        .args(FLAGS)
        .arg("-I")
        .arg(first)
        .arg("-I")
        .arg(kernel_sources())
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", compiler[0]))
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

/// The chips that the kernels are for.
pub(super) const ARCHS: [u32; 3] = [2201, 3510, 1001];

/// What is made once for each chip.
struct ForEachArch<T>([OnceLock<T>; 3]);

impl<T> ForEachArch<T> {
    const fn new() -> Self {
        ForEachArch([const { OnceLock::new() }; 3])
    }

    fn get(&self, arch: u32, make: impl FnOnce() -> T) -> &T {
        let index = ARCHS.iter().position(|&known| known == arch).unwrap();
        self.0[index].get_or_init(make)
    }
}

/// The flag that names a chip.
pub(super) fn arch_flag(arch: u32) -> PathBuf {
    format!("-D__NPU_ARCH__={arch}").into()
}

/// Flags for the sources as they are: `CXXFLAGS=-Werror` makes the warnings errors, as in the build.
fn warnings() -> Vec<String> {
    let more = std::env::var("CXXFLAGS").unwrap_or_default();
    let flags = ["-Wall", "-Wextra", "-Wpedantic"].into_iter();
    flags
        .chain(more.split_whitespace())
        .map(str::to_owned)
        .collect()
}

fn object(name: &str, source: &Path, arch: u32, flags: &[&'static str]) -> PathBuf {
    let name = format!("{name}-{arch}.o");
    let (arch, warnings) = (arch_flag(arch), warnings());
    let mut arguments = vec![arch.as_path(), Path::new("-c"), source];
    arguments.extend(flags.iter().map(Path::new));
    arguments.extend(warnings.iter().map(Path::new));
    built(&name, &arguments)
}

fn all_kernels(arch: u32) -> &'static [PathBuf] {
    static OBJECTS: ForEachArch<Vec<PathBuf>> = ForEachArch::new();
    let compile = move |kernel| {
        object(
            kernel,
            &kernel_sources().join(format!("{kernel}.cpp")),
            arch,
            &[],
        )
    };
    OBJECTS.get(arch, || {
        std::thread::scope(|scope| {
            let threads = KERNELS.map(|kernel| scope.spawn(move || compile(kernel)));
            threads.map(|thread| thread.join().unwrap()).to_vec()
        })
    })
}

/// The strict twin's own header, which no mutant changes, for `-include`: compiled ahead, it saves a quarter to a half of a
/// mutant's compilation.
pub(super) fn twin_header(arch: u32) -> &'static Path {
    static HEADERS: ForEachArch<PathBuf> = ForEachArch::new();
    HEADERS.get(arch, || {
        // Compilers look for NAME.gch beside NAME.
        let header = folder().join(format!("twin-{arch}.h"));
        let source = kernel_sources().join("strict/kernel_operator.h");
        let flag = arch_flag(arch);
        built(
            &format!("twin-{arch}.h.gch"),
            &[flag.as_path(), Path::new("-xc++-header"), &source],
        );
        header
    })
}

/// What every program on the twin is linked with: its core, and the driver.
pub(super) fn driver_objects(arch: u32) -> &'static [PathBuf; 2] {
    static OBJECTS: ForEachArch<[PathBuf; 2]> = ForEachArch::new();
    let compile = |name, source, flags| object(name, &repository(source), arch, flags);
    OBJECTS.get(arch, || {
        [
            compile("engine", "csrc/kernels/strict/engine.cpp", &["-O2"][..]),
            compile("driver", "tests/kernels/kernel_driver.cpp", &[]),
        ]
    })
}

/// The kernel binary of the strict twin of a chip, for the mock.
pub(crate) fn binary(arch: u32) -> &'static Path {
    static BINARIES: ForEachArch<PathBuf> = ForEachArch::new();
    BINARIES.get(arch, || {
        let parts = all_kernels(arch).iter().chain([&driver_objects(arch)[0]]);
        let arguments: Vec<&Path> = std::iter::once(Path::new("-shared"))
            .chain(parts.map(PathBuf::as_path))
            .collect();
        built(&format!("adasum_kernels_strict-{arch}.o"), &arguments)
    })
}

/// The driver with the kernels of a chip as they are.
pub(super) fn driver(arch: u32) -> &'static Path {
    static DRIVERS: ForEachArch<PathBuf> = ForEachArch::new();
    DRIVERS.get(arch, || {
        let parts = all_kernels(arch).iter().chain(driver_objects(arch));
        let arguments: Vec<&Path> = parts.map(PathBuf::as_path).collect();
        built(&format!("driver-{arch}"), &arguments)
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

/// Vectors of a launch: apart, so alike that their products are summed exactly, or each zero where others are not.
fn vector(kind: usize, index: usize, radix: usize, len: usize) -> Vec<f32> {
    let own = random(len, 2000 + index as u64, 1.0);
    match kind {
        0 => own,
        1 => {
            let common = random(len, 1999, 1.0);
            let near = common
                .iter()
                .zip(own)
                .map(|(c, o)| c + o * 2.0_f32.powi(-7));
            near.collect()
        }
        _ => {
            let mine = |(at, o): (usize, f32)| if at % radix == index { o } else { 0.0 * o };
            own.into_iter().enumerate().map(mine).collect()
        }
    }
}

/// Every type, radix and kind of length on all twins, which the machine compares; with segments as arch 1001 wants them,
/// and with ones that fit no chip's blocks.
#[test]
fn twins_agree_on_every_type_and_radix() {
    let sizes = [0, 1, 2, 3, 7, 16, 17, 255, 256, 257, 4095, 4096, 4097];
    for dtype in [DataType::F32, DataType::F16, DataType::Bf16] {
        for radix in 2..=8 {
            for (kind, whole_blocks) in [(0, true), (0, false), (1, true), (1, false), (2, false)] {
                // Any number of cores.
                let machine = Machine::with_blocks(Some([1, 3, 48][radix % 3]));
                let segments = if whole_blocks {
                    aligned(&sizes, dtype)
                } else {
                    packed(&sizes, 5)
                };
                let shift = if whole_blocks { 0 } else { radix };
                let vectors: Vec<Span> = (0..radix)
                    .map(|i| {
                        let values = vector(kind, i, radix, extent(&segments));
                        machine.upload_as(dtype, &values, shift)
                    })
                    .collect();
                machine.tree(dtype, &vectors, &segments);
            }
        }
    }
}

/// The driver with the kernels of the fast twin.
fn fast_driver(name: &str, more: &[&Path]) -> PathBuf {
    let sources = KERNELS.map(|kernel| kernel_sources().join(format!("{kernel}.cpp")));
    let main = repository("tests/kernels/kernel_driver.cpp");
    let mut arguments = vec![Path::new("-UADASUM_TWIN_STRICT"), &main];
    arguments.extend(more);
    arguments.extend(sources.iter().map(PathBuf::as_path));
    built(name, &arguments)
}

/// What its fused steps stand for is there too, and does the same.
#[test]
fn the_fast_twin_has_the_instructions_that_it_fuses() {
    let digests = |program: &Path| run(program, &KERNELS).unwrap_or_else(|error| panic!("{error}"));
    let unfused = Path::new("-DADASUM_TWIN_UNFUSED");
    let expected = digests(driver(2201));
    assert_eq!(expected.lines().count(), KERNELS.len());
    assert_eq!(digests(&fast_driver("driver-fast", &[])), expected);
    assert_eq!(
        digests(&fast_driver("driver-unfused", &[unfused])),
        expected
    );
}

/// More than 2^32 elements, units, tensors and records: see the driver.
#[test]
fn far_offsets_are_as_good_as_near_ones() {
    let fast = fast_driver("driver-fast", &[]);
    let expected = run(&fast, &["--far"]).unwrap_or_else(|error| panic!("{error}"));
    // All but `guard`, which knows no elements.
    assert_eq!(expected.lines().count(), KERNELS.len() - 1);
    for arch in ARCHS {
        let output = run(driver(arch), &["--far"]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(output, expected, "arch {arch}");
    }
}
