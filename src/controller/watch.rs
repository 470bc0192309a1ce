//! The watch on Pods: only those that can be stuck, only the fields that matter.

use std::sync::Arc;

use futures::StreamExt;
use jiff::Timestamp;
use kube::Api;
use kube_runtime::reflector::store::Writer;
use kube_runtime::watcher::{self, Event};
use kube_runtime::{WatchStreamExt, watcher as watch};

use super::Context;
use super::track::{Answer, Scope, is_candidate};
use crate::cluster::client::scoped;
use crate::cluster::owners;
use crate::pod::PodView;

/// Pods in init have phase Pending, or Failed where nobody retries; of 150,000 running ones none is sent.
const SELECTOR: &str = "status.phase!=Running,status.phase!=Succeeded";

/// Watches the Pods of a scope for ever.
pub(super) async fn run(context: Arc<Context>, scope: Scope, mut writer: Writer<PodView>) {
    let pods: Api<PodView> = scoped(&context.client, scope.as_deref());
    // Unpaged from the server's cache: with this selector the answer is small. (`any_semantic` is without
    // effect while a page size is set.)
    let config =
        watcher::Config { page_size: None, ..watcher::Config::default() }.any_semantic().fields(SELECTOR);
    let mut stream = watch(pods, config).default_backoff().boxed();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => on_event(&context, &scope, &mut writer, event),
            // The stream retries by itself, with a backoff.
            Err(error) => {
                tracing::warn!(%error, scope = scope.as_deref().unwrap_or("all"), "the watch on Pods broke; retrying");
            }
        }
    }
}

fn on_event(context: &Arc<Context>, scope: &Scope, writer: &mut Writer<PodView>, event: Event<PodView>) {
    let now = Timestamp::now();
    match event {
        Event::Init => {
            context.tracker().relist_begins(scope);
            writer.apply_watcher_event(&Event::Init);
        }
        Event::InitApply(pod) => {
            if is_candidate(&pod) {
                let event = Event::InitApply(pod);
                writer.apply_watcher_event(&event);
                if let Event::InitApply(pod) = event {
                    on_pod(context, scope, &Arc::new(pod), now);
                }
            }
        }
        Event::Apply(pod) if is_candidate(&pod) => {
            let event = Event::Apply(pod);
            writer.apply_watcher_event(&event);
            if let Event::Apply(pod) = event {
                on_pod(context, scope, &Arc::new(pod), now);
            }
        }
        // Past init although still Pending (the app's image is pulled, say): for us it has left.
        Event::Apply(pod) | Event::Delete(pod) => {
            let left = context.tracker().left(pod.uid(), now);
            let open =
                left.as_ref().and_then(|key| context.tracker().known(key)).is_some_and(|known| !known.closed);
            if !open {
                // With an open diagnosis, what is held of it is written down first.
                context.captures.forget(pod.uid());
            }
            writer.apply_watcher_event(&Event::Delete(pod));
            if let Some(key) = left {
                context.triggers.look(key);
            }
        }
        Event::InitDone => {
            writer.apply_watcher_event(&Event::InitDone);
            let keys = context.tracker().relist_ends(scope, now);
            for key in keys {
                context.triggers.look(key);
            }
        }
    }
}

fn on_pod(context: &Arc<Context>, scope: &Scope, pod: &Arc<PodView>, now: Timestamp) {
    let answer = context.tracker().seen(scope, pod);
    match answer {
        Answer::Look(key) => {
            context.captures.observe(pod, &key, now);
            context.triggers.look(key);
        }
        Answer::AskJobOwner { namespace, job, uid } => {
            let (context, scope, pod) = (context.clone(), scope.clone(), pod.clone());
            tokio::spawn(async move {
                let owner =
                    owners::job_owner(&context.client, &namespace, &job).await.unwrap_or_else(|error| {
                        tracing::warn!(%error, "the owner of a Job is not known; it stands for itself");
                        None
                    });
                context.tracker().job_owner_is(uid.clone(), owner);
                on_pod(&context, &scope, &pod, Timestamp::now());
                // Siblings that came meanwhile were put off. This one may have gone on: told again as well.
                let stores = context.stores.iter().filter(|(other, _)| *other == scope);
                let siblings = stores.flat_map(|(_, store)| {
                    store.state().into_iter().filter(|pod| pod.controller().is_some_and(|job| job.uid == uid))
                });
                for pod in siblings.collect::<Vec<_>>() {
                    on_pod(&context, &scope, &pod, Timestamp::now());
                }
            });
        }
        Answer::Nothing => {}
    }
}
