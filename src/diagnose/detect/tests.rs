//! What is said of Pods as an API server shows them.

use jiff::{SignedDuration, Timestamp};

use super::super::catalogue::cause;
use super::super::facts::{
    Endpoints, LogFacts, Lookup, ServiceFacts, ServiceLookups, ServiceName, ServicePort,
};
use super::super::log::Masker;
use super::super::needs;
use super::*;
use crate::api::v1alpha1::Confidence;
use crate::pod::PodView;

const NOW: &str = "2026-12-01T10:10:00Z";

/// A Pod of namespace shop with one init container, whose step began at 10:00.
fn pod(policy: &str, command: &str, init_status: &str) -> PodView {
    pod_with(policy, command, "", &format!("initContainerStatuses: [{{name: step, {init_status}}}]"))
}

fn pod_with(policy: &str, command: &str, spec: &str, status: &str) -> PodView {
    let yaml = format!(
        r#"
metadata: {{name: api-1, namespace: shop, uid: u1, creationTimestamp: "2026-12-01T09:59:00Z"}}
spec:
  nodeName: node-a
  restartPolicy: {policy}
  initContainers: [{{name: step, image: "registry.example/api:1", command: [sh, -c, "{command}"], {spec}}}]
  containers: [{{name: app}}]
status:
  phase: Pending
  conditions: [{{type: PodReadyToStartContainers, status: "True", lastTransitionTime: "2026-12-01T10:00:00Z"}}]
  {status}
"#
    );
    serde_saphyr::from_str(&yaml).unwrap()
}

#[derive(Default)]
struct World {
    services: ServiceLookups,
    logs: Vec<LogFacts>,
    stuck_after: Option<SignedDuration>,
}

impl World {
    fn service(mut self, name: &str, answer: Lookup<ServiceFacts>) -> Self {
        let name = ServiceName { namespace: "shop".to_owned(), name: name.to_owned() };
        self.services.insert(name, answer);
        self
    }

    fn says(mut self, line: &str) -> Self {
        self.logs.push(LogFacts {
            container: "step".to_owned(),
            number: 0,
            decisive_line: Some(line.to_owned()),
            last_line: Some(line.to_owned()),
            repeats: false,
            last_at: None,
        });
        self
    }

    fn assess(&self, pod: &PodView) -> Assessment {
        let progress = InitProgress::of(pod);
        let needs = needs(pod, &progress);
        let since = match &progress {
            InitProgress::At(step) => step.since,
            InitProgress::BeforeContainers { since } => *since,
            _ => None,
        };
        super::assess(&PodFacts {
            pod,
            progress: &progress,
            stuck_since: since,
            stuck_after: self.stuck_after.unwrap_or(SignedDuration::from_mins(2)),
            waits: needs.waits.as_ref(),
            logs: &self.logs,
            services: &self.services,
            masker: &Masker::shipped(),
            now: NOW.parse::<Timestamp>().unwrap(),
        })
    }

    fn verdict(&self, pod: &PodView) -> Verdict {
        self.assess(pod).verdict().unwrap_or_else(|| panic!("nothing is said of {pod:?}")).clone()
    }
}

fn found(ready: usize, total: usize) -> Lookup<ServiceFacts> {
    Lookup::Found(ServiceFacts {
        type_: "ClusterIP".to_owned(),
        headless: false,
        has_selector: true,
        ports: vec![ServicePort { name: "db".to_owned(), port: 5432, protocol: "TCP".to_owned() }],
        endpoints: Some(Endpoints { ready, total }),
    })
}

const WAIT: &str = "until nc -z postgres 5432; do sleep 2; done";
const RUNNING: &str =
    r#"restartCount: 0, containerID: c0, state: {running: {startedAt: "2026-12-01T10:00:01Z"}}"#;

