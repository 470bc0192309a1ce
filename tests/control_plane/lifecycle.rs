//! The life of a diagnosis on a real API server: Pods without a node, whose status the test writes as a
//! kubelet would.

use initwatch::api::v1alpha1::{InitDiagnosis, Resolution, Severity, State};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::support::controller::Controller;
use crate::support::in_namespace;
use crate::support::observe::{diagnosis, events, pods, reasons, until};

/// A Deployment whose Pods nobody schedules.
pub async fn deployment(
    client: &Client,
    namespace: &str,
    name: &str,
    replicas: i32,
    script: &str,
) -> Vec<Pod> {
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "schedulerName": "nobody",
                    "initContainers": [{"name": "wait-for-db", "image": "x", "command": ["sh", "-c", script]}],
                    "containers": [{"name": "app", "image": "x"}],
                },
            },
        },
    }))
    .unwrap();
    Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &deployment).await.unwrap();
    let count = usize::try_from(replicas).unwrap();
    pods(client, namespace, &format!("app={name}"), count).await
}

/// Writes a Pod's status as its kubelet would.
pub async fn status(client: &Client, pod: &Pod, phase: &str, init: Value) {
    let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap());
    let app = if phase == "Running" {
        json!({"running": {"startedAt": now(0)}})
    } else {
        json!({"waiting": {"reason": "PodInitializing"}})
    };
    let init = merged(
        json!({"name": "wait-for-db", "image": "x", "imageID": "", "ready": false, "restartCount": 0}),
        &init,
    );
    let patch = json!({"status": {
        "phase": phase,
        "conditions": [{"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": now(-60)}],
        "initContainerStatuses": [init],
        "containerStatuses": [{"name": "app", "image": "x", "imageID": "", "ready": phase == "Running", "restartCount": 0, "state": app}],
    }});
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

fn merged(mut base: Value, more: &Value) -> Value {
    base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    base
}

pub fn now(offset: i64) -> String {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(offset);
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub fn running() -> Value {
    json!({"containerID": "containerd://c0", "state": {"running": {"startedAt": now(-60)}}})
}

fn crashed(attempt: i32) -> Value {
    json!({
        "containerID": format!("containerd://c{attempt}"),
        "restartCount": attempt,
        "state": {"terminated": {
            "exitCode": 3, "reason": "Error", "message": "relation users already exists",
            "startedAt": now(-2), "finishedAt": now(-1), "containerID": format!("containerd://c{attempt}"),
        }},
    })
}

pub fn passed() -> Value {
    json!({"ready": true, "state": {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now(0), "containerID": "containerd://c9"}}})
}

/// Makes the watch name a Pod, so that its diagnosis is looked at now and not at the next round.
pub async fn touch(client: &Client, pod: &Pod) {
    let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap());
    let patch = json!({"metadata": {"annotations": {"touched": now(0)}}});
    pods.patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

pub const WAIT: &str = "until nc -z postgres 5432; do sleep 2; done";

