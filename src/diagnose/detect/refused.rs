//! The kubelet cannot start the init container; its waiting reason and message say why.

use super::super::catalogue::cause;
use super::super::facts::PodFacts;
use super::super::verdict::{Urgency, Verdict};
use crate::api::v1alpha1::EvidenceSource;
use crate::pod::progress::StepState;

pub(super) fn detect(facts: &PodFacts<'_>) -> Option<Verdict> {
    let step = facts.progress.step()?;
    let StepState::Refused { reason, message } = &step.state else {
        return None;
    };
    let message = message.as_deref().unwrap_or_default().trim();
    let image = facts.pod.init_container(&step.container).and_then(|container| container.image.as_deref());
    let (code, heals) = classify(reason, message);
    let what = match code {
        cause::IMAGE_PULL_FAILED | cause::IMAGE_NAME_INVALID | cause::IMAGE_NEVER_PULLED => {
            format!("cannot start: image {} ({reason})", image.unwrap_or("(none)"))
        }
        _ => format!("cannot start ({reason})"),
    };
    // A whole sentence as reason (raw errors of the kubelet) is its own message.
    let detail = if message.is_empty() { String::new() } else { format!(": {message}") };
    let verdict = Verdict::new(code, format!("{} {what}{detail}", super::named(step)))
        .at(step)
        .urgency(if heals { super::until_stuck(facts) } else { Urgency::Now })
        .fact(
            EvidenceSource::Status,
            format!("init container {}", step.container),
            format!("{reason}{detail}"),
        );
    Some(match remedy(code, message) {
        Some(remedy) => verdict.remedy(remedy),
        None => verdict,
    })
}

/// The remedy with the object that the kubelet names, where it names one.
fn remedy(code: &str, message: &str) -> Option<String> {
    let quoted = || message.split('"').nth(1);
    Some(match code {
        cause::SECRET_NOT_FOUND | cause::CONFIG_MAP_NOT_FOUND => {
            let kind = if code == cause::SECRET_NOT_FOUND { "Secret" } else { "ConfigMap" };
            let name = quoted()?;
            format!(
                "Create {kind} {name} in namespace {{namespace}}, or correct the reference of {{container}}: kubectl -n {{namespace}} get {}. The kubelet goes on by itself then; nothing needs a restart.",
                kind.to_lowercase()
            )
        }
        cause::KEY_NOT_FOUND => {
            // `couldn't find key url in Secret shop/db`
            let mut words = message.split("couldn't find key ").nth(1)?.split_whitespace();
            let (key, kind) = (words.next()?, words.nth(1)?);
            let name = words.next()?.rsplit('/').next()?.trim_end_matches(['.', ',', '"']);
            format!(
                "Add key {key} to {kind} {name}, or correct the reference of {{container}}. The keys that there are: kubectl -n {{namespace}} describe {} {name}",
                kind.to_lowercase()
            )
        }
        _ => return None,
    })
}

/// Cause of a waiting reason, and whether it may heal without anybody (`pkg/kubelet/images/types.go`,
/// `pkg/kubelet/kuberuntime/kuberuntime_container.go`, `makeEnvironmentVariables`, `verifyRunAsNonRoot`).
fn classify(reason: &str, message: &str) -> (&'static str, bool) {
    match reason {
        "InvalidImageName" => (cause::IMAGE_NAME_INVALID, false),
        "ErrImageNeverPull" => (cause::IMAGE_NEVER_PULLED, true),
        "ErrImagePull"
        | "ImagePullBackOff"
        | "RegistryUnavailable"
        | "SignatureValidationFailed"
        | "ImageInspectError" => (cause::IMAGE_PULL_FAILED, true),
        "CreateContainerConfigError" => configuration(message),
        "RunContainerError"
        | "CreateContainerError"
        | "PostStartHookError"
        | "PreCreateHookError"
        | "PreStartHookError" => (cause::CONTAINER_START_FAILED, true),
        _ => (cause::UNKNOWN, true),
    }
}

fn configuration(message: &str) -> (&'static str, bool) {
    if message.contains("couldn't find key") {
        (cause::KEY_NOT_FOUND, false)
    } else if message.contains("image will run as root") {
        (cause::RUN_AS_NON_ROOT_IMAGE_ROOT, false)
    } else if message.contains("non-numeric user") {
        (cause::RUN_AS_NON_ROOT_NON_NUMERIC_USER, false)
    } else if message.contains("breaks non-root policy") {
        (cause::RUN_AS_NON_ROOT_CONFLICT, false)
    } else if message.starts_with("secret ") && message.contains("not found") {
        // An operator may create it in a moment: the kubelet retries by itself.
        (cause::SECRET_NOT_FOUND, true)
    } else if message.starts_with("configmap ") && message.contains("not found") {
        (cause::CONFIG_MAP_NOT_FOUND, true)
    } else {
        (cause::CONTAINER_START_FAILED, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(cause::SECRET_NOT_FOUND, "secret \"db\" not found", "Create Secret db in namespace {namespace}")]
    #[case(cause::CONFIG_MAP_NOT_FOUND, "configmap \"db\" not found", "Create ConfigMap db in")]
    #[case(cause::KEY_NOT_FOUND, "couldn't find key url in Secret shop/db", "Add key url to Secret db, or")]
    #[case(cause::KEY_NOT_FOUND, "couldn't find key url in ConfigMap shop/db", "describe configmap db")]
    fn a_remedy_names_the_object(#[case] code: &str, #[case] message: &str, #[case] expected: &str) {
        let remedy = remedy(code, message).unwrap();
        assert!(remedy.contains(expected), "{remedy}");
    }

    #[rstest::rstest]
    #[case("InvalidImageName", "", cause::IMAGE_NAME_INVALID, false)]
    #[case("ErrImagePull", "no route to host", cause::IMAGE_PULL_FAILED, true)]
    #[case(
        "CreateContainerConfigError",
        "couldn't find key url in Secret shop/db",
        cause::KEY_NOT_FOUND,
        false
    )]
    #[case("CreateContainerConfigError", "secret \"db\" not found", cause::SECRET_NOT_FOUND, true)]
    #[case("CreateContainerConfigError", "configmap \"db\" not found", cause::CONFIG_MAP_NOT_FOUND, true)]
    #[case("CreateContainerConfigError", "failed to prepare subPath", cause::CONTAINER_START_FAILED, true)]
    #[case("the kubelet put a sentence here", "", cause::UNKNOWN, true)]
    fn a_waiting_reason_has_a_cause(
        #[case] reason: &str,
        #[case] message: &str,
        #[case] code: &str,
        #[case] heals: bool,
    ) {
        assert_eq!(classify(reason, message), (code, heals));
    }
}
