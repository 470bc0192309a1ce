//! `InitDiagnosis`: what is known of one workload revision.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AffectedOmitted, AffectedPod, Confidence, EvidenceSource, Resolution, Severity, State};

/// Why the init containers of one workload revision fail or hang.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "initwatch.dev",
    version = "v1alpha1",
    kind = "InitDiagnosis",
    plural = "initdiagnoses",
    singular = "initdiagnosis",
    shortname = "initdiag",
    namespaced,
    status = "InitDiagnosisStatus",
    derive = "PartialEq",
    doc = "Why the init containers of one workload revision fail or hang: the cause in one sentence, the evidence for it, what to do, and what is left of the logs. Written by initwatch; labels and annotations belong to you.",
    selectable = ".status.cause",
    selectable = ".status.state",
    printcolumn(name = "Workload", type_ = "string", json_path = ".spec.workload.name"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Init Container", type_ = "string", json_path = ".status.initContainer"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.podStatus"),
    printcolumn(name = "Cause", type_ = "string", json_path = ".status.cause"),
    printcolumn(name = "Pods", type_ = "string", json_path = ".status.pods"),
    printcolumn(name = "Stuck", type_ = "date", json_path = ".status.stuckSince"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Step", type_ = "string", json_path = ".status.step", priority = 1),
    printcolumn(name = "Confidence", type_ = "string", json_path = ".status.confidence", priority = 1),
    printcolumn(name = "Summary", type_ = "string", json_path = ".status.summary", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct InitDiagnosisSpec {
    /// The workload that people know: the Deployment, not its ReplicaSet; the CronJob, not its Job.
    pub workload: WorkloadReference,
    /// The direct controller of the Pods; absent for Pods without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerReference>,
    /// Revision of the workload; absent where the controller has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub revision: Option<String>,
}

/// A top-level workload.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// Kind, for example `Deployment`.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// API group, for example `apps`; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,
    /// Name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// UID; absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub uid: Option<String>,
}

/// A direct controller of Pods.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerReference {
    /// API version, for example `apps/v1`.
    #[schemars(length(max = 253))]
    pub api_version: String,
    /// Kind, for example `ReplicaSet`.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// Name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// UID.
    #[schemars(length(max = 64))]
    pub uid: String,
}

/// What is known.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitDiagnosisStatus {
    /// Observed (may still heal), Active (needs somebody), Resolved, or Succeeded (logs kept on request).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Info or Warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Code of the cause; also the reason of the Events and the label of the metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]{1,62}$"))]
    pub cause: Option<String>,
    /// Category of the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]{1,62}$"))]
    pub category: Option<String>,
    /// Certain: the API or the kubelet says it. Likely: the log says it. Possible: it fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// One sentence: which init container, since when, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub summary: Option<String>,
    /// What to do, with the commands to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub remedy: Option<String>,
    /// The init container; null when the cause lies before or beside any of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub init_container: Option<String>,
    /// Its position in spec.initContainers, sidecars counted: `1/2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub step: Option<String>,
    /// STATUS as `kubectl get pods` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub pod_status: Option<String>,
    /// Affected Pods of all: `3/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub pods: Option<String>,
    /// How many Pods are affected, also those that could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub affected_pods: Option<i32>,
    /// How many Pods the workload wants; where that can't be read, how many were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub total_pods: Option<i32>,
    /// The earliest time since which an affected Pod stands at its init step; null once resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck_since: Option<Time>,
    /// When this was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_observed: Option<Time>,
    /// When state, cause or init container last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_changed: Option<Time>,
    /// When it was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Time>,
    /// How long it lasted, in seconds; set once resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub stuck_for: Option<i64>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// The facts behind the cause, each with where it comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub evidence: Vec<Evidence>,
    /// The end of the chain: what is really broken, when that is another object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<RootCause>,
    /// Other causes that were weighed, with why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub also: Vec<OtherCause>,
    /// What is unsafe in the init container even if it is not today's cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub advice: Vec<Advice>,
    /// What could not be looked at, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(max = 256)))]
    pub unchecked: Vec<String>,
    /// Earlier causes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub history: Vec<PastCause>,
    /// How often this was seen for this workload, each time after it had been resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub occurrences: Option<i32>,
    /// Attempts over all Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<AttemptTotals>,
    /// The affected Pods, the most telling ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub affected: Vec<AffectedPod>,
    /// The affected Pods that are not listed, counted by cause and node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub affected_omitted: Vec<AffectedOmitted>,
    /// The last change that is worth an Event. It is written before its Events are sent, so that none is sent twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Diagnosed, Resolved, LogsPreserved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub conditions: Vec<Condition>,
}

/// A fact and where it comes from.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Evidence {
    /// Object, Status, Spec, Log or Event.
    pub source: EvidenceSource,
    /// What the fact is about: `Service shop/postgres`.
    #[schemars(length(max = 320))]
    pub subject: String,
    /// The fact: `0 of 1 endpoints ready`.
    #[schemars(length(max = 512))]
    pub fact: String,
}

/// What is really broken.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct RootCause {
    /// Kind of the object.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// Its namespace; absent for objects without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Code of what is wrong with it.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]{1,62}$"))]
    pub cause: String,
    /// Name of its own InitDiagnosis, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub diagnosis: Option<String>,
}

/// A cause that was weighed and set aside.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherCause {
    /// Its code.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]{1,62}$"))]
    pub cause: String,
    /// Why it is not the answer.
    #[schemars(length(max = 256))]
    pub why_not: String,
}

/// Something unsafe.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Advice {
    /// Its code: `UnboundedWait`.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]{1,62}$"))]
    pub code: String,
    /// What and why.
    #[schemars(length(max = 512))]
    pub message: String,
}

/// A cause of the past.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct PastCause {
    /// Its code.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]{1,62}$"))]
    pub cause: String,
    /// Since when it stood.
    pub from: Time,
    /// Until when it stood.
    pub to: Time,
}

/// Attempts over all Pods of the diagnosis.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct AttemptTotals {
    /// Attempts that were seen.
    #[schemars(range(min = 0))]
    pub seen: i32,
    /// Attempts whose log is kept as an InitLog.
    #[schemars(range(min = 0))]
    pub kept: i32,
    /// Attempts whose log was not kept, within the bounds.
    #[schemars(range(min = 0))]
    pub dropped: i32,
    /// Attempts whose log could not be read; `unchecked` says why.
    #[schemars(range(min = 0))]
    pub lost: i32,
}

/// The last change that is worth an Event.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Change {
    /// Counts up with every change; part of the Events' names.
    #[schemars(range(min = 0))]
    pub number: i64,
    /// When it happened.
    pub at: Time,
    /// How many Events about Pods belong to it (bounded).
    #[schemars(range(min = 0))]
    pub announced: i32,
}
