//! What is run, for which chips, and what is made of the result.

use std::fs;
use std::path::Path;

use super::elf_sample::Sample;
use super::{KERNELS, MAKE_LAST, Toolkit, cmake_kit, failure, made, name, text};

/// The options for an architecture, as the vendor gives them (the places are in src/kernel/toolkit.rs).
const OPTIONS: [(u32, &str); 3] = [
    (
        1001,
        "--cce-aicore-arch=dav-c100 --cce-mask-opt -mllvm -cce-aicore-function-stack-size=16000 \
         -mllvm -cce-aicore-record-overflow=false -mllvm -cce-aicore-jump-expand=false -mllvm -cce-aicore-mask-opt=false",
    ),
    (
        2201,
        "--cce-aicore-arch=dav-c220-vec \
         -mllvm -cce-aicore-function-stack-size=0x8000 -mllvm -cce-aicore-stack-size=0x8000 \
         -mllvm -cce-aicore-record-overflow=false -mllvm -cce-aicore-addr-transform \
         -mllvm -cce-aicore-dcci-insert-for-scalar=false -mllvm -cce-aicore-jump-expand=true",
    ),
    (
        3510,
        "--cce-aicore-arch=dav-c310-vec -D__CCE_AICORE__=310 -D__DAV_C310__ \
         -DADASUM_WITHOUT_WRAPPER \
         -mllvm -cce-aicore-function-stack-size=0x8000 -mllvm -cce-aicore-stack-size=0x8000 \
         -mllvm -cce-aicore-record-overflow=false -mllvm -cce-aicore-addr-transform \
         -mllvm -cce-aicore-dcci-insert-for-scalar=false -mllvm -cce-aicore-jump-expand=true",
    ),
];

#[test]
fn the_compiler_and_the_linker_are_called_as_documented() {
    for (arch, options) in OPTIONS {
        let kit = Toolkit::new(&format!("ccec-{arch}")).with_programs();
        let output = kit
            .command(&["--arch", &arch.to_string()])
            .output()
            .unwrap();
        let binary = made(&output);
        let start = format!("adasum_kernels_{arch}_");
        assert!(
            binary.exists() && name(&binary).starts_with(&start),
            "{binary:?}"
        );
        let log = kit.log();
        assert_eq!(log.len(), KERNELS.len() + 1);
        let sources = binary.parent().unwrap().display();
        let mut objects = Vec::new();
        for (line, kernel) in log.iter().zip(KERNELS) {
            let (start, object) = line.split_once(" -o ").unwrap();
            let expected = format!(
                "ccec -c -x cce -O2 -std=c++17 -ffp-contract=off --cce-aicore-only -DASCENDC_DUMP=0 {options} \
                 -DADASUM_NPU_ARCH={arch} -I {sources} {sources}/{kernel}.cpp"
            );
            assert_eq!(start, expected);
            assert!(object.ends_with(&format!("/{kernel}.o")), "{object}");
            objects.push(object);
        }
        let link = format!(
            "ld.lld -m aicorelinux -Ttext=0 {} -static -o {}",
            objects.join(" "),
            binary.display()
        );
        assert_eq!(log[KERNELS.len()], link);
        // The commands were shown, and what was made on the way is gone.
        assert!(text(&output.stderr).contains(options), "{output:?}");
        assert!(!Path::new(objects[0]).exists());
    }
}

#[test]
fn the_linker_is_the_one_beside_the_compiler() {
    for part in [
        "compiler",
        "tools",
        &format!("{}-linux", std::env::consts::ARCH),
    ] {
        let kit = Toolkit::new(&format!("beside-{part}"));
        let folder = format!("{part}/ccec_compiler/bin");
        fs::create_dir_all(kit.0.join(&folder)).unwrap();
        kit.program("ld.lld", "echo another linker >&2; exit 1")
            .program_in(&folder, "ccec", MAKE_LAST);
        let error = failure(&kit, &["--arch", "2201"], 1);
        assert!(error.contains("no ld.lld beside"), "{error}");
        kit.program_in(&folder, "ld.lld", MAKE_LAST);
        made(&kit.command(&["--arch", "2201"]).output().unwrap());
    }
}

#[test]
fn headers_of_the_toolkit_are_named_where_they_are() {
    let kit = Toolkit::new("headers").with_programs();
    let root = kit.0.join("compiler/tikcpp/tikcfw");
    fs::create_dir_all(root.join("interface")).unwrap();
    made(&kit.command(&["--arch", "3510"]).output().unwrap());
    let older = format!(" -I {0} -I {0}/interface ", root.display());
    let line = kit.log()[0].clone();
    assert!(line.contains(&older), "{line}");
    // CANN 9 has them in other folders, too.
    let root = kit.0.join("tools/asc");
    fs::create_dir_all(root.join("impl/basic_api")).unwrap();
    fs::create_dir_all(root.join("include/utils")).unwrap();
    fs::remove_file(kit.0.join("log")).unwrap();
    made(&kit.command(&["--arch", "3510"]).output().unwrap());
    let newer = format!(
        " -I {0}/impl/basic_api -I {0} -I {0}/include -I {0}/include/utils{older}",
        root.display()
    );
    let line = kit.log()[0].clone();
    assert!(line.contains(&newer), "{line}");
}

