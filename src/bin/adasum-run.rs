//! `adasum-run`: see [`adasum::cli`].

fn main() -> std::process::ExitCode {
    adasum::cli::run()
}
