//! The committed function tables are what bindgen makes of `csrc/cann`. `ADASUM_BLESS=1` rewrites them.

use std::path::Path;

use super::generate::generate;

#[test]
#[ignore = "needs libclang"]
fn committed_tables_match_the_headers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in generate(root) {
        // A mangled name would never resolve: its declaration stands outside `extern "C"`.
        assert!(
            !file.text.contains("\"_Z"),
            "{} holds a mangled name",
            file.path
        );
        let path = root.join(file.path);
        if std::env::var_os("ADASUM_BLESS").is_some() {
            std::fs::write(&path, &file.text).expect("write");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == file.text,
            "{} is not what bindgen generates; run with ADASUM_BLESS=1 and commit the result",
            file.path
        );
    }
}
