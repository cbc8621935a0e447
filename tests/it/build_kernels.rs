//! `adasum-run build-kernels` and `ADASUM_BUILD_KERNELS` of the build, with a toolkit of scripts in place of the vendor's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The toolkit's folder, removed at the end.
struct Toolkit(PathBuf);

impl Drop for Toolkit {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What makes a file that looks like the kernels of a chip of its last argument.
const MAKE_LAST: &str = r#"for word; do last=$word; done
printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\001\000\051\020%044d' 0 > "$last""#;

impl Toolkit {
    fn new(label: &str) -> Self {
        let name = format!("adasum-toolkit-{label}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("bin")).unwrap();
        Toolkit(folder)
    }

    /// A program of the toolkit that writes its command line to the log before it does what `body` says.
    fn program(&self, name: &str, body: &str) -> &Self {
        let log = self.0.join("log");
        let script = format!(
            "#!/bin/sh\necho {name} \"$@\" >> {}\n{body}\n",
            log.display()
        );
        let path = self.0.join("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_adasum-run"));
        let path = format!("{}:/usr/bin:/bin", self.0.join("bin").display());
        command
            .arg("build-kernels")
            .args(arguments)
            .env("PATH", path)
            .env("ADASUM_CACHE_DIR", self.0.join("cache"))
            .env("ASCEND_HOME_PATH", &self.0)
            .env_remove("ADASUM_CANN_HOME");
        command
    }

    fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.0.join("log")).unwrap();
        log.lines().map(str::to_owned).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The one path that it printed.
fn made(output: &Output) -> PathBuf {
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    PathBuf::from(printed.trim_end())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn the_compiler_and_the_linker_are_called_as_documented() {
    let kit = Toolkit::new("bisheng");
    kit.program("bisheng", MAKE_LAST)
        .program("ld.lld", MAKE_LAST);
    let output = kit.command(&["--soc", "Ascend910B1"]).output().unwrap();
    let binary = made(&output);
    assert!(
        binary.exists() && name(&binary).starts_with("adasum_kernels_2201_"),
        "{binary:?}"
    );
    let log = kit.log();
    let kernels = [
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
    assert_eq!(log.len(), kernels.len() + 1);
    let sources = binary.parent().unwrap().display();
    let mut objects = Vec::new();
    for (line, kernel) in log.iter().zip(kernels) {
        let (start, object) = line.split_once(" -o ").unwrap();
        let expected = format!(
            "bisheng -c -x asc -O3 -std=c++17 -ffp-contract=off --cce-aicore-only \
             -mllvm -cce-aicore-stack-size=0x8000 -mllvm -cce-aicore-function-stack-size=0x8000 \
             -mllvm -cce-aicore-addr-transform -mllvm -cce-aicore-dcci-insert-for-scalar=false \
             -DASCENDC_DUMP=0 --npu-arch=dav-2201 -DADASUM_NPU_ARCH=2201 -I {sources} {sources}/{kernel}.cpp"
        );
        assert_eq!(start, expected);
        assert!(object.ends_with(&format!("/{kernel}.o")), "{object}");
        objects.push(object);
    }
    let link = format!(
        "ld.lld -m aicorelinux -Ttext=0 -static {} -o {}",
        objects.join(" "),
        binary.display()
    );
    assert_eq!(log[kernels.len()], link);
    // The commands were shown, and what was made on the way is gone.
    assert!(
        text(&output.stderr).contains("--npu-arch=dav-2201"),
        "{output:?}"
    );
    assert!(!Path::new(objects[0]).exists());
}

#[test]
fn headers_of_the_toolkit_are_named_where_they_are() {
    let kit = Toolkit::new("headers");
    kit.program("bisheng", MAKE_LAST)
        .program("ld.lld", MAKE_LAST);
    let root = kit.0.join("compiler/tikcpp/tikcfw");
    fs::create_dir_all(root.join("interface")).unwrap();
    made(&kit.command(&["--arch", "3510"]).output().unwrap());
    let line = kit.log()[0].clone();
    let includes = format!(" -I {0} -I {0}/interface ", root.display());
    assert!(line.contains(&includes), "{line}");
    assert!(
        line.contains("--npu-arch=dav-3510 -DADASUM_NPU_ARCH=3510"),
        "{line}"
    );
}

#[test]
fn cmake_is_called_as_documented() {
    let kit = Toolkit::new("cmake");
    let functions = kit.0.join("tools/tikcpp/ascendc_kernel_cmake");
    fs::create_dir_all(&functions).unwrap();
    fs::write(functions.join("ascendc.cmake"), "").unwrap();
    let out = kit.0.join("binaries");
    // Keeps what it was given to read, and "installs".
    let body = format!(
        "case $1 in -S) cp $2/CMakeLists.txt {0}/lists; echo $2/out > {0}/to;;\n\
         --install) to=$(cat {0}/to)/fatbin/adasum_kernels; mkdir -p $to; set -- $to/adasum_kernels.o;\n{MAKE_LAST};;\nesac",
        kit.0.display()
    );
    kit.program("cmake", &body);
    let output = kit
        .command(&["--soc", "Ascend910ProA", "--out", out.to_str().unwrap()])
        .output()
        .unwrap();
    let binary = made(&output);
    assert!(
        binary.starts_with(&out) && name(&binary).starts_with("adasum_kernels_1001_"),
        "{binary:?}"
    );
    let log = kit.log();
    let work = log[0]
        .strip_prefix("cmake -S ")
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(
        log,
        [
            format!(
                "cmake -S {work} -B {work}/build -DSOC_VERSION=Ascend910ProA -DRUN_MODE=npu \
                 -DCMAKE_BUILD_TYPE=Release -DASCEND_CANN_PACKAGE_PATH={} -DCMAKE_INSTALL_PREFIX={work}/out",
                kit.0.display()
            ),
            format!("cmake --build {work}/build"),
            format!("cmake --install {work}/build"),
        ]
    );
    let lists = fs::read_to_string(kit.0.join("lists")).unwrap();
    for line in [
        format!("include(\"{}/ascendc.cmake\")", functions.display()),
        "ascendc_fatbin_library(adasum_kernels".to_owned(),
        "ascendc_compile_definitions(adasum_kernels PRIVATE ADASUM_NPU_ARCH=1001 ASCENDC_DUMP=0)"
            .to_owned(),
        "ascendc_compile_options(adasum_kernels PRIVATE -ffp-contract=off)".to_owned(),
    ] {
        assert!(
            lists.lines().any(|text| text == line),
            "no {line} in\n{lists}"
        );
    }
    for kernel in ["gram", "weighted_sum", "pack"] {
        assert!(lists.contains(&format!("/{kernel}.cpp\"")), "{lists}");
    }
}

/// What it says when it fails.
fn failure(kit: &Toolkit, arguments: &[&str], code: i32) -> String {
    let output = kit.command(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    text(&output.stderr)
}

#[test]
fn a_compiler_that_fails_is_quoted() {
    let kit = Toolkit::new("failing");
    kit.program(
        "bisheng",
        "echo 'gram.cpp:7: error: no such type' >&2; exit 3",
    )
    .program("ld.lld", MAKE_LAST);
    let error = failure(&kit, &["--soc", "Ascend910B3"], 1);
    for part in [
        "--npu-arch=dav-2201",
        "exit status: 3",
        "gram.cpp:7: error: no such type",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(kit.log().len(), 1);
    // No error, but nothing made.
    kit.program("bisheng", "").program("ld.lld", "");
    let error = failure(&kit, &["--soc", "Ascend910B3"], 1);
    assert!(error.contains("made no"), "{error}");
    // Code for a host is not what was asked for.
    let host = MAKE_LAST.replace("\\051\\020", "\\076\\000");
    kit.program("ld.lld", &host);
    let error = failure(&kit, &["--soc", "Ascend910B3"], 2);
    assert!(error.contains("code for a host"), "{error}");
}

#[test]
fn without_a_toolkit_it_says_what_to_do() {
    let kit = Toolkit::new("missing");
    let error = failure(&kit, &[], 1);
    assert!(error.contains("has no bisheng"), "{error}");
    let output = kit
        .command(&[])
        .env_remove("ASCEND_HOME_PATH")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("set_env.sh"), "{output:?}");
    let output = kit
        .command(&[])
        .env("ASCEND_HOME_PATH", "/nowhere")
        .output()
        .unwrap();
    assert!(
        text(&output.stderr).contains("ASCEND_HOME_PATH=/nowhere"),
        "{output:?}"
    );
    let error = failure(&kit, &["--soc", "Ascend310P3"], 2);
    assert!(error.contains("no kernels for Ascend310P3"), "{error}");
    let error = failure(&kit, &["--arch", "7"], 2);
    assert!(error.contains("architecture 7"), "{error}");
}

/// The build script as cargo compiled it, which is the newest where there are several builds.
fn build_script() -> PathBuf {
    let builds = Path::new(env!("OUT_DIR")).join("../..");
    let scripts = fs::read_dir(builds).unwrap().flatten().filter_map(|entry| {
        let ours = entry.file_name().to_str()?.starts_with("adasum-");
        let script = entry.path().join("build-script-build");
        let made = script.metadata().ok()?.modified().ok()?;
        ours.then_some((made, script))
    });
    scripts.max().unwrap().1
}

/// The build script with `list` in `ADASUM_BUILD_KERNELS`; what is C++ for the host becomes empty files.
fn build(kit: &Toolkit, list: &str) -> Output {
    let body = "while [ $# -gt 0 ]; do [ \"$1\" != -o ] || : > \"$2\"; shift; done";
    kit.program("host-compiler", body);
    let out = kit.0.join("out");
    fs::create_dir_all(&out).unwrap();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    Command::new(build_script())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("CXX", kit.0.join("bin/host-compiler"))
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_PKG_VERSION_MAJOR", env!("CARGO_PKG_VERSION_MAJOR"))
        .env("CARGO_PKG_VERSION_MINOR", env!("CARGO_PKG_VERSION_MINOR"))
        .env("CARGO_CFG_TARGET_ARCH", std::env::consts::ARCH)
        .env("CARGO_CFG_TARGET_OS", "linux")
        .env("CARGO_CFG_TARGET_ENV", "gnu")
        .env("CARGO_CFG_TARGET_VENDOR", "unknown")
        .env("CARGO_CFG_TARGET_FEATURE", "")
        .envs([("HOST", &target), ("TARGET", &target)])
        .envs([("OPT_LEVEL", "1"), ("DEBUG", "false")])
        .env("OUT_DIR", &out)
        .env("ADASUM_BUILD_KERNELS", list)
        .env("ASCEND_HOME_PATH", &kit.0)
        .output()
        .unwrap()
}

#[test]
fn the_build_compiles_and_embeds_the_kernels_that_it_is_asked_for() {
    let kit = Toolkit::new("embedded");
    kit.program("bisheng", MAKE_LAST)
        .program("ld.lld", MAKE_LAST);
    let output = build(&kit, "2201,1001");
    assert!(output.status.success(), "{output:?}");
    let log = kit.log();
    for arch in [2201, 1001] {
        let compiled = format!("--npu-arch=dav-{arch} -DADASUM_NPU_ARCH={arch}");
        let count = log.iter().filter(|line| line.contains(&compiled)).count();
        assert_eq!(count, 9, "{log:?}");
    }
    // What the crate includes: a constant of this type, with the files that the toolkit made.
    let program = kit.0.join("embedded.rs");
    let table = kit.0.join("out/kernel_binaries.rs");
    let source = format!(
        "const EMBEDDED: &[(u32, &[u8])] = include!({table:?});\n\
         fn main() {{ for (arch, file) in EMBEDDED {{ println!(\"{{arch}} {{}} {{:?}}\", file.len(), &file[..4]) }} }}"
    );
    fs::write(&program, source).unwrap();
    let executable = kit.0.join("embedded");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let status = Command::new(compiler)
        .arg(&program)
        .arg("-o")
        .arg(&executable)
        .status();
    assert!(status.unwrap().success());
    let printed = text(&Command::new(&executable).output().unwrap().stdout);
    assert_eq!(
        printed,
        "2201 64 [127, 69, 76, 70]\n1001 64 [127, 69, 76, 70]\n"
    );
}

#[test]
fn a_build_that_cannot_embed_kernels_fails_and_says_why() {
    let kit = Toolkit::new("unembedded");
    let failure = |list: &str| {
        let output = build(&kit, list);
        assert!(!output.status.success(), "{output:?}");
        text(&output.stderr)
    };
    let error = failure("2201");
    assert!(
        error.contains("ADASUM_BUILD_KERNELS=2201") && error.contains("has no bisheng"),
        "{error}"
    );
    let error = failure("7");
    assert!(
        error.contains("ADASUM_BUILD_KERNELS=7: 7 is none of 1001, 2201 and 3510"),
        "{error}"
    );
}
