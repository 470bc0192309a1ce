//! Writes what is handed in to the store, one log at a time, again and again until it is there or too old.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::buffered::BufWriter;
use object_store::{ObjectStoreExt, PutPayload};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinSet;

use super::{AttemptFacts, Entry, Outcome, Target};
use crate::diagnose::log::Masker;

/// Logs that are written at once.
const PARALLEL: usize = 4;
/// How long writing one may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Pauses after a failure; the client of each store retries for itself before that.
const PAUSES: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(20),
    Duration::from_secs(60),
    Duration::from_secs(180),
    Duration::from_secs(300),
];

pub(super) async fn run(
    target: Target,
    masker: Arc<Masker>,
    mut waiting: mpsc::Receiver<(Entry, OwnedSemaphorePermit)>,
    report: Arc<dyn Fn(Outcome) + Send + Sync>,
    open: watch::Sender<usize>,
) {
    let mut tasks = JoinSet::new();
    while let Some((entry, room)) = waiting.recv().await {
        while tasks.len() >= PARALLEL {
            tasks.join_next().await;
        }
        let (target, masker, report, open) = (target.clone(), masker.clone(), report.clone(), open.clone());
        tasks.spawn(async move {
            let _settled = Settled(open);
            let stored = until_stored(&target, &masker, &entry).await;
            drop(room);
            report(if stored { Outcome::Stored } else { Outcome::Failed });
        });
    }
}

/// Counts an entry as settled when it is dropped: by whatever way that comes.
struct Settled(watch::Sender<usize>);

impl Drop for Settled {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

async fn until_stored(target: &Target, masker: &Masker, entry: &Entry) -> bool {
    let mut pauses = PAUSES.iter();
    loop {
        let path = entry.path.below(&target.prefix, "log");
        let error = match tokio::time::timeout(TIMEOUT, store(target, masker, entry)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("not written within {} s", TIMEOUT.as_secs()),
        };
        let Some(pause) = pauses.next() else {
            tracing::warn!(error, %path, "a log could not be archived; given up");
            return false;
        };
        tracing::warn!(error, %path, "a log could not be archived; next try in {} s", pause.as_secs());
        tokio::time::sleep(*pause).await;
    }
}

/// The JSON beside a log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index<'e> {
    namespace: &'e str,
    workload: &'e str,
    revision: Option<&'e str>,
    pod: &'e str,
    container: &'e str,
    attempt: i32,
    #[serde(flatten)]
    facts: &'e AttemptFacts,
    /// Name of the log in the same place.
    log: String,
    /// Bytes of the log as it is stored.
    bytes: u64,
    /// Bytes that were left out of its middle.
    left_out: u64,
    /// Secrets that were masked.
    masked: usize,
    sha256: String,
}

async fn store(target: &Target, masker: &Masker, entry: &Entry) -> Result<(), object_store::Error> {
    let path = entry.path.below(&target.prefix, "log");
    let failed =
        |error: std::io::Error| object_store::Error::Generic { store: "archive", source: Box::new(error) };
    let mut writer = BufWriter::new(target.store.clone(), path.clone());
    let written = match write(&mut writer, masker, entry).await {
        Ok(written) => written,
        Err(error) => {
            // What was begun in parts must not stay behind; if that fails as well, the store's own rules clean up.
            let _ = writer.abort().await;
            return Err(failed(error));
        }
    };
    writer.shutdown().await.map_err(failed)?;
    let place = &entry.path;
    let index = Index {
        namespace: &place.namespace,
        workload: &place.workload,
        revision: place.revision.as_deref(),
        pod: &place.pod,
        container: &place.container,
        attempt: place.number,
        facts: &entry.facts,
        log: path.filename().unwrap_or_default().to_owned(),
        bytes: written.bytes,
        left_out: entry.text.left_out(),
        masked: written.secrets,
        sha256: written.sha256,
    };
    let json = serde_json::to_vec_pretty(&index).map_err(|error| failed(error.into()))?;
    let payload = PutPayload::from(Bytes::from(json));
    target.store.put(&place.below(&target.prefix, "json"), payload).await?;
    Ok(())
}

/// What was written.
struct Written {
    bytes: u64,
    secrets: usize,
    sha256: String,
}

/// Writes the text block by block, masked.
async fn write(writer: &mut BufWriter, masker: &Masker, entry: &Entry) -> std::io::Result<Written> {
    let (mut bytes, mut secrets, mut digest) = (0, 0, Sha256::new());
    for index in 0.. {
        let Some(block) = entry.text.block(index) else { break };
        // Blocks end at the end of a line. A key that spans two of them is masked in both: the rules know halves.
        let safe = masker.mask(&block, &entry.literals);
        secrets += safe.count;
        bytes += safe.text.len() as u64;
        digest.update(safe.text.as_bytes());
        writer.write_all(safe.text.as_bytes()).await?;
    }
    let mut sha256 = String::new();
    for byte in digest.finalize() {
        // Writing to a String does not fail.
        let _ = write!(sha256, "{byte:02x}");
    }
    Ok(Written { bytes, secrets, sha256 })
}
