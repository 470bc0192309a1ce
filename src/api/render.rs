//! The definitions as YAML, as they are shipped in `crds/`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// Stands at the head of each file.
const HEADER: &str = "# Generated from src/api by `make crds`: change the types, not this file.\n";
/// Bound on the strings of `Condition`, in characters: its type comes from Kubernetes and carries none.
const CONDITION_STRING: u64 = 1024;

/// A definition that could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the definition of {kind}: {reason}")]
pub struct RenderError {
    kind: String,
    reason: String,
}

/// Renders a definition as YAML with a header that says where it comes from.
///
/// # Errors
/// When the definition cannot be put into YAML, which would be a defect of this crate.
pub fn render(definition: &CustomResourceDefinition) -> Result<String, RenderError> {
    let fail = |reason: String| RenderError { kind: definition.spec.names.kind.clone(), reason };
    let mut value = serde_json::to_value(definition).map_err(|error| fail(error.to_string()))?;
    tidy(&mut value);
    let yaml = serde_saphyr::to_string(&value).map_err(|error| fail(error.to_string()))?;
    Ok(format!("{HEADER}{yaml}"))
}

/// Writes whole numbers as such (schemars has `0.0` for a minimum), and bounds the conditions.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(conditions) = fields.get_mut("conditions") {
                bound(conditions);
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                *value = whole.into();
            }
        }
        _ => {}
    }
}

/// The whole number that this is, if it is one that needs no more than 32 bits.
fn whole(number: f64) -> Option<i32> {
    format!("{number}").parse().ok()
}

/// Gives every string of a schema that has no bound one: the API server's estimate of what a rule costs takes the
/// longest value that a schema allows. Our own types say their bounds themselves, and a test holds them to it.
fn bound(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_string = fields.get("type").and_then(Value::as_str) == Some("string");
            if is_string && !["maxLength", "enum", "format"].iter().any(|name| fields.contains_key(*name)) {
                fields.insert("maxLength".to_owned(), CONDITION_STRING.into());
            }
            fields.values_mut().for_each(bound);
        }
        Value::Array(items) => items.iter_mut().for_each(bound),
        _ => {}
    }
}
