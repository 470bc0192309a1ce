//! From what is stored and what is seen to what is to be written: one pure function.
//!
//! Nothing is decided by what this process remembers: the stored object is an argument, so that a restarted
//! controller (or another leader) goes on where the last one stopped.

mod affected;
mod attempts;
mod events;
mod life;
mod observed;

pub use attempts::{KeepLimits, log_name};
pub use events::{EventIntent, EventTarget, EventType};
pub use observed::{
    CapturedAttempt, CapturedText, Departure, Fate, NoText, Observation, PodObservation, WorkloadEnd,
    WorkloadFacts,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::v1alpha1::{
    Attempt, InitDiagnosis, InitDiagnosisSpec, InitDiagnosisStatus, InitLogSpec, State,
};
use life::Decision;

/// What is to be written.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The object must exist (its spec is in the observation) before anything else is written.
    pub ensure: bool,
    /// The spec of the stored object is not what it should be (somebody edited it, or a controller of the same
    /// name came anew).
    pub heal_spec: bool,
    /// Logs to write, by object name.
    pub logs: Vec<(String, InitLogSpec)>,
    /// Names of InitLogs that are no longer referred to.
    pub drop_logs: Vec<String>,
    /// The new status, where it differs in something that a reader would care about.
    pub status: Option<InitDiagnosisStatus>,
    /// Events to send once the status is written.
    pub events: Vec<EventIntent>,
    /// When to look again, if nothing happens before.
    pub recheck_at: Option<Timestamp>,
}

/// Decides what to write about one workload revision.
pub fn plan(stored: Option<&InitDiagnosis>, seen: &Observation, keep: &KeepLimits, now: Timestamp) -> Plan {
    let old = stored.and_then(|stored| stored.status.as_ref());
    // Without a status the object is the remains of a crash between its creation and its first status.
    let old = old.filter(|status| status.state.is_some());
    let affected = affected::current(old, seen);
    let decision = life::decide(old, seen, &affected, now);
    let waiting_until = seen.pods.iter().filter_map(PodObservation::waits_until).min();

    let mut result = Plan { recheck_at: waiting_until, ..Plan::default() };
    match decision {
        Decision::Nothing => return result,
        Decision::Later(at) => {
            result.recheck_at = earliest(result.recheck_at, Some(at));
        }
        Decision::Open { .. } | Decision::Resolve { .. } | Decision::Keep | Decision::Succeed => {}
    }
    let mut status = old.cloned().unwrap_or_default();
    let folded = affected::fold(old, seen, &affected, keep, now);
    result.logs = folded.logs;
    result.drop_logs = folded.drop_logs;
    status.affected = folded.affected;
    status.affected_omitted = folded.omitted;
    status.attempts = Some(folded.totals);
    life::advance(&mut status, old, &decision, seen, &affected, &folded.unchecked, now);
    if old.is_some_and(|old| !is_closed(old)) && stored.is_some_and(|stored| is_another(stored, seen)) {
        // The same name with another UID is another workload with the same trouble.
        status.occurrences = status.occurrences.map(|count| count.saturating_add(1));
    }
    affected::fit(&mut status);
    result.recheck_at = earliest(result.recheck_at, life::next_look(&decision, seen, &affected, now));

    let announced = events::announce(&mut status, old, now);
    let muted = stored.is_some_and(|stored| is_muted(stored, now));
    if !muted {
        result.events = events::intents(&status, seen, &announced, now);
    }
    let spec_differs = stored.is_some_and(|stored| stored.spec != seen.facts.spec());
    result.ensure = stored.is_none();
    result.heal_spec = spec_differs;
    if old.is_none_or(|old| is_worth_writing(old, &status)) {
        result.status = Some(status);
    } else {
        // What is announced must be in the status first; an unchanged status announces nothing.
        result.events.clear();
    }
    if seen.first_look && result.events.is_empty() && !muted {
        // This process does not know whether the last one got its Events out. Their names are fixed, so that
        // sending them again is harmless.
        if let Some(status) = result.status.as_ref().or(old) {
            result.events = events::intents(status, seen, &events::Announced::all(status, now), now);
        }
    }
    result
}

/// Whether a reader would care about the difference. A crash loop changes the STATUS of its Pods three times
/// with each attempt, a wait loop its last line every second: neither is worth a write to etcd.
fn is_worth_writing(old: &InitDiagnosisStatus, new: &InitDiagnosisStatus) -> bool {
    fn settled(status: &InitDiagnosisStatus) -> InitDiagnosisStatus {
        let mut status = status.clone();
        status.pod_status = None;
        for entry in &mut status.affected {
            entry.pod_status = None;
            entry.restarts = None;
            entry.attempts.retain(Attempt::has_ended);
        }
        status
    }
    settled(old) != settled(new)
}

/// Whether the Pods' controller is another one of the same name. The Jobs of a CronJob are all different and
/// all the same to its diagnosis.
fn is_another(stored: &InitDiagnosis, seen: &Observation) -> bool {
    let uid = |spec: &InitDiagnosisSpec| spec.controller.as_ref().map(|controller| controller.uid.clone());
    let spec = seen.facts.spec();
    spec.workload.kind != "CronJob" && uid(&stored.spec).is_some() && uid(&stored.spec) != uid(&spec)
}

fn is_muted(stored: &InitDiagnosis, now: Timestamp) -> bool {
    let until = stored
        .metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(crate::api::ANNOTATION_MUTED_UNTIL))
        .and_then(|until| until.parse::<Timestamp>().ok());
    until.is_some_and(|until| until > now)
}

/// Whether a diagnosis is over.
pub fn is_closed(status: &InitDiagnosisStatus) -> bool {
    matches!(status.state, Some(State::Resolved | State::Succeeded))
}

/// How long after its end a diagnosis is kept: a week, or an hour where it never was more than observed. What is kept on
/// request is kept for a week.
pub fn expires_at(status: &InitDiagnosisStatus) -> Option<Timestamp> {
    let resolved_at = status.resolved_at.as_ref()?.0;
    let kept = if life::was_active(status) || status.state == Some(State::Succeeded) {
        SignedDuration::from_hours(7 * 24)
    } else {
        SignedDuration::from_hours(1)
    };
    resolved_at.checked_add(kept).ok()
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn time(at: Timestamp) -> Time {
    Time(at)
}

/// Whole seconds, as the API stores times: what is compared must not differ by what is lost in storage.
fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

#[cfg(test)]
mod tests;
