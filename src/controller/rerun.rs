//! Init containers that run again in a Pod whose phase stays Running: what the watch on Pods cannot see.
//!
//! After a new sandbox (a node that rebooted, a runtime that lost its state) a Pod starts over from its first init
//! container, and once that has failed the Pod's phase is Running (semantics of the kubelet's getPhase). Only an
//! Event says so: `BackOff` of an init container. A second, narrow watch on these brings the Pod in, and while its
//! init fails it is polled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event as CoreEvent;
use kube::api::ObjectMeta;
use kube::{Api, ResourceExt};
use kube_runtime::watcher::{self, Event};
use kube_runtime::{WatchStreamExt, watcher as watch};
use serde::Deserialize;

use super::track::{Scope, is_candidate};
use super::{Context, watch as pod_watch};
use crate::cluster::call;
use crate::cluster::client::scoped;
use crate::pod::PodView;
use crate::pod::decode::without_private_text;

/// Repeated restarts of containers of Pods; that it is an init container is told by the path of the field.
const SELECTOR: &str = "reason=BackOff,type=Warning,involvedObject.kind=Pod";
/// The path of an init container.
const INIT_CONTAINERS: &str = "spec.initContainers{";
/// One Pod is asked for at most that often on account of its Events.
const ASK_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// How often Pods out of the watch's sight are asked for.
const POLL_EVERY: Duration = Duration::from_secs(30);
/// Pods that are polled at once.
const MAX_POLLED: usize = 500;
/// Pods whose last question is remembered.
const MAX_ASKED: usize = 10_000;

/// The part of an Event that is read.
#[derive(kube::Resource, Clone, Debug, Deserialize)]
#[resource(inherit = "CoreEvent")]
#[serde(rename_all = "camelCase")]
struct EventView {
    #[serde(default, deserialize_with = "version_only")]
    metadata: ObjectMeta,
    #[serde(default)]
    involved_object: InvolvedObject,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InvolvedObject {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    field_path: Option<String>,
}

/// Of the metadata only what a watch needs to go on.
fn version_only<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Lean {
        name: Option<String>,
        namespace: Option<String>,
        resource_version: Option<String>,
    }
    let Lean { name, namespace, resource_version } = Lean::deserialize(deserializer)?;
    Ok(ObjectMeta { name, namespace, resource_version, ..ObjectMeta::default() })
}

/// Watches the Events of a scope for ever. Where they may not be read, it says so once and does nothing.
pub(super) async fn watch_events(context: Arc<Context>, scope: Scope) {
    let events: Api<EventView> = scoped(&context.client, scope.as_deref());
    let config = watcher::Config::default().fields(SELECTOR);
    let mut stream = watch(events, config).default_backoff().boxed();
    let mut asked: HashMap<String, Timestamp> = HashMap::new();
    let mut said = false;
    while let Some(event) = stream.next().await {
        let view = match event {
            Ok(Event::Apply(view) | Event::InitApply(view)) => view,
            Ok(_) => continue,
            Err(error) => {
                if !said {
                    said = true;
                    tracing::warn!(%error, "Events cannot be watched: init containers that run again in a running Pod are not seen");
                }
                continue;
            }
        };
        let object = view.involved_object;
        let is_init = object.field_path.as_deref().is_some_and(|path| path.starts_with(INIT_CONTAINERS));
        let (Some(namespace), Some(name), Some(uid)) = (object.namespace, object.name, object.uid) else {
            continue;
        };
        if !is_init || context.tracker().holds(&uid) {
            continue;
        }
        let now = Timestamp::now();
        if asked.get(&uid).is_some_and(|at| now.duration_since(*at) < ASK_AGAIN_AFTER) {
            continue;
        }
        if asked.len() >= MAX_ASKED {
            asked.retain(|_, at| now.duration_since(*at) < ASK_AGAIN_AFTER);
        }
        asked.insert(uid.clone(), now);
        if let Some(pod) = get(&context, &namespace, &name).await.filter(|pod| pod.uid() == uid) {
            take(&context, &scope, pod);
        }
    }
}

/// Polls the Pods that are out of the watch's sight, for ever.
pub(super) async fn poll(context: Arc<Context>) {
    let mut ticks = tokio::time::interval(POLL_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let polled: Vec<_> = context.polled().values().cloned().collect();
        for (scope, pod) in polled {
            let pods: Api<PodView> = Api::namespaced(context.client.clone(), pod.namespace());
            let answer =
                call(format!("get pod {}/{}", pod.namespace(), pod.name()), pods.get_opt(pod.name()));
            match answer.await {
                Ok(Some(seen))
                    if seen.uid() == pod.uid() && is_candidate(&seen) && is_out_of_sight(&seen) =>
                {
                    take(&context, &scope, seen);
                }
                // Past init, gone, or back in the watch's sight.
                Ok(seen) => leave(&context, pod.uid(), seen.as_ref()),
                Err(error) => tracing::debug!(%error, "a polled Pod could not be read; next time"),
            }
        }
    }
}

/// Takes a Pod in that is in init and out of the watch's sight.
pub(super) fn take(context: &Arc<Context>, scope: &Scope, pod: PodView) {
    if !is_candidate(&pod) || !is_out_of_sight(&pod) {
        return;
    }
    let pod = Arc::new(without_private_text(pod));
    {
        let mut polled = context.polled();
        if polled.len() >= MAX_POLLED && !polled.contains_key(pod.uid()) {
            tracing::warn!(pod = pod.name_any(), "not polled: {MAX_POLLED} Pods are");
            return;
        }
        polled.insert(pod.uid().to_owned(), (scope.clone(), pod.clone()));
    }
    pod_watch::on_pod(context, scope, &pod, Timestamp::now());
}

fn leave(context: &Context, uid: &str, seen: Option<&PodView>) {
    context.polled().remove(uid);
    if seen.is_some_and(|seen| seen.uid() == uid && is_candidate(seen)) {
        // The watch has it.
        return;
    }
    pod_watch::on_left(context, uid, Timestamp::now());
}

/// The watch's selector leaves these out.
fn is_out_of_sight(pod: &PodView) -> bool {
    pod.phase() == "Running"
}

async fn get(context: &Context, namespace: &str, name: &str) -> Option<PodView> {
    let pods: Api<PodView> = Api::namespaced(context.client.clone(), namespace);
    let pod = call(format!("get pod {namespace}/{name}"), pods.get_opt(name)).await;
    pod.inspect_err(|error| tracing::debug!(%error, "a Pod that an Event names could not be read")).ok()?
}