#[tokio::test]
async fn a_hang_is_named_after_what_is_missing_and_followed_to_its_end() {
    in_namespace("hang", async |client, namespace| {
        let waiters = deployment(&client, namespace, "api", 2, WAIT).await;
        for pod in &waiters {
            status(&client, pod, "Pending", running()).await;
        }
        let _controller = Controller::start(namespace);
        let found =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.affected_pods == Some(2)).await;
        let seen = found.status.unwrap();
        assert_eq!(seen.cause.as_deref(), Some("ServiceNotFound"));
        assert_eq!((seen.state, seen.severity), (Some(State::Active), Some(Severity::Warning)));
        assert_eq!((seen.pod_status.as_deref(), seen.pods.as_deref()), (Some("Init:0/1"), Some("2/2")));
        assert_eq!(
            (seen.init_container.as_deref(), seen.step.as_deref()),
            (Some("wait-for-db"), Some("1/1"))
        );
        let summary = seen.summary.unwrap();
        assert!(summary.contains("postgres:5432"), "{summary}");
        assert!(summary.contains(&format!("no Service postgres in namespace {namespace}")), "{summary}");
        assert_eq!(
            (found.spec.workload.kind.as_str(), found.spec.workload.name.as_str()),
            ("Deployment", "api")
        );

        // The Service appears, but nothing is behind it.
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "postgres"},
            "spec": {"selector": {"app": "postgres"}, "ports": [{"port": 5432}]},
        }))
        .unwrap();
        Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &service).await.unwrap();
        for pod in &waiters {
            touch(&client, pod).await;
        }
        let next = diagnosis(&client, namespace, "replicaset.api-", |status| {
            status.cause.as_deref() == Some("ServiceHasNoEndpoints")
        })
        .await;
        let seen = next.status.unwrap();
        assert_eq!(
            seen.history.iter().map(|past| past.cause.as_str()).collect::<Vec<_>>(),
            ["ServiceNotFound"]
        );
        assert_eq!(next.metadata.uid, found.metadata.uid);

        // Both get on.
        for pod in &waiters {
            status(&client, pod, "Running", passed()).await;
        }
        let last =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Resolved))
                .await;
        let seen = last.status.unwrap();
        assert_eq!(seen.resolution, Some(Resolution::Recovered));
        assert!(seen.stuck_for.is_some_and(|seconds| seconds >= 60), "{:?}", seen.stuck_for);
        let sent = until("the recovery Event", async || {
            let sent = events(&client, namespace).await;
            reasons(&sent).iter().any(|reason| reason.ends_with("InitRecovered")).then_some(sent)
        })
        .await;
        let mut seen = reasons(&sent);
        seen.sort();
        assert_eq!(
            seen,
            [
                "Deployment InitRecovered",
                "Deployment ServiceHasNoEndpoints",
                "Deployment ServiceNotFound",
                "Pod ServiceHasNoEndpoints",
                "Pod ServiceHasNoEndpoints",
                "Pod ServiceNotFound",
                "Pod ServiceNotFound",
            ]
        );
        for event in &sent {
            let related = event.related.as_ref().unwrap();
            assert_eq!(
                (related.kind.as_deref(), related.uid.as_ref()),
                (Some("InitDiagnosis"), found.metadata.uid.as_ref())
            );
            assert!(event.note.as_ref().is_some_and(|note| note.len() <= 1024));
        }
    })
    .await;
}

#[tokio::test]
async fn a_crash_loop_is_observed_once_and_active_the_second_time() {
    in_namespace("crash", async |client, namespace| {
        let pod = deployment(&client, namespace, "api", 1, "exit 3").await.remove(0);
        // A threshold that this test does not reach: only the second failure escalates.
        let arguments = ["--namespace", namespace, "--stuck-after", "1h"];
        let _controller = Controller::start_with(&crate::support::kubeconfig(), &arguments);
        status(&client, &pod, "Pending", crashed(0)).await;
        let first = diagnosis(&client, namespace, "replicaset.api-", |status| status.state.is_some()).await;
        let seen = first.status.unwrap();
        assert_eq!((seen.state, seen.cause.as_deref()), (Some(State::Observed), Some("NonZeroExit")));
        assert!(events(&client, namespace).await.is_empty(), "what may heal is kept without an Event");

        status(&client, &pod, "Pending", crashed(1)).await;
        let second =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Active))
                .await;
        let seen = second.status.unwrap();
        // No kubelet: the termination message is all that is left of the attempts, and it is said.
        let attempts = &seen.affected.first().unwrap().attempts;
        assert_eq!(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [0, 1]);
        assert!(
            attempts
                .iter()
                .all(|attempt| attempt.excerpt.as_deref() == Some("relation users already exists"))
        );
        assert!(seen.summary.unwrap().contains("relation users already exists"));
    })
    .await;
}

