//! Version `v1alpha1` of both kinds.
//!
//! Enums stand only where the set is closed for good (state, severity, confidence, resolution, source).
//! Causes, categories and advice codes are strings with a pattern: a team's own codes and those of a newer
//! catalogue must fit into an older definition.

mod affected;
mod diagnosis;
mod log;
mod values;

pub use affected::{AffectedOmitted, AffectedPod, Attempt};
pub use diagnosis::{
    Advice, AttemptTotals, Change, ControllerReference, Evidence, InitDiagnosis, InitDiagnosisSpec,
    InitDiagnosisStatus, OtherCause, PastCause, RootCause, WorkloadReference,
};
pub use log::{InitLog, InitLogSpec};
pub use values::{AttemptSource, Confidence, EvidenceSource, LogOrigin, Resolution, Severity, State};
