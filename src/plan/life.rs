//! The life of a diagnosis (DESIGN D11): observed, active, resolved, seen again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::observed::{Fate, Observation, PodObservation, WorkloadEnd};
use super::{earliest, is_closed, time, whole_seconds};
use crate::api::v1alpha1::{InitDiagnosisStatus, PastCause, Resolution, Severity, State};
use crate::diagnose::verdict::{Assessment, Urgency, Verdict};
use crate::diagnose::{catalogue, cut};

/// How long no Pod may be affected before a workload that wants none counts as gone.
const GONE_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// How often an open diagnosis is looked at when nothing happens. What its Pods wait for sends no events to us:
/// often at first, when people work on it, and seldom once it is old.
const RESYNC: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(15), SignedDuration::from_mins(5));
/// The same where nothing but the Pods themselves is looked at: their changes are told.
const SELDOM: SignedDuration = SignedDuration::from_mins(3);
/// How soon a diagnosis without affected Pods is looked at again.
const SETTLING: SignedDuration = SignedDuration::from_secs(30);

/// What happens to a diagnosis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Decision {
    /// There is none, and none is needed.
    Nothing,
    /// It stands open.
    Open {
        /// Observed or Active.
        state: State,
    },
    /// It stays as it is: no Pod is affected now, and it is not over.
    Keep,
    /// The same, but over at that time if nothing happens.
    Later(Timestamp),
    /// Nothing failed; logs of attempts that succeeded are kept on request.
    Succeed,
    /// It is over.
    Resolve {
        /// How it ended.
        resolution: Resolution,
    },
}

pub(super) fn decide(
    old: Option<&InitDiagnosisStatus>,
    seen: &Observation,
    affected: &[&PodObservation],
    now: Timestamp,
) -> Decision {
    let open = old.filter(|old| !is_closed(old));
    if seen.facts.ignored {
        // Asked to be left alone: nothing new is said, and what stands open ends without an Event.
        return match open {
            Some(_) => Decision::Resolve { resolution: Resolution::PodsGone },
            None => Decision::Nothing,
        };
    }
    let verdicts = affected.iter().filter_map(|pod| pod.assessment.verdict());
    if !affected.is_empty() {
        // A Job that gave up keeps its failed Pods: they stay what they are, and nobody waits for them.
        if seen.facts.end == WorkloadEnd::JobFailed && affected.iter().all(|pod| pod.failed) {
            return match old {
                Some(old) if old.resolution == Some(Resolution::GaveUp) => Decision::Nothing,
                _ => Decision::Resolve { resolution: Resolution::GaveUp },
            };
        }
        let needs_somebody = verdicts.into_iter().any(|verdict| verdict.urgency == Urgency::Now);
        let was_active = open.is_some_and(|old| old.state == Some(State::Active));
        let state = if needs_somebody || was_active { State::Active } else { State::Observed };
        return Decision::Open { state };
    }
    let Some(open) = open else {
        let kept = seen.pods.iter().any(PodObservation::leaves_successes);
        return if kept { Decision::Succeed } else { Decision::Nothing };
    };
    let passed = seen.departures.iter().any(|departure| departure.fate == Fate::PassedInit);
    let in_init = seen
        .pods
        .iter()
        .any(|pod| matches!(pod.assessment, Assessment::Waiting { .. } | Assessment::Leaving));
    match seen.facts.end {
        WorkloadEnd::JobFailed => {
            return Decision::Resolve { resolution: Resolution::GaveUp };
        }
        WorkloadEnd::JobComplete => {
            return Decision::Resolve { resolution: Resolution::Recovered };
        }
        WorkloadEnd::Superseded if !in_init => {
            return Decision::Resolve { resolution: Resolution::Superseded };
        }
        _ => {}
    }
    if passed {
        return Decision::Resolve { resolution: Resolution::Recovered };
    }
    if in_init {
        return Decision::Keep;
    }
    if seen.facts.ready.is_some_and(|ready| ready > 0) {
        return Decision::Resolve { resolution: Resolution::Recovered };
    }
    if seen.facts.end != WorkloadEnd::WantsNone {
        return Decision::Keep;
    }
    let last_left = open.affected.iter().filter_map(|entry| entry.left_at.as_ref().map(|left| left.0)).max();
    let gone_at = last_left.unwrap_or(now).checked_add(GONE_AFTER).unwrap_or(now);
    if last_left.is_some() && gone_at <= now {
        Decision::Resolve { resolution: Resolution::PodsGone }
    } else {
        Decision::Later(gone_at)
    }
}

