//! What is kept stays within its bounds; and what is asked for is kept although nothing failed.

use initwatch::api::v1alpha1::{InitDiagnosis, State};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::support::controller::Controller;
use crate::support::in_namespace;
use crate::support::observe::{diagnosis, events, logs, until};
use crate::truth::Truth;

async fn pod(client: &Client, namespace: &str, truth: &Truth, name: &str, end: &str, keep: &str) {
    let mut pod = truth.template("bounds", end, "Never");
    pod["metadata"]["name"] = json!(name);
    if keep == "always" {
        pod["metadata"]["annotations"] = json!({"initwatch.dev/keep-logs": keep});
    }
    let pod = serde_json::from_value(pod).unwrap();
    Api::<Pod>::namespaced(client.clone(), namespace).create(&PostParams::default(), &pod).await.unwrap();
}

/// Prints more than is kept of one log.
const MUCH: &str = "i=0; while [ $i -lt 2000 ]; do echo much $i; i=$((i+1)); done; exit 1";

#[tokio::test]
async fn the_logs_of_a_namespace_are_bounded_and_what_ended_first_makes_room() {
    in_namespace("bounds", async |client, namespace| {
        let arguments = ["--namespace", namespace, "--namespace-logs", "64KiB"];
        let _controller = Controller::start_with(&crate::support::kubeconfig(), &arguments);
        let truth = Truth::new();
        // Each takes 18 KiB.
        for name in ["a", "b", "c"] {
            pod(&client, namespace, &truth, name, MUCH, "always").await;
            diagnosis(&client, namespace, &format!("pod.{name}"), |status| {
                status.attempts.is_some_and(|attempts| attempts.kept == 1)
            })
            .await;
        }
        pod(&client, namespace, &truth, "d", MUCH, "always").await;
        let full = diagnosis(&client, namespace, "pod.d", |status| status.state.is_some()).await;
        let status = full.status.unwrap();
        assert_eq!(status.attempts.map(|attempts| (attempts.kept, attempts.dropped)), Some((0, 1)));
        let said = "initlogs: not kept, the logs of the namespace have reached their bound";
        assert!(status.unchecked.iter().any(|unchecked| unchecked == said), "{:?}", status.unchecked);
        assert!(status.affected[0].attempts[0].excerpt.is_some(), "the decisive lines stay all the same");
        assert_eq!(logs(&client, namespace).await.len(), 3);

        // What is over gives way to what is new, and to nothing else.
        let now = DeleteParams::default().grace_period(0);
        Api::<Pod>::namespaced(client.clone(), namespace).delete("b", &now).await.unwrap();
        diagnosis(&client, namespace, "pod.b", |status| status.state == Some(State::Resolved)).await;
        pod(&client, namespace, &truth, "e", MUCH, "always").await;
        diagnosis(&client, namespace, "pod.e", |status| {
            status.attempts.is_some_and(|attempts| attempts.kept == 1)
        })
        .await;
        let diagnoses = Api::<InitDiagnosis>::namespaced(client.clone(), namespace);
        assert!(diagnoses.get_opt("pod.b").await.unwrap().is_none(), "it has made room");
        until("its log to be gone", async || {
            let pods: Vec<_> = logs(&client, namespace).await.into_iter().map(|log| log.spec.pod).collect();
            (pods == ["a", "c", "e"]).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_success_is_kept_on_request_and_told_to_nobody() {
    in_namespace("always", async |client, namespace| {
        let arguments = ["--namespace", namespace, "--stuck-after", "1m"];
        let _controller = Controller::start_with(&crate::support::kubeconfig(), &arguments);
        let truth = Truth::new();
        // Followed from its start, as all bare Pods are, and past init while it is.
        pod(&client, namespace, &truth, "quiet", "sleep 3; exit 0", "by default").await;
        pod(&client, namespace, &truth, "asked", "exit 0", "always").await;
        let found =
            diagnosis(&client, namespace, "pod.asked", |status| status.state == Some(State::Succeeded)).await;
        let status = found.status.clone().unwrap();
        assert_eq!(status.attempts.map(|attempts| (attempts.seen, attempts.kept)), Some((1, 1)));
        assert!(status.cause.is_none() && status.resolved_at.is_some(), "{status:?}");
        let log = logs(&client, namespace).await.pop().unwrap();
        assert_eq!((log.spec.exit_code, log.spec.pod.as_str()), (Some(0), "asked"));
        let nonce = &truth.attempts().into_iter().find(|attempt| attempt.pod == "asked").unwrap().nonce;
        assert!(log.spec.text.contains(&format!("nonce={nonce}")));
        assert_eq!(log.owner_references()[0].name, found.name_any());
        assert!(events(&client, namespace).await.is_empty());

        // Once the quiet one is past init and something that came later is told, nothing is told of it.
        until("the quiet one to run", async || {
            let pod = Api::<Pod>::namespaced(client.clone(), namespace).get("quiet").await.unwrap();
            (pod.status?.phase.as_deref() == Some("Running")).then_some(())
        })
        .await;
        pod(&client, namespace, &truth, "later", "sleep 2; exit 1", "by default").await;
        diagnosis(&client, namespace, "pod.later", |status| status.state == Some(State::Active)).await;
        let diagnoses = Api::<InitDiagnosis>::namespaced(client.clone(), namespace);
        let mut names: Vec<_> =
            diagnoses.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
        names.sort();
        assert_eq!(names, ["pod.asked", "pod.later"]);
    })
    .await;
}
