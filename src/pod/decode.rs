//! Decoding what anybody may have written: one odd value in one object must not hide all the others.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer};

use super::view::{ContainerStatus, PodView, Terminated};
use crate::api::ANNOTATION_KEEP_LOGS;

/// A time; what is none, or lies beyond what can be counted (the API server takes `9999-12-31T23:59:59Z`), reads as absent.
pub(super) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Time))
}

/// A count; what does not fit is cut. Negative ones stay: kubectl prints them.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let number = Option::<i64>::deserialize(deserializer)?.unwrap_or(0);
    Ok(i32::try_from(number.clamp(i32::MIN.into(), i32::MAX.into())).unwrap_or(0))
}

/// `null` in the place of a list or an object, which Go writes for an empty one, reads as empty.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether text that a container wrote may be kept: not with `keep-logs: never`, and not with a value that we do not know,
/// for that may be meant so.
pub fn keeps_text(pod: &PodView) -> bool {
    matches!(pod.annotation(ANNOTATION_KEEP_LOGS), None | Some("always"))
}

/// The Pod without texts that must not be kept: termination messages are what containers write, or with
/// `FallbackToLogsOnError` the end of their log.
#[must_use]
pub fn without_private_text(mut pod: PodView) -> PodView {
    if keeps_text(&pod) {
        return pod;
    }
    let silence = |status: &mut ContainerStatus| {
        let ends = [&mut status.state.terminated, &mut status.last_state.terminated];
        for end in ends.into_iter().flatten().filter(|end| is_of_the_container(end)) {
            end.message = None;
        }
    };
    pod.status.init_container_statuses.iter_mut().for_each(silence);
    pod
}

/// Whether the message of an end comes from the container, and not from the runtime that could not start it.
fn is_of_the_container(end: &Terminated) -> bool {
    !matches!(end.reason.as_deref(), Some("StartError" | "ContainerCannotRun" | "ContainerStatusUnknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(annotation: &str, end: &str) -> PodView {
        serde_saphyr::from_str(&format!(
            "metadata: {{name: a, namespace: b, uid: c, annotations: {{initwatch.dev/keep-logs: {annotation}}}}}
spec: {{initContainers: [{{name: x}}]}}
status: {{initContainerStatuses: [{{name: x, {end}}}]}}"
        ))
        .unwrap()
    }

    #[test]
    fn values_at_the_edge_are_decoded_and_harmless() {
        let far = pod(
            "always",
            "restartCount: -2147483648, state: {terminated: {exitCode: 1, containerID: c, startedAt: \"9999-12-31T23:59:59Z\", finishedAt: soon}}",
        );
        let status = &far.status.init_container_statuses[0];
        assert_eq!(status.restart_count, i32::MIN);
        let end = status.state.terminated.as_ref().unwrap();
        assert!(end.started_at.is_none() && end.finished_at.is_none());
        let many =
            pod("always", "restartCount: 2147483647, state: {terminated: {exitCode: 1, containerID: c}}");
        assert_eq!(many.status.init_container_statuses[0].restart_count, i32::MAX);
    }

    #[rstest::rstest]
    #[case("always", "Error", Some("secret"))]
    #[case("never", "Error", None)]
    #[case("Never", "Error", None)]
    #[case("perhaps", "OOMKilled", None)]
    #[case("never", "StartError", Some("secret"))]
    fn what_a_container_wrote_is_kept_only_where_it_may_be(
        #[case] annotation: &str,
        #[case] reason: &str,
        #[case] expected: Option<&str>,
    ) {
        let end = format!(
            "restartCount: 1, lastState: {{terminated: {{exitCode: 1, reason: {reason}, message: secret, containerID: c}}}}"
        );
        let pod = without_private_text(pod(annotation, &end));
        let end = pod.status.init_container_statuses[0].last_state.terminated.clone().unwrap();
        assert_eq!(end.message.as_deref(), expected);
    }
}
