//! Settings of the controller, validated.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::SignedDuration;

use super::capture::CaptureLimits;
use super::ledger::StoreLimits;
use crate::archive::Target;
use crate::diagnose::log::Masker;
use crate::plan::KeepLimits;

/// How the list that a watch begins with is asked for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ListMode {
    /// Streamed where the server does that, else in one answer from its cache.
    #[default]
    Auto,
    /// In pages: for an API server that must not answer at length.
    Paged,
}

/// What the controller runs with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long an init step may take before that counts as stuck; at least one second.
    pub stuck_after: SignedDuration,
    /// Namespaces to watch; empty = the whole cluster.
    pub namespaces: Vec<String>,
    /// How lists are asked for.
    pub list_mode: ListMode,
    /// Where `/healthz`, `/readyz` are served; none = nowhere.
    pub listen: Option<SocketAddr>,
    /// Name by which Events call this process: that of its Pod.
    pub instance: String,
    /// Namespace in which this process runs, for its own ConfigMap; none outside of a cluster.
    pub own_namespace: Option<String>,
    /// Diagnoses that are worked on at once.
    pub concurrency: usize,
    /// Bounds on what is read of logs.
    pub capture: CaptureLimits,
    /// Bounds on what is kept of a diagnosis' logs.
    pub keep: KeepLimits,
    /// Bounds on what all kept logs take up.
    pub store: StoreLimits,
    /// Masks secrets.
    pub masker: Arc<Masker>,
    /// Where full logs are kept; none = nowhere.
    pub archive: Option<Target>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stuck_after: SignedDuration::from_mins(2),
            namespaces: Vec::new(),
            list_mode: ListMode::Auto,
            listen: None,
            instance: "initwatch".to_owned(),
            own_namespace: None,
            concurrency: 16,
            capture: CaptureLimits::default(),
            keep: KeepLimits::default(),
            store: StoreLimits::default(),
            masker: Arc::new(Masker::shipped()),
            archive: None,
        }
    }
}
