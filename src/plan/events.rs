//! The Kubernetes Events of a diagnosis: decided here, sent by the shell.
//!
//! An Event belongs to a numbered change, and the number is in the status before the Event is sent. The
//! Event's name follows from it, so that sending it twice is "already exists", which is success.

use jiff::{SignedDuration, Timestamp};

use super::observed::Observation;
use super::{time, whole_seconds};
use crate::api::v1alpha1::{Change, InitDiagnosisStatus, Resolution, Severity, State};
use crate::diagnose::cut;

/// Events of one change: one on the workload and at most this many on Pods (DESIGN D11: ten in all).
const MAX_POD_EVENTS: i32 = 9;
/// Nothing older is sent again: an Event lives an hour.
const RESEND_WITHIN: SignedDuration = SignedDuration::from_hours(1);
/// Bytes of an Event's note (`pkg/apis/core/validation/events.go`); more is refused, not cut.
const MAX_NOTE: usize = 1024;

/// An Event to send.
#[derive(Clone, Debug, PartialEq)]
pub struct EventIntent {
    /// What it is about.
    pub target: EventTarget,
    /// Number of the change it belongs to.
    pub change: i64,
    /// Normal or Warning.
    pub type_: EventType,
    /// Cause code, `InitRecovered` or `InitGaveUp`.
    pub reason: String,
    /// At most 1024 bytes.
    pub note: String,
    /// When it is sent.
    pub at: Timestamp,
}

/// What an Event is about.
#[derive(Clone, Debug, PartialEq)]
pub enum EventTarget {
    /// The top-level workload.
    Workload,
    /// A Pod.
    Pod {
        /// Name.
        name: String,
        /// UID.
        uid: String,
        /// The init container, for `fieldPath`.
        init_container: Option<String>,
    },
}

/// Type of an Event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventType {
    /// For the record.
    Normal,
    /// Somebody should look.
    Warning,
}

/// What a new status announces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Announced {
    workload: bool,
    pods: Vec<String>,
}

impl Announced {
    /// All that the present change has announced.
    pub(super) fn all(status: &InitDiagnosisStatus, now: Timestamp) -> Self {
        let Some(change) = &status.change else {
            return Self::default();
        };
        if now.duration_since(change.at.0) > RESEND_WITHIN {
            return Self::default();
        }
        let pods = status.affected.iter().filter(|entry| entry.change == Some(change.number));
        Self { workload: true, pods: pods.map(|entry| entry.uid.clone()).collect() }
    }
}

/// Numbers the change, if there is one, and marks the Pods that it announces.
pub(super) fn announce(
    status: &mut InitDiagnosisStatus,
    old: Option<&InitDiagnosisStatus>,
    now: Timestamp,
) -> Announced {
    let changed = old.is_none_or(|old| {
        (old.state, &old.cause, &old.init_container) != (status.state, &status.cause, &status.init_container)
    });
    if changed {
        let number = old.and_then(|old| old.change.as_ref()).map_or(1, |change| change.number + 1);
        let now = time(whole_seconds(now));
        status.last_changed = Some(now.clone());
        status.change = Some(Change { number, at: now, announced: 0 });
    }
    let mut announced = Announced { workload: changed, pods: Vec::new() };
    // What may heal by itself is kept without an Event: a false page costs more than a missed one.
    if status.state != Some(State::Active) {
        return announced;
    }
    let Some(change) = &mut status.change else {
        return announced;
    };
    for entry in &mut status.affected {
        if entry.left_at.is_none() && entry.change.is_none() && change.announced < MAX_POD_EVENTS {
            entry.change = Some(change.number);
            change.announced += 1;
            announced.pods.push(entry.uid.clone());
        }
    }
    announced
}

/// The Events for what is announced.
pub(super) fn intents(
    status: &InitDiagnosisStatus,
    seen: &Observation,
    announced: &Announced,
    now: Timestamp,
) -> Vec<EventIntent> {
    let Some((type_, reason, note)) = wording(status) else {
        return Vec::new();
    };
    if is_old_news(status, now) {
        return Vec::new();
    }
    let number = status.change.as_ref().map_or(0, |change| change.number);
    let event = |target: EventTarget| EventIntent {
        target,
        change: number,
        type_,
        reason: reason.clone(),
        note: cut(&note, MAX_NOTE),
        at: now,
    };
    let mut intents = Vec::new();
    // A bare Pod is its own workload: one Event is enough.
    if announced.workload && seen.facts.workload.uid.is_some() && seen.facts.workload.kind != "Pod" {
        intents.push(event(EventTarget::Workload));
    }
    let pods = status.affected.iter().filter(|entry| announced.pods.contains(&entry.uid));
    intents.extend(pods.map(|entry| {
        event(EventTarget::Pod {
            name: entry.pod.clone(),
            uid: entry.uid.clone(),
            init_container: entry.init_container.clone(),
        })
    }));
    if status.state == Some(State::Resolved) && seen.facts.workload.kind == "Pod" && announced.workload {
        intents.extend(status.affected.first().map(|entry| {
            event(EventTarget::Pod { name: entry.pod.clone(), uid: entry.uid.clone(), init_container: None })
        }));
    }
    intents
}

/// A Job that gave up before anybody looked (initwatch was installed after it) is no news.
fn is_old_news(status: &InitDiagnosisStatus, now: Timestamp) -> bool {
    let ends = status
        .affected
        .iter()
        .flat_map(|entry| &entry.attempts)
        .filter_map(|attempt| attempt.finished_at.as_ref());
    let last = ends.map(|end| end.0).max();
    status.resolution == Some(Resolution::GaveUp)
        && last.is_some_and(|last| now.duration_since(last) > RESEND_WITHIN)
}

fn wording(status: &InitDiagnosisStatus) -> Option<(EventType, String, String)> {
    let cause = status.cause.clone()?;
    let summary = status.summary.clone().unwrap_or_default();
    match (status.state?, status.resolution) {
        (State::Active, _) => {
            let type_ = match status.severity {
                Some(Severity::Warning) => EventType::Warning,
                _ => EventType::Normal,
            };
            Some((type_, cause, summary))
        }
        // Only what was announced as broken is announced as mended.
        (State::Resolved, Some(Resolution::Recovered)) if super::life::was_active(status) => {
            let lasted = SignedDuration::from_secs(status.stuck_for.unwrap_or_default());
            Some((
                EventType::Normal,
                "InitRecovered".to_owned(),
                format!("init is past after {lasted:#}; it was {cause}: {summary}"),
            ))
        }
        (State::Resolved, Some(Resolution::GaveUp)) => Some((
            EventType::Warning,
            "InitGaveUp".to_owned(),
            format!("the Job failed for good, {cause}: {summary}"),
        )),
        _ => None,
    }
}
