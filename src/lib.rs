//! initwatch
pub mod api;
pub mod pod;