#[rstest::rstest]
#[case(Lookup::Missing, cause::SERVICE_NOT_FOUND, "there is no Service postgres in namespace shop")]
#[case(
    found(0, 0),
    cause::SERVICE_HAS_NO_ENDPOINTS,
    "Service shop/postgres has no endpoints: no Pod matches its selector"
)]
#[case(found(0, 2), cause::SERVICE_HAS_NO_ENDPOINTS, "Service shop/postgres has 0 of 2 endpoints ready")]
#[case(found(1, 2), cause::HANGING, "has been running since 2026-12-01 10:00:00 UTC")]
fn a_wait_is_named_after_what_is_wrong_with_its_service(
    #[case] answer: Lookup<ServiceFacts>,
    #[case] expected: &str,
    #[case] words: &str,
) {
    let verdict = World::default().service("postgres", answer).verdict(&pod("Always", WAIT, RUNNING));
    assert_eq!(verdict.cause, expected);
    assert!(verdict.summary.contains(words), "{}", verdict.summary);
    assert_eq!((verdict.init_container.as_deref(), verdict.step.as_deref()), (Some("step"), Some("1/1")));
    assert_eq!(verdict.urgency, Urgency::Now);
    let codes: Vec<_> = verdict.advice.iter().map(|advice| advice.code.as_str()).collect();
    assert_eq!(codes, ["UnboundedWait"]);
}

#[test]
fn a_port_that_the_service_does_not_serve_is_a_mismatch() {
    let wait = "until nc -z postgres 5433; do sleep 2; done";
    let verdict = World::default().service("postgres", found(1, 1)).verdict(&pod("Always", wait, RUNNING));
    assert_eq!(verdict.cause, cause::SERVICE_PORT_MISMATCH);
    assert!(verdict.summary.contains("serves port 5432, not 5433"), "{}", verdict.summary);
}

#[test]
fn the_first_of_two_waits_that_is_broken_is_the_cause() {
    let wait = "until nc -z postgres 5432; do sleep 2; done; until nc -z redis 6379; do sleep 2; done";
    let world = World::default().service("postgres", found(1, 1)).service("redis", Lookup::Missing);
    let verdict = world.verdict(&pod("Always", wait, RUNNING));
    assert!(verdict.summary.contains("no Service redis"), "{}", verdict.summary);
}

#[rstest::rstest]
#[case("spec: {hostAliases: [{ip: 10.1.2.3, hostnames: [postgres]}]}", None)]
#[case("spec: {dnsPolicy: Default}", None)]
#[case("spec: {hostNetwork: true}", None)]
#[case("spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}", Some(Confidence::Certain))]
#[case("spec: {dnsConfig: {searches: [corp.example.com]}}", Some(Confidence::Likely))]
#[case("spec: {}", Some(Confidence::Certain))]
fn a_name_means_a_service_only_where_the_pod_asks_the_clusters_dns(
    #[case] spec: &str,
    #[case] expected: Option<Confidence>,
) {
    let mut pod = pod("Always", WAIT, RUNNING);
    let names: PodView = serde_saphyr::from_str(spec).unwrap();
    pod.spec.dns_policy = names.spec.dns_policy;
    pod.spec.dns_config = names.spec.dns_config;
    pod.spec.host_aliases = names.spec.host_aliases;
    pod.spec.host_network = names.spec.host_network;
    let verdict = World::default().service("postgres", Lookup::Missing).verdict(&pod);
    let named = (verdict.cause == cause::SERVICE_NOT_FOUND).then_some(verdict.confidence);
    assert_eq!(named, expected, "{}", verdict.summary);
}

#[test]
fn a_branch_may_not_have_been_taken() {
    let wait = "if [ -n $WAIT ]; then until nc -z postgres 5432; do sleep 1; done; fi; sleep 9999";
    let world = World::default().service("postgres", Lookup::Missing);
    let verdict = world.verdict(&pod("Always", wait, RUNNING));
    assert_eq!((verdict.cause, verdict.confidence), (cause::SERVICE_NOT_FOUND, Confidence::Possible));
}

