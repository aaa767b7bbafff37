//! The log, on standard error.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use super::settings::Effective;
use crate::cli::failure::Failure;
use crate::cli::input::InputError;

/// How the log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Begins to log.
pub(crate) fn begin(effective: &Effective) -> Result<(), Failure> {
    let form = "a level (error, warn, info, debug, trace) or target=level, separated by commas";
    let filter = EnvFilter::try_new(&effective.log).map_err(|_| InputError::Form { form })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match effective.log_format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
