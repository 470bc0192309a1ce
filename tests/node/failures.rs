//! Containers that really crash, hang and give up.

use std::collections::BTreeSet;

use initwatch::api::v1alpha1::{InitDiagnosis, Resolution, State};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::deployed::{controller, kubectl};
use crate::support::in_namespace;
use crate::support::observe::{diagnosis, events, logs, pods, reasons, until};

pub fn pod_template(name: &str, script: &str, restart_policy: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}, "annotations": {"initwatch.dev/stuck-after": "4s"}},
        "spec": {
            "restartPolicy": restart_policy,
            "terminationGracePeriodSeconds": 1,
            "initContainers": [{
                "name": "step", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
                "command": ["sh", "-c", script],
            }],
            "containers": [{
                "name": "app", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
                "command": ["sleep", "3600"],
            }],
        },
    })
}

async fn deploy(client: &Client, namespace: &str, name: &str, script: &str) -> Pod {
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": pod_template(name, script, "Always"),
        },
    }))
    .unwrap();
    Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &deployment).await.unwrap();
    pods(client, namespace, &format!("app={name}"), 1).await.remove(0)
}

/// Prints something that no other attempt prints, and when.
const CRASH: &str = "echo nonce $(cat /proc/sys/kernel/random/uuid) at $(date +%s); \
                     echo 'ERROR: relation \"users\" already exists'; exit 3";

#[tokio::test]
async fn three_crashes_leave_three_labelled_logs_that_outlive_the_pod() {
    controller().await;
    in_namespace("crash", async |client, namespace| {
        let pod = deploy(&client, namespace, "api", CRASH).await;
        let found = diagnosis(&client, namespace, "replicaset.api-", |status| {
            status.attempts.is_some_and(|attempts| attempts.kept >= 3)
        })
        .await;
        let seen = found.status.unwrap();
        assert_eq!((seen.state, seen.cause.as_deref()), (Some(State::Active), Some("NonZeroExit")));
        assert!(seen.summary.unwrap().contains("ERROR: relation \"users\" already exists"));
        assert_eq!(seen.attempts.unwrap().lost, 0);

        // While the controller is away, nothing is lost that comes after: it is stopped and started again.
        kubectl(&["-n", "initwatch-system", "rollout", "restart", "deployment/initwatch"]).await;
        kubectl(&["-n", "initwatch-system", "rollout", "status", "deployment/initwatch", "--timeout=60s"])
            .await;

        // By force: no grace, and nobody waits for the kubelet.
        let now = DeleteParams::default().grace_period(0);
        Api::<Deployment>::namespaced(client.clone(), namespace)
            .delete("api", &DeleteParams::background())
            .await
            .unwrap();
        Api::<Pod>::namespaced(client.clone(), namespace).delete(&pod.name_any(), &now).await.ok();
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        until("the end of the Pod", async || {
            pods.get_opt(&pod.name_any()).await.unwrap().is_none().then_some(())
        })
        .await;

        let gone =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Resolved))
                .await;
        let seen = gone.status.clone().unwrap();
        assert_eq!(seen.resolution, Some(Resolution::PodsGone));
        let entry = seen.affected.iter().find(|entry| entry.uid == pod.uid().unwrap()).unwrap();
        let kept = logs(&client, namespace).await;
        let mut nonces = BTreeSet::new();
        for attempt in &entry.attempts {
            let name =
                attempt.log.as_ref().unwrap_or_else(|| panic!("attempt {} has no log", attempt.number));
            let log = kept.iter().find(|log| log.name_any() == *name).unwrap();
            assert_eq!((log.spec.attempt, log.spec.exit_code), (attempt.number, Some(3)));
            assert_eq!(Some(&log.spec.container_id), attempt.container_id.as_ref());
            assert!(attempt.excerpt.as_ref().unwrap().contains("already exists"));
            // Its own log: printed within its own time.
            let words: Vec<_> = log.spec.text.lines().next().unwrap().split_whitespace().collect();
            let [_, nonce, _, printed] = words[..] else { panic!("{:?}", log.spec.text) };
            let printed = Timestamp::from_second(printed.parse().unwrap()).unwrap();
            let started = log.spec.started_at.as_ref().unwrap().0;
            assert!(printed.duration_since(started).abs().as_secs() <= 1, "{printed} is not of {started}");
            assert!(nonces.insert(nonce.to_owned()), "one log is there twice");
        }
        let numbers: Vec<_> = entry.attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers[0], 0, "the first attempt, whose log lives a second: {numbers:?}");
        assert!(numbers.len() >= 3, "{numbers:?}");

        // No Event came twice, although the controller was started again.
        let sent = events(&client, namespace).await;
        let keys: BTreeSet<_> =
            sent.iter().map(|event| format!("{:?} {:?}", event.regarding, event.reason)).collect();
        assert_eq!(keys.len(), sent.len(), "{:?}", reasons(&sent));

        // Owned by the diagnosis: gone with it.
        let diagnoses = Api::<InitDiagnosis>::namespaced(client.clone(), namespace);
        diagnoses.delete(&gone.name_any(), &DeleteParams::background()).await.unwrap();
        until("the end of the logs", async || logs(&client, namespace).await.is_empty().then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn a_wait_ends_when_its_service_does_what_was_missing() {
    controller().await;
    in_namespace("hang", async |client, namespace| {
        let script = "until nc -z postgres 5432; do echo waiting for postgres:5432; sleep 1; done";
        deploy(&client, namespace, "api", script).await;
        let found =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Active))
                .await;
        let seen = found.status.unwrap();
        assert_eq!(seen.cause.as_deref(), Some("ServiceNotFound"));
        assert_eq!(seen.pod_status.as_deref(), Some("Init:0/1"));
        assert!(seen.advice.iter().any(|advice| advice.code == "UnboundedWait"));

        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "postgres"},
            "spec": {"selector": {"app": "postgres"}, "ports": [{"port": 5432}]},
        }))
        .unwrap();
        Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &service).await.unwrap();
        diagnosis(&client, namespace, "replicaset.api-", |status| {
            status.cause.as_deref() == Some("ServiceHasNoEndpoints")
        })
        .await;

        let server: Pod = serde_json::from_value(json!({
            "metadata": {"name": "postgres", "labels": {"app": "postgres"}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
                "name": "server", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
                "command": ["nc", "-lk", "-p", "5432"],
            }]},
        }))
        .unwrap();
        Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &server).await.unwrap();
        let last =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Resolved))
                .await;
        assert_eq!(last.status.unwrap().resolution, Some(Resolution::Recovered));
        let sent = until("the recovery Event", async || {
            let sent = reasons(&events(&client, namespace).await);
            sent.contains(&"Deployment InitRecovered".to_owned()).then_some(sent)
        })
        .await;
        assert_eq!(sent.iter().filter(|reason| reason.ends_with("InitRecovered")).count(), 1, "{sent:?}");
    })
    .await;
}

