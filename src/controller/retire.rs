//! Removes diagnoses whose time is over, and those that must make room. Their InitLogs go with them: Kubernetes
//! collects what they own.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use jiff::Timestamp;
use kube::Api;
use kube::ResourceExt;
use kube::api::DeleteParams;

use super::Context;
use super::ledger::{Kept, counted};
use crate::api::{ANNOTATION_STORED_BYTES, InitDiagnosis, InitLog};
use crate::cluster::client::scoped;
use crate::cluster::pages::metadata_pages;
use crate::cluster::{ClusterError, call};
use crate::pod::identity::DiagnosisKey;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(60);
/// Every how many looks the logs are counted anew: somebody may have deleted some.
const COUNT_EVERY: u32 = 10;
/// Size of a log that does not say how large it is.
const USUAL_BYTES: u64 = 16 * 1024;

/// Removes what has expired, for ever.
pub(super) async fn run(context: Arc<Context>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut turn: u32 = 0;
    loop {
        ticks.tick().await;
        if turn.is_multiple_of(COUNT_EVERY)
            && let Err(error) = count(&context).await
        {
            tracing::warn!(%error, "the kept logs could not be counted; the last figures hold");
        }
        turn = turn.wrapping_add(1);
        let now = Timestamp::now();
        let known = context.tracker().all_known();
        let expired = known
            .into_iter()
            .filter(|(_, known)| known.closed && known.expires_at.is_some_and(|at| at <= now));
        for (key, _) in expired {
            match remove(&context, &key).await {
                Ok(()) => tracing::info!(diagnosis = %key, "expired"),
                Err(error) => {
                    tracing::warn!(%error, "an expired diagnosis could not be removed; trying again later");
                }
            }
        }
    }
}

/// Counts the logs that are kept: by their metadata, a page at a time.
async fn count(context: &Context) -> Result<(), ClusterError> {
    let namespaces = &context.settings.namespaces;
    let scopes: Vec<Option<&str>> = if namespaces.is_empty() {
        vec![None]
    } else {
        namespaces.iter().map(|name| Some(name.as_str())).collect()
    };
    let mut logs = Vec::new();
    for scope in scopes {
        let api = scoped::<InitLog>(&context.client, scope);
        let mut pages = std::pin::pin!(metadata_pages("list initlogs", &api));
        while let Some(page) = pages.try_next().await? {
            logs.extend(page.into_iter().map(|log| {
                let bytes = log.annotations().get(ANNOTATION_STORED_BYTES);
                let bytes = bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(USUAL_BYTES);
                let owner = log.owner_references().first().map(|owner| owner.name.clone());
                let kept = Kept { diagnosis: owner.unwrap_or_default(), bytes: counted(bytes) };
                ((log.namespace().unwrap_or_default(), log.name_any()), kept)
            }));
        }
    }
    context.ledger().set(logs);
    Ok(())
}

/// Removes the diagnosis that ended first, of those in a namespace (or anywhere) that have logs. False when none has
/// ended: what stands open is never removed to make room.
pub(super) async fn make_room(context: &Context, namespace: Option<&str>) -> bool {
    let known = context.tracker().all_known();
    let oldest = {
        let ledger = context.ledger();
        known
            .into_iter()
            .filter(|(key, known)| {
                known.closed
                    && namespace.is_none_or(|namespace| key.namespace == namespace)
                    && ledger.has_logs(key)
            })
            .min_by_key(|(_, known)| known.expires_at)
    };
    let Some((key, _)) = oldest else { return false };
    match remove(context, &key).await {
        Ok(()) => {
            tracing::info!(diagnosis = %key, "removed before its time: the logs that are kept have reached their bound");
            true
        }
        Err(error) => {
            tracing::warn!(%error, "a diagnosis that is over could not be removed to make room");
            false
        }
    }
}

async fn remove(context: &Context, key: &DiagnosisKey) -> Result<(), ClusterError> {
    let diagnoses: Api<InitDiagnosis> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = DeleteParams::background();
    let deleted = call(format!("delete initdiagnosis {key}"), diagnoses.delete(&key.name, &params)).await;
    if let Err(error) = deleted
        && !error.is_not_found()
    {
        return Err(error);
    }
    context.tracker().forget_diagnosis(key);
    context.ledger().remove_diagnosis(key);
    Ok(())
}
