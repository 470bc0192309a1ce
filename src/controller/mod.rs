//! The controller: watch → track → gather → diagnose → plan → apply, with the captures of logs beside.

mod apply;
pub mod capture;
mod error;
mod events;
mod gather;
mod history;
mod ledger;
mod policy;
pub mod queue;
mod reconcile;
mod rerun;
mod retire;
mod run;
mod settings;
pub mod track;
mod watch;

pub use capture::{CaptureLimits, ReadLimits, StreamLimits};
pub use error::ControllerError;
pub use ledger::StoreLimits;
pub use run::run;
pub use settings::{ListMode, Settings};

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube::Client;
use kube_runtime::reflector::{ObjectRef, Store};

use crate::diagnose::log::Masker;
use crate::pod::identity::DiagnosisKey;
use crate::pod::{PodView, PrinterVersion};
use crate::telemetry::health::Health;
use crate::telemetry::metrics::Metrics;
use capture::Captures;
use history::Histories;
use ledger::Ledger;
use policy::Policies;
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
    policies: Policies,
    histories: Histories,
    /// Pods in init that the watch's selector leaves out, by UID.
    polled: Mutex<HashMap<String, (Scope, Arc<PodView>)>>,
    /// Diagnoses that wait for logs on their way, and since when.
    put_off: Mutex<HashMap<DiagnosisKey, Timestamp>>,
    metrics: Metrics,
    health: Health,
    /// What the kept logs take up.
    ledger: Mutex<Ledger>,
    /// Values of annotations that were complained about.
    complaints: Mutex<HashSet<String>>,
    /// The rule by which this server prints STATUS.
    printer: PrinterVersion,
    /// Whether this server streams lists.
    streams_lists: bool,
}

impl Context {
    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        // A panic while it was held left at worst one Pod half indexed; the next event of that Pod mends it.
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn polled(&self) -> MutexGuard<'_, HashMap<String, (Scope, Arc<PodView>)>> {
        self.polled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_off(&self) -> MutexGuard<'_, HashMap<DiagnosisKey, Timestamp>> {
        self.put_off.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complaints(&self) -> MutexGuard<'_, HashSet<String>> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The scope that covers a namespace.
    fn scope_of(&self, namespace: &str) -> Scope {
        let covers = |scope: &&Scope| scope.as_deref().is_none_or(|scope| scope == namespace);
        self.stores.iter().map(|(scope, _)| scope).find(covers).cloned().flatten()
    }

    /// A Pod of the watch, or one that is polled.
    fn pod(&self, uid: &str, reference: &ObjectRef<PodView>) -> Option<Arc<PodView>> {
        if let Some((_, pod)) = self.polled().get(uid) {
            return Some(pod.clone());
        }
        let namespace = reference.namespace.as_deref();
        let covers = |scope: &Scope| scope.as_deref().is_none_or(|scope| Some(scope) == namespace);
        self.stores.iter().find(|(scope, _)| covers(scope))?.1.get(reference)
    }
}
