//! From facts to a verdict: pure functions of values; the time is an argument.
//!
//! [`needs`] says what to look up, the caller gathers it, [`assess`] decides.

pub mod catalogue;
mod detect;
pub mod exit_code;
pub mod facts;
pub mod log;
pub mod targets;
pub mod verdict;
pub mod wait;

pub use detect::{assess, interrupted};
pub use targets::needs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::pod::PodView;

/// Cuts a text to at most `max` bytes at a character boundary, with an ellipsis where something is lost.
pub fn cut(text: &str, max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max.saturating_sub(ELLIPSIS.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", text.get(..end).unwrap_or_default())
}

/// Values that the Pod's init containers have inlined in their environment under a name that looks secret: they
/// must not appear in anything that is stored, neither as they are nor in the forms in which programs print them.
pub fn secret_literals(pod: &PodView) -> Vec<String> {
    let variables = pod.spec.init_containers.iter().flat_map(|container| &container.env);
    let values = variables
        .filter(|variable| log::secret_like_env_name(&variable.name))
        .filter_map(|variable| variable.value.as_deref());
    values.flat_map(forms).collect()
}

/// A value as it is, line by line, in a URL, and in base64.
fn forms(value: &str) -> Vec<String> {
    let mut forms: Vec<String> = value.lines().map(str::trim).map(str::to_owned).collect();
    forms.push(value.to_owned());
    forms.push(utf8_percent_encode(value, NON_ALPHANUMERIC).to_string());
    forms.push(BASE64.encode(value));
    forms.retain(|form| !form.is_empty());
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inlined_secrets_are_known_in_each_form() {
        let pod: PodView = serde_saphyr::from_str(
            "spec: {initContainers: [{name: a, env: [
              {name: DB_PASSWORD, value: 'p@ss:word/1'}, {name: TLS_PRIVATE_KEY, value: \"first-line\\nsecond-line\"},
              {name: DB_HOST, value: postgres-primary}]}]}",
        )
        .unwrap();
        let literals = secret_literals(&pod);
        let text =
            "p@ss:word/1 p%40ss%3Aword%2F1 cEBzczp3b3JkLzE= first-line | second-line at postgres-primary";
        let masked = log::Masker::shipped().mask(text, &literals).text.into_owned();
        assert_eq!(masked, "[masked] [masked] [masked] [masked] | [masked] at postgres-primary");
    }
}
