//! What does an init container wait for?
//!
//! The container's command is read as the kubelet and the shell would read it: `$(VAR)` is expanded, the
//! script is parsed by a shell parser, and its loops, conditions and functions are walked for the tools that
//! people wait with. What cannot be known from the Pod alone (a value from a Secret, a script file in the
//! image) stays unknown and is named.
//!
//! Everything here is a pure function of its arguments, never panics, and does a bounded amount of work:
//! see [`MAX_TARGETS`] and [`MAX_SCRIPT_BYTES`].
//!
//! [`log_hints`] is the second source: what the log itself says it waits for. [`host`] says where a name points.

mod command;
mod environment;
mod evidence;
pub mod host;
pub mod log_hints;
mod marked;
mod opaque;
mod script;
#[cfg(test)]
mod tests;
mod tolerant;
mod tools;
mod types;

pub use command::{ContainerCommand, MAX_SCRIPT_BYTES, analyse};
pub use environment::{EnvValue, EnvVariable};
pub use host::{HostKind, Malformed, classify_host};
pub use log_hints::{LogHint, Outcome, hints};
pub use types::{
    LoopShape, MAX_EVIDENCE_CHARS, MAX_TARGETS, Parsed, Port, Protocol, TargetKind, Value, WaitAnalysis,
    WaitTarget,
};
