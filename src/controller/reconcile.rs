//! The driver of one diagnosis: gather → diagnose → plan → apply.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{Patch, PatchParams};

use super::capture::Ghost;
use super::error::ReconcileError;
use super::gather::{self, Candidate};
use super::queue::Next;
use super::track::{Known, Left};
use super::{Context, apply};
use crate::api::v1alpha1::InitDiagnosisStatus;
use crate::api::{InitDiagnosis, MANAGER};
use crate::cluster::client::untyped;
use crate::cluster::{ClusterError, call, owners, workloads};
use crate::diagnose::catalogue::cause;
use crate::diagnose::verdict::Assessment;
use crate::plan::{self, Observation, WorkloadFacts};
use crate::pod::PodView;
use crate::pod::identity::{DiagnosisKey, Identity};

/// How long a reconcile waits for logs that are on their way: most come within a tenth of a second, and what
/// is written with them need not be written twice.
const WAIT_FOR_LOGS: SignedDuration = SignedDuration::from_secs(3);
/// Diagnoses of bare Pods with one `generateName` in a namespace (DESIGN D1).
const MAX_GENERATED: usize = 20;

/// Works on one diagnosis. Never fails: what goes wrong is logged and tried again.
pub(super) async fn reconcile(context: Arc<Context>, key: DiagnosisKey) -> Next {
    let result = step(&context, &key).await;
    match result {
        Ok(next) => next,
        Err(ReconcileError::Conflict) => {
            tracing::debug!(diagnosis = %key, "written by somebody else meanwhile; reading again");
            context.triggers.look(key);
            Next::Await
        }
        Err(error) => {
            tracing::warn!(diagnosis = %key, %error, "could not be brought up to date; trying again");
            Next::Retry
        }
    }
}

