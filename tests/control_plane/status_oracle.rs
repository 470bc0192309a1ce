//! The API server computes READY, STATUS and RESTARTS itself: what it answers must be what we compute, for the
//! vectors and for generated Pods, letter for letter.
//!
//! Nothing else touches these Pods: their scheduler does not exist, and those that are being deleted, which the
//! garbage collector would soon finish off if they had no node, are bound to a node that does not exist either.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::{StreamExt, stream};
use http::Request;
use initwatch::pod::PodView;
use initwatch::pod::status::{KubectlStatus, PrinterVersion, kubectl_status_by};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::pods::{generated, notation};
use crate::support;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const CONCURRENCY: usize = 16;
/// Generated Pods, and statuses that each of them is given in turn.
const PODS: usize = 48;
const STATUSES: usize = 32;
/// The one reason for which the API may refuse a status.
const NO_WAY_BACK: &str = "may not be transitioned to non-terminated state";
/// At most one status in so many may be refused at first.
const REFUSED_ONE_IN: usize = 8;

/// A Pod and what happens to it.
struct Script {
    name: String,
    spec: Value,
    restart_policy: &'static str,
    deleting: bool,
    steps: Vec<Step>,
}

struct Step {
    status: Value,
    /// READY, STATUS and RESTARTS, where they are known beforehand.
    expected: Option<[String; 3]>,
}

#[derive(Default)]
struct Outcome {
    compared: usize,
    refused: usize,
    seen: Vec<String>,
    differences: Vec<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_prints_the_same() {
    support::in_namespace("status", async |client, namespace| {
        let started = Instant::now();
        let info = client.apiserver_version().await.expect("a version");
        let version = PrinterVersion::of_server(&info.major, &info.minor);
        let pods = Cluster { client, namespace: namespace.to_owned(), version };
        let now = Timestamp::now();
        let mut scripts = vector_scripts(version, now);
        scripts.extend(generated_scripts(now));
        let outcomes: Vec<Outcome> = stream::iter(scripts)
            .map(|script| pods.play(script))
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        judge(outcomes, &info.git_version, started);
    })
    .await;
}

fn judge(outcomes: Vec<Outcome>, server: &str, started: Instant) {
    let mut total = Outcome::default();
    for outcome in outcomes {
        total.compared += outcome.compared;
        total.refused += outcome.refused;
        total.seen.extend(outcome.seen);
        total.differences.extend(outcome.differences);
    }
    let Outcome { compared, refused, seen, differences } = total;
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &seen {
        *kinds.entry(kind(text)).or_default() += 1;
    }
    println!(
        "{compared} Pods compared with {server} in {:.1?}, {refused} refused at first",
        started.elapsed()
    );
    println!("{kinds:#?}");
    assert!(
        differences.is_empty(),
        "{} of {compared} differ; the first ones:\n{}",
        differences.len(),
        differences.iter().take(5).cloned().collect::<Vec<_>>().join("\n\n"),
    );
    assert!(compared >= 500, "only {compared} compared");
    assert!(refused * REFUSED_ONE_IN <= compared, "{refused} of {compared} refused: the generator is off");
    // A generator that no longer reaches a branch of the rule would prove nothing about it.
    let expected = [
        "",
        "Completed",
        "Evicted",
        "ExitCode:N",
        "Init:ExitCode:N",
        "Init:N/M",
        "Init:Signal:N",
        "Init:reason",
        "NotReady",
        "Running",
        "SchedulingGated",
        "Signal:N",
        "Terminating",
        "Unknown",
        "phase",
        "reason",
    ];
    let missing: Vec<_> = expected.iter().filter(|kind| !kinds.contains_key(*kind)).collect();
    assert!(missing.is_empty(), "no Pod was like this: {missing:?}");
}

/// The branch of the rule from which a text comes.
fn kind(text: &str) -> &'static str {
    const EXACT: [&str; 8] =
        ["", "Completed", "Evicted", "NotReady", "Running", "SchedulingGated", "Terminating", "Unknown"];
    if let Some(exact) = EXACT.into_iter().find(|exact| *exact == text) {
        return exact;
    }
    match text.split(':').collect::<Vec<_>>()[..] {
        ["Init", "Signal", _] => "Init:Signal:N",
        ["Init", "ExitCode", _] => "Init:ExitCode:N",
        ["Init", word] if word.contains('/') => "Init:N/M",
        ["Init", ..] => "Init:reason",
        ["Signal", _] => "Signal:N",
        ["ExitCode", _] => "ExitCode:N",
        ["Pending" | "Succeeded" | "Failed"] => "phase",
        _ => "reason",
    }
}

fn vector_scripts(version: PrinterVersion, now: Timestamp) -> Vec<Script> {
    let script = |vector: &notation::Vector| {
        let newer = vector.since_1_35.as_ref().filter(|_| version == PrinterVersion::From1_35);
        let status = newer.unwrap_or(&vector.status).clone();
        Script {
            name: vector.id.to_lowercase(),
            spec: vector.spec(),
            restart_policy: "Always",
            deleting: vector.deleting,
            steps: vec![Step {
                status: vector.status(now),
                expected: Some([vector.ready.clone(), status, vector.restarts.clone()]),
            }],
        }
    };
    notation::vectors().iter().map(script).collect()
}

