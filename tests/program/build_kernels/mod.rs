//! `adasum-run build-kernels` and `ADASUM_BUILD_KERNELS` of the build, with a toolkit of scripts in place of the vendor's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use self::elf_sample::Sample;
use crate::kernels::strict::KERNELS;

mod commands;
#[path = "../../../src/kernel/elf_sample.rs"]
mod elf_sample;
mod embedded;

/// The toolkit's folder, removed at the end.
struct Toolkit(PathBuf);

impl Drop for Toolkit {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes the file that the kit's linker is to make, as the last argument names it.
const MAKE_LAST: &str = "for word; do last=$word; done; cp \"$KIT/kernels.o\" \"$last\"";

impl Toolkit {
    fn new(label: &str) -> Self {
        let name = format!("adasum-toolkit-{label}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("bin")).unwrap();
        let kit = Toolkit(folder);
        kit.makes(&Sample::new(&KERNELS));
        kit
    }

    /// What its linker is to make from now on.
    fn makes(&self, sample: &Sample) {
        fs::write(self.0.join("kernels.o"), sample.bytes()).unwrap();
    }

    /// A compiler and a linker that make it.
    fn with_programs(self) -> Self {
        self.program("ccec", MAKE_LAST).program("ld.lld", MAKE_LAST);
        self
    }

    /// A program of the toolkit that writes its command line to the log before it does what `body` says.
    fn program(&self, name: &str, body: &str) -> &Self {
        self.program_in("bin", name, body)
    }

    fn program_in(&self, folder: &str, name: &str, body: &str) -> &Self {
        let script = format!(
            "#!/bin/sh\nKIT={0}\necho {name} \"$@\" >> $KIT/log\n{body}\n",
            self.0.display()
        );
        let path = self.0.join(folder).join(name);
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

/// A toolkit with cmake functions below a folder; keeps what cmake was given to read, and "installs".
fn cmake_kit(label: &str, part: &str) -> Toolkit {
    let kit = Toolkit::new(label);
    let functions = kit.0.join(part).join("tikcpp/ascendc_kernel_cmake");
    fs::create_dir_all(&functions).unwrap();
    fs::write(functions.join("ascendc.cmake"), "").unwrap();
    let body = format!(
        "case $1 in -S) cp $2/CMakeLists.txt $KIT/lists; echo $2/out > $KIT/to;;\n\
         --install) to=$(cat $KIT/to)/fatbin/adasum_kernels; mkdir -p $to; set -- $to/adasum_kernels.o;\n{MAKE_LAST};;\nesac"
    );
    kit.program("cmake", &body);
    kit
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
    kit.program("ccec", "echo 'gram.cpp:7: error: no such type' >&2; exit 3")
        .program("ld.lld", MAKE_LAST);
    let error = failure(&kit, &["--soc", "Ascend910B3"], 1);
    for part in [
        "--cce-aicore-arch=dav-c220-vec",
        "exit status: 3",
        "gram.cpp:7: error: no such type",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(kit.log().len(), 1);
    // No error, but nothing made.
    kit.program("ccec", "").program("ld.lld", "");
    let error = failure(&kit, &["--soc", "Ascend910B3"], 1);
    assert!(error.contains("made no"), "{error}");
    // Code for a host is not what was asked for.
    let mut host = Sample::new(&KERNELS);
    host.machine = 62;
    kit.makes(&host);
    kit.program("ld.lld", MAKE_LAST);
    let error = failure(&kit, &["--soc", "Ascend910B3"], 2);
    assert!(error.contains("code for a host"), "{error}");
}

#[test]
fn without_a_toolkit_it_says_what_to_do() {
    let kit = Toolkit::new("missing");
    let error = failure(&kit, &[], 1);
    assert!(error.contains("has no ccec"), "{error}");
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
