//! Takes the log of each attempt the moment its end is seen.
//!
//! This hangs on the watch, not on the reconciler: the log of a first attempt lives about a second. What is
//! brought home waits here, bounded, until a reconcile has written it down.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::queue::Triggers;
use crate::api;
use crate::api::v1alpha1::AttemptSource;
use crate::cluster::logs::{self, LogError, LogRequest};
use crate::diagnose::log::{CollectedLog, Masker, excerpt, telling_score};
use crate::diagnose::secret_literals;
use crate::plan::{CapturedAttempt, CapturedText, NoText};
use crate::pod::PodView;
use crate::pod::attempt::{EndedAttempt, LogRole, RunningAttempt, failed_attempts};
use crate::pod::identity::DiagnosisKey;

/// Logs that are read at once, over all nodes.
const READS: usize = 32;
/// Logs that are read at once from one node: a kubelet is never flooded.
const READS_PER_NODE: usize = 4;
/// Attempts whose text is held until it is written; 16 KiB each.
const MAX_HELD: usize = 2_000;
/// How long the output of a running container is good before it is looked at again.
const RUNNING_FRESH: SignedDuration = SignedDuration::from_secs(60);

/// The captures.
#[derive(Clone)]
pub struct Captures {
    client: Client,
    masker: Arc<Masker>,
    triggers: Triggers,
    reads: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// By Pod UID.
    pods: HashMap<String, PodCaptures>,
    nodes: HashMap<String, Arc<Semaphore>>,
    held: usize,
}

#[derive(Default)]
struct PodCaptures {
    /// Container IDs whose capture began, or that were written by an earlier process.
    begun: HashSet<String>,
    /// What was brought home and is not written yet.
    home: Vec<CapturedAttempt>,
    /// Captures that have not come home.
    under_way: usize,
    /// The last look at a running container.
    running: Option<(Timestamp, CapturedAttempt)>,
}

