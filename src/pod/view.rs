//! The part of a Pod that concerns its init containers.
//!
//! A typed `Pod` costs ten to thirty times the memory (see docs/architecture.md): what is not read here is
//! skipped while the answer of the API server is parsed, and never held. All fields are optional and
//! unknown ones are ignored, as the API demands of its clients.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};

use super::decode::{count, null_is_default, time};

use crate::api;

/// A partial Pod.
#[derive(kube::Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = "Pod")]
pub struct PodView {
    /// Identity, times, labels, owners and our own annotations; the rest (managedFields above all) is dropped.
    #[serde(deserialize_with = "lean_metadata", default)]
    pub metadata: ObjectMeta,
    /// What was asked for.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: PodSpec,
    /// What was seen.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: PodStatus,
}

/// The part of `spec` that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Node to which the Pod is bound.
    pub node_name: Option<String>,
    /// `Always`, `OnFailure` or `Never`; the API server fills in `Always`.
    pub restart_policy: Option<String>,
    /// Who chooses the node.
    pub scheduler_name: Option<String>,
    /// Where names are resolved: `ClusterFirst` (the default), `ClusterFirstWithHostNet`, `Default` (as on the node) or
    /// `None`.
    pub dns_policy: Option<String>,
    /// Further search domains and name servers.
    pub dns_config: Option<DnsConfig>,
    /// Names that are resolved without DNS.
    #[serde(deserialize_with = "null_is_default")]
    pub host_aliases: Vec<HostAlias>,
    /// The network of the node: DNS too, unless the policy says otherwise.
    #[serde(deserialize_with = "null_is_default")]
    pub host_network: bool,
    /// Init containers in their order.
    #[serde(deserialize_with = "null_is_default")]
    pub init_containers: Vec<InitContainer>,
    /// App containers, by name.
    #[serde(deserialize_with = "null_is_default")]
    pub containers: Vec<NamedContainer>,
}

/// `dnsConfig`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DnsConfig {
    /// Search domains.
    #[serde(deserialize_with = "null_is_default")]
    pub searches: Vec<String>,
    /// Name servers; only whether there are any matters.
    #[serde(deserialize_with = "null_is_default")]
    pub nameservers: Vec<serde::de::IgnoredAny>,
}

/// An entry of `/etc/hosts`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HostAlias {
    /// Names.
    #[serde(deserialize_with = "null_is_default")]
    pub hostnames: Vec<String>,
}

/// An init container's spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitContainer {
    /// Name.
    pub name: String,
    /// Image.
    pub image: Option<String>,
    /// Entrypoint; empty = that of the image.
    #[serde(deserialize_with = "null_is_default")]
    pub command: Vec<String>,
    /// Arguments; empty with an empty command = those of the image.
    #[serde(deserialize_with = "null_is_default")]
    pub args: Vec<String>,
    /// Environment.
    #[serde(deserialize_with = "null_is_default")]
    pub env: Vec<EnvVar>,
    /// Sources of further environment variables; only whether there are any matters.
    #[serde(deserialize_with = "null_is_default")]
    pub env_from: Vec<serde::de::IgnoredAny>,
    /// `Always` = native sidecar; `Never` and `OnFailure` override the Pod's policy (Kubernetes 1.35).
    pub restart_policy: Option<String>,
    /// Whether it has a startup probe; what it asks does not matter.
    pub startup_probe: Option<serde::de::IgnoredAny>,
    /// Its hooks.
    pub lifecycle: Option<Lifecycle>,
    /// Rules that override `restart_policy` by exit code (Kubernetes 1.35).
    #[serde(deserialize_with = "null_is_default")]
    pub restart_policy_rules: Vec<RestartRule>,
}

/// `lifecycle`; only which hooks there are matters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lifecycle {
    /// Runs beside the start of the container, which is killed when it fails.
    pub post_start: Option<serde::de::IgnoredAny>,
}

/// An environment variable. Values from Secrets and ConfigMaps are never looked up.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvVar {
    /// Name.
    pub name: String,
    /// Literal value; absent where it comes from elsewhere.
    pub value: Option<String>,
    /// Set where the value comes from elsewhere; its content is not kept.
    pub value_from: Option<serde::de::IgnoredAny>,
}

/// A rule of `restartPolicyRules`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RestartRule {
    /// `Restart` or `RestartAllContainers`.
    pub action: Option<String>,
    /// When it applies.
    pub exit_codes: Option<ExitCodes>,
}

/// Condition of a restart rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExitCodes {
    /// `In` or `NotIn`.
    pub operator: Option<String>,
    /// Exit codes.
    #[serde(deserialize_with = "null_is_default")]
    pub values: Vec<i32>,
}

/// A container of which only the name matters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NamedContainer {
    /// Name.
    pub name: String,
}

/// The part of `status` that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    /// `Evicted`, `DeadlineExceeded` …
    pub reason: Option<String>,
    /// Text to `reason`.
    pub message: Option<String>,
    /// When the kubelet took the Pod on.
    #[serde(deserialize_with = "time")]
    pub start_time: Option<Time>,
    /// Conditions.
    #[serde(deserialize_with = "null_is_default")]
    pub conditions: Vec<PodCondition>,
    /// Statuses of the init containers, in the kubelet's order.
    #[serde(deserialize_with = "null_is_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Statuses of the app containers.
    #[serde(deserialize_with = "null_is_default")]
    pub container_statuses: Vec<ContainerStatus>,
}

