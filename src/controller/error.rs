//! Errors of the controller.

use crate::cluster::ClusterError;
use crate::cluster::client::ConnectError;

/// What ends the controller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// No client could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The address for probes is taken or not allowed.
    #[error("cannot listen on {address} for the probes: {source} (choose another with --listen)")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// No signal handler could be installed.
    #[error("cannot wait for signals: {0}")]
    Signals(std::io::Error),
    /// A part that must run for ever has ended.
    #[error("{0} ended, which must not happen: restarting is the safe answer")]
    PartEnded(&'static str),
}

/// What ends one reconcile; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    /// A call failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Somebody else wrote in between: read again.
    #[error("the object has changed in between")]
    Conflict,
    /// What is to be written cannot be put into words; a defect.
    #[error("cannot serialize: {0}")]
    Serialize(#[from] serde_json::Error),
}

impl ReconcileError {
    /// From a write: a conflict is no failure.
    pub(super) fn of_write(error: ClusterError) -> Self {
        if error.is_conflict() { Self::Conflict } else { Self::Cluster(error) }
    }
}
