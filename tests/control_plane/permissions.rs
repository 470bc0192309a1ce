//! One namespace with a Role in place of a ClusterRole: `deploy/namespaced` as it is.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use initwatch::api::v1alpha1::State;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::config::Kubeconfig;
use serde_json::json;

use crate::lifecycle::{WAIT, deployment, running, status};
use crate::support::controller::Controller;
use crate::support::observe::{diagnosis, events, until};
use crate::support::{in_namespace, kubeconfig};

fn kubectl(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("kubectl")
        .args(arguments)
        .env("KUBECONFIG", kubeconfig())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl; run `make test`, which brings it");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "kubectl {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_role_in_one_namespace_is_enough_for_that_namespace() {
    in_namespace("role", async |client, namespace| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/namespaced");
        let manifests = kubectl(&["kustomize", folder.to_str().unwrap()], "").replace("my-team", namespace);
        // No Pod of it is wanted here: the test runs the controller itself, with the same account.
        let manifests = manifests.replace("replicas: 1", "replicas: 0");
        assert!(!manifests.contains("ClusterRole"), "nothing of the cluster is asked for");
        kubectl(&["apply", "-f", "-"], &manifests);

        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
        let request = TokenRequest::default();
        let token =
            accounts.create_token_request("initwatch", &PostParams::default(), &request).await.unwrap();
        let mut config = serde_json::to_value(Kubeconfig::read_from(kubeconfig()).unwrap()).unwrap();
        config["users"][0]["user"] = json!({"token": token.status.unwrap().token});
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(config.to_string().as_bytes()).unwrap();

        let pod = deployment(&client, namespace, "api", 1, WAIT).await.remove(0);
        status(&client, &pod, "Pending", running()).await;
        let arguments = ["--namespace", namespace, "--stuck-after", "2s", "--own-namespace", namespace];
        let controller = Controller::start_with(file.path().as_ref(), &arguments);
        let found =
            diagnosis(&client, namespace, "replicaset.api-", |status| status.state == Some(State::Active))
                .await;
        let seen = found.status.unwrap();
        assert_eq!(seen.cause.as_deref(), Some("ServiceNotFound"));
        assert!(seen.unchecked.is_empty(), "{:?}", seen.unchecked);
        until("both Events", async || (events(&client, namespace).await.len() == 2).then_some(())).await;
        let log = controller.log();
        assert!(!log.contains("forbidden"), "{log}");
    })
    .await;
}
