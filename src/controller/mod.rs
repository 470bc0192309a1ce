//! The controller: watch → track → gather → diagnose → plan → apply, with the captures of logs beside.

mod apply;
pub mod capture;
mod error;
mod gather;
pub mod queue;
mod reconcile;
mod retire;
mod run;
mod settings;
pub mod track;
mod watch;

pub use error::ControllerError;
pub use run::run;
pub use settings::Settings;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube_runtime::reflector::{ObjectRef, Store};

use crate::diagnose::log::Masker;
use crate::pod::PodView;
use capture::Captures;
use queue::Triggers;
use track::{Scope, Tracker};

/// What all parts share.
struct Context {
    client: Client,
    settings: Settings,
    masker: Arc<Masker>,
    tracker: Mutex<Tracker>,
    stores: Vec<(Scope, Store<PodView>)>,
    captures: Captures,
    triggers: Triggers,
}

impl Context {
    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        // A panic while it was held left at worst one Pod half indexed; the next event of that Pod mends it.
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A Pod of the watch.
    fn pod(&self, reference: &ObjectRef<PodView>) -> Option<Arc<PodView>> {
        let namespace = reference.namespace.as_deref();
        let covers = |scope: &Scope| scope.as_deref().is_none_or(|scope| Some(scope) == namespace);
        self.stores.iter().find(|(scope, _)| covers(scope))?.1.get(reference)
    }
}