/// The same ones in each run, but for their times.
fn generated_scripts(now: Timestamp) -> Vec<Script> {
    let mut random = TestRunner::deterministic();
    let mut script = |number: usize| {
        let shape = generated::shape().new_tree(&mut random).unwrap().current();
        let statuses = generated::status(&shape, now);
        let status = |_| Step { status: statuses.new_tree(&mut random).unwrap().current(), expected: None };
        Script {
            name: format!("g{number}"),
            spec: shape.spec(),
            // The rule does not look at the policy. With the others than Always the API refuses to set a
            // container that has ended running again, so few Pods have them.
            restart_policy: match number % 12 {
                4 => "OnFailure",
                5 => "Never",
                _ => "Always",
            },
            deleting: number % 5 == 1,
            steps: (0..STATUSES).map(status).collect(),
        }
    };
    (0..PODS).map(&mut script).collect()
}

struct Cluster {
    client: Client,
    namespace: String,
    version: PrinterVersion,
}

impl Cluster {
    async fn play(&self, script: Script) -> Outcome {
        let mut outcome = Outcome::default();
        self.create(&script).await;
        for step in script.steps {
            outcome.refused += usize::from(self.set_status(&script.name, &step.status).await);
            let read = self.read(&script.name).await;
            outcome.compared += 1;
            outcome.seen.push(read.cells[1].clone());
            outcome.differences.extend(read.difference(self.version, step.expected.as_ref()));
        }
        outcome
    }

    async fn create(&self, script: &Script) {
        let mut pod = json!({
            "metadata": {"name": script.name},
            "spec": {"schedulerName": "nobody", "restartPolicy": script.restart_policy},
        });
        for part in ["initContainers", "containers"] {
            pod["spec"][part] = script.spec[part].clone();
        }
        if script.deleting {
            pod["metadata"]["finalizers"] = json!(["initwatch.dev/test"]);
            pod["spec"]["nodeName"] = json!("no-such-node");
        }
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let pod: Pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        if script.deleting {
            pods.delete(&script.name, &DeleteParams::default()).await.unwrap();
        }
    }

    /// Replaces the status. True if it was refused at first because of what was there before.
    async fn set_status(&self, name: &str, status: &Value) -> bool {
        // In a merge patch what is not named stays, and lists are replaced.
        let mut whole = json!({"phase": null, "reason": null});
        for (field, value) in status.as_object().unwrap() {
            whole[field] = value.clone();
        }
        match self.patch_status(name, &whole).await {
            Ok(()) => false,
            Err(kube::Error::Api(refusal)) if refusal.message.contains(NO_WAY_BACK) => {
                let none = json!({"initContainerStatuses": [], "containerStatuses": []});
                for status in [none, whole] {
                    if let Err(error) = self.patch_status(name, &status).await {
                        panic!("{name}: {error}\n{status:#}");
                    }
                }
                true
            }
            Err(error) => panic!("{name}: {error}\n{whole:#}"),
        }
    }

    async fn patch_status(&self, name: &str, status: &Value) -> kube::Result<()> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let patch = Patch::Merge(json!({"status": status}));
        pods.patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// The Pod as a row of a table and as our controller reads it, both of the same version.
    async fn read(&self, name: &str) -> Read {
        #[derive(Deserialize)]
        struct Table {
            rows: Vec<Row>,
        }
        #[derive(Deserialize)]
        struct Row {
            cells: Vec<Value>,
            object: Value,
        }
        let views = Api::<PodView>::namespaced(self.client.clone(), &self.namespace);
        let path = format!("/api/v1/namespaces/{}/pods/{name}?includeObject=Object", self.namespace);
        for _ in 0..5 {
            let request = Request::get(&path).header("Accept", TABLE).body(Vec::new()).unwrap();
            let before = Timestamp::now();
            let table: Table = self.client.request(request).await.unwrap();
            let after = Timestamp::now();
            let view = views.get(name).await.unwrap();
            let [row] = <[Row; 1]>::try_from(table.rows).ok().expect("one row");
            if row.object["metadata"]["resourceVersion"].as_str() == view.resource_version().as_deref() {
                let cell = |index: usize| row.cells[index].as_str().expect("text").to_owned();
                let cells = [cell(1), cell(2), cell(3)];
                return Read { cells, object: row.object, view, before, after };
            }
        }
        panic!("{name} changes all the time; who touches it?");
    }
}

struct Read {
    /// READY, STATUS and RESTARTS of the API server.
    cells: [String; 3],
    object: Value,
    view: PodView,
    /// The API server's clock stood between these two.
    before: Timestamp,
    after: Timestamp,
}

impl Read {
    fn difference(&self, version: PrinterVersion, expected: Option<&[String; 3]>) -> Option<String> {
        let status = kubectl_status_by(version, &self.view);
        let [_, _, restarts] = &self.cells;
        let ours = [status.ready_cell(), status.text.clone(), self.restarts_cell(&status, restarts)];
        let as_expected = expected.is_none_or(|expected| *expected == self.cells);
        if ours == self.cells && as_expected {
            return None;
        }
        Some(format!(
            "{}: the API server prints {:?}, we print {ours:?}, expected was {expected:?}; the Pod:\n{:#}",
            self.view.name(),
            self.cells,
            self.object,
        ))
    }

    /// Our RESTARTS cell. Its age depends on the moment, so that of the API server is taken if it is ours at
    /// any moment between the request and the answer.
    fn restarts_cell(&self, status: &KubectlStatus, theirs: &str) -> String {
        let seconds = self.after.duration_since(self.before).as_secs() + 1;
        let moments = (0..=seconds).map(|second| self.before + SignedDuration::from_secs(second));
        moments
            .map(|moment| status.restarts_cell(moment.min(self.after)))
            .find(|cell| cell == theirs)
            .unwrap_or_else(|| status.restarts_cell(self.after))
    }
}
