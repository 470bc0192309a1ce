//! Where the log of an attempt lies, and what is written beside it.

use jiff::Timestamp;
use object_store::path::{Path, PathPart};
use serde::Serialize;

/// Place of a log: `namespace/workload/revision/pod/container/attempt`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttemptPath {
    /// Namespace.
    pub namespace: String,
    /// Kind and name: `deployment.api`.
    pub workload: String,
    /// Revision; none for workloads without.
    pub revision: Option<String>,
    /// Name of the Pod.
    pub pod: String,
    /// Name of the init container.
    pub container: String,
    /// Number of the attempt, from 0.
    pub number: i32,
    /// First eight characters of the container's ID: names and numbers come again (a StatefulSet's Pods, a new sandbox).
    pub short_id: String,
}

impl AttemptPath {
    /// The path below a prefix; `extension` is `log` or `json`. Characters that a store does not take are encoded.
    pub(super) fn below(&self, prefix: &Path, extension: &str) -> Path {
        let revision = self.revision.as_deref().filter(|revision| !revision.is_empty()).unwrap_or("none");
        let file = format!("{}-{}.{extension}", self.number, self.short_id);
        let parts = [&self.namespace, &self.workload, revision, &self.pod, &self.container, file.as_str()];
        let below = parts.into_iter().map(|part: &str| PathPart::from(part.to_owned()));
        prefix.parts().map(|part| PathPart::from(part.as_ref().to_owned())).chain(below).collect()
    }
}

/// What the JSON file beside a log says.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptFacts {
    /// UID of the Pod.
    pub pod_uid: String,
    /// Its node.
    pub node: Option<String>,
    /// Image of the container.
    pub image: Option<String>,
    /// ID of the runtime container.
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// When the attempt started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Exit code; absent where its end was not seen.
    pub exit_code: Option<i32>,
    /// Reason that the kubelet or the runtime gave.
    pub reason: Option<String>,
    /// The log broke off while it was read.
    pub partial: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_parts_of_its_attempt_and_stays_below_its_prefix() {
        let path = AttemptPath {
            namespace: "shop".to_owned(),
            workload: "deployment.api".to_owned(),
            revision: Some("7d9c6b8f5d".to_owned()),
            pod: "api-7d9c6b8f5d-x2x4p".to_owned(),
            container: "migrate".to_owned(),
            number: 3,
            short_id: "1f0c77aa".to_owned(),
        };
        let prefix = Path::from("clusters/one");
        assert_eq!(
            path.below(&prefix, "log").as_ref(),
            "clusters/one/shop/deployment.api/7d9c6b8f5d/api-7d9c6b8f5d-x2x4p/migrate/3-1f0c77aa.log"
        );
        let odd = AttemptPath { revision: None, workload: "../Ü x".to_owned(), ..path };
        let odd = odd.below(&prefix, "json");
        assert!(odd.as_ref().starts_with("clusters/one/shop/") && !odd.as_ref().contains("/../"), "{odd}");
        assert_eq!(odd.parts().count(), 8, "{odd}");
    }
}
