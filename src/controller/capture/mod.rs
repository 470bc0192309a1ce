//! Takes the log of each attempt the moment its end is seen, and of those at risk while they run.
//!
//! This hangs on the watch, not on the reconciler: the log of a first attempt lives about a second. What is
//! brought home waits here, bounded, until a reconcile has written it down.

mod reads;
mod recorder;
mod risk;
mod slots;
mod state;
mod text;
mod turns;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::{Api, Client};

use super::queue::Triggers;
use crate::api;
use crate::api::v1alpha1::AttemptSource;
use crate::archive::Archive;
use crate::cluster::logs::{self, LogError, LogRequest};
use crate::cluster::read;
use crate::diagnose::log::{LogLimits, Masker};
use crate::plan::CapturedAttempt;
use crate::pod::PodView;
use crate::pod::attempt::{LogRole, RunningAttempt, ended_attempts, running_attempt};
use crate::pod::decode::{keeps_text, without_private_text};
use crate::pod::identity::DiagnosisKey;
use crate::telemetry::metrics::Metrics;
use recorder::{Recording, StreamState};
use slots::{Admission, Risk};
use state::State;
use text::{keeps_successes, text};
use turns::Turnstile;

pub use slots::StreamLimits;
pub(super) use state::Ghost;
pub use turns::ReadLimits;

/// How long the output of a running container is good before it is looked at again.
const RUNNING_FRESH: SignedDuration = SignedDuration::from_secs(60);
/// How long after the end of an attempt its stream may take to bring the rest.
const STREAM_ENDS_WITHIN: Duration = Duration::from_millis(1_500);
/// How long after a Pod's end its containers may take to end: the longest usual grace period, and some.
const CONTAINERS_END_WITHIN: Duration = Duration::from_secs(40);
/// A stream that ended so long ago although its container runs is asked for again.
const GO_ON_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// Bounds on what is read and held.
#[derive(Clone, Copy, Debug)]
pub struct CaptureLimits {
    /// Reads of ended attempts.
    pub reads: ReadLimits,
    /// Followed containers.
    pub streams: StreamLimits,
    /// Of one log.
    pub log: LogLimits,
    /// Attempts whose text is held until it is written.
    pub held: usize,
    /// Memory that the whole text of a log may take for the archive, compressed, in bytes.
    pub archived: usize,
}

impl Default for CaptureLimits {
    fn default() -> Self {
        Self {
            reads: ReadLimits { total: 32, per_node: 4, waiting: 10_000 },
            streams: StreamLimits { total: 64, per_node: 8, per_workload: 3 },
            log: LogLimits::default(),
            held: 2_000,
            archived: 8 << 20,
        }
    }
}

/// The captures.
#[derive(Clone)]
pub struct Captures {
    client: Client,
    masker: Arc<Masker>,
    triggers: Triggers,
    limits: CaptureLimits,
    turnstile: Turnstile<DiagnosisKey>,
    metrics: Metrics,
    archive: Option<Archive>,
    state: Arc<Mutex<State>>,
}

impl Captures {
    /// No captures.
    pub fn new(
        client: Client,
        masker: Arc<Masker>,
        triggers: Triggers,
        limits: CaptureLimits,
        metrics: Metrics,
        archive: Option<Archive>,
    ) -> Self {
        let state = Arc::new(Mutex::new(State::new(&limits, metrics.clone())));
        Self {
            client,
            masker,
            triggers,
            limits,
            turnstile: Turnstile::new(limits.reads),
            metrics,
            archive,
            state,
        }
    }

    /// Begins the capture of every ended attempt of a Pod that was not begun before, and follows what runs and is at
    /// risk. Returns at once. `workload_failed`: there is a diagnosis of its workload.
    pub fn observe(&self, pod: &Arc<PodView>, key: &DiagnosisKey, workload_failed: bool) {
        if pod.annotation(api::ANNOTATION_IGNORE) == Some("true") {
            return;
        }
        if keeps_successes(pod) {
            // Its last look needs to know it, also when nothing of it was seen to run.
            self.lock().of(pod, key);
        }
        self.take_ended(pod, key);
        for attempt in running_attempts(pod) {
            if let Some(risk) = risk::risk(pod, &attempt, workload_failed) {
                self.follow(pod, key, attempt, risk);
            }
        }
        self.take_vanished(pod, key);
    }

    /// Follows the init containers of a Pod that has taken a good part of its threshold.
    pub fn follow_stuck(&self, pod: &Arc<PodView>, key: &DiagnosisKey) {
        for attempt in running_attempts(pod) {
            // A sidecar that has started is none of ours.
            if risk::risk(pod, &attempt, true).is_some() {
                self.follow(pod, key, attempt, Risk::StuckAWhile);
            }
        }
    }

