//! The command lines with which a CANN toolkit compiles the kernels for an NPU.
//!
//! `build.rs` includes this file, so it uses the standard library only and reports in sentences. Which command lines
//! these are, and from which versions on, is in `csrc/kernels/README.md`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

// The path is named because build.rs includes this file from another folder.
#[path = "ccec.rs"]
mod ccec;

/// The architectures that the kernels are written for, with a chip of each.
pub(crate) const ARCHS: [(u32, &str); 3] = [
    (1001, "Ascend910A"),
    (2201, "Ascend910B3"),
    (3510, "Ascend950PR_9599"),
];

/// The two ways of a toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The compiler and the linker themselves, as the vendor builds the kernels of its own libraries.
    Bisheng,
    /// The cmake functions of the toolkit (CANN 8.0 and later).
    Cmake,
}

/// What is compiled, where, and into which file.
#[derive(Debug, Clone)]
pub(crate) struct Compilation {
    /// The architecture, as in `dav-2201`.
    pub(crate) arch: u32,
    /// Name of a chip of that architecture, for cmake.
    pub(crate) soc: String,
    /// The folder with the kernels' sources.
    pub(crate) sources: PathBuf,
    /// A folder for intermediate files, which is there.
    pub(crate) work: PathBuf,
    /// The kernel binary.
    pub(crate) output: PathBuf,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine(Vec<OsString>);

impl CommandLine {
    fn new<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> Self {
        let arguments = arguments.iter().map(|word| word.as_ref().to_owned());
        CommandLine(std::iter::once(program.into()).chain(arguments).collect())
    }

    fn run(&self) -> Result<(), String> {
        let (program, arguments) = self.0.split_first().ok_or("an empty command")?;
        let output = Command::new(program)
            .args(arguments)
            .output()
            .map_err(|error| format!("{}: {error}", Path::new(program).display()))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!(
            "{self}\nfailed with {}:\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|word| word.to_string_lossy()).collect();
        formatter.write_str(&words.join(" "))
    }
}

/// A CANN toolkit on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Toolkit {
    home: PathBuf,
}

/// Names of the variables that say where a toolkit is; `set_env.sh` sets the last two.
pub(crate) const VARIABLES: [&str; 3] = [
    "ADASUM_CANN_HOME",
    "ASCEND_HOME_PATH",
    "ASCEND_TOOLKIT_HOME",
];

impl Toolkit {
    /// The toolkit that the first of [`VARIABLES`] with a value names.
    pub(crate) fn find(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let (name, home) = VARIABLES
            .iter()
            .find_map(|name| {
                let value = variable(name).filter(|value| !value.is_empty())?;
                Some((name, PathBuf::from(value)))
            })
            .ok_or_else(|| {
                format!(
                    "no CANN toolkit: none of {} is set; run `source .../set_env.sh` of the toolkit first",
                    VARIABLES.join(", ")
                )
            })?;
        if !home.is_dir() {
            return Err(format!(
                "{name}={}: there is no such folder",
                home.display()
            ));
        }
        Ok(Toolkit { home })
    }

    /// Files or folders called `name` in the toolkit's parts, of old and new versions.
    fn parts(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        let machine = format!("{}-linux", std::env::consts::ARCH);
        ["", "compiler", "tools", &machine]
            .map(|part| self.home.join(part).join(name))
            .into_iter()
    }

    fn part(&self, name: &str) -> Option<PathBuf> {
        self.parts(name).find(|path| path.exists())
    }

    /// The compiler, and the linker beside it: a linker of another version might not know the compiler's code.
    fn programs(&self) -> Result<(PathBuf, PathBuf), String> {
        const COMPILER: &str = "ccec";
        let place = format!("ccec_compiler/bin/{COMPILER}");
        let mut places = vec![self.home.join("bin").join(COMPILER)];
        places.extend(self.parts(&place));
        let compiler = places.into_iter().find(|path| path.exists());
        let compiler = compiler.ok_or_else(|| {
            format!(
                "the CANN toolkit in {} has no {COMPILER} (bin/{COMPILER}, */{place})",
                self.home.display()
            )
        })?;
        let linker = compiler.with_file_name("ld.lld");
        if !linker.exists() {
            return Err(format!("there is no ld.lld beside {}", compiler.display()));
        }
        Ok((compiler, linker))
    }

    fn cmake_functions(&self) -> Option<PathBuf> {
        self.part("tikcpp/ascendc_kernel_cmake/ascendc.cmake")
    }

