//! What a user sees when something is missing: one line that says what to do, never a panic.

use std::io::Write;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::config::Kubeconfig;
use serde_json::json;
use tempfile::NamedTempFile;

use crate::support::controller::Controller;
use crate::support::{in_namespace, kubeconfig};

fn kubeconfig_of(value: &serde_json::Value) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(value.to_string().as_bytes()).unwrap();
    file
}

pub fn for_server(server: &str) -> NamedTempFile {
    kubeconfig_of(&json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }))
}

#[tokio::test]
async fn a_wrong_kubeconfig_is_one_clear_line() {
    let controller = Controller::start_with("/no/such/kubeconfig".as_ref(), &[]);
    let (status, log) = controller.ends().await;
    assert_eq!(status.code(), Some(1));
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(
        log.starts_with("error: no cluster configuration:") && log.contains("/no/such/kubeconfig"),
        "{log}"
    );
}

#[tokio::test]
async fn a_kubeconfig_that_is_no_kubeconfig_is_one_clear_line() {
    let file = kubeconfig_of(&json!(["not", "a", "kubeconfig"]));
    let (status, log) = Controller::start_with(file.path().as_ref(), &[]).ends().await;
    assert_eq!(status.code(), Some(1));
    assert!(log.starts_with("error: no cluster configuration:") && log.lines().count() == 1, "{log}");
}

#[tokio::test]
async fn an_unreachable_server_is_waited_for_and_the_wait_ends_on_request() {
    // A port of this machine on which nobody listens.
    let file = for_server("http://127.0.0.1:9");
    let mut controller = Controller::start_with(file.path().as_ref(), &[]);
    controller.says("the API server does not answer").await;
    controller.says("127.0.0.1:9").await;
    let (status, took) = controller.terminate().await;
    assert_eq!(status.code(), Some(0));
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn a_missing_definition_is_named_with_the_command_that_installs_it() {
    let version = json!({
        "major": "1", "minor": "34", "gitVersion": "v1.34.4", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
    });
    let missing = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "the server could not find the requested resource",
    });
    let router = Router::new()
        .route("/version", get(|| async move { version.to_string() }))
        .fallback(|| async move { (StatusCode::NOT_FOUND, missing.to_string()) });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let file = for_server(&format!("http://{address}"));
    let mut controller = Controller::start_with(file.path().as_ref(), &[]);
    controller.says("InitDiagnosis is not installed in the cluster").await;
    controller.says("kubectl apply -k crds").await;
}

#[tokio::test]
async fn a_missing_permission_is_named_and_waited_for() {
    in_namespace("forbidden", async |client, namespace| {
        // A ServiceAccount without any right.
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
        let request = TokenRequest::default();
        let token = accounts.create_token_request("default", &PostParams::default(), &request).await.unwrap();
        let token = token.status.unwrap().token;
        let admin = Kubeconfig::read_from(kubeconfig()).unwrap();
        let mut config = serde_json::to_value(&admin).unwrap();
        config["users"][0]["user"] = json!({"token": token});
        let file = kubeconfig_of(&config);
        let mut controller = Controller::start_with(file.path().as_ref(), &["--namespace", namespace]);
        controller.says("missing permission to list initdiagnoses").await;
        controller.says("deploy/base/rbac.yaml").await;
    })
    .await;
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    let run = |arguments: &[&str]| {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_initwatch")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (arguments, expected) in [
        (["controller", "--stuck-after", "soon"], "--stuck-after"),
        (["controller", "--stuck-after", "0s"], "between 1s and 168h"),
        (["controller", "--namespace", "Not_A_Name"], "\"Not_A_Name\" is not the name of a namespace"),
        (["controller", "--listen", "everywhere"], "not an address"),
        (["controller", "--log", "a=b=c"], "log filter"),
    ] {
        let (code, message) = run(&arguments);
        assert!(matches!(code, Some(1 | 2)), "{arguments:?}: {code:?}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}
