//! A native sidecar (an init container with `restartPolicy: Always`) that holds up what comes after it.

use super::super::catalogue::cause;
use super::super::facts::PodFacts;
use super::super::verdict::Verdict;
use crate::api::v1alpha1::{Confidence, EvidenceSource};
use crate::pod::progress::StepState;

pub(super) fn detect(facts: &PodFacts<'_>) -> Option<Verdict> {
    let step = facts.progress.step().filter(|step| step.sidecar)?;
    let subject = format!("init container {}", step.container);
    match &step.state {
        // It runs without having started: its startup probe (or postStart hook) has not succeeded yet.
        StepState::Running { started: false, .. } if super::is_stuck(facts) => Some(
            Verdict::new(
                cause::SIDECAR_STARTUP_PROBE_FAILING,
                format!(
                    "{} runs, but has not counted as started{}: its startup probe or postStart hook does not succeed, and what comes after it waits",
                    super::named(step),
                    super::since(facts),
                ),
            )
            .at(step)
            .confidence(Confidence::Likely)
            .fact(EvidenceSource::Status, subject, "running, started: false"),
        ),
        // kubectl counts an exit with 0 as passed; the kubelet starts it again and lets nothing else start.
        StepState::Ended { exit_code: 0, .. } => Some(
            Verdict::new(
                cause::SIDECAR_EXITS,
                format!(
                    "{} ends with 0 instead of staying: the kubelet starts it again and again, and what comes after it waits",
                    super::named(step),
                ),
            )
            .at(step)
            .urgency(super::until_stuck(facts))
            .fact(EvidenceSource::Status, subject, format!("ended with 0, {} restarts", step.restarts)),
        ),
        _ => None,
    }
}
