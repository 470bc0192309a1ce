//! Which running init containers may be gone, log and all, before their end is seen.

use super::slots::Risk;
use crate::pod::PodView;
use crate::pod::attempt::RunningAttempt;

/// Why the log of a running init container should be followed; none where its end can be waited for.
/// `workload_failed`: there is a diagnosis of its workload.
pub(super) fn risk(pod: &PodView, attempt: &RunningAttempt, workload_failed: bool) -> Option<Risk> {
    let spec = pod.init_container(&attempt.container)?;
    let status = pod.status.init_container_statuses.iter().find(|status| status.name == attempt.container);
    if spec.is_sidecar() && status.is_some_and(|status| status.started == Some(true)) {
        // It does its work; what it prints is the app's log.
        return None;
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(Risk::BeingDeleted);
    }
    if attempt.number > 0 {
        return Some(Risk::FailedBefore);
    }
    // A Job deletes its Pods at the backoff limit, and with a TTL; nobody replaces a bare Pod.
    let stands_alone = pod.controller().is_none_or(|owner| matches!(owner.kind.as_str(), "Job" | "Node"));
    (workload_failed || stands_alone).then_some(Risk::FirstAttempt)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pod::attempt::running_attempt;

    fn of(owner: Option<&str>, restarts: i32, sidecar: bool, deleted: bool, failed: bool) -> Option<Risk> {
        let restart_policy = if sidecar { json!("Always") } else { json!(null) };
        let owners = owner.map(
            |kind| json!([{"kind": kind, "apiVersion": "x/v1", "name": "o", "uid": "u", "controller": true}]),
        );
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {
                "name": "p", "namespace": "shop", "uid": "1", "ownerReferences": owners,
                "deletionTimestamp": deleted.then_some("2026-12-01T10:00:00Z"),
            },
            "spec": {"initContainers": [{"name": "a", "restartPolicy": restart_policy}]},
            "status": {"initContainerStatuses": [{
                "name": "a", "restartCount": restarts, "containerID": "containerd://1", "started": true,
                "state": {"running": {"startedAt": "2026-12-01T10:00:00Z"}},
            }]},
        }))
        .unwrap();
        let attempt = running_attempt(&pod.status.init_container_statuses[0]).unwrap();
        risk(&pod, &attempt, failed)
    }

    #[test]
    fn those_that_can_vanish_are_at_risk() {
        assert_eq!(of(Some("ReplicaSet"), 0, false, false, false), None);
        assert_eq!(of(Some("ReplicaSet"), 0, false, false, true), Some(Risk::FirstAttempt));
        assert_eq!(of(Some("ReplicaSet"), 1, false, false, false), Some(Risk::FailedBefore));
        assert_eq!(of(Some("ReplicaSet"), 1, false, true, false), Some(Risk::BeingDeleted));
        assert_eq!(of(Some("Job"), 0, false, false, false), Some(Risk::FirstAttempt));
        assert_eq!(of(None, 0, false, false, false), Some(Risk::FirstAttempt));
        assert_eq!(of(Some("Job"), 3, true, false, true), None, "a sidecar that has started");
    }
}
