//! What can be typed, and how it becomes settings: low level as typed, high level as used.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;

use super::bounds::LogBounds;
use super::masking::{MaskingRulesError, masker};
use crate::archive::{ArchiveError, Target};
use crate::controller::{ListMode, Settings};
use crate::telemetry::logging::Format;

/// Says why Pods are stuck in their init containers, and keeps the logs before they are gone.
#[derive(Debug, Parser)]
#[command(name = "initwatch", version, about, max_term_width = 110)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Runs the controller: watches Pods, keeps logs, writes InitDiagnosis objects and Events.
    Controller(Box<ControllerArguments>),
    /// Prints the CustomResourceDefinitions as YAML.
    Crd,
    /// Prints the catalogue of causes.
    Causes,
}

/// Arguments of the controller. Each can be given as an environment variable as well.
#[derive(Args, Debug)]
pub(super) struct ControllerArguments {
    /// How long an init step may take before it counts as stuck, for example 2m, 90s, 1h30m
    #[arg(long, env = "INITWATCH_STUCK_AFTER", default_value = "2m", value_name = "DURATION", value_parser = duration)]
    stuck_after: SignedDuration,
    /// Watch this namespace only; can be given again [default: all namespaces]
    #[arg(
        long = "namespace",
        short,
        env = "INITWATCH_NAMESPACES",
        value_delimiter = ',',
        value_name = "NAMESPACE"
    )]
    namespaces: Vec<String>,
    /// How lists of Pods are asked for
    #[arg(long, env = "INITWATCH_LIST_MODE", value_enum, default_value_t = ListModeArgument::Auto)]
    list_mode: ListModeArgument,
    /// Address for the probes /healthz and /readyz; "none" serves nothing
    #[arg(long, env = "INITWATCH_LISTEN", default_value = "0.0.0.0:8080", value_name = "ADDRESS", value_parser = listen)]
    listen: Listen,
    /// Name by which Events call this process
    #[arg(long, env = "POD_NAME", default_value = "initwatch", value_name = "NAME")]
    instance: String,
    /// Namespace in which this process runs; durations of slow init steps are saved there, in ConfigMap initwatch-history
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    own_namespace: Option<String>,
    /// Diagnoses that are worked on at once
    #[arg(long, default_value_t = 16, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=64))]
    concurrency: u8,
    #[command(flatten)]
    bounds: LogBounds,
    /// Keep the full logs there as well: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder
    #[arg(long, env = "INITWATCH_ARCHIVE", value_name = "URL")]
    archive: Option<String>,
    /// File with masking rules of your own, as in config/examples/masking-rules.yaml
    #[arg(long, env = "INITWATCH_MASKING_RULES", value_name = "FILE")]
    masking_rules: Option<PathBuf>,
    /// What is logged, as in RUST_LOG
    #[arg(long, env = "RUST_LOG", default_value = "info", value_name = "FILTER")]
    pub(super) log: String,
    /// Form of the log
    #[arg(long, env = "INITWATCH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Auto)]
    pub(super) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum LogFormat {
    /// Text on a terminal, JSON otherwise
    Auto,
    /// Text
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ListModeArgument {
    /// Streamed where the server does that, else in one answer from its cache
    Auto,
    /// In pages
    Paged,
}

impl From<LogFormat> for Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Auto => Self::Auto,
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Listen(Option<SocketAddr>);

fn listen(text: &str) -> Result<Listen, String> {
    if text == "none" {
        return Ok(Listen(None));
    }
    text.parse()
        .map(|address| Listen(Some(address)))
        .map_err(|_| "not an address like 0.0.0.0:8080".to_owned())
}

/// A duration as people write it (jiff's friendly form, or ISO 8601): at least a second, at most a week.
fn duration(text: &str) -> Result<SignedDuration, String> {
    let duration: SignedDuration =
        text.parse().map_err(|_| "not a duration like 2m, 90s or 1h30m".to_owned())?;
    if duration < SignedDuration::from_secs(1) || duration > SignedDuration::from_hours(7 * 24) {
        return Err("must be between 1s and 168h".to_owned());
    }
    Ok(duration)
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error(
        "{argument} {value:?} is not the name of a namespace (lower-case letters, digits and dashes, at most 63)"
    )]
    Namespace { argument: &'static str, value: String },
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    MaskingRules(#[from] MaskingRulesError),
}

impl TryFrom<ControllerArguments> for Settings {
    type Error = SettingsError;

    fn try_from(arguments: ControllerArguments) -> Result<Self, SettingsError> {
        let mut namespaces = arguments.namespaces;
        namespaces.sort();
        namespaces.dedup();
        if let Some(bad) = namespaces.iter().find(|name| !is_namespace(name)) {
            return Err(SettingsError::Namespace { argument: "--namespace", value: bad.clone() });
        }
        if let Some(bad) = arguments.own_namespace.as_ref().filter(|name| !is_namespace(name)) {
            return Err(SettingsError::Namespace { argument: "--own-namespace", value: bad.clone() });
        }
        Ok(Self {
            stuck_after: arguments.stuck_after,
            namespaces,
            list_mode: match arguments.list_mode {
                ListModeArgument::Auto => ListMode::Auto,
                ListModeArgument::Paged => ListMode::Paged,
            },
            listen: arguments.listen.0,
            instance: arguments.instance,
            own_namespace: arguments.own_namespace,
            concurrency: usize::from(arguments.concurrency),
            capture: arguments.bounds.capture(),
            keep: arguments.bounds.keep(),
            store: arguments.bounds.store(),
            archive: arguments.archive.map(|url| Target::open(&url, environment())).transpose()?,
            masker: Arc::new(masker(arguments.masking_rules.as_deref())?),
        })
    }
}

/// The environment, as far as it is text: what is not is none of a store's settings.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// An RFC 1123 label, as names of namespaces are.
fn is_namespace(name: &str) -> bool {
    let fits =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    (1..=63).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('-') && !name.ends_with('-')
}
