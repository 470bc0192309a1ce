//! Objects that hold what nobody expects: one of them must not hide the others.

use initwatch::api::v1alpha1::{InitDiagnosis, State};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::lifecycle::{deployment, running, status};
use crate::support::controller::Controller;
use crate::support::in_namespace;
use crate::support::observe::diagnosis;

const WAIT: &str = "until nc -z postgres 5432; do sleep 1; done";

/// Counts at the edge, and all times as given; without a type that would have to be able to read the answer.
async fn edge(client: &kube::Client, namespace: &str, pod: &str, time: &str) {
    let pods: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<Pod>(&()));
    let end =
        json!({"exitCode": 1, "containerID": "containerd://odd", "startedAt": time, "finishedAt": time});
    let status = json!({"phase": "Pending", "initContainerStatuses": [{
        "name": "wait-for-db", "image": "x", "imageID": "", "ready": false,
        "restartCount": i32::MIN, "containerID": "containerd://odd2",
        "state": {"running": {"startedAt": time}}, "lastState": {"terminated": end},
    }]});
    let patch = Patch::Merge(json!({"status": status}));
    pods.patch_status(pod, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn a_pod_with_times_and_counts_at_the_edge_hides_no_other() {
    for mode in ["auto", "paged"] {
        in_namespace("odd", async |client, namespace| {
            let odd = deployment(&client, namespace, "odd", 1, WAIT).await.remove(0);
            edge(&client, namespace, &odd.name_any(), "9999-12-31T23:59:59Z").await;
            let other = deployment(&client, namespace, "other", 1, WAIT).await.remove(0);
            status(&client, &other, "Pending", running()).await;
            let arguments = ["--namespace", namespace, "--stuck-after", "3s", "--list-mode", mode];
            let controller = Controller::start_with(&crate::support::kubeconfig(), &arguments);
            let active =
                |status: &initwatch::api::v1alpha1::InitDiagnosisStatus| status.state == Some(State::Active);
            diagnosis(&client, namespace, "replicaset.other-", active).await;
            // It has failed, and is told, too.
            diagnosis(&client, namespace, "replicaset.odd-", |status| status.cause.is_some()).await;
            let log = controller.log();
            assert!(!log.contains("panicked") && !log.contains("until nc"), "{log}");
            // Those who clean up can read it again.
            edge(&client, namespace, &odd.name_any(), "2026-12-01T10:00:00Z").await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_diagnosis_that_cannot_be_read_is_written_anew_and_hides_no_other() {
    in_namespace("unreadable", async |client, namespace| {
        let pod = deployment(&client, namespace, "api", 1, WAIT).await.remove(0);
        status(&client, &pod, "Pending", running()).await;
        let controller = Controller::start(namespace);
        let active =
            |status: &initwatch::api::v1alpha1::InitDiagnosisStatus| status.state == Some(State::Active);
        let found = diagnosis(&client, namespace, "replicaset.api-", active).await;
        controller.kill().await;
        let edit = json!({"status": {"stuckSince": "9999-12-31T23:59:59Z", "summary": "edited"}});
        Api::<InitDiagnosis>::namespaced(client.clone(), namespace)
            .patch_status(&found.name_any(), &PatchParams::default(), &Patch::Merge(edit))
            .await
            .expect_err("the answer cannot be read either");
        let controller = Controller::start(namespace);
        crate::support::observe::until("a status that can be read", async || {
            let diagnoses = Api::<InitDiagnosis>::namespaced(client.clone(), namespace);
            let mended = diagnoses.get(&found.name_any()).await.ok()?.status?;
            mended.summary.filter(|summary| summary.contains("no Service postgres"))
        })
        .await;
        assert!(!controller.log().contains("until nc"), "answers of the server are not logged");
    })
    .await;
}
