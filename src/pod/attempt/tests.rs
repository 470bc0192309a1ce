use super::*;

fn attempts(status: &str) -> Vec<EndedAttempt> {
    let pod: PodView = serde_saphyr::from_str(&format!(
        "spec: {{initContainers: [{{name: migrate}}, {{name: side, restartPolicy: Always}}]}}
status: {{initContainerStatuses: [{status}]}}"
    ))
    .unwrap();
    ended_attempts(&pod).into_iter().filter(|attempt| attempt.failed).collect()
}

fn numbers(attempts: &[EndedAttempt]) -> Vec<(i32, LogRole)> {
    attempts.iter().map(|attempt| (attempt.number, attempt.role)).collect()
}

#[test]
fn while_the_next_attempt_runs_the_last_one_is_the_previous() {
    let seen = attempts(
        "{name: migrate, restartCount: 3, containerID: c3, state: {running: {}}, lastState: {terminated: {exitCode: 1, containerID: c2}}}",
    );
    assert_eq!(numbers(&seen), [(2, LogRole::Previous)]);
}

#[test]
fn while_it_waits_the_last_state_is_the_newest_attempt() {
    let seen = attempts(
        "{name: migrate, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, containerID: c3}}}",
    );
    assert_eq!(numbers(&seen), [(3, LogRole::Current)]);
}

#[test]
fn an_end_and_the_one_before_it_are_both_attempts() {
    let seen = attempts(
        "{name: migrate, restartCount: 3, state: {terminated: {exitCode: 1, containerID: c3}}, lastState: {terminated: {exitCode: 2, containerID: c2}}}",
    );
    assert_eq!(numbers(&seen), [(2, LogRole::Previous), (3, LogRole::Current)]);
}

#[test]
fn success_is_no_attempt_of_interest_and_an_attempt_without_an_id_cannot_be_one() {
    let ended = |fields: &str| {
        attempts(&format!("{{name: migrate, restartCount: 0, state: {{terminated: {{{fields}}}}}}}"))
    };
    assert!(ended("exitCode: 0, containerID: c0").is_empty());
    // An out-of-memory kill of a child can mark a success.
    assert!(ended("exitCode: 0, reason: OOMKilled, containerID: c0").is_empty());
    assert!(ended("exitCode: 137, reason: ContainerStatusUnknown, containerID: ''").is_empty());
    assert_eq!(ended("exitCode: 137, containerID: c0").first().unwrap().signal, Some(9));
}

#[test]
fn a_sidecar_that_exits_with_0_was_meant_to_stay() {
    let seen = attempts("{name: side, restartCount: 0, state: {terminated: {exitCode: 0, containerID: s0}}}");
    assert_eq!(numbers(&seen), [(0, LogRole::Current)]);
}

#[test]
fn a_container_that_never_started_has_no_start() {
    let seen = attempts(
        r#"{name: migrate, restartCount: 1, state: {waiting: {reason: RunContainerError}}, lastState: {terminated: {exitCode: 128, reason: StartError, startedAt: "1970-01-01T00:00:00Z", finishedAt: "2026-12-01T10:00:00Z", containerID: c1}}}"#,
    );
    let attempt = seen.first().unwrap();
    assert_eq!(attempt.started_at, None);
    assert!(attempt.finished_at.is_some());
}

#[rstest::rstest]
#[case("containerd://1f0c77aa99", "1f0c77aa")]
#[case("cri-o://abc", "abc")]
#[case("", "")]
fn ids_are_shortened_for_names(#[case] id: &str, #[case] expected: &str) {
    assert_eq!(short_id(id), expected);
}
