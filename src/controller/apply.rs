//! Applies a plan: object, logs, status, Events, in this order.
//!
//! The order is what a crash in between can bear: an object without status is completed on the next pass, a
//! log that nobody refers to goes with its owner, an Event comes only after its number is in the status.

use std::collections::HashSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use super::error::ReconcileError;
use super::ledger::Room;
use super::{Context, events, reconcile, retire};
use crate::api::v1alpha1::{AttemptTotals, InitDiagnosis, InitDiagnosisStatus, InitLog, InitLogSpec};
use crate::api::{ANNOTATION_STORED_BYTES, LABEL_WORKLOAD_KIND, LABEL_WORKLOAD_NAME, MANAGER};
use crate::cluster::{ClusterError, call};
use crate::plan::{Observation, Plan, WorkloadFacts};
use crate::pod::identity::{DiagnosisKey, label_value};
use crate::telemetry::metrics::{AttemptOutcome, Budget};

pub(super) async fn apply(
    context: &Context,
    key: &DiagnosisKey,
    stored: Option<&InitDiagnosis>,
    seen: &Observation,
    plan: Plan,
) -> Result<Option<Timestamp>, ReconcileError> {
    let Plan { ensure, heal_spec, logs, drop_logs, status, events, recheck_at: _ } = plan;
    let object = match stored {
        Some(stored) if heal_spec => heal(context, key, stored, &seen.facts).await?,
        Some(stored) => stored.clone(),
        None if ensure => create(context, key, &seen.facts).await?,
        None => return Ok(None),
    };
    let mut waiting = Waiting::default();
    if let Some(mut status) = status {
        let before = object.status.as_ref().and_then(|status| status.attempts).unwrap_or_default();
        waiting = write_logs(context, key, &object, logs, &mut status).await;
        write_status(context, key, &object, &status).await?;
        count_attempts(context, before, status.attempts.unwrap_or_default());
        context.tracker().know(key.clone(), reconcile::known(&status, true));
        tracing::info!(
            diagnosis = %key,
            state = status.state.map(tracing::field::debug),
            cause = status.cause.as_deref().unwrap_or_default(),
            pods = status.pods.as_deref().unwrap_or_default(),
            "written"
        );
    } else if let Some(status) = object.status.as_ref() {
        context.tracker().know(key.clone(), reconcile::known(status, true));
    }
    for pod in &seen.pods {
        let ids = pod.attempts.iter().map(|attempt| attempt.container_id.clone());
        let ids: Vec<_> = ids.filter(|id| !waiting.container_ids.contains(id)).collect();
        context.captures.written(&pod.uid, &ids);
    }
    for departure in &seen.departures {
        let ids = departure.attempts.iter().map(|attempt| attempt.container_id.clone());
        let ids: Vec<_> = ids.filter(|id| !waiting.container_ids.contains(id)).collect();
        context.captures.written(&departure.uid, &ids);
        context.captures.settle(&departure.uid);
    }
    for event in events {
        events::send(context, key, &object, &seen.facts, event).await;
    }
    drop_unreferenced(context, key, drop_logs).await;
    Ok(waiting.until)
}

/// Counts what became of the attempts that are new in the totals. A log that is dropped later in favour of a newer one
/// was kept once; it is counted again as dropped.
fn count_attempts(context: &Context, before: AttemptTotals, now: AttemptTotals) {
    let fresh = [
        (AttemptOutcome::Kept, now.kept - before.kept),
        (AttemptOutcome::Dropped, now.dropped - before.dropped),
        (AttemptOutcome::Lost, now.lost - before.lost),
    ];
    for (outcome, count) in fresh {
        (0..count).for_each(|_| context.metrics.attempt(outcome));
    }
}

/// Logs for which there is no room yet; they stay where they are.
#[derive(Default)]
struct Waiting {
    container_ids: HashSet<String>,
    until: Option<Timestamp>,
}

