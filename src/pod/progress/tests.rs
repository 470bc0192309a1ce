use super::*;

fn pod(yaml: &str) -> PodView {
    serde_saphyr::from_str(yaml).unwrap()
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// Two init containers, the second of which has the given state (as YAML in one line).
fn second_step(restart_policy: &str, state: &str) -> Step {
    let pod = pod(&format!(
        r#"
metadata: {{name: api, namespace: shop, uid: u1, creationTimestamp: "2026-12-01T10:00:00Z"}}
spec: {{restartPolicy: {restart_policy}, initContainers: [{{name: one}}, {{name: two}}], containers: [{{name: app}}]}}
status:
  phase: Pending
  conditions: [{{type: PodReadyToStartContainers, status: "True", lastTransitionTime: "2026-12-01T10:00:05Z"}}]
  initContainerStatuses:
  - {{name: one, restartCount: 0, state: {{terminated: {{exitCode: 0, finishedAt: "2026-12-01T10:01:00Z", containerID: "containerd://a"}}}}}}
  - {{name: two, {state}}}
"#
    ));
    InitProgress::of(&pod).step().unwrap().clone()
}

#[test]
fn a_step_begins_with_the_end_of_the_one_before_and_retries_do_not_move_it() {
    let first =
        second_step("Always", r#"restartCount: 0, state: {running: {startedAt: "2026-12-01T10:01:01Z"}}"#);
    let later = second_step(
        "Always",
        r#"restartCount: 7, state: {running: {startedAt: "2026-12-01T11:30:00Z"}}, lastState: {terminated: {exitCode: 1}}"#,
    );
    assert_eq!((first.index, first.total, first.position()), (1, 2, "2/2".to_owned()));
    assert_eq!(first.since, Some(at("2026-12-01T10:01:00Z")));
    assert_eq!(later.since, first.since);
}

#[test]
fn the_end_and_the_back_off_after_it_are_one_state() {
    let ended = second_step(
        "Always",
        r#"restartCount: 1, state: {terminated: {exitCode: 3, reason: Error, containerID: "containerd://b"}}"#,
    );
    let waits = second_step(
        "Always",
        r#"restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error, containerID: "containerd://b"}}"#,
    );
    assert_eq!(ended.state, waits.state);
    assert_eq!(ended.failures(), 2);
    assert!(matches!(ended.state, StepState::Ended { exit_code: 3, retried: true, .. }));
}

#[rstest::rstest]
#[case("Never", false)]
#[case("OnFailure", true)]
#[case("Always", true)]
fn the_pods_policy_decides_on_a_retry(#[case] policy: &str, #[case] retried: bool) {
    let step = second_step(policy, r"restartCount: 0, state: {terminated: {exitCode: 1}}");
    assert!(matches!(step.state, StepState::Ended { retried: seen, .. } if seen == retried));
}

#[rstest::rstest]
#[case("{name: one, restartPolicy: Never}", 1, false)]
#[case("{name: one, restartPolicy: OnFailure}", 1, true)]
#[case(
    "{name: one, restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]}",
    42,
    true
)]
#[case(
    "{name: one, restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]}",
    1,
    false
)]
#[case(
    "{name: one, restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: NotIn, values: [42]}}]}",
    1,
    true
)]
fn a_containers_own_policy_and_rules_come_first(
    #[case] container: &str,
    #[case] exit_code: i32,
    #[case] expected: bool,
) {
    // The Pod's policy is the opposite of what the container asks for.
    let policy = if container.contains("OnFailure") { "Never" } else { "Always" };
    let pod = pod(&format!(
        "spec: {{restartPolicy: {policy}, initContainers: [{container}]}}
status: {{phase: Pending, initContainerStatuses: [{{name: one, restartCount: 0, containerID: a, state: {{terminated: {{exitCode: {exit_code}}}}}}}]}}"
    ));
    let progress = InitProgress::of(&pod);
    let StepState::Ended { retried, .. } = &progress.step().unwrap().state else { panic!("{progress:?}") };
    assert_eq!(*retried, expected);
}

