//! What a namespace asks for by its annotations: a threshold of its own, or to be left alone.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};

use crate::api::{ANNOTATION_IGNORE, ANNOTATION_STUCK_AFTER};
use crate::cluster::read;

/// How long an answer is good: an annotation takes effect within that time.
const FRESH: SignedDuration = SignedDuration::from_secs(60);
/// Namespaces whose answer is kept.
const MAX_KNOWN: usize = 10_000;
/// Longest threshold.
const MAX_STUCK_AFTER: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What a namespace asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NamespacePolicy {
    /// Threshold for its Pods.
    pub(super) stuck_after: Option<SignedDuration>,
    /// Nothing in it is diagnosed.
    pub(super) ignored: bool,
}

/// Policies of namespaces, asked for at most once a minute each.
#[derive(Debug, Default)]
pub(super) struct Policies {
    known: Mutex<HashMap<String, (Timestamp, NamespacePolicy)>>,
}

impl Policies {
    /// The policy of a namespace. What cannot be read asks for nothing.
    pub(super) async fn of(&self, client: &Client, namespace: &str, now: Timestamp) -> NamespacePolicy {
        let known = self.lock().get(namespace).cloned();
        if let Some((at, policy)) = &known
            && now.duration_since(*at) < FRESH
        {
            return policy.clone();
        }
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let metadata =
            read(format!("get namespace {namespace}"), || namespaces.get_metadata_opt(namespace)).await;
        let policy = match metadata {
            Ok(metadata) => metadata.map(|namespace| policy_of(&namespace)).unwrap_or_default(),
            Err(error) => {
                tracing::debug!(%error, "the annotations of a namespace are not known");
                // The last answer is a better guess than none.
                known.map(|(_, policy)| policy).unwrap_or_default()
            }
        };
        let mut all = self.lock();
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(namespace.to_owned(), (now, policy.clone()));
        policy
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Timestamp, NamespacePolicy)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn policy_of<K: ResourceExt>(object: &K) -> NamespacePolicy {
    let annotations = object.annotations();
    NamespacePolicy {
        stuck_after: annotations.get(ANNOTATION_STUCK_AFTER).and_then(|text| threshold(text).ok()),
        ignored: annotations.get(ANNOTATION_IGNORE).is_some_and(|value| value == "true"),
    }
}

/// A threshold as people write it: `30m`, `1h 20m`; at least a second, at most a week.
///
/// # Errors
/// What is wrong with it, in words for the one who wrote it.
pub(super) fn threshold(text: &str) -> Result<SignedDuration, String> {
    let duration: SignedDuration =
        text.trim().parse().map_err(|_| "is not a duration like 30m or 1h20m".to_owned())?;
    if duration < SignedDuration::from_secs(1) || duration > MAX_STUCK_AFTER {
        return Err("must be between 1s and 168h".to_owned());
    }
    Ok(duration)
}
