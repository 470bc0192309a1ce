//! What a diagnosis is made from: values only, gathered by somebody else.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::log::Masker;
use super::wait::WaitAnalysis;
use crate::pod::progress::InitProgress;
use crate::pod::view::PodView;

/// All that is known of one Pod at one moment.
pub struct PodFacts<'a> {
    /// The Pod.
    pub pod: &'a PodView,
    /// Where it stands.
    pub progress: &'a InitProgress,
    /// Since when it stands at its step, by our own clock.
    pub stuck_since: Option<Timestamp>,
    /// How long a step may take.
    pub stuck_after: SignedDuration,
    /// What the blocking init container waits for, by its command.
    pub waits: Option<&'a WaitAnalysis>,
    /// Logs that could be had, oldest first.
    pub logs: &'a [LogFacts],
    /// Services that were looked up.
    pub services: &'a ServiceLookups,
    /// Masks secrets in texts of the cluster.
    pub masker: &'a Masker,
    /// The time.
    pub now: Timestamp,
}

/// What an attempt's log says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogFacts {
    /// Name of the init container.
    pub container: String,
    /// Number of the attempt.
    pub number: i32,
    /// The single most telling line, secrets masked.
    pub decisive_line: Option<String>,
    /// The last line, secrets masked.
    pub last_line: Option<String>,
    /// Its last lines are the same again and again.
    pub repeats: bool,
    /// Time of the newest line of an attempt that runs.
    pub last_at: Option<Timestamp>,
}

/// A Service by namespace and name.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServiceName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for ServiceName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// Services that were asked for, with the answers.
pub type ServiceLookups = BTreeMap<ServiceName, Lookup<ServiceFacts>>;

/// Answer to a question to the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    /// It is there.
    Found(T),
    /// It does not exist.
    Missing,
    /// It could not be looked at, and why.
    Unavailable(String),
}

/// What matters of a Service and its EndpointSlices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceFacts {
    /// `ClusterIP`, `ExternalName` …
    pub type_: String,
    /// No cluster IP: names resolve to endpoints, and ports are those of the Pods.
    pub headless: bool,
    /// Whether it selects Pods; without a selector somebody else writes its EndpointSlices.
    pub has_selector: bool,
    /// Ports that clients connect to.
    pub ports: Vec<ServicePort>,
    /// Endpoints, or why they could not be read.
    pub endpoints: Option<Endpoints>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServicePort {
    /// Name; empty where it has none.
    pub name: String,
    /// Port of the Service.
    pub port: i32,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
}

/// Endpoints of a Service, over all its EndpointSlices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Endpoints {
    /// Ready ones (a missing `ready` counts as ready, as the API says).
    pub ready: usize,
    /// All.
    pub total: usize,
}
