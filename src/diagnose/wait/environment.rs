//! The variables of a container, and Kubernetes' own `$(VAR)` expansion.

use std::collections::BTreeMap;

use super::marked;

/// One entry of `env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvVariable {
    /// The variable's name.
    pub name: String,
    /// What the Pod says about its value.
    pub value: EnvValue,
}

/// What the Pod says about a variable's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// `value`, not yet expanded.
    Literal(String),
    /// `valueFrom`: the value is somewhere else, and is not read.
    Reference,
}

/// More entries than this are not looked at.
const MAX_VARIABLES: usize = 1024;

/// The variables of a container, values marked (see [`marked`]).
#[derive(Debug, Clone, Default)]
pub(super) struct Environment {
    values: BTreeMap<String, String>,
    open: bool,
}

impl Environment {
    /// Expands the entries in their order: a value may refer to earlier entries only
    /// (Kubernetes `pkg/kubelet/kubelet_pods.go`, `makeEnvironmentVariables`).
    pub(super) fn new(entries: &[EnvVariable], open: bool) -> Self {
        let mut environment = Self { values: BTreeMap::new(), open };
        for entry in entries.iter().take(MAX_VARIABLES) {
            let value = match &entry.value {
                EnvValue::Literal(text) if text.len() <= marked::MAX_TEXT_BYTES => {
                    marked::bound(environment.expand(&marked::clean(text)))
                }
                EnvValue::Literal(_) | EnvValue::Reference => marked::unknown(&entry.name),
            };
            environment.values.insert(entry.name.clone(), value);
        }
        environment
    }

    /// The marked value of a variable; none if the Pod does not set it.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Sets a variable that the script itself gives to its programs.
    pub(super) fn set(&mut self, name: String, marked_value: String) {
        self.values.insert(name, marked_value);
    }

    /// Whether there may be variables whose names the Pod does not show (`envFrom`).
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// All variables, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Expands `$(VAR)` as the kubelet does in `command`, `args` and `env`: `$$` is a dollar, an unknown name and
    /// an unclosed reference stay as they are (Kubernetes `third_party/forked/golang/expansion/expand.go`).
    /// `input` is clean or marked; the result is marked.
    pub(super) fn expand(&self, input: &str) -> String {
        let mut output = String::with_capacity(input.len());
        let mut rest = input;
        while let Some((before, after)) = rest.split_once('$') {
            output.push_str(before);
            if let Some(behind) = after.strip_prefix('$') {
                output.push('$');
                rest = behind;
            } else if let Some((name, behind)) =
                after.strip_prefix('(').and_then(|inner| inner.split_once(')'))
            {
                if let Some(value) = self.values.get(name) {
                    output.push_str(value);
                } else if self.open && looks_like_variable(name) {
                    output.push_str(&marked::unknown(name));
                } else {
                    output.push_str("$(");
                    output.push_str(name);
                    output.push(')');
                }
                rest = behind;
            } else {
                output.push('$');
                rest = after;
            }
        }
        output.push_str(rest);
        output
    }
}

/// By convention: capitals, digits and underscores. With `envFrom` such a name is a variable, not a command.
fn looks_like_variable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}