/// When to look again although nothing happens.
pub(super) fn next_look(
    decision: &Decision,
    seen: &Observation,
    affected: &[&PodObservation],
    now: Timestamp,
) -> Option<Timestamp> {
    let after = |wait: SignedDuration| now.checked_add(wait).ok();
    match decision {
        Decision::Nothing | Decision::Succeed | Decision::Resolve { .. } => None,
        Decision::Later(at) => Some(*at),
        Decision::Keep => after(SETTLING),
        Decision::Open { .. } => {
            let verdicts = affected.iter().filter_map(|pod| pod.assessment.verdict());
            let escalates = verdicts
                .filter_map(|verdict| match verdict.urgency {
                    Urgency::From(at) => Some(at),
                    Urgency::Now => None,
                })
                .min();
            let waits = seen.pods.iter().filter_map(PodObservation::waits_until).min();
            let oldest = affected.iter().filter_map(|pod| pod.stuck_since).min();
            let age = oldest.map_or(SignedDuration::ZERO, |since| now.duration_since(since));
            // What no other object decides does not change unseen.
            let asks =
                affected.iter().filter_map(|pod| pod.assessment.verdict()).any(Verdict::rests_on_objects);
            let (least, most) = if asks { RESYNC } else { (SELDOM, RESYNC.1) };
            earliest(earliest(escalates, waits), after((age / 8).clamp(least, most)))
        }
    }
}

/// Whether a diagnosis was ever more than observed.
pub(super) fn was_active(status: &InitDiagnosisStatus) -> bool {
    status.conditions.iter().any(|condition| condition.type_ == "Diagnosed" && condition.status == "True")
}

/// Carries the status on.
pub(super) fn advance(
    status: &mut InitDiagnosisStatus,
    old: Option<&InitDiagnosisStatus>,
    decision: &Decision,
    seen: &Observation,
    affected: &[&PodObservation],
    lost: &[String],
    now: Timestamp,
) {
    let now = whole_seconds(now);
    status.first_observed.get_or_insert(time(now));
    status.occurrences.get_or_insert(1);
    let count = i32::try_from(affected.len()).unwrap_or(i32::MAX);
    let total =
        seen.facts.desired.unwrap_or_else(|| i32::try_from(seen.pods.len()).unwrap_or(i32::MAX)).max(count);
    status.affected_pods = Some(count);
    status.total_pods = Some(total);
    status.pods = Some(format!("{count}/{total}"));

    if let Some(top) = dominant(affected) {
        describe(status, top, seen, now);
    }
    match decision {
        Decision::Open { state } => {
            let reopened = old.is_some_and(is_closed);
            if reopened {
                status.occurrences = status.occurrences.map(|count| count.saturating_add(1));
                (status.resolved_at, status.resolution, status.stuck_for) = (None, None, None);
            }
            status.state = Some(*state);
            status.stuck_since = stuck_since(status, affected, reopened).map(time);
        }
        Decision::Resolve { resolution } => {
            let since = status.stuck_since.take().or_else(|| status.first_observed.clone());
            let lasted = since.map_or(0, |since| now.duration_since(since.0).as_secs());
            status.state = Some(State::Resolved);
            status.resolution = Some(*resolution);
            status.resolved_at = Some(time(now));
            status.stuck_for = Some(lasted.max(0));
            if *resolution != Resolution::GaveUp {
                status.severity = Some(Severity::Info);
                status.pod_status = None;
            }
        }
        Decision::Succeed => succeed(status, old, seen, now),
        Decision::Keep | Decision::Later(_) | Decision::Nothing => {}
    }
    add_unchecked(status, &seen.facts.unchecked);
    add_unchecked(status, lost);
    conditions(status, now);
}

/// Says that all went well; where something failed before, that stays what the diagnosis is about.
fn succeed(
    status: &mut InitDiagnosisStatus,
    old: Option<&InitDiagnosisStatus>,
    seen: &Observation,
    now: Timestamp,
) {
    if old.is_some_and(|old| old.state != Some(State::Succeeded)) {
        return;
    }
    let Some(pod) = seen.pods.iter().find(|pod| pod.leaves_successes()) else { return };
    let names: Vec<_> = pod.attempts.iter().map(|attempt| attempt.container.as_str()).collect();
    status.state = Some(State::Succeeded);
    status.severity = Some(Severity::Info);
    status.resolved_at = Some(time(now));
    let (names, pod) = (names.join(", "), &pod.name);
    let summary = format!("{names} of Pod {pod} succeeded; the logs are kept because the Pod asks for that");
    status.summary = Some(cut(&summary, 1024));
}

/// The cause that stands on top: the highest severity, then the most Pods, then the oldest.
fn dominant<'a>(affected: &[&'a PodObservation]) -> Option<(&'a PodObservation, &'a Verdict)> {
    let with_verdict = affected.iter().filter_map(|pod| Some((*pod, pod.assessment.verdict()?)));
    let pods_of = |cause: &str| {
        affected
            .iter()
            .filter(|pod| pod.assessment.verdict().is_some_and(|other| other.cause == cause))
            .count()
    };
    with_verdict.min_by_key(|(pod, verdict)| {
        use std::cmp::Reverse;
        (Reverse(verdict.severity), Reverse(pods_of(verdict.cause)), pod.stuck_since, pod.uid.clone())
    })
}

