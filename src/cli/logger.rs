//! Log records on standard error.

use std::io::Write;

use log::{LevelFilter, Log, Metadata, Record};

use crate::error::{Error, Result, quote};

/// Names the least important level that is shown.
const VARIABLE: &str = "ADASUM_LOG";

struct Logger;

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = record.level().as_str().to_lowercase();
            let line = format!("adasum-run: {level}: {}\n", record.args());
            // A closed standard error is no fault.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        }
    }

    fn flush(&self) {}
}

/// Shows records from now on: warnings and errors, or what `ADASUM_LOG` says.
///
/// # Errors
/// If the variable holds no level.
pub(crate) fn start() -> Result<()> {
    let level = match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        None => LevelFilter::Warn,
        Some(value) => {
            let level = value.to_str().and_then(|text| text.parse().ok());
            level.ok_or_else(|| {
                let allowed = "off, error, warn, info, debug, trace";
                Error::invalid(format!(
                    "{VARIABLE} is {}, must be one of {allowed}",
                    quote(&value)
                ))
            })?
        }
    };
    // Only a second call in one process could fail, and then the first stands.
    let _ = log::set_logger(&Logger);
    log::set_max_level(level);
    Ok(())
}