#[tokio::test]
async fn a_restart_repeats_nothing_and_keeps_the_clock() {
    in_namespace("restart", async |client, namespace| {
        let pod = deployment(&client, namespace, "api", 1, WAIT).await.remove(0);
        status(&client, &pod, "Pending", running()).await;
        let controller = Controller::start(namespace);
        let before =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Active))
                .await;
        until("both Events", async || (events(&client, namespace).await.len() == 2).then_some(())).await;
        let (ended, took) = controller.terminate().await;
        assert_eq!(ended.code(), Some(0));
        assert!(took < std::time::Duration::from_secs(5), "{took:?}");

        // The kubelet's times move on, as they do in a crash loop; ours must not.
        let later = json!({"containerID": "containerd://c0", "state": {"running": {"startedAt": now(0)}}});
        status(&client, &pod, "Pending", later).await;
        for round in 0..2 {
            let mut controller = Controller::start(namespace);
            controller.says("planned").await;
            let after = diagnosis(&client, namespace, "replicaset.api-", |_| true).await;
            let since = |diagnosis: &InitDiagnosis| diagnosis.status.as_ref().unwrap().stuck_since.clone();
            assert_eq!(since(&after), since(&before), "round {round}");
            assert_eq!(
                after.metadata.resource_version, before.metadata.resource_version,
                "nothing is written"
            );
            assert_eq!(events(&client, namespace).await.len(), 2, "no Event is repeated");
            controller.kill().await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_ended_while_nobody_looked_is_found_at_the_next_start() {
    in_namespace("missed", async |client, namespace| {
        let pod = deployment(&client, namespace, "api", 1, WAIT).await.remove(0);
        status(&client, &pod, "Pending", running()).await;
        let controller = Controller::start(namespace);
        diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Active)).await;
        controller.kill().await;
        status(&client, &pod, "Running", passed()).await;
        let _controller = Controller::start(namespace);
        let found =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Resolved))
                .await;
        assert_eq!(found.status.unwrap().resolution, Some(Resolution::Recovered));
    })
    .await;
}

#[tokio::test]
async fn an_object_that_somebody_edits_or_deletes_heals_and_its_metadata_is_left_alone() {
    in_namespace("heal", async |client, namespace| {
        let pod = deployment(&client, namespace, "api", 1, WAIT).await.remove(0);
        status(&client, &pod, "Pending", running()).await;
        let _controller = Controller::start(namespace);
        let active =
            |status: &initwatch::api::v1alpha1::InitDiagnosisStatus| status.state == Some(State::Active);
        let found = diagnosis(&client, namespace, "replicaset.api-", active).await;
        let name = found.name_any();
        let diagnoses = Api::<InitDiagnosis>::namespaced(client.clone(), namespace);
        let edit =
            json!({"metadata": {"labels": {"team": "shop"}}, "spec": {"workload": {"name": "edited"}}});
        diagnoses.patch(&name, &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
        let edit = json!({"status": {"cause": "Edited"}});
        diagnoses.patch_status(&name, &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
        touch(&client, &pod).await;
        let healed = diagnosis(&client, namespace, "replicaset.api-", |status| {
            status.cause.as_deref() == Some("ServiceNotFound")
        })
        .await;
        assert_eq!(healed.spec.workload.name, "api");
        assert_eq!(healed.labels().get("team").map(String::as_str), Some("shop"));

        diagnoses.delete(&name, &DeleteParams::default()).await.unwrap();
        touch(&client, &pod).await;
        let again = diagnosis(&client, namespace, "replicaset.api-", active).await;
        assert_ne!(again.metadata.uid, healed.metadata.uid);
    })
    .await;
}

#[tokio::test]
async fn pods_of_a_deployment_that_is_deleted_are_gone_without_a_recovery() {
    in_namespace("gone", async |client, namespace| {
        let pod = deployment(&client, namespace, "api", 1, WAIT).await.remove(0);
        status(&client, &pod, "Pending", running()).await;
        let _controller = Controller::start(namespace);
        diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Active)).await;
        Api::<Deployment>::namespaced(client.clone(), namespace)
            .delete("api", &DeleteParams::background())
            .await
            .unwrap();
        let found =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Resolved))
                .await;
        assert_eq!(found.status.unwrap().resolution, Some(Resolution::PodsGone));
        let sent = reasons(&events(&client, namespace).await);
        assert!(!sent.iter().any(|reason| reason.ends_with("InitRecovered")), "{sent:?}");
    })
    .await;
}