/// A condition of the Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCondition {
    /// `PodScheduled`, `PodReadyToStartContainers`, `Initialized` …
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    pub reason: Option<String>,
    /// Text to `reason`.
    pub message: Option<String>,
    /// When `status` last changed.
    #[serde(deserialize_with = "time")]
    pub last_transition_time: Option<Time>,
}

/// Status of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Name.
    pub name: String,
    /// Present state.
    #[serde(deserialize_with = "null_is_default")]
    pub state: ContainerState,
    /// Last state before it.
    #[serde(deserialize_with = "null_is_default")]
    pub last_state: ContainerState,
    /// For a regular init container: it ended with 0. For a sidecar: its readiness.
    pub ready: bool,
    /// For a sidecar: its startup probe succeeded. A running regular init container says true as well.
    pub started: Option<bool>,
    /// Restarts, as the kubelet counts them; at least 0.
    #[serde(deserialize_with = "count")]
    pub restart_count: i32,
    /// ID of the runtime container, for example `containerd://…`.
    #[serde(rename = "containerID")]
    pub container_id: Option<String>,
}

/// State of a container; at most one of the three is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It waits to start.
    pub waiting: Option<Waiting>,
    /// It runs.
    pub running: Option<Running>,
    /// It ended.
    pub terminated: Option<Terminated>,
}

/// A container that waits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// One word as a rule; can be a whole sentence (semantics of the kubelet's raw errors).
    pub reason: Option<String>,
    /// Text to `reason`.
    pub message: Option<String>,
}

/// A container that runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// Since when, in whole seconds.
    #[serde(deserialize_with = "time")]
    pub started_at: Option<Time>,
}

/// A container that ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Exit code.
    pub exit_code: i32,
    /// Signal; the runtimes of today never fill it.
    pub signal: Option<i32>,
    /// `Completed`, `Error`, `OOMKilled`, `StartError` …
    pub reason: Option<String>,
    /// Termination message, or the runtime's error.
    pub message: Option<String>,
    /// Start, in whole seconds; the epoch (1970) where the container never started.
    #[serde(deserialize_with = "time")]
    pub started_at: Option<Time>,
    /// End, in whole seconds.
    #[serde(deserialize_with = "time")]
    pub finished_at: Option<Time>,
    /// ID of the runtime container; empty where the runtime has no record of it.
    #[serde(rename = "containerID")]
    pub container_id: Option<String>,
}

impl kube::api::Log for PodView {}

impl PodView {
    /// Whether names of Services are resolved by the cluster's DNS (`pkg/kubelet/network/dns`, `getPodDNSType`).
    pub fn has_cluster_dns(&self) -> bool {
        match self.spec.dns_policy.as_deref() {
            None | Some("" | "ClusterFirst") => !self.spec.host_network,
            Some("ClusterFirstWithHostNet") => true,
            // `None` with the cluster's own name server is possible; that it is that one, the Pod does not tell.
            Some(_) => false,
        }
    }

    /// Whether `/etc/hosts` has a name of its own for this Pod.
    pub fn has_host_alias(&self, host: &str) -> bool {
        let names = self.spec.host_aliases.iter().flat_map(|alias| &alias.hostnames);
        names.into_iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    /// Namespace; empty only for a Pod that did not come from an API server.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// UID.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Value of an annotation of ours.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// Value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(name).map(String::as_str)
    }

    /// The owner that controls this Pod.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.as_ref()?.iter().find(|owner| owner.controller == Some(true))
    }

    /// A condition by its type.
    pub fn condition(&self, type_: &str) -> Option<&PodCondition> {
        self.status.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the Pod is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The phase, `Pending` where it is not set.
    pub fn phase(&self) -> &str {
        self.status.phase.as_deref().unwrap_or("Pending")
    }

    /// Spec of an init container by name.
    pub fn init_container(&self, name: &str) -> Option<&InitContainer> {
        self.spec.init_containers.iter().find(|container| container.name == name)
    }
}

impl InitContainer {
    /// A native sidecar: an init container that runs beside the app (Kubernetes KEP-753).
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

impl Terminated {
    /// The signal that ended the process: what the API says, else what the exit code implies (129–159, the
    /// shells' and runtimes' convention of 128 + signal).
    pub fn effective_signal(&self) -> Option<i32> {
        self.signal.filter(|signal| (1..=64).contains(signal)).or_else(|| match self.exit_code {
            code @ 129..=159 => Some(code - 128),
            _ => None,
        })
    }
}

/// Keeps of the metadata what is read: managedFields alone would be half of a Pod.
fn lean_metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Lean {
        name: Option<String>,
        generate_name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        #[serde(deserialize_with = "time")]
        creation_timestamp: Option<Time>,
        #[serde(deserialize_with = "time")]
        deletion_timestamp: Option<Time>,
        labels: Option<std::collections::BTreeMap<String, String>>,
        annotations: Option<std::collections::BTreeMap<String, String>>,
        owner_references: Option<Vec<OwnerReference>>,
    }
    let lean = Lean::deserialize(deserializer)?;
    let annotations = lean.annotations.map(|mut all| {
        all.retain(|name, _| name.starts_with(api::GROUP));
        all
    });
    Ok(ObjectMeta {
        name: lean.name,
        generate_name: lean.generate_name,
        namespace: lean.namespace,
        uid: lean.uid,
        resource_version: lean.resource_version,
        creation_timestamp: lean.creation_timestamp,
        deletion_timestamp: lean.deletion_timestamp,
        labels: lean.labels,
        annotations: annotations.filter(|all| !all.is_empty()),
        owner_references: lean.owner_references,
        ..ObjectMeta::default()
    })
}
