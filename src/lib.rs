//! x
pub mod diagnose;
