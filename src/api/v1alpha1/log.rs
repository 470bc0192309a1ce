//! `InitLog`: the log of one attempt.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::LogOrigin;

/// The log of one attempt of an init container, kept beyond the life of its Pod. Written once, never
/// changed; owned by its InitDiagnosis, so that Kubernetes removes it together with it.
#[derive(Clone, CustomResource, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "initwatch.dev",
    version = "v1alpha1",
    kind = "InitLog",
    plural = "initlogs",
    singular = "initlog",
    namespaced,
    derive = "PartialEq",
    doc = "The log of one attempt of an init container, kept beyond the life of its Pod: secrets masked, head and tail kept when it was long. Written once, never changed; removed together with its InitDiagnosis.",
    validation = Rule::new("self.spec == oldSelf.spec").message("an InitLog is written once and never changed"),
    printcolumn(name = "Pod", type_ = "string", json_path = ".spec.pod"),
    printcolumn(name = "Container", type_ = "string", json_path = ".spec.container"),
    printcolumn(name = "Attempt", type_ = "integer", json_path = ".spec.attempt"),
    printcolumn(name = "Exit", type_ = "integer", json_path = ".spec.exitCode"),
    printcolumn(name = "Finished", type_ = "date", json_path = ".spec.finishedAt"),
    printcolumn(name = "Bytes", type_ = "integer", json_path = ".spec.bytes"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct InitLogSpec {
    /// Name of the Pod.
    #[schemars(length(max = 253))]
    pub pod: String,
    /// UID of the Pod.
    #[schemars(length(max = 64))]
    pub pod_uid: String,
    /// Name of the init container.
    #[schemars(length(max = 63))]
    pub container: String,
    /// Number of the attempt, from 0, as the kubelet counts restarts.
    #[schemars(range(min = 0))]
    pub attempt: i32,
    /// ID of the runtime container.
    #[serde(rename = "containerID")]
    #[schemars(length(max = 128))]
    pub container_id: String,
    /// Node on which it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node: Option<String>,
    /// Image of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// When the attempt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Exit code of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Reason that the kubelet or the runtime gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// Where the text comes from.
    pub source: LogOrigin,
    /// Length of the whole log in bytes, as far as it was seen.
    #[schemars(range(min = 0))]
    pub bytes: i64,
    /// True when the middle of the log is left out of `text`.
    #[serde(default)]
    pub truncated: bool,
    /// True when the log broke off while it was read: what is here is genuine, what followed is not known.
    #[serde(default)]
    pub partial: bool,
    /// How many secrets were masked.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub masked: i32,
    /// The text: control codes removed, secrets masked, repeated lines folded. Empty when nothing was printed.
    // The bound on what is kept is 16 KiB; the field allows for a larger setting.
    #[schemars(length(max = 262_144))]
    pub text: String,
}
