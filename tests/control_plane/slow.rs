//! Slow is not stuck: what a workload usually takes counts, also after a restart.

use initwatch::api::v1alpha1::{InitDiagnosis, State};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::lifecycle::{deployment, passed, running, status, touch};
use crate::support::controller::Controller;
use crate::support::in_namespace;
use crate::support::observe::{diagnosis, pods, until};

#[tokio::test]
async fn a_step_that_takes_its_usual_time_is_not_stuck() {
    in_namespace("slow", async |client, namespace| {
        let start = || {
            let arguments = ["--namespace", namespace, "--stuck-after", "30s", "--own-namespace", namespace];
            Controller::start_with(&crate::support::kubeconfig(), &arguments)
        };
        let mut controller = start();
        controller.says("watching").await;
        // It took a minute, as the status tells: then it was past init.
        let first = deployment(&client, namespace, "restore", 1, "pg_restore").await.remove(0);
        status(&client, &first, "Pending", passed()).await;
        status(&client, &first, "Running", passed()).await;
        let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
        until("the saved durations", async || {
            let saved = maps.get_opt("initwatch-history").await.unwrap()?.data?;
            saved.values().any(|json| json.contains("replicaset/restore/wait-for-db")).then_some(())
        })
        .await;
        controller.kill().await;

        // A second Pod has run for a minute already, twice the threshold; so has one of a workload without a past.
        let scale = json!({"spec": {"replicas": 2}});
        let deployments = Api::<Deployment>::namespaced(client.clone(), namespace);
        deployments.patch("restore", &PatchParams::default(), &Patch::Merge(scale)).await.unwrap();
        let all: Vec<Pod> = pods(&client, namespace, "app=restore", 2).await;
        let second = all.iter().find(|pod| pod.uid() != first.uid()).unwrap();
        let other = deployment(&client, namespace, "other", 1, "pg_restore").await.remove(0);
        let _controller = start();
        for pod in [second, &other] {
            status(&client, pod, "Pending", running()).await;
        }
        touch(&client, second).await;
        diagnosis(&client, namespace, "replicaset.other-", |status| status.state == Some(State::Active))
            .await;
        touch(&client, second).await;
        let all = Api::<InitDiagnosis>::namespaced(client.clone(), namespace)
            .list(&ListParams::default())
            .await
            .unwrap();
        let names: Vec<_> = all.items.iter().map(ResourceExt::name_any).collect();
        assert!(names.iter().all(|name| name.starts_with("replicaset.other-")), "{names:?}");
    })
    .await;
}