async fn create(
    context: &Context,
    key: &DiagnosisKey,
    facts: &WorkloadFacts,
) -> Result<InitDiagnosis, ReconcileError> {
    let mut object = InitDiagnosis::new(&key.name, facts.spec());
    object.metadata.namespace = Some(key.namespace.clone());
    // Identity only: what changes (cause, state) is selected by fields.
    object.metadata.labels = Some(
        [
            (LABEL_WORKLOAD_KIND.to_owned(), label_value(&facts.workload.kind.to_lowercase())),
            (LABEL_WORKLOAD_NAME.to_owned(), label_value(&facts.workload.name)),
        ]
        .into(),
    );
    let diagnoses: Api<InitDiagnosis> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    call(format!("create initdiagnosis {key}"), diagnoses.create(&params, &object))
        .await
        .map_err(ReconcileError::of_write)
}

/// Puts the spec right again. Metadata belongs to the users and is left alone.
async fn heal(
    context: &Context,
    key: &DiagnosisKey,
    stored: &InitDiagnosis,
    facts: &WorkloadFacts,
) -> Result<InitDiagnosis, ReconcileError> {
    let diagnoses: Api<InitDiagnosis> = Api::namespaced(context.client.clone(), &key.namespace);
    // A merge patch keeps what it does not name: what the spec no longer has is named as null.
    let mut spec = serde_json::to_value(facts.spec())?;
    if let (Some(new), Ok(serde_json::Value::Object(old))) =
        (spec.as_object_mut(), serde_json::to_value(&stored.spec))
    {
        for name in old.keys() {
            new.entry(name.clone()).or_insert(serde_json::Value::Null);
        }
    }
    let patch = json!({"metadata": {"resourceVersion": stored.resource_version()}, "spec": spec});
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    call(format!("patch initdiagnosis {key}"), diagnoses.patch(&key.name, &params, &Patch::Merge(patch)))
        .await
        .map_err(ReconcileError::of_write)
}

/// Writes the logs. One that cannot be written is not referred to, and the status says so: a diagnosis is
/// never held up by a log.
async fn write_logs(
    context: &Context,
    key: &DiagnosisKey,
    object: &InitDiagnosis,
    mut logs: Vec<(String, InitLogSpec)>,
    status: &mut InitDiagnosisStatus,
) -> Waiting {
    let mut waiting = Waiting::default();
    // Where not all find room, the first attempts do: they have the true error more often than any later one.
    logs.sort_by_key(|(_, spec)| spec.attempt);
    for (name, spec) in logs {
        match room(context, key, &name, &spec).await {
            Room::Yes => {}
            Room::Later(at) => {
                context.metrics.skipped(Budget::WriteRate);
                waiting.until = Some(waiting.until.map_or(at, |until| until.min(at)));
                waiting.container_ids.insert(spec.container_id);
                without_log(status, &name, |totals| totals.dropped += 1);
                continue;
            }
            full @ (Room::NamespaceFull | Room::ClusterFull) => {
                without_log(status, &name, |totals| totals.dropped += 1);
                let (whose, budget) = if full == Room::NamespaceFull {
                    ("the namespace", Budget::NamespaceLogs)
                } else {
                    ("the cluster", Budget::ClusterLogs)
                };
                context.metrics.skipped(budget);
                unchecked(
                    status,
                    &format!("initlogs: not kept, the logs of {whose} have reached their bound"),
                );
                continue;
            }
        }
        if let Err(error) = write_log(context, key, object, &name, spec).await {
            tracing::warn!(%error, "a log could not be kept");
            context.ledger().remove(&key.namespace, &name);
            without_log(status, &name, |totals| totals.lost += 1);
            unchecked(status, &format!("initlogs: {}", error.brief()));
        }
    }
    waiting
}

