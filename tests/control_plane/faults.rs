//! Between the controller and the real API server stands one that misbehaves: it streams no lists, cuts watches,
//! answers 429, 500 and 409 at random places, and hangs. What is written in the end must be the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use http_body_util::BodyExt;
use initwatch::api::v1alpha1::{Resolution, State as DiagnosisState};
use kube::Client;
use serde_json::json;
use tempfile::NamedTempFile;

use crate::failures::for_server;
use crate::lifecycle::{WAIT, deployment, passed, running, status};
use crate::support::controller::Controller;
use crate::support::in_namespace;
use crate::support::observe::{diagnosis, events, reasons, until};

/// What the server in between has done so far.
#[derive(Default)]
struct Done {
    requests: AtomicUsize,
    refused_streams: AtomicUsize,
    cut_watches: AtomicUsize,
    errors: AtomicUsize,
    conflicts: AtomicUsize,
}

#[derive(Clone)]
struct Between {
    client: Client,
    done: Arc<Done>,
}

fn refusal(code: u16, reason: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason,
    });
    Response::builder()
        .status(StatusCode::from_u16(code).unwrap())
        .header("content-type", "application/json")
        .body(Body::from(status.to_string()))
        .unwrap()
}

async fn forward(State(between): State<Between>, request: Request) -> Response {
    let done = &between.done;
    let number = done.requests.fetch_add(1, Ordering::SeqCst);
    let query = request.uri().query().unwrap_or_default().to_owned();
    let is_watch = query.contains("watch=true");
    if query.contains("sendInitialEvents=true") {
        done.refused_streams.fetch_add(1, Ordering::SeqCst);
        return refusal(422, "Invalid");
    }
    let writes_status = request.uri().path().ends_with("/status");
    if writes_status && done.conflicts.fetch_add(1, Ordering::SeqCst) % 2 == 0 {
        return refusal(409, "Conflict");
    }
    if !is_watch && number % 5 == 4 {
        done.errors.fetch_add(1, Ordering::SeqCst);
        return if number % 2 == 0 { refusal(429, "TooManyRequests") } else { refusal(500, "InternalError") };
    }
    let (mut parts, body) = request.into_parts();
    // The client in between has credentials and an address of its own.
    parts.headers.remove("host");
    parts.headers.remove("authorization");
    parts.uri = parts.uri.path_and_query().unwrap().as_str().parse().unwrap();
    let bytes = body.collect().await.unwrap().to_bytes();
    let request = http::Request::from_parts(parts, kube::client::Body::from(bytes));
    let Ok(response) = between.client.send(request).await else { return refusal(500, "InternalError") };
    let (parts, body) = response.into_parts();
    if !is_watch {
        return Response::from_parts(parts, Body::new(body));
    }
    // A watch is cut in the middle after a while, without an end.
    done.cut_watches.fetch_add(1, Ordering::SeqCst);
    let frames = futures::stream::unfold(body, |mut body| async move {
        let frame = body.frame().await?.ok()?;
        let data = frame.into_data().unwrap_or_default();
        Some((Ok::<_, std::io::Error>(data), body))
    });
    let cut = futures::StreamExt::take_until(frames, tokio::time::sleep(Duration::from_secs(4)));
    Response::from_parts(parts, Body::from_stream(cut))
}

/// A server in between, and the kubeconfig that leads to it.
async fn between(client: &Client) -> (NamedTempFile, Arc<Done>) {
    let done = Arc::new(Done::default());
    let state = Between { client: client.clone(), done: done.clone() };
    let router = Router::new().fallback(forward).with_state(state);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let file = for_server(&format!("http://{}", listener.local_addr().unwrap()));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (file, done)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_misbehaves_changes_nothing_in_the_end() {
    in_namespace("faults", async |client, namespace| {
        let (file, done) = between(&client).await;
        let pod = deployment(&client, namespace, "api", 1, WAIT).await.remove(0);
        status(&client, &pod, "Pending", running()).await;
        let arguments = ["--namespace", namespace, "--stuck-after", "2s"];
        let mut controller = Controller::start_with(file.path().as_ref(), &arguments);
        let active = |status: &initwatch::api::v1alpha1::InitDiagnosisStatus| {
            status.state == Some(DiagnosisState::Active)
        };
        let found = diagnosis(&client, namespace, "replicaset.api-", active).await;
        controller.says("does not stream lists; asking for them whole").await;
        assert_eq!(found.status.unwrap().cause.as_deref(), Some("ServiceNotFound"));
        until("a few cut watches", async || (done.cut_watches.load(Ordering::SeqCst) >= 4).then_some(()))
            .await;
        status(&client, &pod, "Running", passed()).await;
        let last = diagnosis(&client, namespace, "replicaset.api-", |status| {
            status.state == Some(DiagnosisState::Resolved)
        })
        .await;
        assert_eq!(last.status.unwrap().resolution, Some(Resolution::Recovered));
        for (what, count) in [
            ("refused streams", &done.refused_streams),
            ("errors", &done.errors),
            ("conflicts", &done.conflicts),
        ] {
            assert!(count.load(Ordering::SeqCst) > 0, "no {what}: the test tests nothing");
        }
        // Each Event came, and none came twice.
        let sent = until("every Event", async || {
            let mut sent = reasons(&events(&client, namespace).await);
            sent.sort();
            (sent.len() >= 3).then_some(sent)
        })
        .await;
        assert_eq!(sent, ["Deployment InitRecovered", "Deployment ServiceNotFound", "Pod ServiceNotFound"]);
    })
    .await;
}