#[rstest::rstest]
#[case("startupProbe: {tcpSocket: {port: 1}}", cause::SIDECAR_STARTUP_PROBE_FAILING)]
#[case("lifecycle: {postStart: {exec: {command: [x]}}}", cause::CONTAINER_START_FAILED)]
#[case("image: x", cause::KILLED_BY_SIGNAL)]
fn a_sidecar_that_the_kubelet_ends_before_it_started_keeps_one_cause(
    #[case] spec: &str,
    #[case] expected: &str,
) {
    const KILLED: &str = "terminated: {exitCode: 137, reason: Error, containerID: c}";
    for state in [
        format!("restartCount: 3, state: {{{KILLED}}}"),
        format!("restartCount: 3, state: {{waiting: {{reason: CrashLoopBackOff}}}}, lastState: {{{KILLED}}}"),
        format!("restartCount: 3, started: false, state: {{running: {{}}}}, lastState: {{{KILLED}}}"),
    ] {
        let mut pod = pod("Always", "envoy", &state);
        let sidecar: PodView = serde_saphyr::from_str(&format!(
            "spec: {{initContainers: [{{name: step, restartPolicy: Always, {spec}}}]}}"
        ))
        .unwrap();
        pod.spec.init_containers = sidecar.spec.init_containers;
        assert_eq!(World::default().verdict(&pod).cause, expected, "{state}");
    }
}

#[test]
fn a_service_that_could_not_be_looked_up_proves_nothing_and_is_said() {
    let world = World::default().service("postgres", Lookup::Unavailable("forbidden".to_owned()));
    let verdict = world.verdict(&pod("Always", WAIT, RUNNING));
    assert_eq!((verdict.cause, verdict.confidence), (cause::HANGING, Confidence::Possible));
    assert_eq!(verdict.unchecked, ["service shop/postgres: forbidden"]);
}

#[test]
fn a_running_container_is_fine_until_the_threshold() {
    let world = World { stuck_after: Some(SignedDuration::from_mins(30)), ..World::default() };
    let expected = Assessment::Waiting { until: Some("2026-12-01T10:30:00Z".parse().unwrap()) };
    assert_eq!(world.assess(&pod("Always", "sleep 1000", RUNNING)), expected);
}

const ENDED: &str = r#"containerID: c0, state: {terminated: {exitCode: 3, reason: Error, containerID: c0, finishedAt: "2026-12-01T10:09:59Z"}}"#;

#[test]
fn a_first_failure_may_heal_until_it_is_stuck_a_second_one_does_not() {
    let world = World { stuck_after: Some(SignedDuration::from_mins(30)), ..World::default() };
    let first = world.verdict(&pod("Always", "false", &format!("restartCount: 0, {ENDED}")));
    assert_eq!(first.urgency, Urgency::From("2026-12-01T10:30:00Z".parse().unwrap()));
    assert_eq!(first.severity, Severity::Info);
    let second = world.verdict(&pod("Always", "false", &format!("restartCount: 1, {ENDED}")));
    assert_eq!((second.urgency, second.severity), (Urgency::Now, Severity::Warning));
}

#[test]
fn a_failure_that_nobody_retries_needs_somebody_at_once() {
    let world = World { stuck_after: Some(SignedDuration::from_mins(30)), ..World::default() };
    let verdict = world.verdict(&pod("Never", "false", &format!("restartCount: 0, {ENDED}")));
    assert_eq!((verdict.cause, verdict.urgency), (cause::NON_ZERO_EXIT, Urgency::Now));
    assert!(
        verdict.summary.ends_with("ends with exit code 3 (not retried in this Pod)"),
        "{}",
        verdict.summary
    );
}

#[rstest::rstest]
#[case("exitCode: 3, reason: Error", cause::NON_ZERO_EXIT)]
#[case("exitCode: 137, reason: OOMKilled", cause::OOM_KILLED)]
#[case("exitCode: 137, reason: Error", cause::KILLED_BY_SIGNAL)]
#[case("exitCode: 143, reason: Error", cause::KILLED_BY_SIGNAL)]
#[case("exitCode: 128, reason: StartError", cause::CONTAINER_START_FAILED)]
#[case("exitCode: 137, reason: ContainerStatusUnknown", cause::NODE_LOST)]
fn an_end_has_a_cause(#[case] ended: &str, #[case] expected: &str) {
    let status = format!("restartCount: 4, state: {{terminated: {{{ended}, containerID: c}}}}");
    assert_eq!(World::default().verdict(&pod("Always", "x", &status)).cause, expected);
}

