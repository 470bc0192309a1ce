//! Starts the parts in order, and ends them in order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use kube_runtime::reflector;
use kube_runtime::reflector::store::Writer;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::capture::Captures;
use super::error::ControllerError;
use super::history::{self, Histories};
use super::ledger::Ledger;
use super::policy::Policies;
use super::queue::{self, Triggers};
use super::settings::Settings;
use super::track::{Scope, Tracker};
use super::{Context, reconcile, rerun, retire, watch as pod_watch};
use crate::api::InitDiagnosis;
use crate::archive::{Archive, Outcome};
use crate::cluster::ClusterError;
use crate::cluster::client::{self, untyped};
use crate::cluster::pages::pages;
use crate::pod::identity::DiagnosisKey;
use crate::pod::{PodView, PrinterVersion};
use crate::telemetry::health::{self, Health};
use crate::telemetry::metrics::{ArchiveOutcome, Metrics};

/// Time that running work gets when the process is asked to end; the whole must stay below 5 s.
const DRAIN: Duration = Duration::from_millis(3_500);
/// Time that logs on their way to the archive get then.
const FLUSH: Duration = Duration::from_secs(1);
/// Longest pause between looks at a cluster that is not ready for us.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Runs the controller until SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot start at all: no configuration, an address that is taken. A cluster that does not answer, or
/// lacks the definitions or permissions, is waited for, and the log says what for.
pub async fn run(settings: Settings) -> Result<(), ControllerError> {
    let mut stop = signals()?;
    let (client, server) = client::connect().await?;
    let health = Health::default();
    let metrics = Metrics::default();
    let mut parts = JoinSet::new();
    if let Some(address) = settings.listen {
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .map_err(|source| ControllerError::Listen { address, source })?;
        parts.spawn(named("the server for probes", health::serve(listener, health.clone(), metrics.clone())));
    }
    tracing::info!(version = env!("CARGO_PKG_VERSION"), server, "initwatch starts");
    let version = tokio::select! {
        version = until_ready(&client, &settings, &server) => version,
        _ = stop.changed() => return Ok(()),
    };

    let concurrency = settings.concurrency;
    let triggers = Triggers::default();
    let (context, writers) = context(settings, client, &version, health.clone(), metrics, triggers.clone());
    tokio::select! {
        () = async { history::load(&context).await; load(&context).await } => {}
        _ = stop.changed() => return Ok(()),
    }
    for (scope, writer) in writers {
        parts.spawn(named("the watch on Events", rerun::watch_events(context.clone(), scope.clone())));
        parts.spawn(named("the watch on Pods", pod_watch::run(context.clone(), scope, writer)));
    }
    parts.spawn(named("the saving of durations", history::save(context.clone())));
    parts.spawn(named("the polling of Pods", rerun::poll(context.clone())));
    parts.spawn(named("the removal of expired diagnoses", retire::run(context.clone())));

    let ready = async {
        for (_, store) in &context.stores {
            // Fails only when the writer is dropped, which ends a part and with it the process.
            let _ = store.wait_until_ready().await;
        }
    };
    tokio::select! {
        () = ready => {}
        _ = stop.changed() => return Ok(()),
        part = ended(&mut parts) => return Err(ControllerError::PartEnded(part)),
    }
    health.is_ready(true);
    let pods = context.tracker().len();
    tracing::info!(pods, "watching; Pods in init");
    // What is open is looked at once, also where nothing happens any more: it may have ended meanwhile.
    let open = context.tracker().all_known();
    open.into_iter().filter(|(_, known)| !known.closed).for_each(|(key, _)| triggers.look(key));

    let (stop_work, mut work_stops) = watch::channel(false);
    let work = {
        let context = context.clone();
        move |key: DiagnosisKey| reconcile::reconcile(context.clone(), key)
    };
    let queue = queue::run(triggers, concurrency, async move { drop(work_stops.changed().await) }, work);
    let mut queue = std::pin::pin!(queue);
    tokio::select! {
        () = &mut queue => Err(ControllerError::PartEnded("the work queue")),
        part = ended(&mut parts) => Err(ControllerError::PartEnded(part)),
        _ = stop.changed() => {
            tracing::info!("asked to end; finishing what is being written");
            let _ = stop_work.send(true);
            if tokio::time::timeout(DRAIN, &mut queue).await.is_err() {
                tracing::warn!("ended before all was written; the next start goes on from there");
            }
            if !context.captures.flush(FLUSH).await {
                tracing::warn!("ended before all logs were archived");
            }
            Ok(())
        }
    }
}

