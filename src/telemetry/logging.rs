//! Log output: for people on a terminal, JSON otherwise.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Format {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Text.
    Text,
    /// One JSON object a line.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("the log filter {filter:?} is not valid: {reason} (an example: info,initwatch=debug)")]
pub struct FilterError {
    filter: String,
    reason: String,
}

/// Sets logging up for the process, to stderr. `filter` is in the form of tracing-subscriber's `EnvFilter`.
///
/// # Errors
/// When the filter is not valid.
pub fn set_up(format: Format, filter: &str) -> Result<(), FilterError> {
    let parsed = EnvFilter::try_new(filter)
        .map_err(|error| FilterError { filter: filter.to_owned(), reason: error.to_string() })?;
    let is_terminal = std::io::stderr().is_terminal();
    let json = format == Format::Json || (format == Format::Auto && !is_terminal);
    let builder =
        tracing_subscriber::fmt().with_env_filter(parsed).with_writer(std::io::stderr).with_target(false);
    if json {
        builder.json().flatten_event(true).init();
    } else {
        builder.with_ansi(is_terminal).compact().init();
    }
    Ok(())
}
