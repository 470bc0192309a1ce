//! A native sidecar (an init container with `restartPolicy: Always`) that holds up what comes after it.

use super::super::catalogue::cause;
use super::super::facts::PodFacts;
use super::super::verdict::Verdict;
use crate::api::v1alpha1::{Confidence, EvidenceSource};
use crate::pod::progress::{Step, StepState};

pub(super) fn detect(facts: &PodFacts<'_>) -> Option<Verdict> {
    let step = facts.progress.step().filter(|step| step.sidecar)?;
    let not_started =
        matches!(step.state, StepState::Ended { .. } | StepState::Running { started: false, .. });
    if not_started && was_killed(facts, step) {
        // The kubelet ends it when its startup probe or its postStart hook has failed, and says so in an Event only.
        return killed_before_it_started(facts, step);
    }
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

/// Whether its last attempt was ended by SIGTERM or SIGKILL, with nothing that says who did that.
fn was_killed(facts: &PodFacts<'_>, step: &Step) -> bool {
    let statuses = &facts.pod.status.init_container_statuses;
    let Some(status) = statuses.iter().find(|status| status.name == step.container) else { return false };
    let ended = status.state.terminated.as_ref().or(status.last_state.terminated.as_ref());
    ended.is_some_and(|ended| {
        matches!(ended.exit_code, 137 | 143) && matches!(ended.reason.as_deref(), None | Some("" | "Error"))
    })
}

fn killed_before_it_started(facts: &PodFacts<'_>, step: &Step) -> Option<Verdict> {
    let spec = facts.pod.init_container(&step.container)?;
    let has_hook = spec.lifecycle.as_ref().is_some_and(|lifecycle| lifecycle.post_start.is_some());
    let (code, what, remedy) = match (spec.startup_probe.is_some(), has_hook) {
        (true, false) => (
            cause::SIDECAR_STARTUP_PROBE_FAILING,
            "its startup probe does not succeed",
            "Compare the probe's port, path and budget (failureThreshold times periodSeconds) with what the sidecar serves",
        ),
        (false, true) => (
            cause::CONTAINER_START_FAILED,
            "its postStart hook fails",
            "Run the hook's command in the container by hand, or take it out",
        ),
        (true, true) => (
            cause::SIDECAR_STARTUP_PROBE_FAILING,
            "its startup probe or its postStart hook does not succeed",
            "See which of the two it is",
        ),
        (false, false) => return None,
    };
    let (namespace, pod) = (facts.pod.namespace(), facts.pod.name());
    let mut verdict = Verdict::new(
        code,
        format!("{} is ended by the kubelet before it counts as started: {what}, and what comes after it waits", super::named(step)),
    )
    .at(step)
    .confidence(Confidence::Likely)
    .remedy(format!("{remedy}. The Events of the Pod have the answer that the kubelet got: kubectl -n {namespace} describe pod {pod}"))
    .fact(EvidenceSource::Status, format!("init container {}", step.container), format!("ended by a signal, started: false, {} restarts", step.restarts));
    if step.failures() < 2 {
        verdict = verdict.urgency(super::until_stuck(facts));
    }
    Some(verdict)
}