/// What all parts share, and the writers of the stores that the watches fill.
fn context(
    settings: Settings,
    client: Client,
    version: &Info,
    health: Health,
    metrics: Metrics,
    triggers: Triggers,
) -> (Arc<Context>, Vec<(Scope, Writer<PodView>)>) {
    let masker = settings.masker.clone();
    let archive = settings.archive.clone().map(|target| {
        let metrics = metrics.clone();
        Archive::start(target, masker.clone(), move |outcome| metrics.archived(archived(outcome)))
    });
    let scopes = if settings.namespaces.is_empty() {
        vec![None]
    } else {
        settings.namespaces.iter().cloned().map(Some).collect()
    };
    let (stores, writers): (Vec<_>, Vec<_>) = scopes
        .into_iter()
        .map(|scope| {
            let (store, writer) = reflector::store();
            ((scope.clone(), store), (scope, writer))
        })
        .unzip();
    let store_limits = settings.store;
    let context = Arc::new(Context {
        captures: Captures::new(
            client.clone(),
            masker.clone(),
            triggers.clone(),
            settings.capture,
            metrics.clone(),
            archive,
        ),
        client,
        settings,
        masker,
        tracker: Mutex::new(Tracker::default()),
        stores,
        triggers,
        policies: Policies::default(),
        histories: Histories::default(),
        polled: Mutex::default(),
        complaints: Mutex::default(),
        put_off: Mutex::default(),
        metrics,
        health,
        ledger: Mutex::new(Ledger::new(store_limits)),
        printer: PrinterVersion::of_server(&version.major, &version.minor),
        streams_lists: client::streams_lists(version),
    });
    (context, writers)
}

fn archived(outcome: Outcome) -> ArchiveOutcome {
    match outcome {
        Outcome::Stored => ArchiveOutcome::Stored,
        Outcome::Dropped => ArchiveOutcome::Dropped,
        Outcome::Failed => ArchiveOutcome::Failed,
    }
}

/// A part of the process by name: when it ends, the name says which did.
async fn named(name: &'static str, part: impl Future<Output = ()>) -> &'static str {
    part.await;
    name
}

/// Waits for the first part that ends. None should.
async fn ended(parts: &mut JoinSet<&'static str>) -> &'static str {
    match parts.join_next().await {
        Some(Ok(name)) => name,
        Some(Err(_)) => "a part of the process (by a panic)",
        None => std::future::pending().await,
    }
}

/// Waits until the cluster can be worked with, and says what it waits for.
async fn until_ready(client: &Client, settings: &Settings, server: &str) -> Info {
    let mut pause = Duration::from_secs(1);
    loop {
        match client::check(client, &settings.namespaces).await {
            Ok(version) => return version,
            Err(error) => {
                tracing::warn!(%error, server, "waiting for the cluster, next try in {} s", pause.as_secs());
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Learns which diagnoses exist: the memory of a process that has just started.
async fn load(context: &Context) {
    let namespaces = &context.settings.namespaces;
    let scopes: Vec<Option<&str>> = if namespaces.is_empty() {
        vec![None]
    } else {
        namespaces.iter().map(|name| Some(name.as_str())).collect()
    };
    let mut pause = Duration::from_secs(1);
    loop {
        let mut result = Ok(());
        for scope in &scopes {
            result = load_scope(context, *scope).await;
            if result.is_err() {
                break;
            }
        }
        let Err(error) = result else { return };
        tracing::warn!(%error, "the diagnoses that exist are not known yet; trying again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

async fn load_scope(context: &Context, scope: Option<&str>) -> Result<(), ClusterError> {
    let diagnoses = untyped::<InitDiagnosis>(&context.client, scope);
    let pages = pages("list initdiagnoses", &diagnoses);
    pages
        .try_for_each(|page| {
            let mut tracker = context.tracker();
            for diagnosis in page {
                let (Some(namespace), Some(name)) = (diagnosis.metadata.namespace, diagnosis.metadata.name)
                else {
                    continue;
                };
                // Somebody may have edited it beyond what we can read: then it is open, and mended when it is looked at.
                let status = diagnosis.data.get("status").cloned().unwrap_or_default();
                let status = serde_json::from_value(status).unwrap_or_default();
                tracker.know(DiagnosisKey { namespace, name }, reconcile::known(&status, false));
            }
            std::future::ready(Ok(()))
        })
        .await
}

/// A channel that changes when the process is asked to end.
fn signals() -> Result<watch::Receiver<bool>, ControllerError> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(ControllerError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ControllerError::Signals)?;
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let _ = sender.send(true);
        // The channel stays open: a closed one reads as changed.
        std::future::pending::<()>().await;
    });
    Ok(receiver)
}
