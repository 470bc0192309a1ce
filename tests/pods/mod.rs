//! Pods for tests, as the JSON of the API: written in a short notation, and generated.

pub mod generated;
pub mod notation;
