//! What a Pod says about its init containers: pure functions over a partial Pod.

pub mod age;
pub mod attempt;
pub mod decode;
pub mod history;
pub mod identity;
pub mod progress;
pub mod status;
pub mod view;

pub use status::{KubectlStatus, PrinterVersion, kubectl_status};
pub use view::PodView;
