//! What is known of captures: by Pod, bounded, without I/O.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::recorder::Recording;
use super::slots::Slots;
use super::text::keeps_successes;
use super::{CaptureLimits, running_attempts};
use crate::plan::{CapturedAttempt, NoText};
use crate::pod::PodView;
use crate::pod::attempt::ended_attempts;
use crate::pod::identity::DiagnosisKey;
use crate::telemetry::metrics::{Budget, Metrics};

/// A Pod that has left, and of which something is held.
#[derive(Clone)]
pub(in crate::controller) struct Ghost {
    /// As it was seen last.
    pub(in crate::controller) pod: Arc<PodView>,
    /// When it left.
    pub(in crate::controller) left_at: Timestamp,
}

pub(super) struct State {
    /// By Pod UID.
    pods: HashMap<String, PodCaptures>,
    by_key: HashMap<DiagnosisKey, HashSet<String>>,
    pub(super) slots: Slots,
    /// Attempts that are held, and how many may be.
    held: usize,
    max_held: usize,
    metrics: Metrics,
}

/// What is known of one Pod.
pub(super) struct PodCaptures {
    key: DiagnosisKey,
    /// As it was seen last; none while only an earlier process has seen it.
    pod: Option<Arc<PodView>>,
    left_at: Option<Timestamp>,
    /// Container IDs whose capture began, or that were written by an earlier process.
    begun: HashSet<String>,
    /// What was brought home and is not written yet.
    home: Vec<CapturedAttempt>,
    /// Captures that have not come home.
    under_way: usize,
    /// The last look at a running container.
    pub(super) running: Option<(Timestamp, CapturedAttempt)>,
    /// Recordings, by container ID.
    pub(super) recordings: HashMap<String, Arc<Recording>>,
}

impl State {
    pub(super) fn new(limits: &CaptureLimits, metrics: Metrics) -> Self {
        Self {
            pods: HashMap::new(),
            by_key: HashMap::new(),
            slots: Slots::new(limits.streams),
            held: 0,
            max_held: limits.held,
            metrics,
        }
    }

    fn entry(&mut self, uid: &str, key: &DiagnosisKey) -> &mut PodCaptures {
        self.by_key.entry(key.clone()).or_default().insert(uid.to_owned());
        self.pods.entry(uid.to_owned()).or_insert_with(|| PodCaptures {
            key: key.clone(),
            pod: None,
            left_at: None,
            begun: HashSet::new(),
            home: Vec::new(),
            under_way: 0,
            running: None,
            recordings: HashMap::new(),
        })
    }

    /// The captures of a Pod that is seen now.
    pub(super) fn of(&mut self, pod: &Arc<PodView>, key: &DiagnosisKey) -> &mut PodCaptures {
        let captures = self.entry(pod.uid(), key);
        captures.pod = Some(pod.clone());
        captures
    }

    /// Begins a capture; false when it was begun before.
    pub(super) fn begin(&mut self, pod: &Arc<PodView>, key: &DiagnosisKey, container_id: &str) -> bool {
        let captures = self.of(pod, key);
        let is_new = captures.begun.insert(container_id.to_owned());
        captures.under_way += usize::from(is_new);
        is_new
    }

    pub(super) fn are_written(
        &mut self,
        key: &DiagnosisKey,
        uid: &str,
        container_ids: impl IntoIterator<Item = String>,
    ) {
        self.entry(uid, key).begun.extend(container_ids);
    }

    /// A capture comes home, with something or with empty hands.
    pub(super) fn come_home(&mut self, uid: &str, captured: Option<CapturedAttempt>) {
        let has_room = self.held < self.max_held;
        // Forgotten meanwhile: nobody will ask for it.
        let Some(of_pod) = self.pods.get_mut(uid) else { return };
        of_pod.under_way = of_pod.under_way.saturating_sub(1);
        let Some(captured) = captured else { return };
        let captured = if has_room {
            captured
        } else {
            self.metrics.skipped(Budget::Held);
            // The API server takes nothing more: what is known of the attempt is kept, its text is not.
            let why = "too many logs wait to be written".to_owned();
            CapturedAttempt { text: Err(NoText::NotKept(why)), ..captured }
        };
        of_pod.home.push(captured);
        self.held += 1;
    }

    pub(super) fn recording(&self, uid: &str, container_id: &str) -> Option<Arc<Recording>> {
        self.pods.get(uid)?.recordings.get(container_id).cloned()
    }

    pub(super) fn recording_anywhere(&self, container_id: &str) -> Option<Arc<Recording>> {
        self.pods.values().find_map(|captures| captures.recordings.get(container_id).cloned())
    }

    pub(super) fn recordings(&self, uid: &str) -> Vec<Arc<Recording>> {
        self.pods.get(uid).map(|captures| captures.recordings.values().cloned().collect()).unwrap_or_default()
    }

    fn release(&mut self, container_id: &str) {
        self.slots.release(container_id);
        self.metrics.log_streams.set(i64::try_from(self.slots.len()).unwrap_or(i64::MAX));
    }

