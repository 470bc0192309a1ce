//! How the log of an ended attempt is had: from what was recorded, from the kubelet, or from its last words.

use std::time::Duration;

use super::recorder::Recording;
use super::text::text;
use super::turns::Refused;
use super::{Captures, STREAM_ENDS_WITHIN, image_of};
use crate::api::v1alpha1::AttemptSource;
use crate::archive::{AttemptFacts, AttemptPath, Entry};
use crate::cluster::logs::{self, LogError, LogRequest};
use crate::diagnose::log::{CollectedLog, FullText};
use crate::diagnose::secret_literals;
use crate::plan::CapturedAttempt;
use crate::pod::PodView;
use crate::pod::attempt::{EndedAttempt, LogRole, short_id};
use crate::pod::decode::keeps_text;
use crate::pod::history::workload_of;
use crate::pod::identity::{DiagnosisKey, Identity};
use crate::telemetry::metrics::Budget;

/// A log, where it comes from, and all of it for the archive.
type Brought = (Result<CollectedLog, LogError>, AttemptSource, Option<FullText>);

impl Captures {
    pub(super) async fn capture(
        &self,
        pod: &PodView,
        key: &DiagnosisKey,
        attempt: EndedAttempt,
    ) -> CapturedAttempt {
        let recording = self.lock().recording(pod.uid(), &attempt.container_id);
        let (log, source, full) = match &recording {
            // The log of one that was over at once may be gone in a second: nothing is waited for.
            Some(recording) if !attempt.was_short() => self.by_recording(pod, key, &attempt, recording).await,
            _ => self.by_kubelet(pod, key, &attempt, recording.as_deref()).await,
        };
        self.lock().let_go(pod.uid(), &attempt.container_id);
        if let Ok(log) = &log {
            self.metrics.log_bytes.inc_by(log.bytes_seen);
        }
        let message = attempt.message.as_deref();
        let text = text(&self.masker, pod, log.as_ref(), source, message);
        let captured = CapturedAttempt {
            container: attempt.container.clone(),
            number: attempt.number,
            container_id: attempt.container_id.clone(),
            started_at: attempt.started_at,
            image: image_of(pod, &attempt.container),
            end: Some(attempt),
            interrupted_at: None,
            text,
        };
        if log.is_ok() {
            self.archive(pod, &captured, full);
        }
        self.with_masked_message(pod, captured)
    }

    /// The log as it was recorded, where that is whole; else as the kubelet has it.
    async fn by_recording(
        &self,
        pod: &PodView,
        key: &DiagnosisKey,
        attempt: &EndedAttempt,
        recording: &Recording,
    ) -> Brought {
        recording.ended_within(STREAM_ENDS_WITHIN).await;
        let mut recorded = recording.whole(attempt);
        if recorded.is_none() {
            let (started_at, finished_at) = (attempt.started_at, attempt.finished_at);
            let request = self.request(pod, &attempt.container, attempt.role, started_at, finished_at);
            recorded = recording.catch_up(&self.client, &request, attempt).await;
        }
        match recorded {
            Some(log) => (Ok(log), AttemptSource::Followed, recording.full.clone()),
            None => self.by_kubelet(pod, key, attempt, Some(recording)).await,
        }
    }

    /// The log as the kubelet has it; where that is gone, what was recorded.
    async fn by_kubelet(
        &self,
        pod: &PodView,
        key: &DiagnosisKey,
        attempt: &EndedAttempt,
        recording: Option<&Recording>,
    ) -> Brought {
        let full = self.full_text();
        let read = self.read_ended(pod, key, attempt, full.clone()).await;
        if let (Err(_), Some(recording)) = (&read, recording) {
            recording.ended_within(STREAM_ENDS_WITHIN).await;
            if let Some(log) = recording.part(attempt) {
                return (Ok(log), AttemptSource::Followed, recording.full.clone());
            }
        }
        (read, source_of(attempt.role), full)
    }

    /// The same, with a termination message that can be told.
    fn with_masked_message(&self, pod: &PodView, mut captured: CapturedAttempt) -> CapturedAttempt {
        let literals = secret_literals(pod);
        if let Some(end) = &mut captured.end {
            let message = end.message.take();
            end.message = message.map(|message| self.masker.mask(&message, &literals).text.into_owned());
        }
        captured
    }

