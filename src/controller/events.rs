//! Kubernetes Events. No answer of the server makes this fail: an Event is news, the diagnosis is the record.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Resource, ResourceExt};

use super::Context;
use super::policy::threshold;
use crate::api::v1alpha1::InitDiagnosis;
use crate::api::{ANNOTATION_IGNORE, ANNOTATION_KEEP_LOGS, ANNOTATION_STUCK_AFTER, MANAGER};
use crate::cluster::call;
use crate::diagnose::cut;
use crate::plan::{EventIntent, EventTarget, EventType, WorkloadFacts};
use crate::pod::PodView;
use crate::pod::identity::{DiagnosisKey, hash_of};

/// Values that were complained about and are remembered; a second Event about one would be refused as existing.
const MAX_COMPLAINTS: usize = 10_000;

/// Pauses after tries to send an Event that failed.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::ZERO];

/// Sends an Event of a diagnosis. Its name follows from what it is about and the number of the change.
pub(super) async fn send(
    context: &Context,
    key: &DiagnosisKey,
    object: &InitDiagnosis,
    facts: &WorkloadFacts,
    intent: EventIntent,
) {
    let regarding = regarding(key, facts, &intent.target);
    let change = intent.change.to_string();
    let uid = object.uid().unwrap_or_default();
    let event = Event {
        metadata: name(&key.namespace, &[regarding.uid.as_deref().unwrap_or_default(), &uid, &change]),
        note: Some(intent.note),
        reason: Some(intent.reason),
        regarding: Some(regarding),
        related: Some(ObjectReference {
            api_version: Some(InitDiagnosis::api_version(&()).into_owned()),
            kind: Some(InitDiagnosis::kind(&()).into_owned()),
            name: Some(key.name.clone()),
            namespace: Some(key.namespace.clone()),
            uid: Some(uid),
            ..ObjectReference::default()
        }),
        ..news(context, intent.type_, intent.at)
    };
    post(context, &key.namespace, &event).await;
}

/// Complains, once each, about annotations of a Pod whose value makes no sense.
pub(super) fn complain(context: &Arc<Context>, pod: &Arc<PodView>, now: Timestamp) {
    for (annotation, problem) in problems(pod) {
        let value = pod.annotation(annotation).unwrap_or_default();
        let metadata = name(pod.namespace(), &[pod.uid(), annotation, value]);
        {
            let mut complaints = context.complaints();
            if complaints.len() >= MAX_COMPLAINTS {
                complaints.clear();
            }
            if !complaints.insert(metadata.name.clone().unwrap_or_default()) {
                continue;
            }
        }
        let event = Event {
            metadata,
            note: Some(format!("annotation {annotation}: {:?} {problem}", cut(value, 100))),
            reason: Some("InvalidAnnotation".to_owned()),
            regarding: Some(pod_reference(pod.namespace(), pod.name(), pod.uid())),
            ..news(context, EventType::Warning, now)
        };
        let (context, namespace) = (context.clone(), pod.namespace().to_owned());
        tokio::spawn(async move { post(&context, &namespace, &event).await });
    }
}

/// Annotations of ours that make no sense, with what is wrong and what that leads to.
fn problems(pod: &PodView) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    let value = |name| pod.annotation(name);
    if let Some(Err(why)) = value(ANNOTATION_STUCK_AFTER).map(threshold) {
        problems.push((ANNOTATION_STUCK_AFTER, format!("{why}; it counts as not set")));
    }
    if value(ANNOTATION_IGNORE).is_some_and(|value| !matches!(value, "true" | "false")) {
        problems
            .push((ANNOTATION_IGNORE, "is neither \"true\" nor \"false\"; it counts as not set".to_owned()));
    }
    if value(ANNOTATION_KEEP_LOGS).is_some_and(|value| !matches!(value, "always" | "never")) {
        problems
            .push((ANNOTATION_KEEP_LOGS, "is neither \"always\" nor \"never\"; no log is kept".to_owned()));
    }
    problems
}

/// What all our Events share.
fn news(context: &Context, type_: EventType, at: Timestamp) -> Event {
    Event {
        action: Some("Diagnose".to_owned()),
        event_time: Some(MicroTime(at)),
        reporting_controller: Some(MANAGER.to_owned()),
        // At most 128 bytes (pkg/apis/core/validation/events.go).
        reporting_instance: Some(cut(&context.settings.instance, 128)),
        type_: Some(match type_ {
            EventType::Normal => "Normal".to_owned(),
            EventType::Warning => "Warning".to_owned(),
        }),
        ..Event::default()
    }
}

fn name(namespace: &str, parts: &[&str]) -> ObjectMeta {
    ObjectMeta {
        name: Some(format!("initwatch-{}", hash_of(parts))),
        namespace: Some(namespace.to_owned()),
        ..ObjectMeta::default()
    }
}

/// Sends an Event. An answer that will be the same the next time (403, 422) is final; the others are worth another
/// try or two, and then the diagnosis has to do.
async fn post(context: &Context, namespace: &str, event: &Event) {
    let events: Api<Event> = Api::namespaced(context.client.clone(), namespace);
    let name = event.name_any();
    let params = PostParams::default();
    for pause in PAUSES {
        match call(format!("create event {namespace}/{name}"), events.create(&params, event)).await {
            Ok(_) => return tracing::debug!(event = name, "sent"),
            // Its name is that of what it tells: it was sent before.
            Err(error) if error.is_conflict() => return,
            Err(error) => {
                tracing::warn!(%error, "an event could not be sent");
                if matches!(error.code(), Some(403 | 404 | 422)) {
                    return;
                }
            }
        }
        tokio::time::sleep(pause).await;
    }
}

fn regarding(key: &DiagnosisKey, facts: &WorkloadFacts, target: &EventTarget) -> ObjectReference {
    match target {
        EventTarget::Workload => ObjectReference {
            api_version: Some(facts.workload_api_version.clone()),
            kind: Some(facts.workload.kind.clone()),
            name: Some(facts.workload.name.clone()),
            namespace: Some(key.namespace.clone()),
            uid: facts.workload.uid.clone(),
            ..ObjectReference::default()
        },
        EventTarget::Pod { name, uid, init_container } => ObjectReference {
            field_path: init_container
                .as_ref()
                .map(|container| format!("spec.initContainers{{{container}}}")),
            ..pod_reference(&key.namespace, name, uid)
        },
    }
}

/// Without the version `kubectl events --for` does not find the Event, without the UID `describe` does not.
fn pod_reference(namespace: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("stuck-after: soon", Some("is not a duration like 30m or 1h20m; it counts as not set"))]
    #[case("stuck-after: 30m", None)]
    #[case("ignore: 'yes'", Some("is neither \"true\" nor \"false\"; it counts as not set"))]
    #[case("ignore: 'false'", None)]
    #[case("keep-logs: Never", Some("is neither \"always\" nor \"never\"; no log is kept"))]
    #[case("keep-logs: never", None)]
    fn a_value_that_makes_no_sense_is_named(#[case] annotation: &str, #[case] expected: Option<&str>) {
        let pod: PodView = serde_saphyr::from_str(&format!(
            "metadata: {{name: a, namespace: b, uid: c, annotations: {{initwatch.dev/{annotation}}}}}"
        ))
        .unwrap();
        let found = problems(&pod).pop().map(|(_, problem)| problem);
        assert_eq!(found.as_deref(), expected);
    }
}
