//! A client of the test cluster, a namespace for each test, and the controller as a process.

pub mod controller;
pub mod observe;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::json;

const KUBECONFIG: &str = "INITWATCH_TEST_KUBECONFIG";

/// A client with all rights.
///
/// It takes its cluster from a variable of its own, never from KUBECONFIG: these tests write, and must not do
/// so in the cluster that a developer happens to work with.
pub async fn client() -> Client {
    let path = kubeconfig();
    let shown = path.to_string_lossy().into_owned();
    let kubeconfig = Kubeconfig::read_from(path)
        .unwrap_or_else(|error| panic!("{KUBECONFIG}={shown} cannot be read: {error}"));
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap_or_else(|error| panic!("{KUBECONFIG}={shown} names no usable cluster: {error}"));
    let server = config.cluster_url.clone();
    let client = Client::try_from(config).expect("a client");
    if let Err(error) = client.apiserver_version().await {
        panic!("the test cluster at {server} does not answer ({error}); is it up? See tests/cluster/up.");
    }
    client
}

/// The kubeconfig of the test cluster.
pub fn kubeconfig() -> std::ffi::OsString {
    let path = std::env::var_os(KUBECONFIG).filter(|path| !path.is_empty());
    path.unwrap_or_else(|| {
        panic!(
            "{KUBECONFIG} is not set, so there is no cluster to test against.\n\
             Run `make test`, which starts one; or start it with tests/cluster/up and set {KUBECONFIG} to the \
             kubeconfig that it names."
        )
    })
}

/// Runs a test in a fresh namespace, which is deleted afterwards whether the test passes or not.
pub async fn in_namespace(purpose: &str, test: impl AsyncFnOnce(Client, &str)) {
    let client = client().await;
    let namespace = create_namespace(&client, purpose).await;
    let result = AssertUnwindSafe(test(client.clone(), &namespace)).catch_unwind().await;
    // A failure to clean up must not hide that of the test.
    if let Err(error) = delete_namespace(&client, &namespace).await {
        println!("namespace {namespace} could not be deleted: {error}");
    }
    if let Err(failure) = result {
        std::panic::resume_unwind(failure);
    }
}

async fn create_namespace(client: &Client, purpose: &str) -> String {
    let namespace: Namespace = serde_json::from_value(json!({
        "metadata": {"generateName": format!("initwatch-test-{purpose}-")},
    }))
    .unwrap();
    let created = Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .expect("a namespace");
    let name = created.name_any();
    // Pods are refused until the controller manager has made their ServiceAccount.
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &name);
    for _ in 0..300 {
        if accounts.get_opt("default").await.expect("the API").is_some() {
            return name;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{name} has no default ServiceAccount after 30 s; does the controller manager run?");
}

/// Does not wait for the end. No kubelet confirms the end of a Pod here, so they are deleted without waiting
/// for one; and those with a finalizer would keep the namespace for ever.
async fn delete_namespace(client: &Client, name: &str) -> kube::Result<()> {
    let pods = Api::<Pod>::namespaced(client.clone(), name);
    for pod in pods.list_metadata(&ListParams::default()).await? {
        if !pod.finalizers().is_empty() {
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            // It can be gone by now, or vanish with this.
            pods.patch_metadata(&pod.name_any(), &PatchParams::default(), &patch).await.ok();
        }
    }
    let now = DeleteParams::default().grace_period(0);
    pods.delete_collection(&now, &ListParams::default()).await?;
    Api::<Namespace>::all(client.clone()).delete(name, &DeleteParams::default()).await?;
    Ok(())
}
