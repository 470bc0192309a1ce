//! Every kind of Pod is tracked right on a real node: sidecars, evictions, deadlines, a new sandbox.

use std::path::Path;

use initwatch::api::v1alpha1::{InitDiagnosis, Resolution, State};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::deployed::controller;
use crate::failures::pod_template;
use crate::support::in_namespace;
use crate::support::observe::{diagnosis, events, until};

/// A bare Pod from the common template, changed by the test.
async fn pod(
    client: &Client,
    namespace: &str,
    name: &str,
    script: &str,
    change: impl FnOnce(&mut Value),
) -> Pod {
    let mut template = pod_template(name, script, "Always");
    template["metadata"]["name"] = json!(name);
    change(&mut template);
    let pod = serde_json::from_value(template).unwrap();
    Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &pod).await.unwrap()
}

async fn phase_is(client: &Client, namespace: &str, name: &str, phase: &str) -> Pod {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    until(&format!("{name} to be {phase}"), async || {
        let pod = pods.get(name).await.unwrap();
        (pod.status.as_ref()?.phase.as_deref() == Some(phase)).then_some(pod)
    })
    .await
}

#[tokio::test]
async fn a_healthy_sidecar_and_an_init_of_ninety_seconds_have_no_diagnosis() {
    controller().await;
    in_namespace("fine", async |client, namespace| {
        // Below the default threshold of two minutes, and in its own time.
        pod(&client, namespace, "slow", "sleep 90", |pod| pod["metadata"]["annotations"] = json!({})).await;
        pod(&client, namespace, "sidecar", "sleep 3600", |pod| {
            pod["spec"]["initContainers"][0]["restartPolicy"] = json!("Always");
        })
        .await;
        phase_is(&client, namespace, "sidecar", "Running").await;
        phase_is(&client, namespace, "slow", "Running").await;
        let all = Api::<InitDiagnosis>::namespaced(client.clone(), namespace)
            .list(&ListParams::default())
            .await
            .unwrap();
        assert!(
            all.items.is_empty(),
            "{:?}",
            all.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        );
        assert!(events(&client, namespace).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn sidecars_that_hold_up_the_pod_are_named() {
    controller().await;
    in_namespace("sidecars", async |client, namespace| {
        let always = |pod: &mut Value| pod["spec"]["initContainers"][0]["restartPolicy"] = json!("Always");
        pod(&client, namespace, "never-started", "sleep 3600", |pod| {
            always(pod);
            pod["spec"]["initContainers"][0]["startupProbe"] =
                json!({"exec": {"command": ["false"]}, "failureThreshold": 100, "periodSeconds": 1});
        })
        .await;
        pod(&client, namespace, "exits", "sleep 1", |pod| {
            always(pod);
            // So that the next init container never gets its turn: started, and gone before anything comes of it.
            pod["spec"]["initContainers"][0]["startupProbe"] =
                json!({"exec": {"command": ["false"]}, "failureThreshold": 100, "periodSeconds": 1});
        })
        .await;
        pod(&client, namespace, "crashes", "exit 5", |pod| {
            always(pod);
            pod["spec"]["initContainers"][0]["startupProbe"] =
                json!({"exec": {"command": ["false"]}, "failureThreshold": 100, "periodSeconds": 1});
        })
        .await;
        for (name, cause, status) in [
            ("never-started", "SidecarStartupProbeFailing", "Init:0/1"),
            ("exits", "SidecarExits", "Init:"),
            ("crashes", "NonZeroExit", "Init:"),
        ] {
            let found = diagnosis(&client, namespace, &format!("pod.{name}"), |status| {
                status.state == Some(State::Active) && status.cause.as_deref() == Some(cause)
            })
            .await;
            let seen = found.status.unwrap();
            assert_eq!(
                (seen.init_container.as_deref(), seen.step.as_deref()),
                (Some("step"), Some("1/1")),
                "{name}"
            );
            let shown = seen.pod_status.unwrap();
            // kubectl counts a sidecar that exited 0 as passed.
            assert!(shown.starts_with(status) || shown == "PodInitializing", "{name}: {shown}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_evicted_pod_and_one_over_its_deadline_are_told_apart_from_a_crash() {
    controller().await;
    in_namespace("ended", async |client, namespace| {
        pod(&client, namespace, "deadline", "sleep 3600", |pod| {
            pod["spec"]["activeDeadlineSeconds"] = json!(5);
            pod["metadata"]["annotations"] = json!({});
        })
        .await;
        pod(
            &client,
            namespace,
            "evicted",
            "dd if=/dev/zero of=/shared/big bs=1M count=32; sleep 3600",
            |pod| {
                pod["spec"]["volumes"] = json!([{"name": "shared", "emptyDir": {"sizeLimit": "4Mi"}}]);
                pod["spec"]["initContainers"][0]["volumeMounts"] =
                    json!([{"name": "shared", "mountPath": "/shared"}]);
                pod["metadata"]["annotations"] = json!({});
            },
        )
        .await;
        for (name, cause) in [("deadline", "DeadlineExceeded"), ("evicted", "Evicted")] {
            let found = diagnosis(&client, namespace, &format!("pod.{name}"), |status| {
                status.cause.as_deref() == Some(cause)
            })
            .await;
            assert_eq!(found.status.unwrap().state, Some(State::Active), "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_init_container_that_runs_again_in_a_running_pod_is_seen_and_its_recovery_too() {
    controller().await;
    in_namespace("rerun", async |client, namespace| {
        // Not idempotent: what the first run made is there the second time.
        let script = "test ! -e /shared/repaired || exit 0; mkdir /shared/made || { echo ERROR: /shared/made exists; exit 4; }";
        let pod = pod(&client, namespace, "again", script, |pod| {
            pod["spec"]["volumes"] = json!([{"name": "shared", "emptyDir": {}}]);
            let mount = json!([{"name": "shared", "mountPath": "/shared"}]);
            pod["spec"]["initContainers"][0]["volumeMounts"] = mount.clone();
            pod["spec"]["containers"][0]["volumeMounts"] = mount;
        })
        .await;
        phase_is(&client, namespace, "again", "Running").await;
        kill_sandbox(&pod.uid().unwrap()).await;
        let found = diagnosis(&client, namespace, "pod.again", |status| status.state == Some(State::Active)).await;
        let seen = found.status.unwrap();
        assert_eq!((seen.cause.as_deref(), seen.init_container.as_deref()), (Some("NonZeroExit"), Some("step")));
        // Nothing on the line of kubectl says init: it prints how the app's container ended.
        assert_eq!(seen.pod_status.as_deref(), Some("Error"));
        let summary = seen.summary.unwrap();
        assert!(summary.contains("run again after a new sandbox"), "{summary}");
        // Its volume outlives the sandbox: on the node's disk it is repaired by hand.
        repair(&pod.uid().unwrap()).await;
        let found = diagnosis(&client, namespace, "pod.again", |status| status.state == Some(State::Resolved)).await;
        assert_eq!(found.status.unwrap().resolution, Some(Resolution::Recovered));
    })
    .await;
}

/// The folder of the test cluster: that of its kubeconfig.
fn cluster() -> std::path::PathBuf {
    Path::new(&crate::support::kubeconfig()).parent().unwrap().to_owned()
}

async fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Kills the process that holds a Pod's network, as a node that loses its runtime does.
async fn kill_sandbox(uid: &str) {
    let socket = cluster().join("containerd/containerd.sock");
    let socket = socket.to_str().unwrap();
    let filter =
        format!("labels.\"io.kubernetes.pod.uid\"=={uid},labels.\"io.cri-containerd.kind\"==sandbox");
    let sandbox = output("ctr", &["-a", socket, "-n", "k8s.io", "containers", "ls", "-q", &filter]).await;
    assert!(!sandbox.is_empty(), "no sandbox of {uid}");
    output("ctr", &["-a", socket, "-n", "k8s.io", "tasks", "kill", "-s", "KILL", &sandbox]).await;
}

async fn repair(uid: &str) {
    let folder =
        cluster().join(format!("kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/shared/repaired"));
    output("touch", &[folder.to_str().unwrap()]).await;
}
