//! The init container ended badly, or did so before the attempt that runs now.

use super::super::catalogue::cause;
use super::super::exit_code;
use super::super::facts::PodFacts;
use super::super::verdict::{Urgency, Verdict};
use crate::api::v1alpha1::EvidenceSource;
use crate::pod::progress::{Step, StepState};
use crate::pod::view::Terminated;

/// How the last attempt ended.
struct End<'a> {
    exit_code: i32,
    signal: Option<i32>,
    reason: &'a str,
    message: &'a str,
    /// Whether another attempt follows or already runs.
    retried: bool,
}

pub(super) fn detect(facts: &PodFacts<'_>) -> Option<Verdict> {
    let step = facts.progress.step()?;
    // One that has run for long after earlier failures hangs: those are not today's cause.
    if super::long_running(facts).is_some() {
        return None;
    }
    let end = last_end(facts, step)?;
    let (code, what) = classify(&end);
    let decisive = facts
        .logs
        .iter()
        .rev()
        .filter(|log| log.container == step.container)
        .find_map(|log| log.decisive_line.as_deref().or(log.last_line.as_deref()));
    let words = decisive.or_else(|| Some(end.message).filter(|text| !text.is_empty())).map(one_line);
    let mut summary = format!("{} {what}", super::named(step));
    if let Some(words) = &words {
        summary.push_str(": ");
        summary.push_str(words);
    }
    if step.rerun {
        summary.push_str(" (run again after a new sandbox; it had succeeded in this Pod before)");
    }
    if !end.retried {
        summary.push_str(" (not retried in this Pod)");
    }
    let subject = format!("init container {}", step.container);
    let mut verdict = Verdict::new(code, summary).at(step).urgency(urgency(facts, step, &end)).fact(
        EvidenceSource::Status,
        &subject,
        fact(&end),
    );
    if let Some(line) = decisive {
        verdict = verdict.fact(EvidenceSource::Log, &subject, one_line(line));
    }
    if code == cause::NON_ZERO_EXIT {
        let (namespace, pod) = (facts.pod.namespace(), facts.pod.name());
        // Where nothing follows, there is no previous one.
        let previous = if end.retried { " --previous" } else { "" };
        let container = &step.container;
        let mut remedy = format!(
            "Read what it says before it ends: kubectl -n {namespace} logs {pod} -c {container}{previous}. The logs that are kept: kubectl -n {namespace} get initlogs (the text of one: get initlog NAME -o jsonpath='{{.spec.text}}')."
        );
        if let Some(meaning) = exit_code::meaning(end.exit_code) {
            remedy = format!("{remedy} {meaning}");
        }
        verdict = verdict.remedy(remedy);
    }
    Some(verdict)
}

/// The end that the step stands after: its present state, or, while the next attempt runs, the one before it.
fn last_end<'a>(facts: &'a PodFacts<'_>, step: &'a Step) -> Option<End<'a>> {
    match &step.state {
        StepState::Ended { exit_code, signal, reason, message, retried } => Some(End {
            exit_code: *exit_code,
            signal: *signal,
            reason: reason.as_deref().unwrap_or_default(),
            message: message.as_deref().unwrap_or_default(),
            retried: *retried,
        }),
        StepState::Running { .. } | StepState::Pending => {
            let status = facts
                .pod
                .status
                .init_container_statuses
                .iter()
                .find(|status| status.name == step.container)?;
            let failed = |ended: &&Terminated| ended.exit_code != 0;
            let ended = status.last_state.terminated.as_ref().filter(failed)?;
            Some(End {
                exit_code: ended.exit_code,
                signal: ended.effective_signal(),
                reason: ended.reason.as_deref().unwrap_or_default(),
                message: ended.message.as_deref().unwrap_or_default(),
                retried: true,
            })
        }
        StepState::Refused { .. } => None,
    }
}

/// Cause of an end. Success is judged by the exit code alone: an out-of-memory kill of a child process marks
/// even a 0 as OOMKilled (containerd).
fn classify(end: &End<'_>) -> (&'static str, String) {
    let code = end.exit_code;
    match (end.reason, end.signal) {
        ("OOMKilled", _) => {
            (cause::OOM_KILLED, format!("was killed at its memory limit (OOMKilled, exit code {code})"))
        }
        ("StartError" | "ContainerCannotRun", _) => {
            (cause::CONTAINER_START_FAILED, format!("could not be started by the runtime (exit code {code})"))
        }
        ("ContainerStatusUnknown", _) => {
            (cause::NODE_LOST, "ended in a way its node has no record of".to_owned())
        }
        (_, Some(signal)) => (
            cause::KILLED_BY_SIGNAL,
            format!("was ended by signal {} (exit code {code})", exit_code::signal_name(signal)),
        ),
        _ => (cause::NON_ZERO_EXIT, format!("ends with exit code {code}")),
    }
}

/// D11: a first failure that is retried may heal; a second one, or one that nobody retries, needs somebody.
fn urgency(facts: &PodFacts<'_>, step: &Step, end: &End<'_>) -> Urgency {
    let failed_again = step.failures() >= 2;
    if !end.retried || failed_again { Urgency::Now } else { super::until_stuck(facts) }
}

fn fact(end: &End<'_>) -> String {
    let reason = if end.reason.is_empty() { String::new() } else { format!(" ({})", end.reason) };
    let message = if end.message.is_empty() { String::new() } else { format!(": {}", one_line(end.message)) };
    format!("exit code {}{reason}{message}", end.exit_code)
}

/// A text as one line of at most 300 bytes, for use within a sentence.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    super::super::cut(&words.join(" "), 300)
}
