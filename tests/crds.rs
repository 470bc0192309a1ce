//! The shipped definitions are those of the types, and every string and list in them has a bound.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails must say so"
)]

use std::path::{Path, PathBuf};

use initwatch::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

fn file(plural: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crds").join(format!("{plural}.yaml"))
}

/// `UPDATE_CRDS=1 cargo test --test crds` writes the files (`make crds`).
#[test]
fn the_shipped_definitions_are_those_of_the_types() {
    for definition in api::definitions() {
        let path = file(&definition.spec.names.plural);
        let rendered = api::render::render(&definition).unwrap();
        if std::env::var_os("UPDATE_CRDS").is_some() {
            std::fs::write(&path, &rendered).unwrap();
        }
        let shipped = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(shipped == rendered, "{} differs from the types; run: make crds", path.display());
    }
}

#[test]
fn every_string_and_every_list_has_a_bound() {
    for definition in api::definitions() {
        let yaml = api::render::render(&definition).unwrap();
        let value: Value = serde_saphyr::from_str(&yaml).unwrap();
        let schema = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        let mut seen = 0;
        for part in ["spec", "status"] {
            check(&schema[part], part, &mut seen);
        }
        assert!(seen > 10, "{seen} strings and lists in {}", definition.spec.names.kind);
    }
}

fn check(schema: &Value, path: &str, seen: &mut usize) {
    let has = |names: &[&str]| names.iter().any(|name| schema.get(name).is_some());
    match schema["type"].as_str() {
        Some("string") => {
            *seen += 1;
            // A pattern bounds a string as well, but the API server does not see how far.
            assert!(has(&["maxLength", "enum", "format"]), "{path} has no bound");
        }
        Some("array") => {
            *seen += 1;
            assert!(has(&["maxItems"]), "{path} has no bound");
            check(&schema["items"], &format!("{path}[]"), seen);
        }
        Some("object") => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                check(property, &format!("{path}.{name}"), seen);
            }
        }
        _ => {}
    }
}

#[test]
fn a_missing_bound_is_found() {
    let schema = serde_json::json!({"type": "object", "properties": {"names": {
        "type": "array", "maxItems": 3, "items": {"type": "string", "pattern": "^a"}
    }}});
    let found = std::panic::catch_unwind(|| check(&schema, "spec", &mut 0));
    assert!(found.is_err());
}

/// What `kubectl get initdiagnoses` prints, and what `-o wide` adds (DESIGN D2).
#[test]
fn columns_names_and_selection_are_those_of_the_design() {
    let [diagnosis, log] = api::definitions().try_into().unwrap();
    let columns = |definition: &CustomResourceDefinition, wide: bool| {
        let columns = definition.spec.versions[0].additional_printer_columns.clone().unwrap();
        let columns = columns.into_iter().filter(|column| (column.priority.unwrap_or(0) > 0) == wide);
        columns.map(|column| column.name.to_uppercase()).collect::<Vec<_>>()
    };
    let narrow = ["WORKLOAD", "STATE", "INIT CONTAINER", "STATUS", "CAUSE", "PODS", "STUCK", "AGE"];
    assert_eq!(columns(&diagnosis, false), narrow);
    assert_eq!(columns(&diagnosis, true), ["STEP", "CONFIDENCE", "SUMMARY"]);
    // The wide ones stand behind: a summary is long, and what is right of it is out of sight.
    let all = diagnosis.spec.versions[0].additional_printer_columns.clone().unwrap();
    assert!(all.is_sorted_by_key(|column| column.priority.unwrap_or(0)));
    let of_logs = ["POD", "CONTAINER", "ATTEMPT", "EXIT", "FINISHED", "BYTES", "AGE"];
    assert_eq!(columns(&log, false), of_logs);

    assert_eq!(diagnosis.spec.names.short_names.as_deref(), Some(["initdiag".to_owned()].as_slice()));
    let selectable = diagnosis.spec.versions[0].selectable_fields.clone().unwrap();
    let paths: Vec<_> = selectable.into_iter().map(|field| field.json_path).collect();
    assert_eq!(paths, [".status.cause", ".status.state"]);
    for definition in [&diagnosis, &log] {
        assert_eq!(definition.spec.names.categories, None, "`kubectl get all` is not for these");
    }
}

#[test]
fn every_field_is_explained() {
    // What `kubectl explain initdiagnosis.status --recursive` has to show.
    for definition in api::definitions() {
        let yaml = api::render::render(&definition).unwrap();
        let value: Value = serde_saphyr::from_str(&yaml).unwrap();
        let schema = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        for part in ["spec", "status"] {
            explained(&schema[part], part);
        }
    }
}

fn explained(schema: &Value, path: &str) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(
            property["description"].as_str().is_some_and(|text| text.len() > 3),
            "{path} is not explained"
        );
        explained(property, &path);
        explained(&property["items"], &path);
    }
}
