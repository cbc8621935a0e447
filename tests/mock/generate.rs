//! Generates the function tables of `src/sys` from `csrc/cann` with bindgen, which needs libclang.
//!
//! The output is committed, so that a build needs neither; a test compares the two.

use std::path::{Path, PathBuf};

use bindgen::{Builder, EnumVariation, RustEdition, RustTarget};

/// The first line of both files.
const HEADER: &str = "// Generated from csrc/cann by the test `bindings`; do not edit.";

/// Handles and codes that get a type of their own instead of `*mut c_void` and `c_int`.
const NEW_TYPES: &str = "aclError|HcclComm|aclrt(Stream|Event|Context|Binary|BinHandle|FuncHandle|ArgsHandle|ParamHandle)";

/// The text of one generated file and where it belongs.
pub(crate) struct Generated {
    /// Path below the root of the crate.
    pub(crate) path: &'static str,
    /// Content of the file.
    pub(crate) text: String,
}

/// Generates both tables from the headers below `root`, the root of the crate.
pub(crate) fn generate(root: &Path) -> [Generated; 2] {
    let folder = root.join("csrc/cann");
    let [acl, hccl] = from_headers(
        &[folder.join("acl/acl.h")],
        &[folder.join("hccl/hccl.h")],
        std::slice::from_ref(&folder),
    );
    [
        Generated {
            path: "src/sys/tables/acl.rs",
            text: acl,
        },
        Generated {
            path: "src/sys/tables/hccl.rs",
            text: hccl,
        },
    ]
}

/// Generates the text of both tables for any headers of ACL and HCCL, which include what they need from `folders`.
pub(crate) fn from_headers(acl: &[PathBuf], hccl: &[PathBuf], folders: &[PathBuf]) -> [String; 2] {
    let acl = builder(acl, folders)
        .dynamic_library_name("Acl")
        .allowlist_function("acl.*")
        .allowlist_type("acl.*")
        .allowlist_var("ACL_.*");
    // The types of ACL come from the other file, so that both tables share them.
    let hccl = builder(hccl, folders)
        .dynamic_library_name("Hccl")
        .allowlist_function("Hccl.*")
        .allowlist_type("Hccl.*")
        .allowlist_var("HCCL_.*|COMM_NAME_MAX_LENGTH|UDI_MAX_LENGTH|BUFFER_NAME_MAX_LENGTH")
        .blocklist_type("acl.*")
        .raw_line("use super::acl::*;");
    [text(acl), text(hccl)]
}

fn builder(headers: &[PathBuf], folders: &[PathBuf]) -> Builder {
    bindgen::builder()
        .headers(headers.iter().map(|header| header.display().to_string()))
        .raw_line(HEADER)
        .clang_args(["-x", "c++", "-std=c++17"])
        .clang_args(
            folders
                .iter()
                .map(|folder| format!("-I{}", folder.display())),
        )
        .dynamic_link_require_all(false)
        .default_enum_style(EnumVariation::NewType {
            is_bitfield: false,
            is_global: false,
        })
        .prepend_enum_name(false)
        .new_type_alias(NEW_TYPES)
        .must_use_type("HcclResult")
        .must_use_type("aclError")
        .derive_eq(true)
        .derive_hash(true)
        .derive_partialeq(true)
        .disable_header_comment()
        .layout_tests(true)
        .use_core()
        .wrap_unsafe_ops(true)
        .rust_edition(RustEdition::Edition2024)
        .rust_target(target())
        .formatter(bindgen::Formatter::Prettyplease)
}

/// The oldest compiler that the crate promises to build with, as far as bindgen knows it.
fn target() -> RustTarget {
    RustTarget::stable(85, 0).unwrap_or_default()
}

fn text(builder: Builder) -> String {
    builder.generate().expect("bindgen").to_string()
}
