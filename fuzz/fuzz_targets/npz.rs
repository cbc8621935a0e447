#![no_main]

#[path = "../bodies/files.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    body::npz(data);
});
