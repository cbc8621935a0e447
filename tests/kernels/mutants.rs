//! Kernels with a mistake in them: the strict twin must refuse each for the right reason.
//!
//! A mutant is the kernels' source with a few texts replaced. It is compiled against the strict twin and runs the
//! driver's problem in every order of execution; a mistake in synchronisation must also show in the data alone.
//! A lost `__gm__` is found by a compiler that knows address spaces (clang), where there is one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::strict::{
    arch_flag, compile, driver, driver_objects, folder, kernel_sources, run, sources, twin_header,
};

/// In a file of the kernels, without its indentation: the text to replace (which must be there once) and what takes its
/// place.
type Patch = (&'static str, &'static str, &'static str);

struct Mutant {
    name: &'static str,
    kernel: &'static str,
    /// The chip that it is compiled for.
    arch: u32,
    /// What the driver is to do: run the kernel by its name unless this says otherwise.
    option: &'static str,
    /// The duty that must kill it.
    duty: &'static str,
    patches: &'static [Patch],
}

/// How the twin found out.
#[derive(Debug, PartialEq)]
enum Fate {
    Killed(String),
    WrongData,
    Survived,
}

/// What the unchanged kernel prints for an argument of the driver.
fn expected(arch: u32, argument: &str) -> String {
    static OUTPUTS: Mutex<BTreeMap<(u32, String), String>> = Mutex::new(BTreeMap::new());
    let key = (arch, argument.to_owned());
    let mut outputs = OUTPUTS.lock().unwrap();
    let run = || run(driver(arch), &[argument]).unwrap_or_else(|error| panic!("{error}"));
    outputs.entry(key).or_insert_with(run).clone()
}

/// The number and the word of the first duty that a text names: `duty 5 (pipes)`.
fn duty_in(text: &str) -> Option<String> {
    let at = text.find("duty ")?;
    let end = text[at..].find(')')?;
    Some(text[at..=at + end].to_owned())
}

impl Mutant {
    /// The sources with the mistake, in a folder of their own.
    fn write(&self) -> PathBuf {
        let to = folder().join("mutants").join(self.name);
        fs::create_dir_all(&to).unwrap();
        let mut files = sources(&kernel_sources());
        for (_, text) in &mut files {
            let lines: Vec<&str> = text.lines().map(|line| line.trim_start()).collect();
            *text = lines.join("\n") + "\n";
        }
        for (file, old, new) in self.patches {
            let (_, text) = files
                .iter_mut()
                .find(|(name, _)| name == file)
                .unwrap_or_else(|| panic!("{}: there is no {file}", self.name));
            let count = text.matches(old).count();
            assert_eq!(count, 1, "{}: {file} has {count} times: {old}", self.name);
            *text = text.replace(old, new);
        }
        for (name, text) in files {
            fs::write(to.join(name), text).unwrap();
        }
        to
    }

    /// The program; or what the compiler says.
    fn build(&self) -> Result<PathBuf, String> {
        let sources = self.write();
        let program = sources.join("program");
        let [engine, driver] = driver_objects(self.arch);
        let flag = arch_flag(self.arch);
        let kernel = sources.join(format!("{}.cpp", self.kernel));
        let output = compile(
            &sources,
            &[
                flag.as_path(),
                Path::new("-include"),
                twin_header(self.arch),
                kernel.as_path(),
                engine,
                driver,
                Path::new("-o"),
                &program,
            ],
        );
        if output.status.success() {
            Ok(program)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    fn argument(&self) -> &'static str {
        if self.option.is_empty() {
            self.kernel
        } else {
            self.option
        }
    }

    fn fate(&self, outcome: Result<String, String>) -> Fate {
        match outcome {
            Ok(output) if expected(self.arch, self.argument()).contains(&output) => Fate::Survived,
            Ok(_) => Fate::WrongData,
            Err(text) => match duty_in(&text) {
                Some(duty) => Fate::Killed(duty),
                None if text.contains("other data") => Fate::WrongData,
                None => panic!("{}: {text}", self.name),
            },
        }
    }

    fn test(&self) {
        let (fate, program) = match self.build() {
            Ok(program) => (self.fate(run(&program, &[self.argument()])), Some(program)),
            Err(log) => {
                let unknown = ["is not a member of", "has no member named"]
                    .iter()
                    .any(|says| log.contains(says))
                    .then(|| UNKNOWN.to_owned());
                let duty = duty_in(&log).or(unknown);
                let duty = duty.unwrap_or_else(|| panic!("{}: {log}", self.name));
                (Fate::Killed(duty), None)
            }
        };
        match &fate {
            Fate::Killed(duty) => println!("mutant {} killed by {duty}", self.name),
            Fate::WrongData => println!("mutant {} killed by wrong data", self.name),
            Fate::Survived => println!("mutant {} survived", self.name),
        }
        let expected = match self.duty {
            DATA => Fate::WrongData,
            duty => Fate::Killed(duty.to_owned()),
        };
        assert_eq!(fate, expected, "{}", self.name);
        // The orders of execution must be odd enough to show what the clocks of the twin find.
        if self.duty == PIPES {
            let data = self.fate(run(&program.unwrap(), &["--no-races", self.argument()]));
            assert_ne!(data, Fate::Survived, "{}: in the data", self.name);
        }
    }
}

/// A clang++, if there is one.
fn clang() -> Option<String> {
    let named = std::env::var("CLANGXX").ok();
    let versions = (14..=22).rev().map(|version| format!("clang++-{version}"));
    named
        .into_iter()
        .chain(["clang++".to_owned()])
        .chain(versions)
        .find(|name| Command::new(name).arg("--version").output().is_ok())
}

/// Compiles a kernel with device memory as an address space of its own; errors are `duty 12`.
fn check_address_spaces(clang: &str, sources: &Path, kernel: &str) -> Result<(), String> {
    let output = Command::new(clang)
        .args([
            "-std=c++17",
            "-fsyntax-only",
            "-DADASUM_TWIN",
            "-DADASUM_TWIN_STRICT",
        ])
        .arg("-D__gm__=__attribute__((address_space(1)))")
        .arg("-I")
        .arg(sources)
        .arg("-I")
        .arg(kernel_sources())
        .arg(sources.join(format!("{kernel}.cpp")))
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(log)
    }
}

/// A mutant of `kernel` without a `__gm__`; the unchanged kernel must compile.
fn test_lost_gm(name: &'static str, kernel: &'static str, patches: &'static [Patch]) {
    let Some(clang) = clang() else {
        println!("mutant {name} SKIPPED: no clang++ here");
        return;
    };
    check_address_spaces(&clang, &kernel_sources(), kernel).unwrap_or_else(|log| panic!("{log}"));
    let mutant = Mutant {
        name,
        kernel,
        arch: 2201,
        option: "",
        duty: "duty 12 (address space)",
        patches,
    };
    match check_address_spaces(&clang, &mutant.write(), kernel) {
        Err(log) if log.contains("cast") || log.contains("address space") => {
            println!("mutant {name} killed by {}", mutant.duty);
        }
        Err(log) => panic!("{name}: {log}"),
        Ok(()) => panic!("mutant {name} survived"),
    }
}

#[test]
fn mutant_lost_gm_of_the_vectors() {
    test_lost_gm(
        "lost_gm_of_the_vectors",
        "gram",
        &[(
            "device.h",
            "reinterpret_cast<__gm__ T *>(table.number(i, 0))",
            "reinterpret_cast<T *>(table.number(i, 0))",
        )],
    );
}

#[test]
fn mutant_lost_gm_of_the_records() {
    test_lost_gm(
        "lost_gm_of_the_records",
        "fold",
        &[(
            "fold.cpp",
            "reinterpret_cast<__gm__ float *>(records)",
            "reinterpret_cast<float *>(records)",
        )],
    );
}

const CAPACITY: &str = "duty 1 (capacity)";
const ALIGNMENT: &str = "duty 2 (alignment)";
const BOUNDS: &str = "duty 3 (bounds)";
const QUEUES: &str = "duty 4 (queues)";
const PIPES: &str = "duty 5 (pipes)";
const BARRIERS: &str = "duty 6 (barriers)";
const UNINITIALISED: &str = "duty 7 (uninitialised)";
const LIMITS: &str = "duty 8 (limits)";
const TYPES: &str = "duty 9 (types)";
const BLOCKS: &str = "duty 10 (blocks)";
const FLAGS: &str = "duty 11 (flags)";
const RECEIPTS: &str = "duty 13 (receipts)";
/// The compiler knows no such name.
const UNKNOWN: &str = "an unknown name";
/// No rule of the hardware is broken, but what is left is wrong.
const DATA: &str = "wrong data";

macro_rules! mutants {
    ($(
        $name:ident: $kernel:literal $(on $arch:literal)? $(with $option:literal)?, $duty:ident,
        [$($patch:expr),+ $(,)?];
    )+) => {
        $(
            #[test]
            fn $name() {
                let mutant = Mutant {
                    name: stringify!($name).trim_start_matches("mutant_"),
                    kernel: $kernel,
                    arch: [$($arch,)? 2201][0],
                    option: [$($option,)? ""][0],
                    duty: $duty,
                    patches: &[$($patch),+],
                };
                mutant.test();
            }
        )+
    };
}

mod table;