    fn take_ended(&self, pod: &Arc<PodView>, key: &DiagnosisKey) {
        for attempt in ended_attempts(pod) {
            if !attempt.failed && !keeps_successes(pod) {
                self.lock().dismiss(pod.uid(), &attempt.container_id);
                continue;
            }
            if !self.lock().begin(pod, key, &attempt.container_id) {
                continue;
            }
            let (captures, pod, key) = (self.clone(), pod.clone(), key.clone());
            tokio::spawn(async move {
                let brought = captures.capture(&pod, &key, attempt).await;
                captures.bring_home(pod.uid(), brought);
                captures.triggers.look(key);
            });
        }
    }

    fn follow(&self, pod: &Arc<PodView>, key: &DiagnosisKey, attempt: RunningAttempt, risk: Risk) {
        let node = pod.spec.node_name.as_deref().unwrap_or_default();
        if node.is_empty() || !keeps_text(pod) {
            return;
        }
        let mut state = self.lock();
        match state.slots.admit(&attempt.container_id, key, node, risk) {
            Admission::Admitted => {}
            Admission::Instead { of } => {
                if let Some(recording) = state.recording_anywhere(&of) {
                    recording.stop();
                }
            }
            Admission::Refused(budget) => {
                self.metrics.skipped(budget);
                tracing::debug!(pod = pod.name(), ?budget, "not followed: the budget is spent");
                return;
            }
        }
        let request = self.request(pod, &attempt.container, LogRole::Current, attempt.started_at, None);
        if let Some(recording) = state.recording(pod.uid(), &attempt.container_id) {
            let ended_at = match recording.state() {
                StreamState::Follows => return,
                StreamState::Ended(at) | StreamState::Broken(at) => at,
            };
            if Timestamp::now().duration_since(ended_at) > GO_ON_AFTER {
                recording.go_on(self.client.clone(), request);
            }
            return;
        }
        let id = attempt.container_id.clone();
        let request = LogRequest { full: self.full_text(), ..request };
        let recording = Recording::begin(self.client.clone(), request, attempt);
        state.of(pod, key).recordings.insert(id, recording);
    }

    /// A container that was followed and is not in the status any more, neither as running nor as ended: its end was
    /// never told (a status is a sample), but its log is here.
    fn take_vanished(&self, pod: &Arc<PodView>, key: &DiagnosisKey) {
        for recording in self.lock().vanished(pod) {
            let (captures, pod, key) = (self.clone(), pod.clone(), key.clone());
            tokio::spawn(async move {
                recording.ended_within(STREAM_ENDS_WITHIN).await;
                let now = Timestamp::now();
                captures.come_home(pod.uid(), captures.interrupted(&pod, &recording, now));
                captures.triggers.look(key);
            });
        }
    }

    /// A Pod has left the watch's sight: deleted, or past init. What it may still bring is waited for. Returns for
    /// which diagnosis anything of it is held or on its way.
    pub fn pod_left(&self, uid: &str, now: Timestamp) -> Option<DiagnosisKey> {
        let last_look = self.lock().leave(uid, now);
        if let Some((pod, key)) = last_look {
            let captures = self.clone();
            tokio::spawn(async move {
                captures.last_look(&pod, &key).await;
                captures.triggers.look(key);
            });
        }
        self.lock().pending(uid)
    }

    /// Takes what is left of a Pod that is gone, or past init.
    async fn last_look(&self, pod: &Arc<PodView>, key: &DiagnosisKey) {
        let recordings = self.lock().recordings(pod.uid());
        for recording in &recordings {
            recording.ended_within(CONTAINERS_END_WITHIN).await;
        }
        let pods: Api<PodView> = Api::namespaced(self.client.clone(), pod.namespace());
        let what = format!("get pod {}/{}", pod.namespace(), pod.name());
        let seen = read(what, || pods.get_opt(pod.name())).await.ok().flatten();
        if let Some(seen) = seen.filter(|seen| seen.uid() == pod.uid()) {
            // Its status tells the ends that were not seen; a success among them is let go.
            self.take_ended(&Arc::new(without_private_text(seen)), key);
        }
        let now = Timestamp::now();
        for recording in recordings {
            if self.lock().begin(pod, key, &recording.attempt.container_id) {
                self.come_home(pod.uid(), self.interrupted(pod, &recording, now));
            }
        }
        self.lock().last_look_is_over(pod.uid());
    }

    /// What was recorded of an attempt whose end nobody told.
    fn interrupted(&self, pod: &PodView, recording: &Recording, now: Timestamp) -> Option<CapturedAttempt> {
        let mut log = recording.recorded()?;
        log.partial |= !matches!(recording.state(), StreamState::Ended(_));
        let attempt = &recording.attempt;
        let captured = CapturedAttempt {
            container: attempt.container.clone(),
            number: attempt.number,
            container_id: attempt.container_id.clone(),
            started_at: attempt.started_at,
            end: None,
            interrupted_at: Some(log.last_at.unwrap_or(now)),
            image: image_of(pod, &attempt.container),
            text: text(&self.masker, pod, Ok(&log), AttemptSource::Followed, None),
        };
        self.archive(pod, &captured, recording.full.clone());
        Some(captured)
    }

