//! What the API server makes of the definitions: columns, selection, bounds, immutability.

use initwatch::api::v1alpha1::{
    AffectedPod, AttemptSource, InitDiagnosis, InitDiagnosisSpec, InitDiagnosisStatus, InitLog, InitLogSpec,
    State,
};
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::in_namespace;

/// Names of the columns that `kubectl get` prints, with their priority: above 0 only with `-o wide`.
async fn columns(client: &Client, namespace: &str, plural: &str) -> Vec<(String, i64)> {
    let request = http::Request::get(format!("/apis/initwatch.dev/v1alpha1/namespaces/{namespace}/{plural}"))
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
    let table: Value = client.request(request).await.unwrap();
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    columns
        .map(|column| (column["name"].as_str().unwrap().to_uppercase(), column["priority"].as_i64().unwrap()))
        .collect()
}

#[tokio::test]
async fn the_columns_are_those_of_the_design() {
    in_namespace("columns", async |client, namespace| {
        let all = columns(&client, namespace, "initdiagnoses").await;
        let narrow: Vec<_> =
            all.iter().filter(|(_, priority)| *priority == 0).map(|(name, _)| name.as_str()).collect();
        let wide: Vec<_> =
            all.iter().filter(|(_, priority)| *priority > 0).map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            narrow,
            ["NAME", "WORKLOAD", "STATE", "INIT CONTAINER", "STATUS", "CAUSE", "PODS", "STUCK", "AGE"]
        );
        assert_eq!(wide, ["STEP", "CONFIDENCE", "SUMMARY"]);
        let logs = columns(&client, namespace, "initlogs").await;
        let logs: Vec<_> = logs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(logs, ["NAME", "POD", "CONTAINER", "ATTEMPT", "EXIT", "FINISHED", "BYTES", "AGE"]);
    })
    .await;
}

#[tokio::test]
async fn diagnoses_are_selected_by_cause_and_state_and_bounded() {
    in_namespace("selection", async |client, namespace| {
        let diagnoses = Api::<InitDiagnosis>::namespaced(client.clone(), namespace);
        for (name, cause) in [("job.a", "NonZeroExit"), ("job.b", "OomKilled")] {
            let object = InitDiagnosis::new(name, InitDiagnosisSpec::default());
            diagnoses.create(&PostParams::default(), &object).await.unwrap();
            apply_status(&diagnoses, name, &with_cause(cause)).await.unwrap();
        }
        for fields in ["status.cause=OomKilled", "status.cause=OomKilled,status.state=Active"] {
            let found = diagnoses.list(&ListParams::default().fields(fields)).await.unwrap();
            let names: Vec<_> =
                found.items.iter().filter_map(|found| found.metadata.name.as_deref()).collect();
            assert_eq!(names, ["job.b"], "{fields}");
        }
        // What the schema refuses: a cause that is no code, a list that is too long.
        let refused = apply_status(&diagnoses, "job.a", &with_cause("not a code")).await.unwrap_err();
        assert!(refused.to_string().contains("status.cause"), "{refused}");
        let pod = AffectedPod { cause: "NonZeroExit".to_owned(), ..AffectedPod::default() };
        let long = InitDiagnosisStatus { affected: vec![pod; 21], ..with_cause("NonZeroExit") };
        let refused = apply_status(&diagnoses, "job.a", &long).await.unwrap_err();
        assert!(refused.to_string().contains("status.affected"), "{refused}");
    })
    .await;
}

fn with_cause(cause: &str) -> InitDiagnosisStatus {
    InitDiagnosisStatus {
        state: Some(State::Active),
        cause: Some(cause.to_owned()),
        ..InitDiagnosisStatus::default()
    }
}

async fn apply_status(
    diagnoses: &Api<InitDiagnosis>,
    name: &str,
    status: &InitDiagnosisStatus,
) -> kube::Result<InitDiagnosis> {
    let patch = json!({"apiVersion": "initwatch.dev/v1alpha1", "kind": "InitDiagnosis", "status": status});
    diagnoses.patch_status(name, &PatchParams::apply("test").force(), &Patch::Apply(patch)).await
}

#[tokio::test]
async fn a_log_is_written_once_and_never_changed() {
    in_namespace("log", async |client, namespace| {
        let logs = Api::<InitLog>::namespaced(client.clone(), namespace);
        let spec = InitLogSpec {
            pod: "api".to_owned(),
            pod_uid: "u".to_owned(),
            container: "migrate".to_owned(),
            attempt: 0,
            container_id: "containerd://c".to_owned(),
            node: None,
            image: None,
            started_at: None,
            finished_at: None,
            exit_code: Some(1),
            reason: None,
            source: AttemptSource::Current,
            bytes: 5,
            truncated: false,
            partial: false,
            masked: 0,
            text: "first".to_owned(),
        };
        logs.create(&PostParams::default(), &InitLog::new("api.migrate.0.c", spec)).await.unwrap();
        let patch = Patch::Merge(json!({"spec": {"text": "second"}}));
        let refused = logs.patch("api.migrate.0.c", &PatchParams::default(), &patch).await.unwrap_err();
        assert!(refused.to_string().contains("written once"), "{refused}");
        // Its labels are its users'.
        let patch = Patch::Merge(json!({"metadata": {"labels": {"keep": "yes"}}}));
        logs.patch("api.migrate.0.c", &PatchParams::default(), &patch).await.unwrap();
    })
    .await;
}
