//! Folds the Pods of a workload into the bounded list of a diagnosis.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::attempts::{self, KeepLimits};
use super::observed::{CapturedAttempt, Departure, NoText, Observation, PodObservation};
use super::{is_closed, time, whole_seconds};
use crate::api::v1alpha1::{
    AffectedOmitted, AffectedPod, Attempt, AttemptTotals, InitDiagnosisStatus, InitLogSpec,
};
use crate::diagnose::cut;

/// Stands in the place of a cause where nothing failed and logs are kept on request.
const SUCCEEDED: &str = "Succeeded";
/// Pods listed by name (DESIGN D2).
const MAX_LISTED: usize = 20;
/// Rows that count the Pods that are not listed.
const MAX_OMITTED_ROWS: usize = 20;
/// Size of the status as JSON: with identity and metadata the object stays below 32 KiB (DESIGN D6).
const MAX_STATUS_BYTES: usize = 30 * 1024;
/// Size of what is not in the list of Pods; the list alone can be shortened to what is left.
const MAX_OTHER_BYTES: usize = 11 * 1024;
/// Bytes of excerpt for a Pod whose logs are not kept.
const SHORT_EXCERPT: usize = 256;

/// The folded Pods.
pub(super) struct Folded {
    pub(super) affected: Vec<AffectedPod>,
    pub(super) omitted: Vec<AffectedOmitted>,
    pub(super) totals: AttemptTotals,
    pub(super) logs: Vec<(String, InitLogSpec)>,
    pub(super) drop_logs: Vec<String>,
    /// Logs that could not be read, and why.
    pub(super) unchecked: Vec<String>,
}

/// The Pods that are affected now: those that fail, without the Failed ones that their controller has replaced.
/// One that is gone counts only where nothing is open yet: that it failed is to be told, and then that it left.
pub(super) fn current<'a>(
    old: Option<&InitDiagnosisStatus>,
    seen: &'a Observation,
) -> Vec<&'a PodObservation> {
    let open = old.is_some_and(|old| !is_closed(old));
    let counts = |pod: &&PodObservation| {
        pod.assessment.verdict().is_some() && !is_replaced(seen, pod) && !(pod.gone && open)
    };
    seen.pods.iter().filter(counts).collect()
}

/// A Failed Pod never runs again; once its controller has another one, that one counts.
fn is_replaced(seen: &Observation, pod: &PodObservation) -> bool {
    if !pod.failed || seen.facts.controller.is_none() {
        return false;
    }
    // Siblings that a controller makes at once bear the same second: only a later one can be a replacement.
    let newer_is_here =
        seen.pods.iter().any(|other| other.created_at > pod.created_at && pod.created_at.is_some());
    // Its replacement may be past init and so out of sight: the controller's own count knows it.
    newer_is_here || seen.facts.active.is_some_and(|active| active >= seen.facts.desired.unwrap_or(1).max(1))
}

pub(super) fn fold(
    old: Option<&InitDiagnosisStatus>,
    seen: &Observation,
    affected: &[&PodObservation],
    keep: &KeepLimits,
    now: Timestamp,
) -> Folded {
    let mut fold = Fold::from(old, *keep);
    for pod in &seen.pods {
        let is_affected = affected.iter().any(|other| other.uid == pod.uid);
        fold.observe(pod, is_affected, now);
    }
    for departure in &seen.departures {
        fold.depart(departure);
    }
    fold.finish()
}

struct Fold {
    keep: KeepLimits,
    entries: Vec<AffectedPod>,
    totals: AttemptTotals,
    /// Attempts that are new, by the name of the log that would keep them.
    fresh: BTreeMap<String, InitLogSpec>,
    unchecked: Vec<String>,
    /// Logs that the stored object refers to.
    known_logs: Vec<String>,
}

impl Fold {
    fn from(old: Option<&InitDiagnosisStatus>, keep: KeepLimits) -> Self {
        let entries = old.map(|old| old.affected.clone()).unwrap_or_default();
        let known_logs = entries
            .iter()
            .flat_map(|entry| &entry.attempts)
            .filter_map(|attempt| attempt.log.clone())
            .collect();
        Self {
            keep,
            entries,
            totals: old.and_then(|old| old.attempts).unwrap_or_default(),
            fresh: BTreeMap::new(),
            unchecked: Vec::new(),
            known_logs,
        }
    }