async fn step(context: &Arc<Context>, key: &DiagnosisKey) -> Result<Next, ReconcileError> {
    let now = Timestamp::now();
    let (known, references) = {
        let tracker = context.tracker();
        (tracker.known(key), tracker.pods_of(key))
    };
    let pods: Vec<_> = references.iter().filter_map(|(uid, reference)| context.pod(uid, reference)).collect();
    let open = known.is_some_and(|known| !known.closed);
    let ghosts = context.captures.ghosts(key);
    let policy = context.policies.of(&context.client, &key.namespace, now).await;
    if policy.ignored && !open {
        tracing::debug!(diagnosis = %key, "ignored with its namespace");
        forget(context, &ghosts);
        return Ok(Next::Await);
    }
    if !open && ghosts.is_empty() {
        // The cheap way out, without a single call, for the healthy start of every Pod with init containers.
        let candidates: Vec<_> =
            pods.iter().map(|pod| Candidate::new(context, pod.clone(), &policy, None)).collect();
        let assessments: Vec<_> =
            candidates.iter().map(|candidate| gather::looks_bad(context, candidate, now)).collect();
        if assessments.iter().all(|assessment| assessment.verdict().is_none()) {
            return Ok(next_threshold(context, key, &candidates, &assessments, now));
        }
    }
    if let Some(wait) = wait_for_logs(context, key, &pods, now) {
        return Ok(Next::At(wait));
    }

    let diagnoses: Api<InitDiagnosis> = Api::namespaced(context.client.clone(), &key.namespace);
    let stored = match call(format!("get initdiagnosis {key}"), diagnoses.get_opt(&key.name)).await {
        Err(error) if error.is_unreadable() => return mend(context, key, &error).await,
        stored => stored?,
    };
    let status = stored.as_ref().and_then(|stored| stored.status.as_ref());
    let first_look = known.is_some_and(|known| !known.looked_at);
    if let Some(status) = status.filter(|_| first_look) {
        remember_written(context, key, status);
    }
    let newest = pods
        .iter()
        .chain(ghosts.iter().map(|ghost| &ghost.pod))
        .max_by_key(|pod| pod.metadata.creation_timestamp.clone());
    let identity = match (newest, &stored) {
        (Some(pod), _) => Identity::of(pod, context.tracker().cron_job_of(pod).as_ref()),
        (None, Some(stored)) => gather::stored_identity(key, &stored.spec),
        (None, None) => {
            context.tracker().forget_diagnosis(key);
            return Ok(Next::Await);
        }
    };
    if stored.is_none()
        && let Some(prefix) = newest.and_then(|pod| gather::generated_prefix(pod))
        && context.tracker().count_known(&key.namespace, &prefix) >= MAX_GENERATED
    {
        tracing::debug!(diagnosis = %key, "not kept: {MAX_GENERATED} diagnoses of such Pods are there");
        forget(context, &ghosts);
        return Ok(Next::Await);
    }

    let mut left = left_pods(context, key, status, &pods, now);
    let was_open = status.is_some_and(|status| status.state.is_some() && !plan::is_closed(status));
    // Without an open diagnosis, what they left opens one first; that they left is its next change.
    for Ghost { pod, left_at } in ghosts.iter().filter(|_| was_open) {
        if !left.iter().any(|left| left.uid == pod.uid()) {
            left.push(Left { name: pod.name().to_owned(), uid: pod.uid().to_owned(), at: *left_at });
        }
    }
    let departures = gather::departures(context, key, &left).await;
    let owner = owner_of(context, &identity).await;
    let spec = stored.as_ref().map(|stored| &stored.spec);
    let facts = workloads::workload_facts(&context.client, &identity, owner, spec).await;
    let facts = WorkloadFacts { ignored: facts.ignored || policy.ignored, ..facts };
    let present = pods.iter().map(|pod| Candidate::new(context, pod.clone(), &policy, status));
    let gone = ghosts.iter().map(|ghost| Candidate::ghost(context, ghost, &policy, status));
    let candidates = present.chain(gone).collect();
    let observations = gather::observe(context, key, candidates, status, now).await;
    let seen = Observation { facts, pods: observations, departures, first_look };
    let plan = plan::plan(stored.as_ref(), &seen, &context.settings.keep, now);
    tracing::debug!(diagnosis = %key, writes = plan.status.is_some(), events = plan.events.len(), "planned");

    let recheck_at = plan.recheck_at;
    let logs_wait_until = apply::apply(context, key, stored.as_ref(), &seen, plan).await?;
    let recheck_at = recheck_at.into_iter().chain(logs_wait_until).min();
    let departed: Vec<_> = left
        .into_iter()
        .filter(|left| seen.departures.iter().any(|departure| departure.uid == left.uid))
        .collect();
    context.tracker().settle(key, &departed);
    if !was_open && !ghosts.is_empty() {
        let is_open = context.tracker().known(key).is_some_and(|known| !known.closed);
        if is_open {
            return Ok(Next::At(now));
        }
        for ghost in &ghosts {
            context.captures.let_go(ghost.pod.uid());
        }
    }
    Ok(recheck_at.map_or(Next::Await, Next::At))
}

/// Takes the status away that somebody has edited beyond what can be read. What is still to be said of the Pods is written
/// anew; its history is lost.
async fn mend(context: &Context, key: &DiagnosisKey, error: &ClusterError) -> Result<Next, ReconcileError> {
    tracing::warn!(diagnosis = %key, %error, "its status cannot be read, and is written anew");
    let nothing = Patch::Merge(serde_json::json!({"status": null}));
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let diagnoses = untyped::<InitDiagnosis>(&context.client, Some(&key.namespace));
    call(
        format!("patch status of initdiagnosis {key}"),
        diagnoses.patch_status(&key.name, &params, &nothing),
    )
    .await
    .map_err(ReconcileError::of_write)?;
    Err(ReconcileError::Conflict)
}

/// Nothing is to be kept of these.
fn forget(context: &Context, ghosts: &[Ghost]) {
    for ghost in ghosts {
        context.captures.forget(ghost.pod.uid());
    }
}