#[rstest::rstest]
// A sidecar that runs and has started is past; one that has not started, or exited 0, blocks.
#[case("{running: {}}", "started: true", None)]
#[case("{running: {}}", "started: false", Some("side"))]
#[case("{terminated: {exitCode: 0}}", "started: false", Some("side"))]
#[case("{waiting: {reason: CrashLoopBackOff}}", "started: false", Some("side"))]
fn a_sidecar_is_past_once_it_has_started(
    #[case] state: &str,
    #[case] started: &str,
    #[case] blocking: Option<&str>,
) {
    let pod = pod(&format!(
        "spec: {{initContainers: [{{name: side, restartPolicy: Always}}, {{name: two}}], containers: [{{name: app}}]}}
status:
  phase: Pending
  initContainerStatuses:
  - {{name: side, restartCount: 1, containerID: a, {started}, state: {state}}}
  - {{name: two, restartCount: 0, state: {{waiting: {{reason: PodInitializing}}}}}}"
    ));
    let progress = InitProgress::of(&pod);
    let step = progress.step().unwrap();
    assert_eq!(step.container, blocking.unwrap_or("two"));
    assert_eq!(step.sidecar, blocking.is_some());
}

#[test]
fn a_running_regular_init_container_is_not_past_although_its_status_says_started() {
    let step = second_step("Always", r"restartCount: 0, started: true, state: {running: {}}");
    assert_eq!(step.container, "two");
}

#[test]
fn nothing_has_begun_before_the_sandbox_is_there() {
    let pod = pod(r#"
metadata: {creationTimestamp: "2026-12-01T10:00:00Z"}
spec: {initContainers: [{name: one}]}
status:
  phase: Pending
  conditions:
  - {type: PodScheduled, status: "True", lastTransitionTime: "2026-12-01T10:00:30Z"}
  - {type: PodReadyToStartContainers, status: "False", lastTransitionTime: "2026-12-01T10:00:31Z"}
  initContainerStatuses: [{name: one, restartCount: 0, state: {waiting: {reason: PodInitializing}}}]
"#);
    assert_eq!(
        InitProgress::of(&pod),
        InitProgress::BeforeContainers { since: Some(at("2026-12-01T10:00:30Z")) }
    );
}

#[test]
fn a_rerun_after_a_new_sandbox_is_a_step_although_the_pod_counts_as_initialized() {
    let pod = pod(r#"
spec: {initContainers: [{name: one}], containers: [{name: app}]}
status:
  phase: Running
  conditions: [{type: Initialized, status: "True"}]
  initContainerStatuses: [{name: one, restartCount: 2, containerID: a, state: {terminated: {exitCode: 1}}}]
  containerStatuses: [{name: app, restartCount: 1, state: {terminated: {exitCode: 137}}}]
"#);
    let progress = InitProgress::of(&pod);
    assert!(progress.step().is_some_and(|step| step.rerun), "{progress:?}");
}

#[test]
fn a_sidecar_that_crashes_beside_a_running_app_is_no_init_matter() {
    let pod = pod("
spec: {initContainers: [{name: side, restartPolicy: Always}], containers: [{name: app}]}
status:
  phase: Running
  initContainerStatuses: [{name: side, restartCount: 9, state: {waiting: {reason: CrashLoopBackOff}}}]
  containerStatuses: [{name: app, ready: true, restartCount: 0, state: {running: {}}}]
");
    assert_eq!(InitProgress::of(&pod), InitProgress::Done);
}

#[test]
fn nulls_where_go_writes_empty_lists_are_empty() {
    let pod = pod("
metadata: {name: a, labels: null, annotations: null}
spec: {initContainers: null, containers: null}
status: {conditions: null, initContainerStatuses: null, containerStatuses: null}
");
    assert_eq!(InitProgress::of(&pod), InitProgress::None);
}
