//! Deciding why a Pod is stuck in its init containers.
pub mod wait;