impl Captures {
    /// No captures.
    pub fn new(client: Client, masker: Arc<Masker>, triggers: Triggers) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        Self { client, masker, triggers, reads: Arc::new(Semaphore::new(READS)), state }
    }

    /// Begins the capture of every ended attempt of a Pod that was not begun before. Returns at once.
    pub fn observe(&self, pod: &Arc<PodView>, key: &DiagnosisKey) {
        if pod.annotation(api::ANNOTATION_IGNORE) == Some("true") {
            return;
        }
        for attempt in failed_attempts(pod) {
            let limit = {
                let mut state = self.lock();
                let captures = state.pods.entry(pod.uid().to_owned()).or_default();
                if !captures.begun.insert(attempt.container_id.clone()) {
                    continue;
                }
                captures.under_way += 1;
                state.node_limit(pod.spec.node_name.as_deref().unwrap_or_default())
            };
            let (captures, pod, key) = (self.clone(), pod.clone(), key.clone());
            tokio::spawn(async move {
                let brought = captures.capture(&pod, attempt, limit).await;
                captures.bring_home(pod.uid(), brought);
                captures.triggers.look(key);
            });
        }
    }

    /// Attempts that an earlier process has written down: they are not read again.
    pub fn are_written(&self, pod_uid: &str, container_ids: impl IntoIterator<Item = String>) {
        self.lock().pods.entry(pod_uid.to_owned()).or_default().begun.extend(container_ids);
    }

    /// What is held for a Pod.
    pub fn held(&self, pod_uid: &str) -> Vec<CapturedAttempt> {
        self.lock().pods.get(pod_uid).map(|pod| pod.home.clone()).unwrap_or_default()
    }

    /// Whether a capture for a Pod is under way.
    pub fn are_under_way(&self, pod_uid: &str) -> bool {
        self.lock().pods.get(pod_uid).is_some_and(|pod| pod.under_way > 0)
    }

    /// These attempts are written: their text is let go.
    pub fn written(&self, pod_uid: &str, container_ids: &[String]) {
        let mut state = self.lock();
        let Some(pod) = state.pods.get_mut(pod_uid) else {
            return;
        };
        let before = pod.home.len();
        pod.home.retain(|attempt| !container_ids.contains(&attempt.container_id));
        let let_go = before - pod.home.len();
        state.held = state.held.saturating_sub(let_go);
    }

    /// Lets go of all that is held for Pods that are gone and written down.
    pub fn forget(&self, pod_uid: &str) {
        let mut state = self.lock();
        if let Some(pod) = state.pods.remove(pod_uid) {
            state.held = state.held.saturating_sub(pod.home.len());
        }
    }

    /// Looks at the output of a container that runs, at most once a minute.
    pub async fn look_at_running(
        &self,
        pod: &PodView,
        attempt: &RunningAttempt,
        now: Timestamp,
    ) -> CapturedAttempt {
        let known = self.lock().pods.get(pod.uid()).and_then(|captures| captures.running.clone());
        if let Some((at, captured)) = known
            && captured.container_id == attempt.container_id
            && now.duration_since(at) < RUNNING_FRESH
        {
            return captured;
        }
        let request = LogRequest {
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            container: attempt.container.clone(),
            role: LogRole::Current,
            started_at: attempt.started_at,
            finished_at: None,
        };
        let permit = self.permit(pod.spec.node_name.as_deref().unwrap_or_default()).await;
        let log = logs::read_running(&self.client, &request).await;
        drop(permit);
        let text = self.text(pod, log.as_ref(), AttemptSource::Current, None);
        let captured = CapturedAttempt {
            container: attempt.container.clone(),
            number: attempt.number,
            container_id: attempt.container_id.clone(),
            started_at: attempt.started_at,
            end: None,
            image: image_of(pod, &attempt.container),
            text,
        };
        let mut state = self.lock();
        state.pods.entry(pod.uid().to_owned()).or_default().running = Some((now, captured.clone()));
        captured
    }

    async fn capture(&self, pod: &PodView, attempt: EndedAttempt, limit: Arc<Semaphore>) -> CapturedAttempt {
        let request = LogRequest {
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            container: attempt.container.clone(),
            role: attempt.role,
            started_at: attempt.started_at,
            finished_at: attempt.finished_at,
        };
        let source = match attempt.role {
            LogRole::Current => AttemptSource::Current,
            LogRole::Previous => AttemptSource::Previous,
        };
        // The node first: a slow node must not hold places that others could use.
        let _node = limit.acquire_owned().await;
        let _place = self.reads.clone().acquire_owned().await;
        let mut log = Err(LogError::Removed("the Pod is on no node".to_owned()));
        // The API server answers 204 for a Pod without a node, which reads as an empty log.
        let pauses: &[u64] = if pod.spec.node_name.is_some() { &[0, 500, 2_000] } else { &[] };
        for &pause in pauses {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            log = logs::read_ended(&self.client, &request).await;
            if !log.as_ref().is_err_and(LogError::is_transient) {
                break;
            }
        }
        let text = self.text(pod, log.as_ref(), source, attempt.message.as_deref());
        let mut end = attempt;
        let literals = secret_literals(pod);
        end.message = end.message.map(|message| self.masker.mask(&message, &literals).text.into_owned());
        CapturedAttempt {
            container: end.container.clone(),
            number: end.number,
            container_id: end.container_id.clone(),
            started_at: end.started_at,
            image: image_of(pod, &end.container),
            end: Some(end),
            text,
        }
    }

    /// The masked text of a log; else the termination message; else why there is none.
    fn text(
        &self,
        pod: &PodView,
        log: Result<&CollectedLog, &LogError>,
        source: AttemptSource,
        message: Option<&str>,
    ) -> Result<CapturedText, NoText> {
        if pod.annotation(api::ANNOTATION_KEEP_LOGS) == Some("never") {
            return Err(NoText::NotKept(format!("annotation {} is \"never\"", api::ANNOTATION_KEEP_LOGS)));
        }
        let literals = secret_literals(pod);
        match (log, message) {
            (Ok(log), _) => {
                let text = log.text();
                let masked = self.masker.mask(&text, &literals);
                Ok(captured_text(masked.text.into_owned(), masked.count, Some(log), source))
            }
            (Err(_), Some(message)) => {
                let masked = self.masker.mask(message, &literals);
                let (text, count) = (masked.text.into_owned(), masked.count);
                Ok(captured_text(text, count, None, AttemptSource::TerminationMessage))
            }
            (Err(error), None) => Err(NoText::Lost(error.to_string())),
        }
    }

    fn bring_home(&self, pod_uid: &str, captured: CapturedAttempt) {
        let mut state = self.lock();
        let room = state.held < MAX_HELD;
        // Forgotten meanwhile: nobody will ask for it.
        let Some(pod) = state.pods.get_mut(pod_uid) else { return };
        pod.under_way = pod.under_way.saturating_sub(1);
        let captured = if room {
            captured
        } else {
            // The API server takes nothing more: what is known of the attempt is kept, its text is not.
            let why = "too many logs wait to be written".to_owned();
            CapturedAttempt { text: Err(NoText::NotKept(why)), ..captured }
        };
        pod.home.push(captured);
        state.held += 1;
    }

    async fn permit(&self, node: &str) -> (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>) {
        let limit = self.lock().node_limit(node);
        let node = limit.acquire_owned().await.ok();
        (node, self.reads.clone().acquire_owned().await.ok())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn node_limit(&mut self, node: &str) -> Arc<Semaphore> {
        if self.nodes.len() > 20_000 {
            self.nodes.clear();
        }
        self.nodes.entry(node.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(READS_PER_NODE))).clone()
    }
}

fn captured_text(
    text: String,
    masked: usize,
    log: Option<&CollectedLog>,
    source: AttemptSource,
) -> CapturedText {
    let lifted = excerpt(&text, 1024);
    CapturedText {
        excerpt: lifted.text,
        telling: i32::try_from(telling_score(&text)).unwrap_or(i32::MAX),

        bytes: log.map_or(text.len() as u64, |log| log.bytes_seen),
        truncated: log.is_some_and(|log| log.truncated),
        partial: log.is_some_and(|log| log.partial),
        last_at: log.and_then(|log| log.last_at),
        masked,
        source,
        text,
    }
}

fn image_of(pod: &PodView, container: &str) -> Option<String> {
    pod.init_container(container).and_then(|container| container.image.clone())
}
