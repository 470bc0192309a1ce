//! The watch on Pods: only those that can be stuck, only the fields that matter.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube_runtime::reflector::store::Writer;
use kube_runtime::watcher::{self, Event};
use kube_runtime::{WatchStreamExt, watcher as watch};

use super::settings::ListMode;
use super::track::{Answer, Scope, is_candidate};
use super::{Context, events};
use crate::cluster::client::scoped;
use crate::cluster::owners;
use crate::pod::PodView;
use crate::pod::decode::without_private_text;

/// Pods in init have phase Pending, or Failed where nobody retries; of 150,000 running ones none is sent.
const SELECTOR: &str = "status.phase!=Running,status.phase!=Succeeded";

/// How long one watch request lasts. Five seconds after that the watcher takes a stream on which nothing came, not
/// even a bookmark, for dead (a load balancer that dropped it without a word) and asks again: kube's own 290 s would be
/// five minutes in which a crash is not seen.
const WATCH_SECONDS: u32 = 90;

/// Failures in a row after which the watch is made anew, with a fresh list: a watch that resumes at a version that
/// is gone, behind a proxy that says so in its own way, would fail for ever.
const REBUILD_AFTER: u32 = 8;

/// How the list that a watch begins with is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum InitialList {
    /// Streamed by the watch itself; from Kubernetes 1.34 on servers have it switched on.
    Streamed,
    /// In one answer from the server's cache. With our selector that is small.
    Whole,
    /// In pages of 500: the least memory, the most work for the server.
    Paged,
}

impl InitialList {
    fn config(self) -> watcher::Config {
        let config = watcher::Config::default().fields(SELECTOR).timeout(WATCH_SECONDS);
        match self {
            Self::Streamed => config.streaming_lists(),
            // `any_semantic` is without effect while a page size is set.
            Self::Whole => watcher::Config { page_size: None, ..config }.any_semantic(),
            Self::Paged => config,
        }
    }
}

/// Why a watch is made anew.
enum Broken {
    /// The server does not stream lists (422).
    NotStreamed,
    /// It fails again and again.
    Stuck,
}

/// Watches the Pods of a scope for ever.
pub(super) async fn run(context: Arc<Context>, scope: Scope, mut writer: Writer<PodView>) {
    let mut list = match context.settings.list_mode {
        ListMode::Paged => InitialList::Paged,
        ListMode::Auto if context.streams_lists => InitialList::Streamed,
        ListMode::Auto => InitialList::Whole,
    };
    loop {
        match follow(&context, &scope, &mut writer, list).await {
            Broken::NotStreamed => {
                tracing::info!("the API server does not stream lists; asking for them whole");
                list = InitialList::Whole;
            }
            Broken::Stuck => {
                // Blind: no traffic comes to us, but whoever looks at the rollout or the Pod sees it.
                context.health.is_ready(false);
                tracing::warn!("the watch on Pods fails again and again; beginning anew");
            }
        }
    }
}

/// Follows one watch until it must be made anew.
async fn follow(
    context: &Arc<Context>,
    scope: &Scope,
    writer: &mut Writer<PodView>,
    list: InitialList,
) -> Broken {
    let pods: Api<PodView> = scoped(&context.client, scope.as_deref());
    let mut stream = watch(pods, list.config()).default_backoff().boxed();
    let mut failures = 0;
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                failures = 0;
                on_event(context, scope, writer, event);
            }
            Err(error) => {
                if list == InitialList::Streamed && is_invalid(&error) {
                    return Broken::NotStreamed;
                }
                // The stream retries by itself, with a backoff.
                let scope = scope.as_deref().unwrap_or("all");
                tracing::warn!(%error, scope, "the watch on Pods broke; retrying");
                failures += 1;
                if failures >= REBUILD_AFTER {
                    return Broken::Stuck;
                }
            }
        }
    }
    Broken::Stuck
}

/// The server refuses the form of the request (HTTP 422).
fn is_invalid(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => status.code == 422,
        _ => false,
    }
}

