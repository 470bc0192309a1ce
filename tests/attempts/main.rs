//! How many attempts are kept of those that there really were: two hundred on a real node, of every kind that loses
//! logs elsewhere. What really ran is told by the containers themselves, in a file of the node.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that fails must say so"
)]

mod bounds;
mod kinds;
mod large;
#[allow(dead_code, reason = "each suite uses what it needs of it")]
#[path = "../support/mod.rs"]
mod support;
mod truth;
