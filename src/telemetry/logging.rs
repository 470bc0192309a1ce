//! Log output: for people on a terminal, JSON otherwise.

use std::io::IsTerminal;

use tracing::Metadata;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

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
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let layer = if json {
        layer.json().flatten_event(true).boxed()
    } else {
        layer.with_ansi(is_terminal).compact().boxed()
    };
    tracing_subscriber::registry().with(layer.with_filter(parsed.and(filter_fn(is_safe)))).init();
    Ok(())
}

/// Whether messages from there may be logged at all, whatever the filter says: the client logs whole answers of the API
/// server that it cannot decode, with the environment of every Pod in them; what it has to say comes as our own errors.
fn is_safe(metadata: &Metadata<'_>) -> bool {
    const TALKATIVE: [&str; 4] = ["kube_client", "hyper", "h2", "tower"];
    !TALKATIVE.iter().any(|name| metadata.target().starts_with(name))
}