fn describe(
    status: &mut InitDiagnosisStatus,
    (pod, verdict): (&PodObservation, &Verdict),
    seen: &Observation,
    now: Timestamp,
) {
    if let Some(past) = status.cause.replace(verdict.cause.to_owned()).filter(|past| past != verdict.cause) {
        let from = status.last_changed.clone().or_else(|| status.first_observed.clone());
        status.history.push(PastCause { cause: past, from: from.unwrap_or(time(now)), to: time(now) });
        let excess = status.history.len().saturating_sub(10);
        status.history.drain(..excess);
    }
    status.category = Some(catalogue::category(verdict.cause).to_owned());
    status.severity = Some(verdict.severity);
    status.confidence = Some(verdict.confidence);
    let serving = seen.facts.others_serve.filter(|count| *count > 0);
    let serving = serving
        .map_or_else(String::new, |count| format!("; {count} Pods of the previous revision still serve"));
    status.summary = Some(cut(&format!("{}{serving}", verdict.summary), 1024));
    status.remedy = Some(verdict.remedy.clone());
    status.init_container.clone_from(&verdict.init_container);
    status.step.clone_from(&verdict.step);
    status.pod_status = Some(cut(&pod.pod_status, 128));
    status.evidence.clone_from(&verdict.evidence);
    status.root_cause.clone_from(&verdict.root_cause);
    status.also.clone_from(&verdict.also);
    status.advice.clone_from(&verdict.advice);
    // That logs were lost stays true; the rest is looked at anew.
    status.unchecked.retain(|told| told.starts_with("log of attempt "));
    let excess = status.unchecked.len().saturating_sub(3);
    status.unchecked.drain(..excess);
    status.unchecked.extend(verdict.unchecked.iter().cloned());
    status.unchecked.truncate(10);
}

/// The earliest time among the Pods that are affected now, and among those that went away since this opened:
/// a replacement that stands at the same step is the same problem.
fn stuck_since(
    status: &InitDiagnosisStatus,
    affected: &[&PodObservation],
    reopened: bool,
) -> Option<Timestamp> {
    let opened = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Resolved" && condition.status == "False")
        .map(|condition| condition.last_transition_time.0);
    let present = affected.iter().filter_map(|pod| pod.stuck_since);
    let gone = status.affected.iter().filter(|entry| {
        let left_since =
            entry.left_at.as_ref().is_some_and(|left| opened.is_none_or(|opened| left.0 >= opened));
        !reopened && left_since && entry.init_container == status.init_container
    });
    let gone = gone.filter_map(|entry| entry.stuck_since.as_ref().map(|since| since.0));
    present.chain(gone).min().map(whole_seconds)
}

fn add_unchecked(status: &mut InitDiagnosisStatus, more: &[String]) {
    for unchecked in more {
        if !status.unchecked.contains(unchecked) && status.unchecked.len() < 10 {
            status.unchecked.push(cut(unchecked, 256));
        }
    }
}

fn conditions(status: &mut InitDiagnosisStatus, now: Timestamp) {
    let diagnosed = status.state == Some(State::Active)
        || status.resolution == Some(Resolution::GaveUp)
        || was_active(status);
    let cause = status.cause.clone().unwrap_or_else(|| catalogue::cause::UNKNOWN.to_owned());
    if diagnosed {
        set(status, "Diagnosed", "True", &cause, now);
    } else {
        set(status, "Diagnosed", "False", "Observed", now);
    }
    match status.resolution {
        Some(resolution) => set(status, "Resolved", "True", &format!("{resolution:?}"), now),
        None => set(status, "Resolved", "False", "Open", now),
    }
    let attempts = status.attempts.unwrap_or_default();
    match (attempts.seen, attempts.lost, attempts.dropped) {
        (0, _, _) => set(status, "LogsPreserved", "Unknown", "NoAttempts", now),
        (_, 0, 0) => set(status, "LogsPreserved", "True", "AllKept", now),
        (_, 0, _) if attempts.kept == 0 => set(status, "LogsPreserved", "False", "NoneKept", now),
        (_, 0, _) => set(status, "LogsPreserved", "True", "KeptWithinBounds", now),
        _ => set(status, "LogsPreserved", "False", "SomeLost", now),
    }
}

/// Sets a condition; its transition time moves only when its status does.
fn set(status: &mut InitDiagnosisStatus, type_: &str, value: &str, reason: &str, now: Timestamp) {
    let known = status.conditions.iter_mut().find(|condition| condition.type_ == type_);
    match known {
        Some(condition) => {
            if condition.status != value {
                condition.last_transition_time = time(now);
            }
            value.clone_into(&mut condition.status);
            reason.clone_into(&mut condition.reason);
        }
        None => status.conditions.push(Condition {
            type_: type_.to_owned(),
            status: value.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            last_transition_time: time(now),
            observed_generation: None,
        }),
    }
}
