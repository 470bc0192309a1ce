//! What the shell asks the API server for. Every call has a timeout; every failure says what was asked.

pub mod client;
mod error;
pub mod logs;
pub mod owners;
pub mod pages;
pub mod services;
pub mod workloads;

pub use error::{ClusterError, call, read};
