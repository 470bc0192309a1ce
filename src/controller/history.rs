//! Keeps how long init steps usually take, over restarts in one ConfigMap of our own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::Context;
use crate::api::MANAGER;
use crate::cluster::call;
use crate::pod::PodView;
use crate::pod::history::{CompletedStep, History, completed_steps, workload_of};
use crate::pod::progress::InitProgress;

/// Name of the ConfigMap; the Role in deploy/base names it and no other.
const NAME: &str = "initwatch-history";
/// Key in it.
const KEY: &str = "durations.json";
/// How often it is saved at most.
const SAVE_EVERY: Duration = Duration::from_secs(60);
/// Pods whose steps are being counted.
const MAX_PODS: usize = 50_000;

/// The histories, and which steps of which Pods are counted already.
#[derive(Debug, Default)]
pub(super) struct Histories {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    history: History,
    /// Steps that are counted, by Pod UID.
    counted: HashMap<String, usize>,
    changed: bool,
}

impl Histories {
    /// Counts the steps of a Pod that are past and not counted yet. Quick ones are not worth remembering: `slow` is
    /// where that begins.
    pub(super) fn observe(&self, pod: &PodView, slow: SignedDuration) {
        let Some(workload) = workload_of(pod) else { return };
        let steps = completed_steps(pod);
        let mut inner = self.lock();
        let counted = inner.counted.get(pod.uid()).copied().unwrap_or(0);
        if steps.len() <= counted {
            return;
        }
        if inner.counted.len() >= MAX_PODS {
            inner.counted.clear();
        }
        inner.counted.insert(pod.uid().to_owned(), steps.len());
        for step in steps.iter().skip(counted).filter(|step| step.took >= slow) {
            inner.history.record(&workload, step);
            inner.changed = true;
        }
    }

    /// A Pod has left. When it did so in the middle of its last step, without being deleted, that step took until now:
    /// the status that would say so is never sent to us.
    pub(super) fn left(&self, pod: &PodView, slow: SignedDuration, now: Timestamp) {
        let mut inner = self.lock();
        inner.counted.remove(pod.uid());
        let (Some(workload), false) = (workload_of(pod), pod.is_terminating()) else { return };
        let InitProgress::At(step) = InitProgress::of(pod) else { return };
        let took = step.since.map(|since| now.duration_since(since));
        let is_last = step.index + 1 == step.total && !step.sidecar && !step.rerun;
        if let Some(took) = took.filter(|took| is_last && pod.phase() == "Pending" && *took >= slow) {
            inner.history.record(&workload, &CompletedStep { container: step.container, took });
            inner.changed = true;
        }
    }

    /// The threshold for the step at which a Pod stands.
    pub(super) fn threshold(
        &self,
        pod: &PodView,
        progress: &InitProgress,
        least: SignedDuration,
    ) -> SignedDuration {
        let (Some(workload), Some(step)) = (workload_of(pod), progress.step()) else { return least };
        self.lock().history.threshold(&workload, &step.container, least)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what an earlier process has saved. Without it, the first slow run is taken for stuck: no reason to stop.
pub(super) async fn load(context: &Context) {
    let Some(maps) = config_maps(&context.client, context) else { return };
    match call(format!("get configmap {NAME}"), maps.get_opt(NAME)).await {
        Ok(Some(map)) => {
            let json = map.data.and_then(|mut data| data.remove(KEY)).unwrap_or_default();
            match History::from_json(&json) {
                Ok(history) => context.histories.lock().history = history,
                Err(error) => tracing::warn!(%error, "the saved durations cannot be read; beginning anew"),
            }
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "the saved durations are not known"),
    }
}

/// Saves what has changed, for ever.
pub(super) async fn save(context: Arc<Context>) {
    let Some(maps) = config_maps(&context.client, &context) else { return std::future::pending().await };
    let mut ticks = tokio::time::interval(SAVE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let json = {
            let mut inner = context.histories.lock();
            if !std::mem::take(&mut inner.changed) {
                continue;
            }
            inner.history.to_json()
        };
        let patch = Patch::Apply(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME},
            "data": {KEY: json},
        }));
        let params = PatchParams::apply(MANAGER).force();
        if let Err(error) = call(format!("apply configmap {NAME}"), maps.patch(NAME, &params, &patch)).await {
            tracing::warn!(%error, "the durations could not be saved; trying again");
            context.histories.lock().changed = true;
        }
    }
}

/// Only in a namespace of our own; a process on a laptop keeps its history to itself.
fn config_maps(client: &Client, context: &Context) -> Option<Api<ConfigMap>> {
    let namespace = context.settings.own_namespace.as_deref()?;
    Some(Api::namespaced(client.clone(), namespace))
}