    fn observe(&mut self, pod: &PodObservation, is_affected: bool, now: Timestamp) {
        let known = self.entries.iter().position(|entry| entry.uid == pod.uid);
        let verdict = pod.assessment.verdict();
        let Some(index) = known.or_else(|| {
            // A Failed Pod that was replaced before it was ever seen still leaves its log.
            if verdict.is_none() && !pod.leaves_successes() {
                return None;
            }
            self.entries.push(AffectedPod {
                pod: pod.name.clone(),
                uid: pod.uid.clone(),
                cause: SUCCEEDED.to_owned(),
                node: pod.node.clone(),
                ..AffectedPod::default()
            });
            Some(self.entries.len() - 1)
        }) else {
            return;
        };
        let Some(mut entry) = self.entries.get(index).cloned() else {
            return;
        };
        if let Some(verdict) = verdict {
            if entry.cause != verdict.cause || entry.init_container != verdict.init_container {
                entry.change = None;
            }
            entry.init_container.clone_from(&verdict.init_container);
            verdict.cause.clone_into(&mut entry.cause);
            entry.node.clone_from(&pod.node);
            entry.pod_status = Some(cut(&pod.pod_status, 128));
            entry.stuck_since = pod.stuck_since.map(|at| time(whole_seconds(at)));
            entry.restarts = pod.restarts.map(|restarts| restarts.max(0));
            entry.left_at = if is_affected { None } else { entry.left_at.or(Some(time(whole_seconds(now)))) };
        }
        if pod.leaves_successes() {
            entry.left_at.get_or_insert(time(whole_seconds(now)));
        }
        // What was known of a running attempt gives way to what is seen of it now.
        entry.attempts.retain(Attempt::has_ended);
        entry.attempts.extend(pod.running.iter().map(|running| attempts::entry(running, None)));
        self.merge_attempts(&mut entry, &pod.attempts);
        if let Some(slot) = self.entries.get_mut(index) {
            *slot = entry;
        }
    }

    /// A Pod that left keeps its entry, and the logs that came home after it had gone.
    fn depart(&mut self, departure: &Departure) {
        let Some(index) = self.entries.iter().position(|entry| entry.uid == departure.uid) else { return };
        let Some(mut entry) = self.entries.get(index).cloned() else { return };
        entry.left_at.get_or_insert(time(whole_seconds(departure.at)));
        self.merge_attempts(&mut entry, &departure.attempts);
        if let Some(slot) = self.entries.get_mut(index) {
            *slot = entry;
        }
    }

    /// Adds what is new, and chooses what is kept.
    fn merge_attempts(&mut self, entry: &mut AffectedPod, captured: &[CapturedAttempt]) {
        for captured in captured {
            let id = cut(&captured.container_id, 128);
            let same = |known: &Attempt| known.container_id.as_deref() == Some(id.as_str());
            if let Some(known) = entry.attempts.iter().position(|known| same(known) && known.has_ended()) {
                // It is told already, but its log had to wait.
                self.write_late(entry, known, captured);
                continue;
            }
            // What was known of it while it ran gives way.
            entry.attempts.retain(|known| !same(known));
            self.totals.seen = self.totals.seen.saturating_add(1);
            if let Err(NoText::Lost(why)) = &captured.text {
                self.totals.lost = self.totals.lost.saturating_add(1);
                self.unchecked.push(lost(captured, why));
            }
            let log = attempts::log_of(entry, captured);
            let name = log.as_ref().map(|(name, _)| name.clone());
            self.fresh.extend(log);
            entry.attempts.push(attempts::entry(captured, name));
        }
        let (ended, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut entry.attempts).into_iter().partition(Attempt::has_ended);
        let (kept, _) = attempts::choose(ended, self.keep.attempts);
        entry.attempts = kept;
        entry.attempts.extend(running.into_iter().next_back());
    }

    fn write_late(&mut self, entry: &mut AffectedPod, known: usize, captured: &CapturedAttempt) {
        let log = attempts::log_of(entry, captured);
        let Some(attempt) = entry.attempts.get_mut(known).filter(|attempt| attempt.log.is_none()) else {
            return;
        };
        let name = log.as_ref().map(|(name, _)| name.clone());
        let told = attempts::entry(captured, name);
        (attempt.log, attempt.log_holds) = (told.log, told.log_holds);
        self.fresh.extend(log);
    }

    fn finish(mut self) -> Folded {
        self.limit_logged_pods();
        // Those with logs first, then those that are affected now, then the oldest.
        self.entries.sort_by_key(|entry| {
            (!has_logs(entry), entry.left_at.is_some(), entry.stuck_since.as_ref().map(|time| time.0))
        });
        let omitted = self.entries.split_off(self.entries.len().min(MAX_LISTED));
        let present = omitted.into_iter().filter(|entry| entry.left_at.is_none());
        let mut rows = BTreeMap::<(String, Option<String>), i32>::new();
        for entry in present {
            *rows.entry((entry.cause, entry.node)).or_default() += 1;
        }
        let omitted = rows
            .into_iter()
            .map(|((cause, node), count)| AffectedOmitted { cause, node, count })
            .take(MAX_OMITTED_ROWS)
            .collect();

        let referred: Vec<_> = self
            .entries
            .iter()
            .flat_map(|entry| &entry.attempts)
            .filter_map(|attempt| attempt.log.clone())
            .collect();
        let kept = i32::try_from(referred.len()).unwrap_or(i32::MAX);
        self.totals.kept = kept;
        self.totals.dropped = (self.totals.seen - self.totals.lost - kept).max(0);
        let drop_logs = self.known_logs.into_iter().filter(|name| !referred.contains(name)).collect();
        let mut logs = self.fresh;
        logs.retain(|name, _| referred.contains(name));
        Folded {
            affected: self.entries,
            omitted,
            totals: self.totals,
            logs: logs.into_iter().collect(),
            drop_logs,
            unchecked: self.unchecked,
        }
    }