    /// The recording of a container has served, or is not needed.
    pub(super) fn let_go(&mut self, uid: &str, container_id: &str) {
        let Some(captures) = self.pods.get_mut(uid) else { return };
        if let Some(recording) = captures.recordings.remove(container_id) {
            recording.stop();
            self.release(container_id);
        }
    }

    /// An attempt that succeeded: nothing of it is kept, also not as one whose end nobody told.
    pub(super) fn dismiss(&mut self, uid: &str, container_id: &str) {
        if let Some(captures) = self.pods.get_mut(uid) {
            captures.begun.insert(container_id.to_owned());
        }
        self.let_go(uid, container_id);
    }

    /// The recordings of containers that the status does not name any more; their capture begins with this.
    pub(super) fn vanished(&mut self, pod: &PodView) -> Vec<Arc<Recording>> {
        let Some(captures) = self.pods.get_mut(pod.uid()) else { return Vec::new() };
        if captures.recordings.is_empty() {
            return Vec::new();
        }
        let named: HashSet<String> = running_attempts(pod)
            .map(|attempt| attempt.container_id)
            .chain(ended_attempts(pod).into_iter().map(|attempt| attempt.container_id))
            .collect();
        let gone: Vec<_> = captures
            .recordings
            .iter()
            .filter(|(id, _)| !named.contains(*id) && !captures.begun.contains(*id))
            .map(|(id, recording)| (id.clone(), recording.clone()))
            .collect();
        for (id, _) in &gone {
            captures.recordings.remove(id);
            captures.begun.insert(id.clone());
            captures.under_way += 1;
        }
        let recordings = gone.into_iter().map(|(id, recording)| {
            self.release(&id);
            recording
        });
        recordings.collect()
    }

    /// A Pod leaves. Returns what a last look at it needs, if it needs one: something of it is still recorded, or its
    /// success is to be kept.
    pub(super) fn leave(&mut self, uid: &str, now: Timestamp) -> Option<(Arc<PodView>, DiagnosisKey)> {
        let captures = self.pods.get_mut(uid)?;
        if captures.left_at.is_some() {
            return None;
        }
        captures.left_at = Some(now);
        captures.running = None;
        let pod = captures.pod.clone()?;
        let needed = !captures.recordings.is_empty() || keeps_successes(&pod);
        if !needed {
            return None;
        }
        captures.under_way += 1;
        Some((pod, captures.key.clone()))
    }

    pub(super) fn last_look_is_over(&mut self, uid: &str) {
        let Some(captures) = self.pods.get_mut(uid) else { return };
        captures.under_way = captures.under_way.saturating_sub(1);
        let is_over = captures.home.is_empty() && captures.under_way == 0;
        for (id, recording) in std::mem::take(&mut captures.recordings) {
            recording.stop();
            self.release(&id);
        }
        if is_over {
            self.forget(uid);
        }
    }

    /// The diagnosis for which something of a Pod is held or on its way.
    pub(super) fn pending(&self, uid: &str) -> Option<DiagnosisKey> {
        let captures = self.pods.get(uid)?;
        (captures.under_way > 0 || !captures.home.is_empty()).then(|| captures.key.clone())
    }

    pub(super) fn are_under_way(&self, uid: &str) -> bool {
        self.pods.get(uid).is_some_and(|captures| captures.under_way > 0)
    }

    pub(super) fn held(&self, uid: &str) -> Vec<CapturedAttempt> {
        self.pods.get(uid).map(|captures| captures.home.clone()).unwrap_or_default()
    }

    pub(super) fn running(&self, uid: &str) -> Option<(Timestamp, CapturedAttempt)> {
        self.pods.get(uid)?.running.clone()
    }

    pub(super) fn ghosts(&self, key: &DiagnosisKey) -> Vec<Ghost> {
        let uids = self.by_key.get(key).into_iter().flatten();
        let ghost = |uid: &String| {
            let captures = self.pods.get(uid).filter(|captures| !captures.home.is_empty())?;
            Some(Ghost { pod: captures.pod.clone()?, left_at: captures.left_at? })
        };
        uids.filter_map(ghost).collect()
    }

    pub(super) fn written(&mut self, uid: &str, container_ids: &[String]) {
        let Some(captures) = self.pods.get_mut(uid) else { return };
        let before = captures.home.len();
        captures.home.retain(|attempt| !container_ids.contains(&attempt.container_id));
        self.held = self.held.saturating_sub(before - captures.home.len());
    }

    pub(super) fn settle(&mut self, uid: &str) {
        let is_done = self.pods.get(uid).is_some_and(|captures| {
            captures.left_at.is_some() && captures.under_way == 0 && captures.home.is_empty()
        });
        if is_done {
            self.forget(uid);
        }
    }

    pub(super) fn forget(&mut self, uid: &str) {
        let Some(captures) = self.pods.remove(uid) else { return };
        self.held = self.held.saturating_sub(captures.home.len());
        for (id, recording) in captures.recordings {
            recording.stop();
            self.release(&id);
        }
        if let Some(uids) = self.by_key.get_mut(&captures.key) {
            uids.remove(uid);
            if uids.is_empty() {
                self.by_key.remove(&captures.key);
            }
        }
    }
}
