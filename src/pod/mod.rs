//! What a Pod says about its init containers: pure functions over a partial Pod.

pub mod attempt;
pub mod identity;
pub mod progress;
pub mod view;

pub use view::PodView;
