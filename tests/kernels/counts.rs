//! What the strict twin counts while kernels run: bytes, and instructions as `csrc/kernels/README.md` has them.
//!
//! `ADASUM_BLESS=1 cargo test --test it kernels::counts` writes the tables of that page.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use adasum::kernel::layout::{UNIT, record_words};
use adasum::plan::{DType, gram_operations, sum_operations};

use super::strict::{driver, run};

/// One launch of a kernel.
struct Launch {
    kernel: String,
    /// Bytes of an element.
    bytes: u64,
    radix: u64,
    tensors: u64,
    elements: u64,
    read: u64,
    written: u64,
    copies: u64,
    instructions: u64,
    /// Of 64 fp32 elements each.
    repeats: u64,
    /// Loads and stores of the scalar unit.
    scalars: u64,
}

impl Launch {
    fn of(line: &str) -> Launch {
        let mut words = line.split(' ');
        let kernel = words.next().unwrap().to_owned();
        let mut number = || words.next().unwrap().parse().unwrap();
        Launch {
            kernel,
            bytes: number(),
            radix: number(),
            tensors: number(),
            elements: number(),
            read: number(),
            written: number(),
            copies: number(),
            instructions: number(),
            repeats: number(),
            scalars: number(),
        }
    }

    /// How often the vector unit takes up each element.
    fn operations(&self) -> f64 {
        64.0 * self.repeats as f64 / self.elements as f64
    }
}

fn each(count: u64, of: u64) -> f64 {
    count as f64 / of as f64
}

/// All launches that are counted: one large tensor, or many of 64 elements. In the order of the fields above.
fn launches() -> &'static [Launch] {
    static LAUNCHES: OnceLock<Vec<Launch>> = OnceLock::new();
    LAUNCHES.get_or_init(|| {
        let output = run(driver(2201), &["--counts"]).unwrap_or_else(|error| panic!("{error}"));
        let launches: Vec<Launch> = output.lines().map(Launch::of).collect();
        assert!(launches.len() >= 60);
        launches
    })
}

#[test]
fn device_memory_is_read_once_and_written_once() {
    let whole_vectors = |launch: &Launch| {
        launch.tensors == 1 && ["gram", "weighted_sum"].contains(&launch.kernel.as_str())
    };
    let launches: Vec<&Launch> = launches().iter().filter(|l| whole_vectors(l)).collect();
    assert!(launches.len() >= 30);
    for launch in launches {
        let Launch {
            kernel,
            bytes,
            radix,
            elements,
            read,
            written,
            ..
        } = launch;
        let what = format!("{kernel}, {bytes}-byte elements, r = {radix}");
        let vectors = bytes * radix * elements;
        // Beside the vectors only tables: a window of segments and a tensor's weights for each block.
        assert!((vectors..vectors + 2048).contains(read), "{what}: {read}");
        let expected = match kernel.as_str() {
            "weighted_sum" => bytes * elements,
            _ => elements.div_ceil(UNIT) * 4 * record_words(*radix as usize) as u64,
        };
        // The driver's two blocks sign their receipt, 32 bytes each.
        assert_eq!(*written, expected + 2 * 32, "{what}");
    }
}

/// The tables of the page.
fn tables(launches: &[Launch]) -> String {
    let find = |kernel: &str, bytes: u64, radix: u64, large: bool| {
        let wanted = |launch: &&Launch| {
            launch.kernel == kernel
                && launch.bytes == bytes
                && launch.radix == radix
                && (launch.tensors == 1) == large
        };
        launches.iter().find(wanted).unwrap()
    };
    let mut text = String::from(
        "| kernel | operations an element, fp32 | 16-bit | scalar loads and stores a unit of 4096 elements |\n|---|---|---|---|\n",
    );
    let radices = |kernel: &'static str| (2..=8).map(move |radix| (kernel, radix));
    let others = [
        ("finite_check", 1),
        ("pack", 1),
        ("subtract", 2),
        ("unpack", 1),
    ];
    let exact = (3..=8).map(|radix| ("gram_exact", radix));
    for (kernel, radix) in radices("gram")
        .chain(exact)
        .chain(radices("weighted_sum"))
        .chain(others)
    {
        let [wide, narrow] = [4, 2].map(|bytes| find(kernel, bytes, radix, true));
        let units = wide.elements.div_ceil(UNIT);
        let name = match kernel {
            "gram" | "weighted_sum" => format!("`{kernel}`, r = {radix}"),
            "gram_exact" => format!("`gram`, r = {radix}, exact"),
            _ => format!("`{kernel}`"),
        };
        writeln!(
            text,
            "| {name} | {:.1} | {:.1} | {:.1} |",
            wide.operations(),
            narrow.operations(),
            each(wide.scalars, units)
        )
        .unwrap();
    }
    text.push_str("\n| kernel, r | copies a tensor of 64 elements | vector instructions | scalar loads and stores |\n|---|---|---|---|\n");
    for kernel in ["gram", "coefficients", "weighted_sum"] {
        for radix in [2, 4, 8] {
            let launch = find(kernel, 4, radix, false);
            writeln!(
                text,
                "| `{kernel}`, r = {radix} | {:.1} | {:.1} | {:.1} |",
                each(launch.copies, launch.tensors),
                each(launch.instructions, launch.tensors),
                each(launch.scalars, launch.tensors)
            )
            .unwrap();
        }
    }
    text
}

/// The cost model reckons with what is counted here.
#[test]
fn plans_know_the_operations() {
    for launch in launches().iter().filter(|launch| launch.tensors == 1) {
        let radix = u32::try_from(launch.radix).unwrap();
        let dtype = match launch.bytes {
            4 => DType::F32,
            _ => DType::BF16,
        };
        let planned = match launch.kernel.as_str() {
            "gram" => gram_operations(radix, dtype),
            "weighted_sum" => sum_operations(radix, dtype),
            _ => continue,
        };
        let counted = launch.operations();
        assert!(
            (planned - counted).abs() < 0.06,
            "{}, {dtype:?}, r = {radix}: {planned}, not {counted}",
            launch.kernel
        );
    }
}

#[test]
fn the_page_has_the_instructions() {
    const START: &str = "<!-- counted -->\n";
    const END: &str = "<!-- end of counted -->\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc/kernels/README.md");
    let page = fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(START).expect("the mark of the tables");
    let (_, after) = rest.split_once(END).expect("the end of the tables");
    let counted = [before, START, &tables(launches()), END, after].concat();
    if std::env::var_os("ADASUM_BLESS").is_some() {
        fs::write(&file, &counted).unwrap();
        return;
    }
    assert!(
        page == counted,
        "csrc/kernels/README.md has other counts: ADASUM_BLESS=1 cargo test --test it kernels::counts\n{counted}"
    );
}
