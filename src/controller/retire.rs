//! Removes diagnoses whose time is over. Their InitLogs go with them: Kubernetes collects what they own.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Api;
use kube::api::DeleteParams;

use super::Context;
use crate::api::InitDiagnosis;
use crate::cluster::call;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(60);

/// Removes what has expired, for ever.
pub(super) async fn run(context: Arc<Context>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = Timestamp::now();
        let known = context.tracker().all_known();
        let expired = known
            .into_iter()
            .filter(|(_, known)| known.closed && known.expires_at.is_some_and(|at| at <= now));
        for (key, _) in expired {
            let diagnoses: Api<InitDiagnosis> = Api::namespaced(context.client.clone(), &key.namespace);
            let params = DeleteParams::background();
            let deleted = call(format!("delete initdiagnosis {key}"), diagnoses.delete(&key.name, &params));
            match deleted.await {
                Ok(_) => tracing::info!(diagnosis = %key, "expired"),
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    tracing::warn!(%error, "an expired diagnosis could not be removed; trying again later");
                    continue;
                }
            }
            context.tracker().forget_diagnosis(&key);
        }
    }
}