/// Who made the direct controller: asked once, then remembered.
async fn owner_of(context: &Context, identity: &Identity) -> Result<Option<OwnerReference>, ClusterError> {
    let Some(controller) = &identity.controller else { return Ok(None) };
    if let Some(owner) = context.tracker().owners().get(&controller.uid) {
        return Ok(owner.cloned());
    }
    let owner = owners::owner_of(&context.client, &identity.key.namespace, controller).await?;
    context.tracker().owner_is(controller.uid.clone(), owner.clone());
    Ok(owner)
}

/// When the first of these Pods could count as stuck. At half of that time its log begins to be followed.
fn next_threshold(
    context: &Context,
    key: &DiagnosisKey,
    candidates: &[Candidate],
    assessments: &[Assessment],
    now: Timestamp,
) -> Next {
    let mut next: Option<Timestamp> = None;
    for (candidate, assessment) in candidates.iter().zip(assessments) {
        let Assessment::Waiting { until: Some(until) } = assessment else { continue };
        let half = until.checked_sub(candidate.stuck_after / 2).unwrap_or(*until);
        let at = if half <= now {
            context.captures.follow_stuck(&candidate.pod, key);
            *until
        } else {
            half
        };
        next = Some(next.map_or(at, |next| next.min(at)));
    }
    next.map_or(Next::Await, Next::At)
}

/// When to come back, if the logs of an end that was just seen are about to arrive. A workload of which always some
/// Pod is failing is put off once, and not for ever.
fn wait_for_logs(
    context: &Context,
    key: &DiagnosisKey,
    pods: &[Arc<PodView>],
    now: Timestamp,
) -> Option<Timestamp> {
    let under_way = pods.iter().any(|pod| context.captures.are_under_way(pod.uid()))
        || context.tracker().left_of(key).iter().any(|left| context.captures.are_under_way(&left.uid));
    let mut put_off = context.put_off();
    if under_way {
        let since = *put_off.entry(key.clone()).or_insert(now);
        // The capture itself asks for a look when it comes home; this is for the one that does not.
        if let Some(until) = since.checked_add(WAIT_FOR_LOGS).ok().filter(|until| *until > now) {
            return Some(until);
        }
    }
    put_off.remove(key);
    None
}

/// Attempts that an earlier process has written must not be read and counted again.
fn remember_written(context: &Context, key: &DiagnosisKey, status: &InitDiagnosisStatus) {
    for entry in &status.affected {
        let ended = entry.attempts.iter().filter(|attempt| attempt.has_ended());
        context.captures.are_written(
            key,
            &entry.uid,
            ended.filter_map(|attempt| attempt.container_id.clone()),
        );
    }
}

/// The Pods that are no longer in sight: those whose departure was seen, and those that left while this process
/// did not look.
fn left_pods(
    context: &Context,
    key: &DiagnosisKey,
    status: Option<&InitDiagnosisStatus>,
    pods: &[Arc<PodView>],
    now: Timestamp,
) -> Vec<Left> {
    let mut left = context.tracker().left_of(key);
    let entries = status.into_iter().flat_map(|status| &status.affected);
    for entry in entries.filter(|entry| entry.left_at.is_none()) {
        let in_sight = pods.iter().any(|pod| pod.uid() == entry.uid);
        if !in_sight && !left.iter().any(|left| left.uid == entry.uid) {
            left.push(Left { name: entry.pod.clone(), uid: entry.uid.clone(), at: now });
        }
    }
    left
}

/// What the tracker is to know of a diagnosis with this status.
pub(super) fn known(status: &InitDiagnosisStatus, looked_at: bool) -> Known {
    let closed = plan::is_closed(status);
    // That it hangs explains nothing: it may just be slow.
    let cause = status.cause.as_deref().filter(|cause| ![cause::HANGING, cause::UNKNOWN].contains(cause));
    let explained = !closed && cause.is_some();
    Known { closed, explained, expires_at: plan::expires_at(status).filter(|_| closed), looked_at }
}