/// The architectures of the binaries that it makes without being told which, and what it says.
fn usual(kit: &Toolkit, arguments: &[&str]) -> (Vec<String>, String) {
    let output = kit.command(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let archs = text(&output.stdout)
        .lines()
        .map(|path| name(Path::new(path)).split('_').nth(2).unwrap().to_owned())
        .collect();
    (archs, text(&output.stderr))
}

#[test]
fn what_the_toolkit_does_not_know_is_left_out_and_named() {
    let kit = Toolkit::new("known").with_programs();
    assert_eq!(usual(&kit, &[]).0, ["2201", "3510"]);
    // CANN 8.1 has headers for these and others, in ascendc/include/basic_api/impl; CANN 9.1 in asc/impl/basic_api.
    let old = kit.0.join("compiler/ascendc/include/basic_api/impl");
    for arch in ["dav_c100", "dav_c220", "dav_m200"] {
        fs::create_dir_all(old.join(arch)).unwrap();
    }
    let (archs, said) = usual(&kit, &[]);
    assert_eq!(archs, ["2201"]);
    assert!(
        said.contains("no kernels for architecture 3510 (Ascend950PR_9599)"),
        "{said}"
    );
    // Who names it gets it tried.
    made(&kit.command(&["--arch", "3510"]).output().unwrap());
    fs::create_dir_all(kit.0.join("compiler/asc/impl/basic_api/dav_3510")).unwrap();
    assert_eq!(usual(&kit, &[]).0, ["2201", "3510"]);

    let kit = Toolkit::new("unknown").with_programs();
    fs::create_dir_all(kit.0.join("tools/tikcpp/tikcfw/impl/dav_m200")).unwrap();
    let error = failure(&kit, &[], 2);
    assert!(
        error.contains("knows neither Atlas A2 and A3 nor Ascend 950"),
        "{error}"
    );
}

#[test]
fn the_lists_of_the_cmake_functions_tell_which_chips_they_know() {
    // Since CANN 9 the lists are a folder deeper.
    for (label, place) in [
        (
            "old",
            "compiler/tikcpp/ascendc_kernel_cmake/host_config.cmake",
        ),
        (
            "new",
            "compiler/tikcpp/ascendc_kernel_cmake/legacy_modules/host_config.cmake",
        ),
    ] {
        let kit = cmake_kit(&format!("lists-{label}"), "compiler");
        let lists = kit.0.join(place);
        fs::create_dir_all(lists.parent().unwrap()).unwrap();
        fs::write(
            &lists,
            "set(some_list ascend910b1 ascend910b3 ascend910b4-1)\n",
        )
        .unwrap();
        let (archs, said) = usual(&kit, &[]);
        assert_eq!(archs, ["2201"]);
        assert!(said.contains("architecture 3510"), "{said}");
        let more = "set(a ascend910b3)\nset(b\n  ascend950pr_9599 ascend950pr_958a)\n";
        fs::write(&lists, more).unwrap();
        assert_eq!(usual(&kit, &[]).0, ["2201", "3510"]);
    }
}

#[test]
fn what_would_run_on_other_cores_is_refused_as_soon_as_it_is_made() {
    let kit = Toolkit::new("cores").with_programs();
    let mut sample = Sample::new(&KERNELS);
    sample.kernels[8].meta = None;
    kit.makes(&sample);
    for arch in ["2201", "3510"] {
        let error = failure(&kit, &["--arch", arch], 2);
        for part in [
            "does not say that weighted_sum runs on vector cores",
            "adasum-run build-kernels --soc",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
    // Ascend 910A has one sort of cores.
    made(&kit.command(&["--arch", "1001"]).output().unwrap());
    // Not even there can a kernel be missing.
    sample.kernels.remove(3);
    kit.makes(&sample);
    let error = failure(&kit, &["--arch", "1001"], 2);
    assert!(error.contains("has no kernel gram"), "{error}");
}

#[test]
fn every_kernel_says_its_kind_and_leaves_as_ascend_950_needs_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc/kernels");
    for kernel in KERNELS {
        let source = fs::read_to_string(folder.join(format!("{kernel}.cpp"))).unwrap();
        let kind = format!("\nADASUM_VECTOR_KERNEL({kernel});\n");
        assert!(source.contains(&kind), "{kernel}");
        // What the vendor's extract_host_stub.py (asc-devkit at 82b89a1, :2223-2228) adds at the end is the last thing.
        assert!(
            source.trim_end().ends_with("\n    adasum::leave();\n}"),
            "{kernel}"
        );
    }
}

#[test]
fn cmake_is_called_as_documented() {
    let kit = cmake_kit("cmake", "tools");
    let functions = kit.0.join("tools/tikcpp/ascendc_kernel_cmake");
    let out = kit.0.join("binaries");
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
