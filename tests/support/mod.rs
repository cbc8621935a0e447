//! Worlds of ranks as threads, and inputs made by formula.

pub(crate) mod adasum_run;
pub(crate) mod oracle;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::Duration;

use adasum::ascend::{Buffer, Device, Pod, RootInfo, Span, Stream};
use half::{bf16, f16};

use adasum::reduce::{DType, GradientReducer, Options, TensorSpec, World};

use adasum_run::eventually;

/// Runs `body` on every rank of a world of `servers` x `locals` threads; results by rank.
pub(crate) fn in_world<T: Send>(
    servers: u32,
    locals: u32,
    body: impl Fn(&World) -> T + Sync,
) -> Vec<T> {
    let _alone = one_world_at_a_time();
    mock_environment();
    let size = servers * locals;
    let root = OnceLock::new();
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..size)
            .map(|rank| {
                let (root, body) = (&root, &body);
                scope.spawn(move || {
                    let device = Device::open(i32::try_from(rank).unwrap()).unwrap();
                    // Every rank asks; the first to come makes it.
                    let root = root.get_or_init(|| RootInfo::new(&device).unwrap());
                    let world = World::from_root_info(device, root, size, rank, locals).unwrap();
                    let result = body(&world);
                    world.finish(Duration::from_secs(60)).unwrap();
                    result
                })
            })
            .collect();
        ranks
            .into_iter()
            .map(|rank| {
                rank.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// Worlds of many threads share two cores: one after the other is faster than all at once.
fn one_world_at_a_time() -> MutexGuard<'static, ()> {
    static WORLD: Mutex<()> = Mutex::new(());
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many ranks have come so far: a rank that is to be late waits for the others, not for a fixed time.
#[derive(Default)]
pub(crate) struct Tally(AtomicU32);

impl Tally {
    pub(crate) fn come(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn wait_for(&self, ranks: u32) {
        eventually("other ranks", || {
            (self.0.load(Ordering::SeqCst) >= ranks).then_some(())
        });
    }
}

/// Lets one process hold a device for each of up to 1,024 ranks.
pub(crate) fn mock_environment() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (name, value) in [
            ("ADASUM_BACKEND", "mock"),
            ("ASCEND_MOCK_DEVICES", "1024"),
            ("ASCEND_MOCK_HBM_MB", "4096"),
            // A rank table that is not completed is not waited for.
            ("HCCL_MOCK_TABLE_TIMEOUT", "0"),
        ] {
            // SAFETY: the mock reads its variables when it is first used, which is after this call; Rust's
            // own readers are locked out by the standard library.
            unsafe { std::env::set_var(name, value) };
        }
        // SAFETY: as above.
        unsafe { std::env::remove_var("ASCEND_RT_VISIBLE_DEVICES") };
    });
}

/// fp32 tensors named `t0`, `t1`, ...
pub(crate) fn specs(counts: &[usize]) -> Vec<TensorSpec> {
    (0..)
        .zip(counts)
        .map(|(index, &count)| TensorSpec::new(format!("t{index}"), count as u64, DType::F32))
        .collect()
}

/// Device buffers with the values of `tensors`.
pub(crate) fn upload(device: &Device, tensors: &[Vec<f32>]) -> Vec<Span> {
    tensors.iter().map(|values| put(device, values)).collect()
}

/// The values of device buffers.
pub(crate) fn download(spans: &[Span]) -> Vec<Vec<f32>> {
    spans
        .iter()
        .map(|span| get(span, span.len() / 4, 0.0_f32))
        .collect()
}

/// A tensor of any element type on the device; the values are rounded to the type.
pub(crate) fn put_as(device: &Device, values: &[f32], dtype: DType) -> Span {
    match dtype {
        DType::F32 => put(device, values),
        DType::F16 => put(
            device,
            &values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>(),
        ),
        DType::BF16 => put(
            device,
            &values
                .iter()
                .map(|&x| bf16::from_f32(x))
                .collect::<Vec<_>>(),
        ),
    }
}

/// The values of a tensor of any element type.
pub(crate) fn get_as(span: &Span, dtype: DType) -> Vec<f32> {
    match dtype {
        DType::F32 => get(span, span.len() / 4, 0.0_f32),
        DType::F16 => get(span, span.len() / 2, f16::ZERO)
            .iter()
            .map(|x| x.to_f32())
            .collect(),
        DType::BF16 => get(span, span.len() / 2, bf16::ZERO)
            .iter()
            .map(|x| x.to_f32())
            .collect(),
    }
}

/// What a value becomes in the type.
pub(crate) fn rounded(value: f32, dtype: DType) -> f32 {
    match dtype {
        DType::F32 => value,
        DType::F16 => f16::from_f32(value).to_f32(),
        DType::BF16 => bf16::from_f32(value).to_f32(),
    }
}

fn put<T: Pod>(device: &Device, values: &[T]) -> Span {
    let bytes = size_of_val(values);
    let span = Buffer::new(device, bytes.max(64)).unwrap().span();
    let span = span.slice(0..bytes).unwrap();
    span.write(values).unwrap();
    span
}

fn get<T: Pod>(span: &Span, count: usize, fill: T) -> Vec<T> {
    let mut values = vec![fill; count];
    span.read(&mut values).unwrap();
    values
}

/// One reduction on this rank: what came out, and the non-finite flags where there are any.
pub(crate) fn reduce(
    reducer: &mut GradientReducer,
    world: &World,
    tensors: &[Vec<f32>],
) -> (Vec<Vec<f32>>, Option<Vec<bool>>) {
    let stream = Stream::new(world.device()).unwrap();
    let spans = upload(world.device(), tensors);
    reducer.reduce(&spans, &stream).unwrap();
    stream.synchronize().unwrap();
    (download(&spans), reducer.nonfinite().ok())
}

/// A reducer with default options.
pub(crate) fn reducer(world: &World, counts: &[usize]) -> GradientReducer {
    GradientReducer::new(world, &specs(counts), &Options::default()).unwrap()
}

/// A number in about -1..1 that depends on all of `key`, the same on every machine.
pub(crate) fn noise(key: &[u64]) -> f32 {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for part in key {
        state = (state ^ part).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB);
        state ^= state >> 32;
    }
    // 24 bits fit an f32 exactly.
    (state >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// The C library of this build.
pub(crate) fn cdylib() -> std::path::PathBuf {
    // Beside the folder of the test program, which cargo has just built with it.
    let program = std::env::current_exe().unwrap();
    let deps = program.parent().unwrap();
    let library = deps.join("libadasum.so");
    assert!(library.exists(), "{} is missing", library.display());
    library
}

/// What a program is linked with to use the library: its file, and where it is found at run time under the name that it
/// goes by.
pub(crate) fn link_with_cdylib(folder: &std::path::Path) -> [String; 2] {
    let library = cdylib();
    let name = concat!(
        "libadasum.so.",
        env!("CARGO_PKG_VERSION_MAJOR"),
        ".",
        env!("CARGO_PKG_VERSION_MINOR")
    );
    let link = folder.join(name);
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&library, &link).unwrap();
    [
        library.display().to_string(),
        format!("-Wl,-rpath,{}", folder.display()),
    ]
}

/// A folder of this test's own, empty.
pub(crate) fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs an ignored test in a process of its own: counters are those of a process.
pub(crate) fn run_alone(test: &str) {
    run_alone_with(test, &[]);
}

/// The same with environment variables.
pub(crate) fn run_alone_with(test: &str, variables: &[(&str, &std::path::Path)]) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
