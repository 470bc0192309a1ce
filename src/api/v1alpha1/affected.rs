//! The affected Pods of a diagnosis and their attempts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AttemptSource;

/// One Pod that fails or hangs in init.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AffectedPod {
    /// Name of the Pod.
    #[schemars(length(max = 253))]
    pub pod: String,
    /// UID of the Pod: a name can come again, a UID cannot.
    #[schemars(length(max = 64))]
    pub uid: String,
    /// The init container that blocks this Pod; null when none can be named.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub init_container: Option<String>,
    /// Code of the cause for this Pod.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]{1,62}$"))]
    pub cause: String,
    /// Node on which the Pod runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node: Option<String>,
    /// STATUS as `kubectl get pods` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub pod_status: Option<String>,
    /// Since when this Pod stands at this init step. A retry does not reset it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck_since: Option<Time>,
    /// Restarts of the init container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub restarts: Option<i32>,
    /// When it left: deleted, or past init. Its attempts stay; it is no longer counted as affected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_at: Option<Time>,
    /// Number of the change whose Event announced this Pod; absent when no Event was sent for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub change: Option<i64>,
    /// Attempts that are kept: the first, the most telling, the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6))]
    pub attempts: Vec<Attempt>,
}

/// One run of an init container.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Name of the init container.
    #[schemars(length(max = 63))]
    pub init_container: String,
    /// Number of the attempt, from 0, as the kubelet counts restarts.
    #[schemars(range(min = 0))]
    pub number: i32,
    /// ID of the runtime container: what an attempt is known by.
    #[serde(rename = "containerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub container_id: Option<String>,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Exit code; absent while it runs, and where its end was not seen (its Pod was deleted by force).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended it (exit code minus 128), where the code says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Reason that the kubelet or the runtime gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// Message that the kubelet or the runtime gave, or the termination message; secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub message: Option<String>,
    /// Where the excerpt comes from; absent when no text could be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<AttemptSource>,
    /// The decisive lines of the log and the last ones, secrets masked; at most 1 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub excerpt: Option<String>,
    /// Name of the InitLog that keeps the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub log: Option<String>,
    /// How much of the log the InitLog holds: `all` or `4.0 KiB of 2.1 MiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub log_holds: Option<String>,
    /// How telling its log is (0 = nothing); decides which attempts are kept between the first and the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub telling: Option<i32>,
}

impl Attempt {
    /// Whether it is over.
    pub fn has_ended(&self) -> bool {
        self.exit_code.is_some() || self.finished_at.is_some()
    }
}

/// Affected Pods that are not listed, counted.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AffectedOmitted {
    /// Code of their cause.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]{1,62}$"))]
    pub cause: String,
    /// Their node; absent where they are on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node: Option<String>,
    /// How many.
    #[schemars(range(min = 1))]
    pub count: i32,
}
