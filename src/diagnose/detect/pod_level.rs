//! The cluster ended the Pod while it was in init.
//!
//! kubectl prints `Init:Error` for most of these: `status.reason` has the truth (semantics of printPod).

use super::super::catalogue::cause;
use super::super::facts::PodFacts;
use super::super::verdict::Verdict;
use crate::api::v1alpha1::EvidenceSource;

pub(super) fn detect(facts: &PodFacts<'_>) -> Option<Verdict> {
    let status = &facts.pod.status;
    let reason = status.reason.as_deref().filter(|reason| !reason.is_empty())?;
    if facts.pod.phase() != "Failed" && reason != "NodeLost" {
        return None;
    }
    let (code, what) = match reason {
        "Evicted" => (cause::EVICTED, "the kubelet evicted the Pod"),
        "DeadlineExceeded" => (cause::DEADLINE_EXCEEDED, "the Pod ran into its activeDeadlineSeconds"),
        "NodeLost" | "NodeShutdown" | "Terminated" => (cause::NODE_LOST, "the Pod's node went away"),
        // OutOfcpu, NodeAffinity, UnexpectedAdmissionError …: the node refused the Pod.
        _ => (cause::FAILED_WITHOUT_RETRY, "the node refused the Pod"),
    };
    let message = status.message.as_deref().unwrap_or_default().trim();
    let during = facts.progress.step().map_or_else(
        || "before any init container had run".to_owned(),
        |step| format!("while {} was due", super::named(step)),
    );
    let text = if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") };
    Some(Verdict::new(code, format!("{what} {during} ({text})")).fact(
        EvidenceSource::Status,
        format!("Pod {}", facts.pod.name()),
        text,
    ))
}
