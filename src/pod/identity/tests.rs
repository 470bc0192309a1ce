use super::*;

fn pod(name: &str, labels: &str, owner: &str) -> PodView {
    let owners = if owner.is_empty() { String::new() } else { format!("ownerReferences: [{owner}],") };
    serde_saphyr::from_str(&format!(
        "metadata: {{name: {name}, namespace: shop, uid: u1, {owners} labels: {{{labels}}}}}"
    ))
    .unwrap()
}

fn owner(api_version: &str, kind: &str, name: &str) -> String {
    format!("{{apiVersion: {api_version}, kind: {kind}, name: {name}, uid: o1, controller: true}}")
}

/// Each row of the table in DESIGN D1.
#[rstest::rstest]
#[case(
    "apps/v1",
    "ReplicaSet",
    "api-7d9c6b8f5d",
    "pod-template-hash: 7d9c6b8f5d",
    "replicaset.api-7d9c6b8f5d"
)]
#[case(
    "apps/v1",
    "StatefulSet",
    "mysql",
    "controller-revision-hash: mysql-5f6d7c",
    "statefulset.mysql.5f6d7c"
)]
#[case("apps/v1", "DaemonSet", "agent", "controller-revision-hash: 6b9f", "daemonset.agent.6b9f")]
#[case("batch/v1", "Job", "migrate", "", "job.migrate")]
#[case("argoproj.io/v1alpha1", "Workflow", "etl", "", "workflow.argoproj.io.etl")]
#[case("v1", "ReplicationController", "old", "", "replicationcontroller.old")]
#[case("v1", "Node", "node1", "", "pod.web-0")]
fn a_diagnosis_is_named_after_the_revision(
    #[case] api_version: &str,
    #[case] kind: &str,
    #[case] name: &str,
    #[case] labels: &str,
    #[case] expected: &str,
) {
    let identity = Identity::of(&pod("web-0", labels, &owner(api_version, kind, name)), None);
    assert_eq!(identity.key, DiagnosisKey { namespace: "shop".to_owned(), name: expected.to_owned() });
    assert_eq!(identity.controller.is_none(), kind == "Node");
}

#[test]
fn a_bare_pod_is_its_own_workload() {
    let identity = Identity::of(&pod("debug", "", ""), None);
    assert_eq!(identity.key.name, "pod.debug");
    assert_eq!((identity.workload.kind.as_str(), identity.workload.uid.as_deref()), ("Pod", Some("u1")));
}

#[test]
fn the_runs_of_a_cron_job_are_attempts_of_one_diagnosis() {
    let cron_job = WorkloadReference {
        kind: "CronJob".to_owned(),
        group: "batch".to_owned(),
        name: "nightly".to_owned(),
        uid: Some("c1".to_owned()),
    };
    let run = |job: &str| Identity::of(&pod("p", "", &owner("batch/v1", "Job", job)), Some(&cron_job));
    assert_eq!(run("nightly-1").key, run("nightly-2").key);
    assert_eq!(run("nightly-1").key.name, "cronjob.nightly");
    assert_eq!(run("nightly-1").workload, cron_job);
}

#[test]
fn names_that_are_too_long_are_cut_and_stay_apart() {
    let long = |end: char| format!("{}{end}", "a".repeat(252));
    let names = [long('x'), long('y')].map(|name| object_name(&["pod", &name]));
    assert!(names.iter().all(|name| name.len() == 253), "{names:?}");
    assert_ne!(names[0], names[1]);
    let label = label_value(&format!("{}.{}", "b".repeat(51), "c".repeat(40)));
    assert!(label.len() <= 63 && !label.contains(".-"), "{label}");
}