#[tokio::test]
async fn a_job_that_gives_up_keeps_the_logs_of_its_pods() {
    controller().await;
    in_namespace("job", async |client, namespace| {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "migrate"},
            "spec": {"backoffLimit": 1, "template": pod_template("migrate", CRASH, "Never")},
        }))
        .unwrap();
        Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &job).await.unwrap();
        let found =
            diagnosis(&client, namespace, "job.migrate", |status| status.state == Some(State::Resolved))
                .await;
        let seen = found.status.unwrap();
        assert_eq!((seen.resolution, seen.cause.as_deref()), (Some(Resolution::GaveUp), Some("NonZeroExit")));
        assert_eq!(seen.pods.as_deref(), Some("1/1"));
        assert_eq!(seen.attempts.unwrap().kept, 2, "one attempt in each of its two Pods");
        let sent = until("the last Event", async || {
            let sent = reasons(&events(&client, namespace).await);
            sent.contains(&"Job InitGaveUp".to_owned()).then_some(sent)
        })
        .await;
        assert!(!sent.iter().any(|reason| reason.ends_with("InitRecovered")), "{sent:?}");
    })
    .await;
}

#[tokio::test]
async fn a_first_failure_that_heals_and_a_slow_success_page_nobody() {
    controller().await;
    in_namespace("heals", async |client, namespace| {
        let slow = Api::<Pod>::namespaced(client.clone(), namespace);
        let mut template = pod_template("slow", "sleep 8", "Always");
        template["metadata"]["name"] = json!("slow");
        template["metadata"]["annotations"]["initwatch.dev/stuck-after"] = json!("1m");
        slow.create(&PostParams::default(), &serde_json::from_value(template).unwrap()).await.unwrap();
        // Fails the first time, passes the second.
        let mut template =
            pod_template("flaky", "test -e /shared/again || { touch /shared/again; exit 1; }", "Always");
        template["metadata"]["name"] = json!("flaky");
        template["metadata"]["annotations"]["initwatch.dev/stuck-after"] = json!("1m");
        template["spec"]["volumes"] = json!([{"name": "shared", "emptyDir": {}}]);
        template["spec"]["initContainers"][0]["volumeMounts"] =
            json!([{"name": "shared", "mountPath": "/shared"}]);
        slow.create(&PostParams::default(), &serde_json::from_value(template).unwrap()).await.unwrap();

        for name in ["slow", "flaky"] {
            until(&format!("{name} to run"), async || {
                let pod = slow.get(name).await.unwrap();
                (pod.status?.phase? == "Running").then_some(())
            })
            .await;
        }
        let found =
            diagnosis(&client, namespace, "pod.flaky", |status| status.state == Some(State::Resolved)).await;
        let seen = found.status.unwrap();
        assert_eq!(seen.resolution, Some(Resolution::Recovered));
        assert!(
            seen.conditions
                .iter()
                .any(|condition| condition.type_ == "Diagnosed" && condition.status == "False")
        );
        let all = Api::<InitDiagnosis>::namespaced(client.clone(), namespace)
            .list(&ListParams::default())
            .await
            .unwrap();
        assert_eq!(all.items.len(), 1, "none of the slow one");
        assert!(events(&client, namespace).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn kubectl_shows_what_a_person_needs() {
    controller().await;
    in_namespace("kubectl", async |client, namespace| {
        deploy(&client, namespace, "api", CRASH).await;
        let found =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Active))
                .await;
        let rows = kubectl(&["-n", namespace, "get", "initdiagnoses"]).await;
        let lines: Vec<_> = rows.lines().collect();
        let header: Vec<_> = lines[0].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(
            header,
            ["NAME", "WORKLOAD", "STATE", "INIT CONTAINER", "STATUS", "CAUSE", "PODS", "STUCK", "AGE"]
        );
        let row: Vec<_> = lines[1].split_whitespace().collect();
        assert_eq!(row[..4], [&found.name_any(), "api", "Active", "step"]);
        assert!(row.contains(&"NonZeroExit") && row.contains(&"1/1"), "{rows}");

        let described = kubectl(&["-n", namespace, "describe", "initdiag", &found.name_any()]).await;
        for part in ["Summary:", "Remedy:", "already exists", "Exit Code:", "Log Holds:"] {
            assert!(described.contains(part), "{part} is not in:\n{described}");
        }
        let explained = kubectl(&["explain", "initdiagnosis.status", "--recursive"]).await;
        assert!(explained.contains("stuckSince"), "{explained}");
        until("the Event on the Deployment", async || {
            let shown = kubectl(&["-n", namespace, "events", "--for", "deployment/api"]).await;
            shown.contains("NonZeroExit").then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_controller_may_do_what_it_needs_and_nothing_else() {
    controller().await;
    let may = async |verb: &str, resource: &str| {
        let account = "--as=system:serviceaccount:initwatch-system:initwatch";
        let output = tokio::process::Command::new("kubectl")
            .args(["auth", "can-i", verb, resource, "--all-namespaces", account])
            .env("KUBECONFIG", crate::support::kubeconfig())
            .output()
            .await
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim() == "yes"
    };
    for (verb, resource) in
        [("watch", "pods"), ("get", "pods/log"), ("patch", "initdiagnoses.initwatch.dev/status")]
    {
        assert!(may(verb, resource).await, "{verb} {resource}");
    }
    for (verb, resource) in [
        ("get", "secrets"),
        ("list", "secrets"),
        ("get", "configmaps"),
        ("create", "pods/exec"),
        ("get", "nodes/proxy"),
        ("delete", "pods"),
        ("patch", "events.events.k8s.io"),
        ("patch", "initlogs.initwatch.dev"),
    ] {
        assert!(!may(verb, resource).await, "{verb} {resource}");
    }
}