    /// Attempts that an earlier process has written down: they are not read again.
    pub fn are_written(
        &self,
        key: &DiagnosisKey,
        pod_uid: &str,
        container_ids: impl IntoIterator<Item = String>,
    ) {
        self.lock().are_written(key, pod_uid, container_ids);
    }

    /// What is held for a Pod.
    pub fn held(&self, pod_uid: &str) -> Vec<CapturedAttempt> {
        self.lock().held(pod_uid)
    }

    /// The Pods of a diagnosis that have left, and of which something is held.
    pub(super) fn ghosts(&self, key: &DiagnosisKey) -> Vec<Ghost> {
        self.lock().ghosts(key)
    }

    /// Whether a capture for a Pod is under way.
    pub fn are_under_way(&self, pod_uid: &str) -> bool {
        self.lock().are_under_way(pod_uid)
    }

    /// These attempts are written: their text is let go.
    pub fn written(&self, pod_uid: &str, container_ids: &[String]) {
        self.lock().written(pod_uid, container_ids);
    }

    /// The departure of a Pod is written: what is held for it is let go, unless more is on its way.
    pub fn settle(&self, pod_uid: &str) {
        self.lock().settle(pod_uid);
    }

    /// What came home of a Pod that left is not to be written; more may come.
    pub fn let_go(&self, pod_uid: &str) {
        let mut state = self.lock();
        let ids: Vec<_> = state.held(pod_uid).into_iter().map(|attempt| attempt.container_id).collect();
        state.written(pod_uid, &ids);
        state.settle(pod_uid);
    }

    /// Lets go of all that is held for a Pod.
    pub fn forget(&self, pod_uid: &str) {
        self.lock().forget(pod_uid);
    }

    /// Looks at the output of a container that runs, at most once a minute; or at what was recorded of it.
    pub async fn look_at_running(
        &self,
        pod: &Arc<PodView>,
        key: &DiagnosisKey,
        attempt: &RunningAttempt,
        now: Timestamp,
    ) -> CapturedAttempt {
        let (known, recording) = {
            let state = self.lock();
            (state.running(pod.uid()), state.recording(pod.uid(), &attempt.container_id))
        };
        let recorded = recording
            .filter(|recording| recording.state() == StreamState::Follows)
            .and_then(|recording| recording.recorded());
        if recorded.is_none()
            && let Some((at, captured)) = known
            && captured.container_id == attempt.container_id
            && now.duration_since(at) < RUNNING_FRESH
        {
            return captured;
        }
        let (log, source) = if let Some(log) = recorded {
            (Ok(log), AttemptSource::Followed)
        } else {
            let request = self.request(pod, &attempt.container, LogRole::Current, attempt.started_at, None);
            let node = pod.spec.node_name.as_deref().unwrap_or_default();
            let log = match self.turnstile.turn(key, node, true).await {
                Ok(_turn) => logs::read_running(&self.client, &request).await,
                Err(refused) => Err(LogError::Failed(refused.to_string())),
            };
            (log, AttemptSource::Current)
        };
        let captured = CapturedAttempt {
            container: attempt.container.clone(),
            number: attempt.number,
            container_id: attempt.container_id.clone(),
            started_at: attempt.started_at,
            end: None,
            interrupted_at: None,
            image: image_of(pod, &attempt.container),
            text: text(&self.masker, pod, log.as_ref(), source, None),
        };
        self.lock().of(pod, key).running = Some((now, captured.clone()));
        captured
    }

    fn request(
        &self,
        pod: &PodView,
        container: &str,
        role: LogRole,
        started_at: Option<Timestamp>,
        finished_at: Option<Timestamp>,
    ) -> LogRequest {
        LogRequest {
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            container: container.to_owned(),
            role,
            started_at,
            finished_at,
            limits: self.limits.log,
            full: None,
        }
    }

    fn bring_home(&self, pod_uid: &str, captured: CapturedAttempt) {
        self.come_home(pod_uid, Some(captured));
    }

    fn come_home(&self, pod_uid: &str, captured: Option<CapturedAttempt>) {
        self.lock().come_home(pod_uid, captured);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn running_attempts(pod: &PodView) -> impl Iterator<Item = RunningAttempt> {
    pod.status.init_container_statuses.iter().filter_map(running_attempt)
}

fn image_of(pod: &PodView, container: &str) -> Option<String> {
    pod.init_container(container).and_then(|container| container.image.clone())
}