/// Asks for room, and makes some at the cost of what is over.
async fn room(context: &Context, key: &DiagnosisKey, name: &str, spec: &InitLogSpec) -> Room {
    loop {
        let bytes = spec.text.len() as u64;
        let room = context.ledger().admit(key, name, bytes, spec.attempt == 0, Timestamp::now());
        let namespace = match room {
            Room::Yes | Room::Later(_) => return room,
            Room::NamespaceFull => Some(key.namespace.as_str()),
            Room::ClusterFull => None,
        };
        // Each turn removes a diagnosis, so that this ends.
        if !retire::make_room(context, namespace).await {
            return room;
        }
    }
}

async fn write_log(
    context: &Context,
    key: &DiagnosisKey,
    object: &InitDiagnosis,
    name: &str,
    spec: InitLogSpec,
) -> Result<(), ClusterError> {
    let api: Api<InitLog> = Api::namespaced(context.client.clone(), &key.namespace);
    let bytes = spec.text.len().to_string();
    let mut log = InitLog::new(name, spec);
    log.metadata.namespace = Some(key.namespace.clone());
    log.metadata.labels.clone_from(&object.metadata.labels);
    log.metadata.annotations = Some([(ANNOTATION_STORED_BYTES.to_owned(), bytes)].into());
    log.metadata.owner_references = Some(vec![owner_reference(object)]);
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    match call(format!("create initlog {}/{name}", key.namespace), api.create(&params, &log)).await {
        Ok(_) => Ok(()),
        // Its name is that of the attempt: it was written before.
        Err(error) if error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes back what the status says of a log that was not written.
fn without_log(status: &mut InitDiagnosisStatus, name: &str, count: impl Fn(&mut AttemptTotals)) {
    let attempts = status.affected.iter_mut().flat_map(|entry| &mut entry.attempts);
    for attempt in attempts.filter(|attempt| attempt.log.as_deref() == Some(name)) {
        (attempt.log, attempt.log_holds) = (None, None);
    }
    if let Some(totals) = &mut status.attempts {
        totals.kept -= 1;
        count(totals);
    }
}

fn unchecked(status: &mut InitDiagnosisStatus, what: &str) {
    let what = crate::diagnose::cut(what, 256);
    if status.unchecked.len() < 10 && !status.unchecked.contains(&what) {
        status.unchecked.push(what);
    }
}

/// Writes the status as read, merged, applied: with the version that was read, so that nothing written by
/// somebody else in between is lost.
async fn write_status(
    context: &Context,
    key: &DiagnosisKey,
    object: &InitDiagnosis,
    status: &InitDiagnosisStatus,
) -> Result<(), ReconcileError> {
    let diagnoses: Api<InitDiagnosis> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({
        "apiVersion": InitDiagnosis::api_version(&()),
        "kind": InitDiagnosis::kind(&()),
        "metadata": {"name": key.name, "namespace": key.namespace, "resourceVersion": object.resource_version()},
        "status": status,
    });
    let params = PatchParams::apply(MANAGER).force();
    let patch = Patch::Apply(patch);
    let written = diagnoses.patch_status(&key.name, &params, &patch);
    call(format!("apply status of initdiagnosis {key}"), written).await.map_err(|error| {
        // Deleted in between: read again, and it is made anew if it is still needed.
        if error.is_not_found() { ReconcileError::Conflict } else { ReconcileError::of_write(error) }
    })?;
    Ok(())
}

async fn drop_unreferenced(context: &Context, key: &DiagnosisKey, names: Vec<String>) {
    let api: Api<InitLog> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = DeleteParams::background();
    for name in names {
        context.ledger().remove(&key.namespace, &name);
        let deleted = api.delete(&name, &params);
        match call(format!("delete initlog {}/{name}", key.namespace), deleted).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            // It goes with its owner at the latest.
            Err(error) => tracing::warn!(%error, "a log that is no longer kept could not be removed"),
        }
    }
}

fn owner_reference(object: &InitDiagnosis) -> OwnerReference {
    OwnerReference {
        api_version: InitDiagnosis::api_version(&()).into_owned(),
        kind: InitDiagnosis::kind(&()).into_owned(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}
