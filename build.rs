//! Builds what the crate embeds: headers and sources of kernels; with feature `mock` the mock's libraries and the CPU twin.

#![allow(clippy::panic, reason = "a build script reports by panicking")]

use std::path::{Path, PathBuf};

#[allow(dead_code, reason = "the crate uses the rest")]
#[path = "src/kernel/toolkit.rs"]
mod toolkit;

fn main() {
    let out = PathBuf::from(env("OUT_DIR"));
    println!("cargo::rerun-if-changed=csrc");
    println!("cargo::rerun-if-env-changed=ADASUM_SANITIZE");
    // Before 1.0 a minor version may break the C interface: programs ask for theirs.
    println!(
        "cargo::rustc-cdylib-link-arg=-Wl,-soname,libadasum.so.{}.{}",
        env("CARGO_PKG_VERSION_MAJOR"),
        env("CARGO_PKG_VERSION_MINOR")
    );

    #[cfg(feature = "mock")]
    mock::build(&out);
    list_files("csrc/cann", &out.join("headers.rs"), |_| true);
    // The kernels themselves, not their twins.
    list_files("csrc/kernels", &out.join("kernel_sources.rs"), |name| {
        !name.contains('/') && (name.ends_with(".h") || name.ends_with(".cpp"))
    });
    build_kernels(&out);
}

