//! End to end, on a real node: containers that really crash and hang, the image and the manifests of deploy/
//! as they are, and the permissions that they grant.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that fails must say so"
)]

mod deployed;
mod failures;
#[allow(dead_code, reason = "each suite uses what it needs of it")]
#[path = "../support/mod.rs"]
mod support;
mod tracking;
