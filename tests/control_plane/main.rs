//! Tests against a real control plane: etcd, API server, controllers and scheduler, but no node. See [`support`].
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that fails must say so"
)]

mod failures;
mod faults;
mod lifecycle;
mod objects;
mod odd;
mod permissions;
#[allow(dead_code, reason = "each suite uses what it needs of it")]
#[path = "../pods/mod.rs"]
mod pods;
mod scale;
mod slow;
mod status_oracle;
#[allow(dead_code, reason = "each suite uses what it needs of it")]
#[path = "../support/mod.rs"]
mod support;
