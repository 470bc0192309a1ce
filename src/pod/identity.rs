//! Which diagnosis a Pod belongs to: one per workload revision, named after it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use sha2::{Digest, Sha256};

use super::view::PodView;
use crate::api::v1alpha1::{ControllerReference, WorkloadReference};

/// Longest name of an object (a DNS subdomain).
const MAX_NAME: usize = 253;
/// Longest value of a label.
const MAX_LABEL: usize = 63;

/// Namespace and name of an InitDiagnosis: the key of all work.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DiagnosisKey {
    /// Namespace of the workload.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl std::fmt::Display for DiagnosisKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// What a Pod belongs to, as far as the Pod itself tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Key of the diagnosis.
    pub key: DiagnosisKey,
    /// Direct controller; none for bare and static Pods.
    pub controller: Option<ControllerReference>,
    /// The workload to show: the direct controller or the Pod until an owner look-up knows better.
    pub workload: WorkloadReference,
    /// Revision, where the controller has one.
    pub revision: Option<String>,
}

impl Identity {
    /// Identity of a Pod. `job_owner` is the CronJob that made the Pod's Job, where that is known: its runs are
    /// attempts of one diagnosis.
    pub fn of(pod: &PodView, job_owner: Option<&WorkloadReference>) -> Self {
        let namespace = pod.namespace().to_owned();
        // Static Pods are "controlled" by their Node, which is no workload.
        let owner = pod.controller().filter(|owner| owner.kind != "Node");
        let Some(owner) = owner else {
            let workload = WorkloadReference {
                kind: "Pod".to_owned(),
                group: String::new(),
                name: pod.name().to_owned(),
                uid: pod.metadata.uid.clone(),
            };
            let name = object_name(&["pod", pod.name()]);
            return Self {
                key: DiagnosisKey { namespace, name },
                controller: None,
                workload,
                revision: None,
            };
        };
        let group = group_of(&owner.api_version);
        let revision = revision_of(pod, owner, group);
        let workload = match job_owner {
            Some(cron_job) if owner.kind == "Job" && group == "batch" => cron_job.clone(),
            _ => WorkloadReference {
                kind: owner.kind.clone(),
                group: group.to_owned(),
                name: owner.name.clone(),
                uid: Some(owner.uid.clone()),
            },
        };
        let kind = workload.kind.to_lowercase();
        let name = match (group, owner.kind.as_str()) {
            ("apps", "StatefulSet" | "DaemonSet") => match &revision {
                Some(revision) => object_name(&[&kind, &owner.name, revision]),
                None => object_name(&[&kind, &owner.name]),
            },
            ("batch", "Job") => object_name(&[&kind, &workload.name]),
            // The template hash, which is the revision, is part of a ReplicaSet's name.
            ("", _) | ("apps", "ReplicaSet") => object_name(&[&kind, &owner.name]),
            (group, _) => object_name(&[&kind, group, &owner.name]),
        };
        let controller = ControllerReference {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        };
        Self { key: DiagnosisKey { namespace, name }, controller: Some(controller), workload, revision }
    }
}

/// Group of an API version: `apps/v1` gives `apps`, `v1` gives the empty core group.
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn revision_of(pod: &PodView, owner: &OwnerReference, group: &str) -> Option<String> {
    match (group, owner.kind.as_str()) {
        ("apps", "ReplicaSet") => pod.label("pod-template-hash").map(str::to_owned),
        ("apps", "StatefulSet" | "DaemonSet") => {
            let hash = pod.label("controller-revision-hash")?;
            // A StatefulSet writes `<name>-<hash>`, a DaemonSet the hash alone.
            let bare = hash.strip_prefix(owner.name.as_str()).and_then(|rest| rest.strip_prefix('-'));
            Some(bare.unwrap_or(hash).to_owned())
        }
        _ => None,
    }
}

/// Joins parts with dots to an object name; what is too long, or holds what a name must not (owners of kinds that we do
/// not know are called as their makers like), is replaced and closed with a hash of the whole.
pub fn object_name(parts: &[&str]) -> String {
    let joined = parts.join(".");
    let allowed = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || matches!(character, '-' | '.')
    };
    if joined.chars().all(allowed) {
        return shortened(&joined, MAX_NAME);
    }
    let replaced = joined.to_ascii_lowercase().replace(|character| !allowed(character), "-");
    let hash = hash_of(&[&joined]);
    shortened(&format!("{}-{hash}", replaced.trim_matches(['.', '-'])), MAX_NAME)
}

/// A label value from a name.
pub fn label_value(name: &str) -> String {
    shortened(name, MAX_LABEL)
}

fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let hash = hash_of(&[text]);
    let mut end = max.saturating_sub(hash.len() + 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // A name must not hold a separator before another one.
    let head = text.get(..end).unwrap_or_default().trim_end_matches(['.', '-']);
    format!("{head}-{hash}")
}

/// Ten hexadecimal characters of a SHA-256 over the parts: short, and stable across versions of this program.
pub fn hash_of(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        // So that ("ab", "c") and ("a", "bc") differ.
        hasher.update([0]);
    }
    let bytes = hasher.finalize();
    let head = bytes.iter().take(5).fold(0_u64, |head, byte| (head << 8) | u64::from(*byte));
    format!("{head:010x}")
}

#[cfg(test)]
mod tests;