    /// Whether the toolkit can compile for an architecture, of which `soc` is a chip. True where no file tells.
    pub(crate) fn knows(&self, way: Way, arch: u32, soc: &str) -> bool {
        let by_name = (way == Way::Cmake).then(|| self.knows_chip(soc)).flatten();
        by_name
            .or_else(|| self.has_headers_for(arch))
            .unwrap_or(true)
    }

    /// Whether the chip is in the lists of the cmake functions, which take no other.
    fn knows_chip(&self, soc: &str) -> Option<bool> {
        let functions = self.cmake_functions()?;
        let folder = functions.parent()?;
        let lists = ["legacy_modules/host_config.cmake", "host_config.cmake"]
            .iter()
            .find_map(|name| fs::read_to_string(folder.join(name)).ok())?;
        let soc = soc.to_lowercase();
        let mut words = lists.split(|c: char| c.is_whitespace() || "()".contains(c));
        Some(words.any(|word| word == soc))
    }

    /// Whether the headers of Ascend C have a folder for the architecture.
    fn has_headers_for(&self, arch: u32) -> Option<bool> {
        let names: &[&str] = match arch {
            1001 => &["dav_c100"],
            2201 => &["dav_c220", "dav_2201"],
            _ => &["dav_3510", "dav_c310"],
        };
        let roots = [
            "asc/impl/basic_api",
            "tikcpp/tikcfw/impl",
            "tikcpp/tikcfw/impl/basic_api",
            "ascendc/include/basic_api/impl",
        ];
        let mut folders = roots
            .iter()
            .flat_map(|root| self.parts(root))
            .filter(|folder| folder.is_dir())
            .peekable();
        folders.peek()?;
        Some(folders.any(|folder| names.iter().any(|name| folder.join(name).is_dir())))
    }

    /// The folder of the toolkit.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The way to go by default: that of cmake, which the vendor describes, if the toolkit has it.
    pub(crate) fn way(&self) -> Way {
        match self.cmake_functions() {
            Some(_) => Way::Cmake,
            None => Way::Bisheng,
        }
    }

    /// The commands that make the binary, in order. `kernels` are the names of the sources that hold a kernel each.
    pub(crate) fn steps(
        &self,
        way: Way,
        compilation: &Compilation,
        kernels: &[String],
    ) -> Result<Vec<CommandLine>, String> {
        match way {
            Way::Bisheng => self.bisheng_steps(compilation, kernels),
            Way::Cmake => self.cmake_steps(compilation),
        }
    }

    fn bisheng_steps(
        &self,
        compilation: &Compilation,
        kernels: &[String],
    ) -> Result<Vec<CommandLine>, String> {
        let (compiler, linker) = self.programs()?;
        let mut steps = Vec::new();
        let mut objects = Vec::new();
        for kernel in kernels {
            let object = compilation.work.join(format!("{kernel}.o"));
            let mut words: Vec<OsString> = ccec::COMPILE
                .iter()
                .chain(ccec::options_for(compilation.arch))
                .map(OsString::from)
                .collect();
            words.extend([
                format!("-DADASUM_NPU_ARCH={}", compilation.arch).into(),
                "-I".into(),
                compilation.sources.clone().into(),
            ]);
            words.extend(self.includes());
            words.push(compilation.sources.join(format!("{kernel}.cpp")).into());
            words.extend(["-o".into(), object.clone().into()]);
            steps.push(CommandLine::new(&compiler, &words));
            objects.push(object);
        }
        let mut words: Vec<OsString> = ccec::LINK.iter().map(OsString::from).collect();
        words.extend(objects.into_iter().map(OsString::from));
        words.extend([
            "-static".into(),
            "-o".into(),
            compilation.output.clone().into(),
        ]);
        steps.push(CommandLine::new(&linker, &words));
        Ok(steps)
    }

