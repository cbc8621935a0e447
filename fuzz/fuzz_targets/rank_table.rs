#![no_main]

#[path = "../bodies/rank_table.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
