//! Settings of the controller, validated.

use std::net::SocketAddr;

use jiff::SignedDuration;

/// What the controller runs with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long an init step may take before that counts as stuck; at least one second.
    pub stuck_after: SignedDuration,
    /// Namespaces to watch; empty = the whole cluster.
    pub namespaces: Vec<String>,
    /// Where `/healthz`, `/readyz` are served; none = nowhere.
    pub listen: Option<SocketAddr>,
    /// Name by which Events call this process: that of its Pod.
    pub instance: String,
    /// Diagnoses that are worked on at once.
    pub concurrency: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stuck_after: SignedDuration::from_mins(2),
            namespaces: Vec::new(),
            listen: None,
            instance: "initwatch".to_owned(),
            concurrency: 16,
        }
    }
}
