//! What the process tells of itself: logs and probes.

pub mod health;
pub mod logging;
pub mod metrics;