fn on_event(context: &Arc<Context>, scope: &Scope, writer: &mut Writer<PodView>, event: Event<PodView>) {
    // One Pod that we cannot cope with must not hide all the others, at each start anew.
    let taken = std::panic::catch_unwind(AssertUnwindSafe(|| take(context, scope, writer, event)));
    if taken.is_err() {
        tracing::error!(
            "a Pod could not be taken in: the panic above is a fault of initwatch, please report it"
        );
    }
    let held = context.tracker().len();
    context.metrics.pods.set(i64::try_from(held).unwrap_or(i64::MAX));
}

fn take(context: &Arc<Context>, scope: &Scope, writer: &mut Writer<PodView>, event: Event<PodView>) {
    let now = Timestamp::now();
    match event {
        Event::Init => {
            context.tracker().relist_begins(scope);
            writer.apply_watcher_event(&Event::Init);
        }
        Event::InitApply(pod) => {
            if is_candidate(&pod) {
                let event = Event::InitApply(without_private_text(pod));
                writer.apply_watcher_event(&event);
                if let Event::InitApply(pod) = event {
                    on_pod(context, scope, &Arc::new(pod), now);
                }
            }
        }
        Event::Apply(pod) if is_candidate(&pod) => {
            let event = Event::Apply(without_private_text(pod));
            writer.apply_watcher_event(&event);
            if let Event::Apply(pod) = event {
                on_pod(context, scope, &Arc::new(pod), now);
            }
        }
        // Past init although still Pending (the app's image is pulled, say): for us it has left.
        Event::Apply(pod) | Event::Delete(pod) => {
            let (slow, in_trouble) = (slow_from(context), context.tracker().is_explained(pod.uid()));
            context.histories.observe(&pod, slow, in_trouble);
            context.histories.left(&pod, slow, in_trouble, now);
            on_left(context, pod.uid(), now);
            writer.apply_watcher_event(&Event::Delete(pod));
        }
        Event::InitDone => {
            context.health.is_ready(true);
            writer.apply_watcher_event(&Event::InitDone);
            let polled: HashSet<String> = context.polled().keys().cloned().collect();
            let keys = context.tracker().relist_ends(scope, |uid| polled.contains(uid), now);
            for key in keys {
                context.triggers.look(key);
            }
        }
    }
}

/// What takes a quarter of the threshold can come to pass it: from there on durations are remembered.
fn slow_from(context: &Context) -> SignedDuration {
    context.settings.stuck_after / 4
}

/// A Pod has left: gone, or past init.
pub(super) fn on_left(context: &Context, uid: &str, now: Timestamp) {
    let (left, open) = {
        let mut tracker = context.tracker();
        let left = tracker.left(uid, now);
        let open = left.as_ref().and_then(|key| tracker.known(key)).is_some_and(|known| !known.closed);
        (left, open)
    };
    let pending = context.captures.pod_left(uid, now);
    if !open && pending.is_none() {
        // With an open diagnosis, what is held of it is written down first.
        context.captures.forget(uid);
    }
    if let Some(key) = left.or(pending) {
        context.triggers.look(key);
    }
}

pub(super) fn on_pod(context: &Arc<Context>, scope: &Scope, pod: &Arc<PodView>, now: Timestamp) {
    let in_trouble = context.tracker().is_explained(pod.uid());
    context.histories.observe(pod, slow_from(context), in_trouble);
    let answer = context.tracker().seen(scope, pod);
    match answer {
        Answer::Look(key) => {
            let workload_failed = context.tracker().known(&key).is_some();
            context.captures.observe(pod, &key, workload_failed);
            events::complain(context, pod, now);
            context.triggers.look(key);
        }
        Answer::AskJobOwner { namespace, job } => {
            let (context, scope, pod) = (context.clone(), scope.clone(), pod.clone());
            tokio::spawn(async move {
                let uid = job.uid.clone();
                let owner =
                    owners::owner_of(&context.client, &namespace, &job).await.unwrap_or_else(|error| {
                        tracing::warn!(%error, "the owner of a Job is not known; it stands for itself");
                        None
                    });
                context.tracker().owner_is(uid.clone(), owner);
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