    /// Headers of Ascend C, which this compiler does not find by itself: since CANN 9 in `asc`, before in `tikcfw`.
    fn includes(&self) -> Vec<OsString> {
        let below = |root: &str, folders: &[&str]| -> Vec<PathBuf> {
            // Joined part by part: a plain join with the empty name would end with a slash.
            let path = |root: &Path, name| root.join(name).components().collect();
            let root = self.part(root);
            root.map(|root| folders.iter().map(|name| path(&root, name)).collect())
                .unwrap_or_default()
        };
        let mut folders = below(
            "asc",
            &[
                "impl/adv_api",
                "impl/basic_api",
                "impl/c_api",
                "impl/basic_api/reg_compute",
                "impl/simt_api",
                "impl/utils",
                "",
                "include",
                "include/adv_api",
                "include/basic_api",
                "include/aicpu_api",
                "include/c_api",
                "include/basic_api/reg_compute",
                "include/simt_api",
                "include/utils",
            ],
        );
        folders.extend(below("tikcpp/tikcfw", &["", "interface", "impl"]));
        folders
            .into_iter()
            .filter(|folder| folder.is_dir())
            .flat_map(|folder| ["-I".into(), folder.into()])
            .collect()
    }

    fn cmake_steps(&self, compilation: &Compilation) -> Result<Vec<CommandLine>, String> {
        let cmake = Path::new("cmake");
        let (build, install) = (compilation.work.join("build"), compilation.work.join("out"));
        let define = |name: &str, value: &Path| format!("-D{name}={}", value.display());
        let configure = CommandLine::new(
            cmake,
            &[
                "-S".into(),
                compilation.work.display().to_string(),
                "-B".into(),
                build.display().to_string(),
                format!("-DSOC_VERSION={}", compilation.soc),
                "-DRUN_MODE=npu".into(),
                "-DCMAKE_BUILD_TYPE=Release".into(),
                define("ASCEND_CANN_PACKAGE_PATH", &self.home),
                define("CMAKE_INSTALL_PREFIX", &install),
            ],
        );
        let compile = CommandLine::new(cmake, &["--build".as_ref(), build.as_os_str()]);
        let install = CommandLine::new(cmake, &["--install".as_ref(), build.as_os_str()]);
        Ok(vec![configure, compile, install])
    }

    /// The content of `CMakeLists.txt`.
    fn cmake_lists(&self, compilation: &Compilation, kernels: &[String]) -> Result<String, String> {
        let functions = self.cmake_functions().ok_or_else(|| {
            format!(
                "the CANN toolkit in {} has no ascendc.cmake",
                self.home.display()
            )
        })?;
        let sources: String = kernels
            .iter()
            .map(|kernel| {
                format!(
                    "\n    \"{}\"",
                    compilation.sources.join(format!("{kernel}.cpp")).display()
                )
            })
            .collect();
        Ok(format!(
            "cmake_minimum_required(VERSION 3.16)\n\
             project(adasum_kernels)\n\
             include(\"{functions}\")\n\
             ascendc_fatbin_library(adasum_kernels{sources})\n\
             ascendc_include_directories(adasum_kernels PRIVATE \"{folder}\")\n\
             ascendc_compile_definitions(adasum_kernels PRIVATE ADASUM_NPU_ARCH={arch} ASCENDC_DUMP=0)\n\
             ascendc_compile_options(adasum_kernels PRIVATE -ffp-contract=off)\n",
            functions = functions.display(),
            folder = compilation.sources.display(),
            arch = compilation.arch,
        ))
    }

    /// Makes the kernel binary, one command after the other; `tell` gets each.
    pub(crate) fn build(
        &self,
        way: Way,
        compilation: &Compilation,
        tell: impl Fn(&CommandLine),
    ) -> Result<(), String> {
        let io = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let kernels = kernels_in(&compilation.sources)?;
        if let Some(folder) = compilation.output.parent() {
            fs::create_dir_all(folder).map_err(|error| io(folder, error))?;
        }
        if way == Way::Cmake {
            let lists = compilation.work.join("CMakeLists.txt");
            fs::write(&lists, self.cmake_lists(compilation, &kernels)?)
                .map_err(|error| io(&lists, error))?;
        }
        for step in self.steps(way, compilation, &kernels)? {
            tell(&step);
            step.run()?;
        }
        if way == Way::Cmake {
            let made = compilation
                .work
                .join("out/fatbin/adasum_kernels/adasum_kernels.o");
            fs::copy(&made, &compilation.output).map_err(|error| io(&made, error))?;
        }
        if !compilation.output.is_file() {
            return Err(format!(
                "the toolkit reports no error but made no {}",
                compilation.output.display()
            ));
        }
        Ok(())
    }
}

/// Names of the kernels: those of the sources.
pub(crate) fn kernels_in(sources: &Path) -> Result<Vec<String>, String> {
    let entries =
        fs::read_dir(sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new("cpp")))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}