#[test]
fn what_the_log_says_stands_in_the_sentence_and_secrets_do_not() {
    let world = World::default().says("FATAL: cannot reach postgres://shop:hunter2@db:5432");
    let verdict = world.verdict(&pod("Always", "x", &format!("restartCount: 1, {ENDED}")));
    assert!(
        verdict.summary.contains("FATAL: cannot reach postgres://shop:[masked]@db:5432"),
        "{}",
        verdict.summary
    );
    assert!(!format!("{verdict:?}").contains("hunter2"));
}

#[test]
fn while_the_next_attempt_runs_the_last_end_is_the_cause_until_it_has_run_for_long() {
    let running = |since: &str| {
        format!(
            r#"restartCount: 2, containerID: c2, state: {{running: {{startedAt: "{since}"}}}}, lastState: {{terminated: {{exitCode: 3, containerID: c1}}}}"#
        )
    };
    let world = World::default().service("postgres", Lookup::Missing);
    let soon = world.verdict(&pod("Always", WAIT, &running("2026-12-01T10:09:30Z")));
    assert_eq!(soon.cause, cause::NON_ZERO_EXIT);
    let long = world.verdict(&pod("Always", WAIT, &running("2026-12-01T10:01:00Z")));
    assert_eq!(long.cause, cause::SERVICE_NOT_FOUND);
}

#[test]
fn a_refused_start_names_image_and_message() {
    let status =
        r#"restartCount: 0, state: {waiting: {reason: InvalidImageName, message: "couldn't parse image"}}"#;
    let verdict = World::default().verdict(&pod("Always", "x", status));
    assert_eq!((verdict.cause, verdict.urgency), (cause::IMAGE_NAME_INVALID, Urgency::Now));
    assert!(
        verdict.summary.contains("image registry.example/api:1 (InvalidImageName): couldn't parse image")
    );
}

#[rstest::rstest]
#[case(
    "restartCount: 0, started: false, containerID: c, state: {running: {}}",
    cause::SIDECAR_STARTUP_PROBE_FAILING
)]
#[case(
    "restartCount: 7, started: false, state: {terminated: {exitCode: 0, containerID: c}}",
    cause::SIDECAR_EXITS
)]
#[case(
    "restartCount: 7, started: false, state: {terminated: {exitCode: 1, containerID: c}}",
    cause::NON_ZERO_EXIT
)]
fn a_sidecar_that_does_not_come_up_is_named(#[case] status: &str, #[case] expected: &str) {
    let status = format!("initContainerStatuses: [{{name: step, {status}}}]");
    let pod = pod_with("Always", "x", "restartPolicy: Always", &status);
    assert_eq!(World::default().verdict(&pod).cause, expected);
}

#[test]
fn before_any_container_no_init_container_is_blamed() {
    let pod: PodView = serde_saphyr::from_str(
        r#"
metadata: {name: api-1, namespace: shop, creationTimestamp: "2026-12-01T10:00:00Z"}
spec: {initContainers: [{name: step}]}
status:
  phase: Pending
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient memory."}]
"#,
    )
    .unwrap();
    let verdict = World::default().verdict(&pod);
    assert_eq!((verdict.cause, verdict.init_container), (cause::UNSCHEDULABLE, None));
    assert!(verdict.summary.contains("3 Insufficient memory"), "{}", verdict.summary);
    assert!(verdict.remedy.starts_with("Lower the requests, or add capacity"), "{}", verdict.remedy);
}

