//! The catalogue of causes: data, compiled in (`config/causes.yaml`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Codes of the causes that detectors of this crate decide. A test proves that each is in the catalogue.
#[allow(missing_docs)] // Each is explained by the catalogue.
pub mod cause {
    pub const CONFIG_MAP_NOT_FOUND: &str = "ConfigMapNotFound";
    pub const CONTAINER_START_FAILED: &str = "ContainerStartFailed";
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    pub const DELETED_DURING_INIT: &str = "DeletedDuringInit";
    pub const EVICTED: &str = "Evicted";
    pub const FAILED_WITHOUT_RETRY: &str = "FailedWithoutRetry";
    pub const HANGING: &str = "Hanging";
    pub const IMAGE_NAME_INVALID: &str = "ImageNameInvalid";
    pub const IMAGE_NEVER_PULLED: &str = "ImageNeverPulled";
    pub const IMAGE_PULL_FAILED: &str = "ImagePullFailed";
    pub const KEY_NOT_FOUND: &str = "KeyNotFound";
    pub const KILLED_BY_SIGNAL: &str = "KilledBySignal";
    pub const NODE_LOST: &str = "NodeLost";
    pub const NON_ZERO_EXIT: &str = "NonZeroExit";
    pub const OOM_KILLED: &str = "OomKilled";
    pub const RUN_AS_NON_ROOT_CONFLICT: &str = "RunAsNonRootConflict";
    pub const RUN_AS_NON_ROOT_IMAGE_ROOT: &str = "RunAsNonRootImageRoot";
    pub const RUN_AS_NON_ROOT_NON_NUMERIC_USER: &str = "RunAsNonRootNonNumericUser";
    pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
    pub const SERVICE_HAS_NO_ENDPOINTS: &str = "ServiceHasNoEndpoints";
    pub const SERVICE_NOT_FOUND: &str = "ServiceNotFound";
    pub const SERVICE_PORT_MISMATCH: &str = "ServicePortMismatch";
    pub const SIDECAR_EXITS: &str = "SidecarExits";
    pub const SIDECAR_STARTUP_PROBE_FAILING: &str = "SidecarStartupProbeFailing";
    pub const UNKNOWN: &str = "Unknown";
    pub const UNSCHEDULABLE: &str = "Unschedulable";
}

/// A cause as the catalogue describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogueEntry {
    /// Stable code.
    pub code: String,
    /// Category.
    pub category: String,
    /// What settles it.
    pub evidence: String,
    /// What to do, in general.
    pub remedy: String,
    /// Whether a detector decides it yet.
    pub detected: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCategory {
    category: String,
    causes: Vec<RawCause>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCause {
    code: String,
    evidence: String,
    remedy: String,
    #[serde(default)]
    detected: bool,
}

static CATALOGUE: LazyLock<BTreeMap<String, CatalogueEntry>> = LazyLock::new(|| {
    // A broken file cannot be built into a release: the tests below read it. Should it happen all the same, an
    // empty catalogue only costs the category and the general remedy.
    parse(include_str!("../../config/causes.yaml")).unwrap_or_default()
});

fn parse(yaml: &str) -> Result<BTreeMap<String, CatalogueEntry>, serde_saphyr::Error> {
    let categories: Vec<RawCategory> = serde_saphyr::from_str(yaml)?;
    let entries = categories.into_iter().flat_map(|RawCategory { category, causes }| {
        causes.into_iter().map(move |cause| CatalogueEntry {
            code: cause.code,
            category: category.clone(),
            evidence: cause.evidence,
            remedy: cause.remedy,
            detected: cause.detected,
        })
    });
    Ok(entries.map(|entry| (entry.code.clone(), entry)).collect())
}

/// The entry of a code.
pub fn entry(code: &str) -> Option<&'static CatalogueEntry> {
    CATALOGUE.get(code)
}

/// All entries, by code.
pub fn entries() -> impl Iterator<Item = &'static CatalogueEntry> {
    CATALOGUE.values()
}

/// Category of a code; `Unknown` for a code that the catalogue does not have.
pub fn category(code: &str) -> &'static str {
    entry(code).map_or("Unknown", |entry| entry.category.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_catalogue_parses_and_every_code_fits_the_api() {
        let entries = parse(include_str!("../../config/causes.yaml")).unwrap();
        let code = regex::Regex::new("^[A-Z][A-Za-z0-9]{1,62}$").unwrap();
        assert!(entries.len() >= 190, "{} causes", entries.len());
        for entry in entries.values() {
            assert!(code.is_match(&entry.code), "{}", entry.code);
            assert!(code.is_match(&entry.category), "{}", entry.category);
            assert!(!entry.remedy.is_empty() && !entry.evidence.is_empty(), "{}", entry.code);
        }
    }

    #[test]
    fn the_codes_of_the_detectors_are_those_marked_as_detected() {
        let source = include_str!("catalogue.rs");
        let constant = regex::Regex::new(r#"pub const [A-Z_]+: &str = "(\w+)";"#).unwrap();
        let mut named: Vec<_> = constant.captures_iter(source).map(|found| found[1].to_owned()).collect();
        let mut detected: Vec<_> =
            entries().filter(|entry| entry.detected).map(|entry| entry.code.clone()).collect();
        named.sort();
        detected.sort();
        assert_eq!(named, detected);
    }
}