    /// Keeps the logs of as many Pods as the limits say: the first one that failed (it has the true start
    /// more often than any other), and of the rest the latest.
    fn limit_logged_pods(&mut self) {
        let mut logged: Vec<_> = self.entries.iter_mut().filter(|entry| has_logs(entry)).collect();
        logged.sort_by_key(|entry| first_end(entry));
        let excess = logged.len().saturating_sub(self.keep.pods);
        // Those that left go first, oldest first, but never the very first.
        let mut order: Vec<usize> = (1..logged.len()).collect();
        order.sort_by_key(|index| {
            let left = logged.get(*index).is_some_and(|entry| entry.left_at.is_some());
            // Of Pods that are still there the newest gives way: they fail alike.
            if left { (0, *index) } else { (1, usize::MAX - index) }
        });
        for index in order.into_iter().take(excess) {
            let Some(entry) = logged.get_mut(index) else {
                continue;
            };
            for attempt in &mut entry.attempts {
                attempt.log = None;
                attempt.log_holds = None;
            }
        }
        // As many Pods are told in full, with logs or without; of the others the last attempt has to do.
        let in_full =
            self.keep.pods.saturating_sub(self.entries.iter().filter(|entry| has_logs(entry)).count());
        for entry in self.entries.iter_mut().filter(|entry| !has_logs(entry)).skip(in_full) {
            let excess = entry.attempts.len().saturating_sub(1);
            entry.attempts.drain(..excess);
            for attempt in &mut entry.attempts {
                attempt.excerpt = attempt.excerpt.as_deref().map(|text| cut(text, SHORT_EXCERPT));
            }
        }
    }
}

fn lost(captured: &CapturedAttempt, why: &str) -> String {
    cut(&format!("log of attempt {} of {}: {why}", captured.number, captured.container), 256)
}

fn has_logs(entry: &AffectedPod) -> bool {
    entry.attempts.iter().any(|attempt| attempt.log.is_some())
}

fn first_end(entry: &AffectedPod) -> Option<Timestamp> {
    entry.attempts.iter().filter_map(|attempt| attempt.finished_at.as_ref().map(|time| time.0)).min()
}

/// Cuts a status down to its size, what a reader needs least first.
pub(super) fn fit(status: &mut InitDiagnosisStatus) {
    let entries = std::mem::take(&mut status.affected);
    while size_of(status) > MAX_OTHER_BYTES {
        let shortened = status.evidence.pop().is_some()
            || status.also.pop().is_some()
            || status.advice.pop().is_some()
            || status.unchecked.pop().is_some()
            || status.history.pop().is_some();
        if !shortened {
            let half = |text: &mut Option<String>| *text = text.take().map(|text| cut(&text, text.len() / 2));
            half(&mut status.remedy);
            half(&mut status.summary);
            break;
        }
    }
    let room = MAX_STATUS_BYTES.saturating_sub(size_of(status));
    status.affected = entries;
    shorten(&mut status.affected, room);
}

/// Cuts the list down: the excerpts of the last entries first, then their attempts without logs.
fn shorten(entries: &mut [AffectedPod], room: usize) {
    let mut excess = size_of(entries).saturating_sub(room);
    for short in [SHORT_EXCERPT, 0] {
        for attempt in entries.iter_mut().rev().flat_map(|entry| entry.attempts.iter_mut()) {
            if excess == 0 {
                return;
            }
            let before = text_bytes(attempt.excerpt.as_deref()) + text_bytes(attempt.message.as_deref());
            let shorten = |text: Option<String>| text.map(|text| cut(&text, short)).filter(|_| short > 0);
            attempt.excerpt = shorten(attempt.excerpt.take());
            attempt.message = shorten(attempt.message.take());
            let after = text_bytes(attempt.excerpt.as_deref()) + text_bytes(attempt.message.as_deref());
            excess = excess.saturating_sub(before - after.min(before));
        }
        excess = size_of(entries).saturating_sub(room);
    }
    for entry in entries.iter_mut().rev() {
        if excess > 0 {
            let before = size_of(entry);
            entry.attempts.retain(|attempt| attempt.log.is_some());
            excess = excess.saturating_sub(before - size_of(entry));
        }
    }
}

/// Length as JSON: escapes make a text longer than it is.
fn text_bytes(text: Option<&str>) -> usize {
    text.map_or(0, |text| serde_json::to_string(text).map_or(0, |json| json.len()))
}

fn size_of<T: serde::Serialize + ?Sized>(value: &T) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}
