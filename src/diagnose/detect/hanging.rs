//! It runs too long, and nothing tells what it waits for.

use jiff::SignedDuration;

use super::super::catalogue::cause;
use super::super::facts::{LogFacts, PodFacts};
use super::super::verdict::{Urgency, Verdict};
use crate::api::v1alpha1::{Confidence, EvidenceSource};
use crate::pod::progress::StepState;

/// How new a line must be to show that something goes on.
const RECENT: SignedDuration = SignedDuration::from_secs(60);
/// How many times the threshold one that gets on may take before it needs somebody all the same.
const PATIENCE: i32 = 5;

pub(super) fn detect(facts: &PodFacts<'_>) -> Option<Verdict> {
    let Some(step) = super::long_running(facts) else {
        return not_made(facts);
    };
    let log =
        facts.logs.iter().rev().find(|log| log.container == step.container && log.number == step.restarts);
    let last = log.and_then(|log| log.last_line.clone());
    let end = facts
        .stuck_since
        .and_then(|since| since.checked_add(facts.stuck_after.saturating_mul(PATIENCE)).ok())
        .filter(|end| *end > facts.now);
    let gets_on = end.is_some() && log.is_some_and(|log| gets_on(facts, log));
    let subject = format!("init container {}", step.container);
    let words = match &last {
        Some(line) => format!("its last line: {line}"),
        None => "it prints nothing".to_owned(),
    };
    let namespace = facts.pod.namespace();
    let mut verdict = Verdict::new(
        cause::HANGING,
        format!(
            "{} has been running{} and {}; {words}", super::named(&step), super::since(facts), if gets_on { "is still working" } else { "does not end" }),
    )
    .at(&step)
    // That it runs and does not end is certain; that this is a fault is not.
    .confidence(Confidence::Possible)
    .remedy(format!(
        "See what it does: kubectl -n {namespace} logs {pod} -c {container} -f. Bound its waiting, so that it fails with a message.",
        pod = facts.pod.name(),
        container = step.container,
    ))
    .fact(EvidenceSource::Status, &subject, "running");
    if let Some(line) = last {
        verdict = verdict.fact(EvidenceSource::Log, &subject, line);
    }
    if gets_on {
        verdict.urgency = end.map_or(Urgency::Now, Urgency::From);
    }
    if let Some((also, unchecked)) = super::waits::set_aside(facts) {
        verdict.also = also;
        verdict.unchecked = unchecked;
    }
    Some(verdict)
}

/// Whether it gets on: its newest line is new, and its lines are not the same again and again, as those of a loop that
/// waits. It is given more time.
fn gets_on(facts: &PodFacts<'_>, log: &LogFacts) -> bool {
    let recent = RECENT.min(facts.stuck_after / 2);
    let is_new = log.last_at.is_some_and(|at| facts.now.duration_since(at) < recent);
    is_new && !log.repeats
}

/// An init container in the middle of the sequence that is not made although its predecessor is done.
fn not_made(facts: &PodFacts<'_>) -> Option<Verdict> {
    let step = facts.progress.step()?;
    if step.state != StepState::Pending || !super::is_stuck(facts) {
        return None;
    }
    // No status names it (PodInitializing says nothing of its own): so neither does the verdict (D2).
    let mut verdict = Verdict::new(
        cause::UNKNOWN,
        format!(
            "{} is next{} and has not been made: its image is being pulled, or the node does not get on",
            super::named(step),
            super::since(facts),
        ),
    )
    .confidence(Confidence::Possible)
    .remedy(format!(
        "The Pod's Events say what the node does: kubectl -n {} describe pod {}",
        facts.pod.namespace(),
        facts.pod.name()
    ))
    .fact(
        EvidenceSource::Status,
        format!("init container {}", step.container),
        "waiting: PodInitializing",
    );
    verdict.unchecked.push("events of the Pod: not read by this version".to_owned());
    Some(verdict)
}
