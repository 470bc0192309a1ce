//! initwatch: says why a Pod is stuck in its init containers, and keeps their logs before they are gone.
//!
//! Modules in the order in which one may import another (a test holds them to it): [`api`] < [`pod`] <
//! [`diagnose`] < [`plan`] < [`cluster`] < [`archive`] < [`controller`] < [`cli`]. The first four are pure: values in,
//! values out, the time is an argument. See `docs/architecture.md`.

pub mod api;
pub mod archive;
pub mod cli;
pub mod cluster;
pub mod controller;
pub mod diagnose;
pub mod plan;
pub mod pod;
pub mod telemetry;
