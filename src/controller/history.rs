//! Keeps how long init steps usually take, over restarts in one ConfigMap of our own.

use std::collections::{BTreeSet, HashMap};
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
    /// Init containers whose step is counted, by Pod UID.
    counted: HashMap<String, BTreeSet<String>>,
    changed: bool,
}

impl Inner {
    /// Counts a step, once for each Pod.
    fn count(
        &mut self,
        pod: &PodView,
        workload: &str,
        step: &CompletedStep,
        slow: SignedDuration,
        in_trouble: bool,
    ) {
        if self.counted.len() >= MAX_PODS && !self.counted.contains_key(pod.uid()) {
            self.counted.clear();
        }
        let is_new = self.counted.entry(pod.uid().to_owned()).or_default().insert(step.container.clone());
        if is_new && step.took >= slow && !in_trouble {
            self.history.record(workload, step);
            self.changed = true;
        }
    }
}

impl Histories {
    /// Counts the steps of a Pod that are past and not counted yet. Quick ones are not worth remembering: `slow` is
    /// where that begins. What took long for a cause that is known (`in_trouble`) is none of its usual time: an outage
    /// must not teach us to wait for the next one.
    pub(super) fn observe(&self, pod: &PodView, slow: SignedDuration, in_trouble: bool) {
        let Some(workload) = workload_of(pod) else { return };
        let steps = completed_steps(pod);
        if steps.is_empty() {
            return;
        }
        let mut inner = self.lock();
        for step in steps {
            inner.count(pod, &workload, &step, slow, in_trouble);
        }
    }

    /// A Pod has left. When it did so in the middle of its last step, without being deleted, that step took until now:
    /// the status that would say so is never sent to us.
    pub(super) fn left(&self, pod: &PodView, slow: SignedDuration, in_trouble: bool, now: Timestamp) {
        let mut inner = self.lock();
        if let (Some(workload), false) = (workload_of(pod), pod.is_terminating())
            && let InitProgress::At(step) = InitProgress::of(pod)
            && let Some(since) = step.since
        {
            let is_last = step.index + 1 == step.total && !step.sidecar && !step.rerun && step.restarts == 0;
            if is_last && pod.phase() == "Pending" {
                let step = CompletedStep { container: step.container, took: now.duration_since(since) };
                inner.count(pod, &workload, &step, slow, in_trouble);
            }
        }
        inner.counted.remove(pod.uid());
    }

    /// The threshold for the step at which a Pod stands, where nobody has set one for that Pod.
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

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: SignedDuration = SignedDuration::from_secs(30);

    fn pod(uid: &str, restarts: i32, state: &str) -> PodView {
        serde_saphyr::from_str(&format!(
            r#"
metadata:
  name: api-1
  namespace: shop
  uid: {uid}
  ownerReferences: [{{apiVersion: apps/v1, kind: StatefulSet, name: api, uid: u, controller: true}}]
spec: {{initContainers: [{{name: wait}}]}}
status:
  phase: Pending
  conditions: [{{type: PodReadyToStartContainers, status: "True", lastTransitionTime: "2026-12-01T10:00:00Z"}}]
  initContainerStatuses: [{{name: wait, restartCount: {restarts}, {state}}}]
"#
        ))
        .unwrap()
    }

    const RUNNING: &str = r#"state: {running: {startedAt: "2026-12-01T10:00:01Z"}}"#;
    const DONE: &str = r#"state: {terminated: {exitCode: 0, finishedAt: "2026-12-01T10:01:00Z"}}"#;

    fn learnt(tell: impl FnOnce(&Histories)) -> SignedDuration {
        let histories = Histories::default();
        tell(&histories);
        let next = pod("next", 0, RUNNING);
        histories.threshold(&next, &InitProgress::of(&next), SLOW)
    }

    fn at_the_end() -> Timestamp {
        "2026-12-01T10:01:00Z".parse().unwrap()
    }

    #[test]
    fn a_slow_step_is_learnt_once_however_its_end_is_seen() {
        let told = learnt(|histories| {
            histories.observe(&pod("1", 0, DONE), SLOW, false);
            // What a watch sends when a Pod leaves its selection is the object as it was before.
            histories.left(&pod("1", 0, RUNNING), SLOW, false, at_the_end());
            assert_eq!(histories.lock().history.to_json(), r#"{"shop/statefulset/api/wait":[60]}"#);
        });
        assert_eq!(told.as_secs(), 180);
    }

    #[test]
    fn an_outage_is_not_learnt() {
        let told = learnt(|histories| {
            histories.left(&pod("1", 0, RUNNING), SLOW, true, at_the_end());
            histories.observe(&pod("2", 0, DONE), SLOW, true);
            histories.observe(&pod("3", 4, DONE), SLOW, false);
            histories.left(&pod("4", 4, RUNNING), SLOW, false, at_the_end());
        });
        assert_eq!(told, SLOW);
    }
}
