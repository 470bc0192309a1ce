//! The custom resources of `initwatch.dev`: what people and machines read.
//!
//! [`InitDiagnosis`] says what is known of one workload revision; [`InitLog`] keeps the log of one attempt.
//! Two kinds, so that a role may read one and not the other (logs can hold what a summary must not).

pub mod render;
pub mod v1alpha1;

pub use v1alpha1::{InitDiagnosis, InitLog};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// API group of both kinds.
pub const GROUP: &str = "initwatch.dev";

/// Field manager of every server-side apply, and `reportingController` of every Event.
pub const MANAGER: &str = "initwatch";

/// Label with the kind of the top-level workload, in lower case.
pub const LABEL_WORKLOAD_KIND: &str = "initwatch.dev/workload-kind";
/// Label with the name of the top-level workload (cut to 63 characters with a hash).
pub const LABEL_WORKLOAD_NAME: &str = "initwatch.dev/workload-name";

/// Annotation on a Pod: how long its init containers may run before that counts as stuck (`30m`, `1h 20m`).
pub const ANNOTATION_STUCK_AFTER: &str = "initwatch.dev/stuck-after";
/// Annotation on a Pod: `"true"` = never diagnose it.
pub const ANNOTATION_IGNORE: &str = "initwatch.dev/ignore";
/// Annotation on a Pod: `"never"` = keep no log text of it; `"always"` = keep the logs of attempts that succeed, too.
pub const ANNOTATION_KEEP_LOGS: &str = "initwatch.dev/keep-logs";
/// Annotation on an InitLog: bytes of its text, so that a list of metadata tells what the logs take up.
pub const ANNOTATION_STORED_BYTES: &str = "initwatch.dev/stored-bytes";
/// Annotation on an InitDiagnosis: no Events before this RFC 3339 time.
pub const ANNOTATION_MUTED_UNTIL: &str = "initwatch.dev/muted-until";

/// Both definitions, in the order in which they are to be installed.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![InitDiagnosis::crd(), InitLog::crd()]
}
