//! The Pod waits before any container exists.

use super::super::catalogue::cause;
use super::super::facts::PodFacts;
use super::super::verdict::Verdict;
use crate::api::v1alpha1::{Confidence, EvidenceSource};
use crate::pod::progress::InitProgress;

pub(super) fn detect(facts: &PodFacts<'_>) -> Option<Verdict> {
    let InitProgress::BeforeContainers { .. } = facts.progress else {
        return None;
    };
    let pod = facts.pod;
    if !super::is_stuck(facts) {
        return None;
    }
    let subject = format!("Pod {}", pod.name());
    let is_scheduled = pod.condition("PodScheduled");
    if let Some(condition) = is_scheduled.filter(|condition| condition.status != "True") {
        if condition.reason.as_deref() == Some("SchedulingGated") {
            // Somebody holds it back on purpose.
            return None;
        }
        let message = condition.message.clone().unwrap_or_default();
        return Some(
            Verdict::new(
                cause::UNSCHEDULABLE,
                format!("no node takes the Pod{}: {message}", super::since(facts)),
            )
            .remedy(unschedulable_remedy(&message))
            .fact(EvidenceSource::Status, subject, message),
        );
    }
    let Some(node) = pod.spec.node_name.as_deref() else {
        // Without even a condition, no scheduler has looked at it.
        let scheduler = pod.spec.scheduler_name.as_deref().unwrap_or("default-scheduler");
        let verdict = Verdict::new(
            cause::UNSCHEDULABLE,
            format!(
                "no node has been chosen for the Pod{}, and no scheduler says why: is {scheduler} running?",
                super::since(facts)
            ),
        );
        return Some(
            verdict
                .confidence(Confidence::Likely)
                .remedy(format!("See whether the scheduler {scheduler} runs and takes Pods; the Pod names it in spec.schedulerName."))
                .fact(EvidenceSource::Status, subject, "no node, no condition PodScheduled"),
        );
    };
    // What stands in the way here (a volume, the network, the sandbox) is told by Events alone.
    let mut verdict = Verdict::new(
        cause::UNKNOWN,
        format!(
            "the Pod is bound to node {}, but no init container has been made{}: its volumes, network or sandbox are not ready",
            node,
            super::since(facts),
        ),
    )
    .confidence(Confidence::Possible)
    .remedy(format!(
        "The Pod's Events name the volume, the network plugin or the sandbox: kubectl -n {} describe pod {}",
        pod.namespace(),
        pod.name()
    ))
    .fact(EvidenceSource::Status, subject, "every init container waits with PodInitializing");
    verdict.unchecked.push("events of the Pod: not read by this version".to_owned());
    Some(verdict)
}

/// What to do about what the scheduler says (`pkg/scheduler/framework/plugins`, the reasons of each).
fn unschedulable_remedy(message: &str) -> String {
    const REMEDIES: [(&str, &str); 8] = [
        (
            "persistentvolumeclaim",
            "Create the claim, or correct its name in the Pod: kubectl -n {namespace} get persistentvolumeclaims.",
        ),
        (
            "unbound immediate PersistentVolumeClaims",
            "See why the claim is not bound (no such StorageClass, no provisioner, no volume): kubectl -n {namespace} describe persistentvolumeclaims.",
        ),
        (
            "volume node affinity conflict",
            "The volume lies in a zone or on a node where there is no room for the Pod: free some there.",
        ),
        (
            "node affinity/selector",
            "No node has the labels that the Pod asks for: correct nodeSelector or affinity, or label a node (kubectl get nodes --show-labels).",
        ),
        (
            "untolerated taint",
            "The nodes repel it: add a toleration, or take the taint away (kubectl describe nodes | grep Taints).",
        ),
        (
            "Insufficient",
            "Lower the requests, or add capacity. Of the init containers the largest request counts, not the sum: kubectl describe nodes | grep -A8 Allocated.",
        ),
        ("Too many pods", "The nodes have as many Pods as they may: add a node."),
        (
            "topology spread",
            "The spread that the Pod asks for cannot be had: loosen its topologySpreadConstraints, or add nodes in the missing zones.",
        ),
    ];
    let fitting: Vec<_> = REMEDIES
        .iter()
        .filter(|(words, _)| message.contains(words))
        .map(|(_, remedy)| *remedy)
        .take(3)
        .collect();
    if fitting.is_empty() {
        return "See what the nodes lack: kubectl -n {namespace} describe pod {pod}".to_owned();
    }
    fitting.join(" ")
}