#[tokio::test]
async fn a_healthy_slow_init_and_an_ignored_pod_have_no_diagnosis() {
    in_namespace("healthy", async |client, namespace| {
        let slow = deployment(&client, namespace, "slow", 1, "sleep 60").await.remove(0);
        let ignored = deployment(&client, namespace, "ignored", 1, WAIT).await.remove(0);
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        let annotate = async |pod: &Pod, name: &str, value: &str| {
            let patch = json!({"metadata": {"annotations": {name: value}}});
            pods.patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        };
        annotate(&slow, "initwatch.dev/stuck-after", "30m").await;
        annotate(&ignored, "initwatch.dev/ignore", "true").await;
        for pod in [&slow, &ignored] {
            status(&client, pod, "Pending", running()).await;
        }
        // One that is diagnosed says when all three have been looked at.
        let stuck = deployment(&client, namespace, "stuck", 1, WAIT).await.remove(0);
        status(&client, &stuck, "Pending", running()).await;
        let _controller = Controller::start(namespace);
        diagnosis(&client, namespace, "replicaset.stuck-", |status| status.state == Some(State::Active))
            .await;
        status(&client, &slow, "Running", passed()).await;
        let all = Api::<InitDiagnosis>::namespaced(client.clone(), namespace)
            .list(&ListParams::default())
            .await
            .unwrap();
        let names: Vec<_> = all.items.iter().map(ResourceExt::name_any).collect();
        assert!(names.iter().all(|name| name.starts_with("replicaset.stuck-")), "{names:?}");
    })
    .await;
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_crash_loop_does_not_move_the_clock() {
    in_namespace("clock", async |client, namespace| {
        let pod = deployment(&client, namespace, "api", 1, "exit 3").await.remove(0);
        status(&client, &pod, "Pending", crashed(1)).await;
        let controller = Controller::start(namespace);
        let active =
            |status: &initwatch::api::v1alpha1::InitDiagnosisStatus| status.state == Some(State::Active);
        let before = diagnosis(&client, namespace, "replicaset.api-", active).await.status.unwrap();
        controller.kill().await;
        // Two more attempts fail while nobody looks; the kubelet's times are all new.
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        let conditions = json!({"status": {"conditions": [
            {"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": now(0)},
        ]}});
        status(&client, &pod, "Pending", crashed(3)).await;
        pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(conditions)).await.unwrap();
        let _controller = Controller::start(namespace);
        let after = diagnosis(&client, namespace, "replicaset.api-", |status| {
            status.attempts.is_some_and(|attempts| attempts.seen == 2)
        })
        .await
        .status
        .unwrap();
        assert_eq!(after.stuck_since, before.stuck_since);
        assert_eq!(after.affected.first().unwrap().stuck_since, before.affected.first().unwrap().stuck_since);
    })
    .await;
}

#[tokio::test]
async fn a_namespace_sets_the_threshold_and_can_ask_to_be_left_alone() {
    use k8s_openapi::api::core::v1::Namespace;
    in_namespace("policy", async |client, namespace| {
        let namespaces = Api::<Namespace>::all(client.clone());
        let patch = json!({"metadata": {"annotations": {"initwatch.dev/stuck-after": "2s"}}});
        namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        let pod = deployment(&client, namespace, "api", 1, WAIT).await.remove(0);
        // A Pod's own annotation that makes no sense is complained about once, and does not count.
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        let patch = json!({"metadata": {"annotations": {"initwatch.dev/stuck-after": "soon"}}});
        pods.patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        status(&client, &pod, "Pending", running()).await;
        let arguments = ["--namespace", namespace, "--stuck-after", "1h"];
        let controller = Controller::start_with(&crate::support::kubeconfig(), &arguments);
        diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Active)).await;
        let complaint = until("the complaint", async || {
            let sent = events(&client, namespace).await;
            sent.into_iter().find(|event| event.reason.as_deref() == Some("InvalidAnnotation"))
        })
        .await;
        assert!(complaint.note.unwrap().contains("\"soon\" is not a duration"));
        controller.kill().await;

        let patch = json!({"metadata": {"annotations": {"initwatch.dev/ignore": "true"}}});
        namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        let ignored = deployment(&client, namespace, "ignored", 1, WAIT).await.remove(0);
        status(&client, &ignored, "Pending", running()).await;
        let mut controller = Controller::start_with(
            &crate::support::kubeconfig(),
            &["--namespace", namespace, "--stuck-after", "1s"],
        );
        controller.says("watching").await;
        controller.says("ignored with its namespace").await;
        let all = Api::<InitDiagnosis>::namespaced(client.clone(), namespace)
            .list(&ListParams::default())
            .await
            .unwrap();
        assert!(all.items.iter().all(|diagnosis| diagnosis.name_any().starts_with("replicaset.api-")));
    })
    .await;
}

