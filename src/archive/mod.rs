//! Keeps the full logs of attempts in an object store: S3, GCS, Azure, or a directory.
//!
//! Beside each log lies a small JSON file that says what it is: together they are the index. One index file for all would
//! have to be read, changed and written by whoever adds to it, which no object store does safely; a list by prefix
//! (`namespace/workload/`) is what all of them do well.
//!
//! Nothing here ever holds up a diagnosis: what is handed in waits in a bounded queue, and is counted when it is dropped.

mod path;
mod upload;

use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStore, parse_url_opts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use url::Url;

use crate::diagnose::log::{FullText, Masker};

pub use path::{AttemptFacts, AttemptPath};

/// Logs that wait.
const MAX_WAITING: usize = 256;
/// Memory that they take, in KiB: 64 MiB.
const MAX_MEMORY_KIB: usize = 64 * 1024;

/// Why there is no archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Not a URL.
    #[error(
        "--archive {0:?} is not a URL like s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder"
    )]
    NotAUrl(String),
    /// A kind of store, or a setting of it, that is not known.
    #[error("--archive {url:?}: {reason}")]
    Unusable {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The log of an attempt, on its way to the archive.
#[derive(Debug)]
pub struct Entry {
    /// Where it belongs.
    pub path: AttemptPath,
    /// What is known of it.
    pub facts: AttemptFacts,
    /// The text, not masked yet.
    pub text: FullText,
    /// Values of the Pod that are secrets.
    pub literals: Vec<String>,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It is in the store.
    Stored,
    /// There was no room for it.
    Dropped,
    /// The store took it not, for as long as that was tried.
    Failed,
}

/// Hands logs to the archive.
#[derive(Clone)]
pub struct Archive {
    queue: mpsc::Sender<(Entry, OwnedSemaphorePermit)>,
    memory: Arc<Semaphore>,
    report: Arc<dyn Fn(Outcome) + Send + Sync>,
    /// Entries that are not settled.
    open: watch::Sender<usize>,
}

/// An object store and where in it logs are kept.
#[derive(Clone, Debug)]
pub struct Target {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Target {
    /// The store that a URL names. Credentials and settings come from the environment as the object_store crate
    /// reads them (`AWS_…`, `GOOGLE_…`, `AZURE_…`), or from the identity of the Pod; never from Secrets through the API.
    /// Nothing is asked of the store yet.
    ///
    /// # Errors
    /// When it is not a URL, or not of a store that is known.
    pub fn open(
        url: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ArchiveError> {
        let parsed = Url::parse(url).map_err(|_| ArchiveError::NotAUrl(url.to_owned()))?;
        let unusable = |reason: String| ArchiveError::Unusable { url: url.to_owned(), reason };
        // The client of the stores takes the process' provider, and panics without one; a second call changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = environment
            .into_iter()
            .filter(|(name, _)| ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|begin| name.starts_with(begin)));
        let (store, prefix) =
            parse_url_opts(&parsed, options).map_err(|error| unusable(error.to_string()))?;
        if parsed.scheme() == "file" && !std::path::Path::new(parsed.path()).is_dir() {
            return Err(unusable("there is no such folder".to_owned()));
        }
        Ok(Self { store: store.into(), prefix })
    }
}

impl Archive {
    /// Starts to work for a target. `report` is told what became of each entry.
    pub fn start(
        target: Target,
        masker: Arc<Masker>,
        report: impl Fn(Outcome) + Send + Sync + 'static,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        let (open, _) = watch::channel(0);
        let report: Arc<dyn Fn(Outcome) + Send + Sync> = Arc::new(report);
        tokio::spawn(upload::run(target, masker, waiting, report.clone(), open.clone()));
        Self { queue, memory: Arc::new(Semaphore::new(MAX_MEMORY_KIB)), report, open }
    }

    /// Hands a log in. Returns at once; one for which there is no room is dropped.
    pub fn hand_in(&self, entry: Entry) {
        let kib = u32::try_from(entry.text.memory() / 1024 + 1).unwrap_or(u32::MAX);
        let room = self.memory.clone().try_acquire_many_owned(kib);
        self.open.send_modify(|open| *open += 1);
        let sent = room.ok().and_then(|room| self.queue.try_send((entry, room)).ok());
        if sent.is_none() {
            self.open.send_modify(|open| *open -= 1);
            (self.report)(Outcome::Dropped);
        }
    }

    /// Waits until all that was handed in is settled, at most so long. Returns whether it is.
    pub async fn flush(&self, limit: Duration) -> bool {
        let mut open = self.open.subscribe();
        let settled = open.wait_for(|open| *open == 0);
        tokio::time::timeout(limit, settled).await.is_ok()
    }
}
