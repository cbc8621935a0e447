//! The options of `ccec` and its linker, as the vendor builds kernels with them.

/// Arguments of the compiler before those that differ, in the spelling of `ccec` throughout. The sources are correct with
/// fused multiply-adds, but no two toolkits need fuse the same ones.
pub(super) const COMPILE: [&str; 8] = [
    "-c",
    "-x",
    "cce",
    "-O2",
    "-std=c++17",
    "-ffp-contract=off",
    "--cce-aicore-only",
    "-DASCENDC_DUMP=0",
];

/// Arguments of the compiler for an architecture.
pub(super) fn options_for(arch: u32) -> impl Iterator<Item = &'static &'static str> {
    let (own, common): (&[_], &[_]) = match arch {
        1001 => (&FIRST, &[]),
        2201 => (&["--cce-aicore-arch=dav-c220-vec"], &SHIPPED),
        _ => (&ASCEND_950, &SHIPPED),
    };
    own.iter().chain(common)
}

/// Ascend 910A, where the vendor ships no such kernels: asc-devkit at 82b89a1,
/// cmake/asc/legacy_modules/bisheng_intf.cmake:215-228, without --cce-auto-sync.
const FIRST: [&str; 10] = [
    "--cce-aicore-arch=dav-c100",
    "--cce-mask-opt",
    "-mllvm",
    "-cce-aicore-function-stack-size=16000",
    "-mllvm",
    "-cce-aicore-record-overflow=false",
    "-mllvm",
    "-cce-aicore-jump-expand=false",
    "-mllvm",
    "-cce-aicore-mask-opt=false",
];

/// Ascend 950: hcomm at 8958adb,
/// src/legacy/ascend950/service/collective/alg/coll_alg_factory/alg_aiv_instruction/CMakeLists.txt:51-62.
const ASCEND_950: [&str; 4] = [
    "--cce-aicore-arch=dav-c310-vec",
    "-D__CCE_AICORE__=310",
    "-D__DAV_C310__",
    // Ours: see `leave` in entry.h.
    "-DADASUM_WITHOUT_WRAPPER",
];

/// What the vendor's own kernels for vector cores have: there, and for Atlas A2 and A3
/// src/legacy/ascend910/algorithm/base/alg_aiv_template/reduce_scatter_v/CMakeLists.txt:23-33.
const SHIPPED: [&str; 12] = [
    "-mllvm",
    "-cce-aicore-function-stack-size=0x8000",
    "-mllvm",
    "-cce-aicore-stack-size=0x8000",
    "-mllvm",
    "-cce-aicore-record-overflow=false",
    "-mllvm",
    "-cce-aicore-addr-transform",
    "-mllvm",
    "-cce-aicore-dcci-insert-for-scalar=false",
    "-mllvm",
    "-cce-aicore-jump-expand=true",
];

/// Arguments of the linker before the files; it ends with `-static`.
pub(super) const LINK: [&str; 3] = ["-m", "aicorelinux", "-Ttext=0"];