#[tokio::test]
async fn an_owner_of_a_kind_that_nobody_knows_is_shown_by_its_own_kind() {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    in_namespace("rollout", async |client, namespace| {
        // As Argo Rollouts makes it; neither the kind nor the object exists here.
        let replica_set: ReplicaSet = serde_json::from_value(json!({
            "metadata": {
                "name": "canary-7d9c6b8f5d",
                "ownerReferences": [{
                    "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "canary", "uid": "r-1", "controller": true,
                }],
            },
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "canary"}},
                "template": {
                    "metadata": {"labels": {"app": "canary", "pod-template-hash": "7d9c6b8f5d"}},
                    "spec": {
                        "schedulerName": "nobody",
                        "initContainers": [{"name": "wait-for-db", "image": "x", "command": ["sh", "-c", WAIT]}],
                        "containers": [{"name": "app", "image": "x"}],
                    },
                },
            },
        }))
        .unwrap();
        // The garbage collector removes what belongs to a kind that it knows to have gone, not of one it cannot look up.
        Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &replica_set).await.unwrap();
        let pod = pods(&client, namespace, "app=canary", 1).await.remove(0);
        status(&client, &pod, "Pending", running()).await;
        let _controller = Controller::start(namespace);
        let found = diagnosis(&client, namespace, "replicaset.canary-7d9c6b8f5d", |status| status.state.is_some()).await;
        let workload = &found.spec.workload;
        assert_eq!((workload.kind.as_str(), workload.group.as_str(), workload.name.as_str()), ("Rollout", "argoproj.io", "canary"));
        let sent = until("the Event on the Rollout", async || {
            let sent = events(&client, namespace).await;
            sent.into_iter().find(|event| event.regarding.as_ref().is_some_and(|of| of.kind.as_deref() == Some("Rollout")))
        })
        .await;
        assert_eq!(sent.regarding.unwrap().api_version.as_deref(), Some("argoproj.io/v1alpha1"));
    })
    .await;
}

#[tokio::test]
async fn the_clock_starts_anew_when_the_step_advances() {
    in_namespace("advance", async |client, namespace| {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "two-steps"},
            "spec": {
                "schedulerName": "nobody",
                "initContainers": [
                    {"name": "one", "image": "x", "command": ["sleep", "1000"]},
                    {"name": "two", "image": "x", "command": ["sleep", "1000"]},
                ],
                "containers": [{"name": "app", "image": "x"}],
            },
        }))
        .unwrap();
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let write = async |one: Value, two: Value| {
            let container = |name: &str, state: Value| {
                json!({"name": name, "image": "x", "imageID": "", "ready": false, "restartCount": 0, "containerID": format!("containerd://{name}"), "state": state})
            };
            let patch = json!({"status": {
                "conditions": [{"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": now(-600)}],
                "initContainerStatuses": [container("one", one), container("two", two)],
            }});
            pods.patch_status("two-steps", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        };
        write(json!({"running": {"startedAt": now(-599)}}), json!({"waiting": {"reason": "PodInitializing"}})).await;
        let _controller = Controller::start(namespace);
        let on = |container: &'static str| move |status: &initwatch::api::v1alpha1::InitDiagnosisStatus| {
            status.init_container.as_deref() == Some(container)
        };
        let first = diagnosis(&client, namespace, "pod.two-steps", on("one")).await.status.unwrap();
        assert_eq!(first.step.as_deref(), Some("1/2"));
        let ended = now(-30);
        write(
            json!({"terminated": {"exitCode": 0, "finishedAt": ended, "containerID": "containerd://one"}}),
            json!({"running": {"startedAt": now(-29)}}),
        )
        .await;
        let second = diagnosis(&client, namespace, "pod.two-steps", on("two")).await.status.unwrap();
        assert_eq!((second.step.as_deref(), second.pod_status.as_deref()), (Some("2/2"), Some("Init:1/2")));
        assert_eq!(second.stuck_since.unwrap().0.to_string(), ended);
        assert!(first.stuck_since.unwrap().0.to_string() < ended);
    })
    .await;
}
