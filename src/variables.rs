//! The environment variables that are the project's own, but for the options of reductions, in one list.
//!
//! `docs/environment.md` is made from it, `adasum-run doctor` finds misspelt names with it, and a test holds it against
//! the sources.

/// Who reads a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The library and `adasum-run`.
    Library,
    /// `cargo build`.
    Build,
    /// The mock of ACL and HCCL.
    Mock,
    /// Tests of this repository.
    Tests,
}

/// An environment variable.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Name.
    pub name: &'static str,
    /// Reader.
    pub reader: Reader,
    /// Values that it takes.
    pub values: &'static str,
    /// What holds where it is not set.
    pub default: &'static str,
    /// What it decides.
    pub meaning: &'static str,
}

const fn variable(
    reader: Reader,
    name: &'static str,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Variable {
    Variable {
        name,
        reader,
        values,
        default,
        meaning,
    }
}

/// Beginnings of the names that are the project's own.
pub const PREFIXES: [&str; 3] = ["ADASUM_", "HCCL_MOCK_", "ASCEND_MOCK_"];

/// The variables, sorted by reader; those that set options of reductions are in `reduce::OPTIONS`.
#[rustfmt::skip]
pub const VARIABLES: &[Variable] = &[
    variable(Reader::Library, "ADASUM_BACKEND", "`cann`, `mock`, `auto`", "`auto`",
        "Which ACL and HCCL are loaded. `auto`: what the process has loaded already, then CANN, then the mock \
         where there is neither an NPU nor a toolkit"),
    variable(Reader::Library, "ADASUM_CACHE_DIR", "folder", "`$XDG_CACHE_HOME/adasum`, `~/.cache/adasum`",
        "Where embedded files (mock, kernels, headers) are unpacked"),
    variable(Reader::Library, "ADASUM_CANN_HOME", "folder of a CANN toolkit", "`ASCEND_HOME_PATH`, `ASCEND_TOOLKIT_HOME`",
        "Where CANN's libraries are loaded from and where `build-kernels` finds the compiler"),
    variable(Reader::Library, "ADASUM_JOB_SECRET", "16 bytes or more, the same for all ranks", "made by the launcher that starts all ranks",
        "Proves who belongs to a job: ranks without a rank table that meet at a port, and the mock's connections between servers"),
    variable(Reader::Library, "ADASUM_JOB_SECRET_FILE", "path of a file of this user's, mode 0600", "none",
        "The file that holds the job's secret, in place of `ADASUM_JOB_SECRET`"),
    variable(Reader::Library, "ADASUM_KERNELS", "absolute path of a file or folder", "what is embedded, the program's folder, the cache",
        "The kernel binary to load"),
    variable(Reader::Library, "ADASUM_LIBRARY", "path of `libadasum.so`", "in the package, beside `adasum-run`, the build's folder",
        "The library that the Python package loads"),
    variable(Reader::Library, "ADASUM_LOG", "`off`, `error`, `warn`, `info`, `debug`, `trace`", "`warn`",
        "The least important log records that `adasum-run` shows"),
    variable(Reader::Library, "ADASUM_MASTER_ADDR", "name or address of rank 0's machine", "`MASTER_ADDR`, `MS_SCHED_HOST`",
        "Where the ranks of a job without a rank table meet"),
    variable(Reader::Library, "ADASUM_MASTER_PORT", "1 to 65535", "the port behind `MASTER_PORT` or `MS_SCHED_PORT`",
        "The port that rank 0 listens at for that"),
    variable(Reader::Library, "ADASUM_REPORT", "`stderr`", "no reports",
        "Has a rank that fails write a line for programs: why, and what it waits for. The launcher sets it"),
    variable(Reader::Library, "ADASUM_LAUNCH_ID", "text", "set by the launcher",
        "Marks the processes of a job: those that still carry it when the job ends are killed"),
    variable(Reader::Library, "ADASUM_RESTART_COUNT", "a number", "set by the launcher",
        "How often all ranks were started again before; for programs that go on from a checkpoint"),
    variable(Reader::Library, "ADASUM_ROOTINFO_FILE", "path that all ranks see", "none",
        "The file through which ranks of a job without a rank table meet, in place of an address; only this user's processes can"),
    variable(Reader::Library, "ADASUM_STATISTICS_DIR", "folder", "nothing is recorded",
        "Where `Journal` writes what a rank records, and where each rank writes when its reductions ran; the launcher sets it for `--report`"),
    variable(Reader::Library, "ADASUM_TRACE_DIR", "folder", "nothing is written",
        "Where each rank writes when its steps and their stages ran; the launcher sets it for `--trace`"),
    variable(Reader::Build, "ADASUM_BUILD_KERNELS", "architectures: `1001`, `2201`, `3510`, with commas", "none",
        "The kernels that `cargo build` compiles with the CANN toolkit and embeds"),
    variable(Reader::Build, "ADASUM_SANITIZE", "as in `-fsanitize=`", "none",
        "The sanitizers that the C++ parts are built with"),
    variable(Reader::Mock, "ASCEND_MOCK_CANN", "a version such as `8.3.RC1`", "`8.3.RC1`",
        "The version of CANN that the mock says it is"),
    variable(Reader::Mock, "ASCEND_MOCK_CORE", "0 to one less than the cores of the process", "any core",
        "The core that the threads of this process's streams stay on"),
    variable(Reader::Mock, "ASCEND_MOCK_DEVIATE", "names of `csrc/mock/README.md`, separated by commas", "none",
        "Rules that the mock breaks on purpose, to see a self-test fail"),
    variable(Reader::Mock, "ASCEND_MOCK_DEVICES", "1 to 1024", "`8`",
        "Devices of this machine"),
    variable(Reader::Mock, "ASCEND_MOCK_FIRST_DEVICE", "0 to 1023", "`0`",
        "The number on the server of this machine's first device: another than 0 plays a container, which counts its own from 0"),
    variable(Reader::Mock, "ASCEND_MOCK_HBM_MB", "16 to 16777216", "`65536`",
        "Memory of a device in MiB; what is not touched costs nothing"),
    variable(Reader::Mock, "ASCEND_MOCK_MESH", "1 to 1024", "`4` on 910A, else `1024`",
        "Devices of this machine that HCCS joins, from 0 on so many and so on; PCIe joins the others"),
    variable(Reader::Mock, "ASCEND_MOCK_QUIET", "anything", "warnings are shown",
        "Silences the mock's warnings"),
    variable(Reader::Mock, "ASCEND_MOCK_SOC", "a name such as `Ascend910B1`", "`Ascend910B1`",
        "The chip that the mock says it is, with its limits"),
    variable(Reader::Mock, "HCCL_MOCK_FAULT", "`rank:op:index:kind`, with commas", "none",
        "Makes operations fail on purpose (`csrc/mock/README.md`)"),
    variable(Reader::Mock, "HCCL_MOCK_JOB", "any word, the same on all ranks", "made from the rank table",
        "Keeps jobs apart that run at the same time; the launcher sets it"),
    variable(Reader::Mock, "HCCL_MOCK_NET", "`auto`, `shm`, `tcp`", "`auto`",
        "How ranks reach each other: shared memory, TCP, or what each pair can do"),
    variable(Reader::Mock, "HCCL_MOCK_TABLE_TIMEOUT", "seconds", "`1800`",
        "How long a rank waits for a rank table to get the status `completed`"),
    variable(Reader::Tests, "ADASUM_BLESS", "anything", "files are compared",
        "Has tests write the files that they otherwise compare, as `include/adasum.h` and `docs/environment.md`"),
    variable(Reader::Tests, "ADASUM_MATRIX", "`K/N`, K below N", "all worlds",
        "Which part of the matrix of worlds runs: every N-th from the K-th on"),
    variable(Reader::Tests, "ADASUM_MINDSPORE_PYTHON", "a Python with MindSpore", "one is made from the wheel",
        "The Python for `tests/clients/mindspore.sh`"),
    variable(Reader::Tests, "ADASUM_STRICT_ALL", "anything", "small cases only",
        "Runs every case of the kernels on the strict twins, too"),
    variable(Reader::Tests, "ADASUM_TORCH_PYTHON", "a Python with torch and torch_npu", "one is made from the wheels",
        "The Python for `tests/clients/torch_npu.sh`"),
    variable(Reader::Tests, "ADASUM_VENDOR_KERNELS", "folder", "that test is left out",
        "Where `tests/clients/vendor_kernels.sh` put published kernel binaries"),
    variable(Reader::Tests, "ADASUM_VENDOR_WHEELS", "folder", "those tests are left out",
        "The torch-npu wheels whose headers and exports are compared"),
];

/// Whether `name` looks like one of the project's own.
pub fn is_own(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
