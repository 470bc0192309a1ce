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
/// must not appear in anything that is stored.
pub fn secret_literals(pod: &PodView) -> Vec<String> {
    let variables = pod.spec.init_containers.iter().flat_map(|container| &container.env);
    variables
        .filter(|variable| log::secret_like_env_name(&variable.name))
        .filter_map(|variable| variable.value.clone())
        .filter(|value| !value.is_empty())
        .collect()
}
