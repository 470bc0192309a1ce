//! The definitions as YAML, as they are shipped in `crds/`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// Stands at the head of each file.
const HEADER: &str = "# Generated from src/api by `make crds`: change the types, not this file.\n";
/// Bound on strings whose types are not ours (those of `Condition`), in characters.
const FOREIGN_STRING: u64 = 1024;

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
    bound(&mut value);
    let yaml = serde_saphyr::to_string(&value).map_err(|error| fail(error.to_string()))?;
    Ok(format!("{HEADER}{yaml}"))
}

/// Gives every string of the schema that has no bound one: the types of Kubernetes carry none, and the API
/// server's estimate of what a rule costs takes the longest value that a schema allows.
fn bound(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_string = fields.get("type").and_then(Value::as_str) == Some("string");
            let is_bound = ["maxLength", "enum", "format"].iter().any(|name| fields.contains_key(*name));
            // Printer columns have a type as well, but no schema.
            if is_string && !is_bound && !fields.contains_key("jsonPath") {
                fields.insert("maxLength".to_owned(), FOREIGN_STRING.into());
            }
            fields.values_mut().for_each(bound);
        }
        Value::Array(items) => items.iter_mut().for_each(bound),
        _ => {}
    }
}