    /// Waits until all that was handed to the archive is settled, at most so long. Returns whether it is.
    pub async fn flush(&self, limit: Duration) -> bool {
        match &self.archive {
            Some(archive) => archive.flush(limit).await,
            None => true,
        }
    }

    pub(super) fn full_text(&self) -> Option<FullText> {
        self.archive.is_some().then(|| FullText::new(self.limits.archived))
    }

    /// Hands the whole log to the archive, where there is one. Nothing waits for that.
    pub(super) fn archive(&self, pod: &PodView, captured: &CapturedAttempt, full: Option<FullText>) {
        let (Some(archive), Some(text), true) = (&self.archive, full, captured.text.is_ok()) else { return };
        let end = captured.end.as_ref();
        archive.hand_in(Entry {
            path: archive_path(pod, captured),
            facts: AttemptFacts {
                pod_uid: pod.uid().to_owned(),
                node: pod.spec.node_name.clone(),
                image: captured.image.clone(),
                container_id: captured.container_id.clone(),
                started_at: captured.started_at,
                finished_at: end.and_then(|end| end.finished_at).or(captured.interrupted_at),
                exit_code: end.map(|end| end.exit_code),
                reason: end.and_then(|end| end.reason.clone()),
                partial: captured.text.as_ref().is_ok_and(|text| text.partial),
            },
            text,
            literals: secret_literals(pod),
        });
    }

    async fn read_ended(
        &self,
        pod: &PodView,
        key: &DiagnosisKey,
        attempt: &EndedAttempt,
        full: Option<FullText>,
    ) -> Result<CollectedLog, LogError> {
        // The API server answers 204 for a Pod without a node, which reads as an empty log.
        let Some(node) = pod.spec.node_name.as_deref() else {
            return Err(LogError::Removed("the Pod is on no node".to_owned()));
        };
        if !keeps_text(pod) {
            return Err(LogError::Removed("not read: it is not to be kept".to_owned()));
        }
        let (started_at, finished_at) = (attempt.started_at, attempt.finished_at);
        let request = self.request(pod, &attempt.container, attempt.role, started_at, finished_at);
        let request = LogRequest { full, ..request };
        let mut log = Err(LogError::Removed("not read".to_owned()));
        for pause in [0, 500, 2_000] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let Ok(_turn) = self.turnstile.turn(key, node, attempt.number == 0).await else {
                self.metrics.skipped(Budget::ReadsQueue);
                return Err(LogError::Failed(Refused.to_string()));
            };
            log = logs::read_ended(&self.client, &request).await;
            let Err(error) = &log else { break };
            let age = attempt.finished_at.map(|at| jiff::Timestamp::now().duration_since(at).as_secs());
            tracing::debug!(%error, pod = pod.name(), number = attempt.number, age, "a log could not be read");
            if !error.is_transient() {
                break;
            }
        }
        log
    }
}

fn source_of(role: LogRole) -> AttemptSource {
    match role {
        LogRole::Current => AttemptSource::Current,
        LogRole::Previous => AttemptSource::Previous,
    }
}

/// Where the archive keeps a log: below the workload that people know, as far as the Pod alone tells it.
fn archive_path(pod: &PodView, captured: &CapturedAttempt) -> AttemptPath {
    let identity = Identity::of(pod, None);
    let (kind, name) = match workload_of(pod) {
        Some(workload) => {
            let mut parts = workload.splitn(3, '/').skip(1).map(str::to_owned);
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
        }
        None => ("pod".to_owned(), pod.name().to_owned()),
    };
    // A ReplicaSet with a template hash is a Deployment's.
    let kind =
        if kind == "replicaset" && identity.revision.is_some() { "deployment".to_owned() } else { kind };
    AttemptPath {
        namespace: pod.namespace().to_owned(),
        workload: format!("{kind}.{name}"),
        revision: identity.revision,
        pod: pod.name().to_owned(),
        container: captured.container.clone(),
        number: captured.number,
        short_id: short_id(&captured.container_id).to_owned(),
    }
}
