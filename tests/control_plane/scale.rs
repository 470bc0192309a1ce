//! What is held follows the Pods in init, not the Pods there are.

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::controller::Controller;
use crate::support::in_namespace;

const RUNNING: usize = 5000;
const IN_INIT: usize = 100;

#[tokio::test]
async fn of_five_thousand_running_pods_and_a_hundred_in_init_a_hundred_are_held() {
    in_namespace("scale", async |client, namespace| {
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        let pods = &pods;
        let make = |number: usize| async move {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": format!("p{number}")},
                "spec": {
                    "schedulerName": "nobody",
                    "automountServiceAccountToken": false,
                    "initContainers": [{"name": "step", "image": "x"}],
                    "containers": [{"name": "app", "image": "x"}],
                },
            }))
            .unwrap();
            let pod = pods.create(&PostParams::default(), &pod).await.unwrap();
            if number < RUNNING {
                let patch = json!({"status": {"phase": "Running"}});
                pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                    .await
                    .unwrap();
            }
        };
        futures::stream::iter(0..RUNNING + IN_INIT).map(make).buffer_unordered(32).collect::<Vec<()>>().await;

        for mode in ["auto", "paged"] {
            let arguments = ["--namespace", namespace, "--list-mode", mode];
            let mut controller = Controller::start_with(&crate::support::kubeconfig(), &arguments);
            controller.says("watching").await;
            // The process' own figure.
            let line = controller.log().lines().find(|line| line.contains("watching")).unwrap().to_owned();
            assert!(line.contains(&format!("pods={IN_INIT}")), "{mode}: {line}");
            controller.kill().await;
        }
    })
    .await;
}
