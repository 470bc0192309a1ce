//! The STATUS column: vectors and properties. tests/control_plane compares the same Pods with an API server.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that fails must say so"
)]

mod pods;

use initwatch::pod::status::{KubectlStatus, PrinterVersion, kubectl_status, kubectl_status_by};
use initwatch::pod::view::{ContainerStatus, InitContainer, PodView};
use jiff::Timestamp;
use pods::{generated, notation};
use proptest::prelude::*;
use serde_json::Value;

/// A moment for all Pods of this file.
fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a time")
}

fn view(pod: Value) -> PodView {
    serde_json::from_value(pod).expect("a Pod")
}

#[test]
fn vectors() {
    let vectors = notation::vectors();
    let wrong: Vec<String> = vectors
        .iter()
        .flat_map(|vector| {
            let pod = view(vector.pod(now()));
            let newer = vector.since_1_35.as_ref().unwrap_or(&vector.status);
            [(PrinterVersion::Until1_34, &vector.status), (PrinterVersion::From1_35, newer)].map(
                |(version, status)| {
                    let expected = format!("{} | {status} | {}", vector.ready, vector.restarts);
                    let got = cells(&kubectl_status_by(version, &pod));
                    (got != expected)
                        .then(|| format!("{} {version:?}: {got}, expected {expected}", vector.id))
                },
            )
        })
        .flatten()
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(vectors.len() >= 61, "vectors are missing: {}", vectors.len());
}

fn cells(status: &KubectlStatus) -> String {
    format!("{} | {} | {}", status.ready_cell(), status.text, status.restarts_cell(now()))
}

#[test]
fn the_version_of_the_rule_follows_the_server() {
    let cases = [
        ("1", "33", PrinterVersion::Until1_34),
        ("1", "34+", PrinterVersion::Until1_34),
        ("1", "35", PrinterVersion::From1_35),
        ("1", "36-gke.1", PrinterVersion::From1_35),
        ("2", "0", PrinterVersion::From1_35),
        ("", "", PrinterVersion::Until1_34),
        ("1", "99999999999999", PrinterVersion::Until1_34),
        ("v1", "ü", PrinterVersion::Until1_34),
    ];
    for (major, minor, expected) in cases {
        assert_eq!(PrinterVersion::of_server(major, minor), expected, "{major}.{minor}");
    }
}

#[test]
fn an_empty_pod_prints_nothing() {
    let status = kubectl_status(&PodView::default());
    assert_eq!(cells(&status), "0/0 |  | 0");
}

/// A sidecar that was started, or a container that ended with 0.
fn is_past(pod: &PodView, status: &ContainerStatus) -> bool {
    let sidecar = pod.init_container(&status.name).is_some_and(InitContainer::is_sidecar);
    let ended = status.state.terminated.as_ref();
    ended.is_some_and(|end| end.exit_code == 0) || (sidecar && status.started == Some(true))
}

fn initialized(pod: &PodView) -> bool {
    pod.condition("Initialized").is_some_and(|condition| condition.status == "True")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// What does not depend on the Pod's particulars.
    #[test]
    fn cells_are_well_formed(pod in generated::pod(now())) {
        let pod = view(pod);
        let status = kubectl_status(&pod);
        let entries = pod.status.init_container_statuses.len() + pod.status.container_statuses.len();
        prop_assert!(status.ready <= entries);
        prop_assert!(status.total >= pod.spec.containers.len());
        prop_assert!(status.total <= pod.spec.containers.len() + pod.spec.init_containers.len());
        prop_assert!(status.restarts_cell(now()).starts_with(&status.restarts.to_string()));
    }

    /// A Pod that is being deleted and has not ended shows nothing else.
    #[test]
    fn deletion_hides_the_rest(pod in generated::pod(now())) {
        let pod = view(pod);
        let status = kubectl_status(&pod);
        let lost = pod.status.reason.as_deref() == Some("NodeLost");
        if pod.is_terminating() && lost {
            prop_assert_eq!(status.text, "Unknown");
        } else if pod.is_terminating() && !matches!(pod.phase(), "Succeeded" | "Failed") {
            prop_assert_eq!(status.text, "Terminating");
        } else {
            prop_assert_ne!(status.text, "Terminating");
        }
    }

    /// Init containers behind the first one that is not past are not read.
    #[test]
    fn later_init_containers_do_not_matter(pod in generated::pod(now())) {
        let pod = view(pod);
        let statuses = &pod.status.init_container_statuses;
        if let Some(first) = statuses.iter().position(|status| !is_past(&pod, status)) {
            let mut shorter = pod.clone();
            shorter.status.init_container_statuses.truncate(first + 1);
            prop_assert_eq!(kubectl_status(&shorter), kubectl_status(&pod));
        }
    }

    /// Until the Pod is initialized the apps are not read, and the text is that of an init container.
    #[test]
    fn apps_do_not_matter_before_init_is_done(pod in generated::pod(now())) {
        let mut pod = view(pod);
        pod.metadata.deletion_timestamp = None;
        let waiting = pod.status.init_container_statuses.iter().any(|status| !is_past(&pod, status));
        let status = kubectl_status(&pod);
        if waiting && !initialized(&pod) {
            prop_assert!(status.text.starts_with("Init:"), "{}", status.text);
            pod.status.container_statuses.clear();
            prop_assert_eq!(kubectl_status(&pod), status);
        } else if !waiting {
            prop_assert!(!status.text.starts_with("Init:"), "{}", status.text);
        }
    }

    /// 1.35 prints another text only where an app failed and the older rule said that all is well.
    #[test]
    fn versions_differ_in_one_case_only(pod in generated::pod(now())) {
        let pod = view(pod);
        let older = kubectl_status_by(PrinterVersion::Until1_34, &pod);
        let newer = kubectl_status_by(PrinterVersion::From1_35, &pod);
        if newer.text != older.text {
            prop_assert!(matches!(older.text.as_str(), "Completed" | "NotReady"), "{}", older.text);
            let failed = |status: &ContainerStatus| {
                status.state.terminated.as_ref().is_some_and(|end| end.exit_code != 0)
            };
            prop_assert!(pod.status.container_statuses.iter().any(failed));
        }
        prop_assert_eq!(KubectlStatus { text: older.text.clone(), ..newer }, older);
    }
}
