//! Pods in a short notation, as tests/data/status_vectors.yaml has them.
//!
//! A container status is a name, a state and flags: `a T:1/Error rc3`.
//! - Name: `s…` is a native sidecar, `g…` a ghost that the spec does not have, anything else a regular container.
//! - State: `W:reason`, `R` (running), `T:code/reason`, or `-` (no state). An empty reason is not set.
//! - Flags: `rc3` restarts, `sig9` signal, `ready`, `started`, `unstarted`, `ago90` (the last restart, in seconds).
//!
//! A condition is `Type=Status` or `Type=Status/Reason`.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

/// A Pod and the cells that it prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// V01 to V35, by which the documents call it; X… are those of this repository.
    pub id: String,
    phase: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    pub deleting: bool,
    /// Init container statuses.
    #[serde(default)]
    init: String,
    /// App container statuses.
    #[serde(default = "initializing_app")]
    apps: String,
    #[serde(default)]
    conditions: String,
    /// The STATUS cell.
    pub status: String,
    /// The STATUS cell from Kubernetes 1.35 on, where it differs.
    pub since_1_35: Option<String>,
    /// The RESTARTS cell.
    #[serde(default = "no_restarts")]
    pub restarts: String,
    /// The READY cell.
    pub ready: String,
}

fn initializing_app() -> String {
    "m W:PodInitializing".to_owned()
}

fn no_restarts() -> String {
    "0".to_owned()
}

/// All of tests/data/status_vectors.yaml.
pub fn vectors() -> Vec<Vector> {
    serde_saphyr::from_str(include_str!("../data/status_vectors.yaml")).expect("the vectors parse")
}

impl Vector {
    /// `spec.initContainers` and `spec.containers`: what has a status, but for ghosts, and always an app `m`.
    pub fn spec(&self) -> Value {
        let containers = |list: &str| -> Vec<Value> {
            let names = list.split(", ").filter_map(|entry| entry.split(' ').next());
            names.filter(|name| !name.is_empty() && !name.starts_with('g')).map(container).collect()
        };
        let mut apps = containers(&self.apps);
        if apps.is_empty() {
            apps.push(container("m"));
        }
        json!({"initContainers": containers(&self.init), "containers": apps})
    }

    /// `status`, as seen at a given time.
    pub fn status(&self, now: Timestamp) -> Value {
        let mut status = json!({
            "initContainerStatuses": entries(&self.init, now),
            "containerStatuses": entries(&self.apps, now),
            "conditions": self.conditions.split_whitespace().map(condition).collect::<Vec<_>>(),
        });
        if !self.phase.is_empty() {
            status["phase"] = json!(self.phase);
        }
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        status
    }

    /// The whole Pod.
    pub fn pod(&self, now: Timestamp) -> Value {
        let metadata = if self.deleting {
            json!({"name": "pod", "deletionTimestamp": now.to_string()})
        } else {
            json!({"name": "pod"})
        };
        json!({"metadata": metadata, "spec": self.spec(), "status": self.status(now)})
    }
}

/// A container's spec; sidecars are known by their name.
pub fn container(name: &str) -> Value {
    if name.starts_with('s') {
        json!({"name": name, "image": "none", "restartPolicy": "Always"})
    } else {
        json!({"name": name, "image": "none"})
    }
}

fn entries(list: &str, now: Timestamp) -> Vec<Value> {
    list.split(", ").filter(|entry| !entry.is_empty()).map(|text| entry(text, now)).collect()
}

fn entry(text: &str, now: Timestamp) -> Value {
    let mut words = text.split(' ');
    let name = words.next().expect("a name");
    let mut status = json!({
        "name": name, "state": state(words.next().expect("a state")),
        "ready": false, "restartCount": 0, "image": "none", "imageID": "",
    });
    for flag in words {
        let number = |prefix| flag.strip_prefix(prefix).and_then(|digits: &str| digits.parse::<i64>().ok());
        if let Some(count) = number("rc") {
            status["restartCount"] = json!(count);
        } else if let Some(signal) = number("sig") {
            status["state"]["terminated"]["signal"] = json!(signal);
        } else if let Some(seconds) = number("ago") {
            let finished = now - SignedDuration::from_secs(seconds);
            status["lastState"] = json!({"terminated": {"exitCode": 1, "finishedAt": finished.to_string()}});
        } else {
            match flag {
                "ready" => status["ready"] = json!(true),
                "started" => status["started"] = json!(true),
                "unstarted" => status["started"] = json!(false),
                _ => panic!("unknown flag {flag:?} in {text:?}"),
            }
        }
    }
    status
}

fn state(text: &str) -> Value {
    if let Some(reason) = text.strip_prefix("W:") {
        return json!({"waiting": {"reason": reason}});
    }
    if let Some((code, reason)) = text.strip_prefix("T:").and_then(|end| end.split_once('/')) {
        let code: i32 = code.parse().expect("an exit code");
        return json!({"terminated": {"exitCode": code, "reason": reason}});
    }
    match text {
        "R" => json!({"running": {}}),
        "-" => json!({}),
        _ => panic!("unknown state {text:?}"),
    }
}

fn condition(text: &str) -> Value {
    let (type_, status) = text.split_once('=').expect("Type=Status");
    match status.split_once('/') {
        Some((status, reason)) => json!({"type": type_, "status": status, "reason": reason}),
        None => json!({"type": type_, "status": status}),
    }
}