#[test]
fn a_remedy_is_for_the_one_who_is_paged_and_has_its_names_filled_in() {
    for entry in super::super::catalogue::entries().filter(|entry| entry.detected) {
        let notes = ["Name the", "Show ", "Say why", "name the host", "key K"];
        assert!(!notes.iter().any(|note| entry.remedy.contains(note)), "{}: {}", entry.code, entry.remedy);
    }
    let status =
        r#"restartCount: 0, state: {waiting: {reason: ImagePullBackOff, message: "Back-off pulling image"}}"#;
    let verdict = World::default().verdict(&pod("Always", "x", status));
    assert!(verdict.remedy.contains("kubectl -n shop describe pod api-1"), "{}", verdict.remedy);
    assert!(verdict.remedy.contains("Does registry.example/api:1 exist"), "{}", verdict.remedy);
}

#[rstest::rstest]
#[case("Evicted", "The node was low on resource: memory.", cause::EVICTED)]
#[case(
    "DeadlineExceeded",
    "Pod was active on the node longer than the specified deadline",
    cause::DEADLINE_EXCEEDED
)]
#[case("OutOfcpu", "Node didn't have enough resource: cpu", cause::FAILED_WITHOUT_RETRY)]
fn what_ended_the_pod_comes_before_what_its_container_shows(
    #[case] reason: &str,
    #[case] message: &str,
    #[case] expected: &str,
) {
    // kubectl prints Init:Error for such a Pod; its init container was only killed along with it.
    let mut pod = pod(
        "Always",
        WAIT,
        "restartCount: 0, state: {terminated: {exitCode: 137, reason: Error, containerID: c}}",
    );
    pod.status.phase = Some("Failed".to_owned());
    pod.status.reason = Some(reason.to_owned());
    pod.status.message = Some(message.to_owned());
    let verdict = World::default().verdict(&pod);
    assert_eq!(verdict.cause, expected);
    assert!(verdict.summary.contains(message), "{}", verdict.summary);
}

#[test]
fn a_pod_that_is_deleted_or_ignored_is_not_judged() {
    let mut leaving = pod("Always", "x", &format!("restartCount: 4, {ENDED}"));
    leaving.metadata.deletion_timestamp = leaving.metadata.creation_timestamp.clone();
    assert_eq!(World::default().assess(&leaving), Assessment::Leaving);
    let mut ignored = pod("Always", "x", &format!("restartCount: 4, {ENDED}"));
    ignored.metadata.annotations = Some([(api::ANNOTATION_IGNORE.to_owned(), "true".to_owned())].into());
    assert_eq!(World::default().assess(&ignored), Assessment::Fine);
}

#[test]
fn no_text_of_a_cluster_is_longer_than_the_schema_allows() {
    let message = "x".repeat(10_000);
    let status =
        format!("restartCount: 0, state: {{waiting: {{reason: CreateContainerError, message: {message}}}}}");
    let verdict = World::default().verdict(&pod("Always", "x", &status));
    assert!(
        verdict.summary.len() <= 1024 && verdict.evidence.iter().all(|evidence| evidence.fact.len() <= 512)
    );
}

#[rstest::rstest]
#[case("restored 512 MiB of 2 GiB", "2026-12-01T10:09:50Z", Severity::Info, "is still working")]
// Silent for a while; or it only says again and again that it waits.
#[case("restored 512 MiB of 2 GiB", "2026-12-01T10:07:00Z", Severity::Warning, "does not end")]
#[case("waiting for the backup (× 300)", "2026-12-01T10:09:50Z", Severity::Warning, "does not end")]
fn one_that_gets_on_is_slow_and_not_stuck(
    #[case] line: &str,
    #[case] at: &str,
    #[case] severity: Severity,
    #[case] words: &str,
) {
    let mut world = World { stuck_after: Some(SignedDuration::from_mins(5)), ..World::default() };
    world.logs.push(LogFacts {
        container: "step".to_owned(),
        number: 0,
        decisive_line: None,
        last_line: Some(line.to_owned()),
        repeats: crate::diagnose::log::ends_in_repetition(line),
        last_at: Some(at.parse().unwrap()),
    });
    let verdict = world.verdict(&pod("Always", "pg_restore -d shop /backup", RUNNING));
    assert_eq!((verdict.cause, verdict.severity), (cause::HANGING, severity));
    assert!(verdict.summary.contains(words), "{}", verdict.summary);
}
