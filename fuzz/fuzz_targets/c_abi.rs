#![no_main]

#[path = "../bodies/c_abi.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    body::run(data);
});