/// `ADASUM_BUILD_KERNELS=2201,3510` compiles the kernels for these architectures with the CANN toolkit that the
/// environment names, and embeds them.
fn build_kernels(out: &Path) {
    const VARIABLE: &str = "ADASUM_BUILD_KERNELS";
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let list = std::env::var(VARIABLE).unwrap_or_default();
    let mut rows = String::new();
    for word in list.split([',', ' ']).filter(|word| !word.is_empty()) {
        let mut known = toolkit::ARCHS.iter();
        let Some(&(arch, soc)) = known.find(|(arch, _)| arch.to_string() == word) else {
            let known = toolkit::ARCHS.map(|(arch, _)| arch);
            panic!("{VARIABLE}={list}: {word} is none of {known:?}");
        };
        for name in toolkit::VARIABLES {
            println!("cargo::rerun-if-env-changed={name}");
        }
        let compilation = toolkit::Compilation {
            arch,
            soc: soc.to_owned(),
            sources: PathBuf::from(env("CARGO_MANIFEST_DIR")).join("csrc/kernels"),
            work: out.join(format!("kernels-{word}")),
            output: out.join(format!("npu_kernels_{word}.o")),
        };
        std::fs::create_dir_all(&compilation.work)
            .unwrap_or_else(|error| panic!("{}: {error}", compilation.work.display()));
        toolkit::Toolkit::find(|name| std::env::var_os(name))
            .and_then(|kit| kit.build(kit.way(), &compilation, |step| println!("{step}")))
            .unwrap_or_else(|error| panic!("{VARIABLE}={list}: {error}"));
        rows += &format!("({word}, include_bytes!({:?})),\n", compilation.output);
    }
    let file = out.join("kernel_binaries.rs");
    std::fs::write(&file, format!("&[\n{rows}]\n"))
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// Writes the list of the files of `folder` that the crate embeds: name below that folder and content.
fn list_files(folder: &str, file: &Path, wanted: impl Fn(&str) -> bool) {
    let root = PathBuf::from(env("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    let name = |path: &Path| {
        path.strip_prefix(&root)
            .unwrap_or(path)
            .display()
            .to_string()
    };
    let rows: String = files
        .iter()
        .map(|path| (name(path), path))
        .filter(|(name, _)| wanted(name))
        .map(|(name, path)| format!("({name:?}, include_bytes!({path:?})),\n"))
        .collect();
    std::fs::write(file, format!("&[\n{rows}]\n"))
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    });
    read.unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What feature `mock` adds: the only part that needs a C++ compiler.
#[cfg(feature = "mock")]
mod mock {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::{entries, env};

    /// Builds the libraries of the mock and the twins.
    pub(crate) fn build(out: &Path) {
        let acl = library("csrc/mock/acl", &["csrc/cann", "csrc/mock"], &[]);
        link(&acl, &out.join("libascendcl.so"), "libascendcl.so", &[]);

        let hccl = library("csrc/mock/hccl", &["csrc/cann", "csrc/mock"], &[]);
        let search = format!("-L{}", out.display());
        link(
            &hccl,
            &out.join("libhccl.so"),
            "libhccl.so",
            &[&search, "-Wl,-rpath,$ORIGIN", "-lascendcl"],
        );

        // Clients of the vendor's other libraries look for ACL's functions in them, or only want to find them.
        let none = Objects {
            files: Vec::new(),
            compiler: hccl.compiler.clone(),
        };
        for name in COMPANIONS {
            let flags = [
                &search,
                "-Wl,-rpath,$ORIGIN",
                "-Wl,--no-as-needed",
                "-lascendcl",
            ];
            link(&none, &out.join(name), name, &flags);
        }

        twin("adasum_kernels.o", None);
        if env("CARGO_CFG_TARGET_ARCH") == "x86_64" {
            // The processor that a program runs on is not known here: it chooses.
            for level in ["x86-64-v3", "x86-64-v4"] {
                twin(&format!("adasum_kernels_{level}.o"), Some(level));
            }
        }
    }

    /// Builds the CPU twin of the kernels for a level of instructions.
    fn twin(file: &str, level: Option<&str>) {
        let out = PathBuf::from(env("OUT_DIR"));
        // A fused multiply-add would make results depend on the compiler and the processor.
        let mut flags = vec!["-DADASUM_TWIN", "-ffp-contract=off", "-O3"];
        let march = level.map(|level| format!("-march={level}"));
        flags.extend(march.as_deref());
        let includes = ["csrc/kernels", "csrc/kernels/twin"];
        let objects = library("csrc/kernels", &includes, &flags);
        // Linked before the next level's objects take the place of these.
        link(&objects, &out.join(file), file, &[]);
    }

    /// Libraries of the vendor that are empty here and lead to `libascendcl.so`.
    const COMPANIONS: [&str; 5] = [
        "libacl_op_compiler.so",
        "libacl_tdt_channel.so",
        "libge_runner.so",
        "libgraph.so",
        "libopapi.so",
    ];

    /// Object files of all C++ sources in `folder`, with the compiler that made them.
    struct Objects {
        compiler: cc::Tool,
        files: Vec<PathBuf>,
    }

    fn library(folder: &str, includes: &[&str], flags: &[&str]) -> Objects {
        let mut sources = entries(Path::new(folder));
        sources.retain(|path| path.extension().is_some_and(|extension| extension == "cpp"));
        // The order of a folder listing is not fixed; the library must be.
        sources.sort();

        let mut build = cc::Build::new();
        build
            .cpp(true)
            .std("c++17")
            .pic(true)
            .warnings(true)
            .extra_warnings(true)
            // Bits must not depend on a target CPU, and Rust's sanitizer has another runtime than that of this compiler.
            .inherit_rustflags(false)
            .flag("-fno-sanitize=address")
            .flag("-Wpedantic")
            .flag("-Wshadow")
            .flag("-fvisibility=hidden")
            .flag("-pthread")
            .files(&sources)
            .includes(includes);
        // In every profile: the mock moves and reduces all data, and unoptimised it would hold up every test.
        build.opt_level(2);
        // Twice the time to compile; CXXFLAGS=-g has it.
        build.debug(false);
        for flag in flags {
            build.flag(flag);
        }
        for flag in sanitizer() {
            build.flag(flag);
        }
        let compiler = build.get_compiler();
        Objects {
            files: build.compile_intermediates(),
            compiler,
        }
    }

    fn link(objects: &Objects, output: &Path, soname: &str, flags: &[&str]) {
        let mut command: Command = objects.compiler.to_command();
        command.arg("-shared").arg(format!("-Wl,-soname,{soname}"));
        // A sanitizer's functions are those of the program that loads the library.
        if sanitizer().is_empty() {
            command.arg("-Wl,--no-undefined");
        }
        command
            .arg("-o")
            .arg(output)
            .args(&objects.files)
            .args(flags)
            .arg("-ldl");
        let status = command
            .status()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(status.success(), "{command:?} failed with {status}");
    }

    /// `ADASUM_SANITIZE=address,undefined` builds the C++ parts with those sanitizers.
    fn sanitizer() -> Vec<String> {
        match std::env::var("ADASUM_SANITIZE") {
            Ok(list) if !list.is_empty() => vec![format!("-fsanitize={list}"), "-g".to_owned()],
            _ => Vec::new(),
        }
    }
}
