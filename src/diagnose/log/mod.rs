//! The text of a log: read within bounds, made readable, masked, and told in a few lines.
//!
//! Log output is hostile: any bytes, any size, escape codes, secrets. All here is linear in time and bounded
//! in memory.

mod clean;
mod collect;
mod excerpt;
mod fold;
mod full;
mod mask;

pub use collect::{CollectedLog, LogCollector, LogLimits, LogWindow};
pub use excerpt::{Excerpt, excerpt, telling_score};
pub use fold::ends_in_repetition;
pub use full::FullText;
pub use mask::{MaskRule, Masked, Masker, MaskerError, secret_like_env_name};
