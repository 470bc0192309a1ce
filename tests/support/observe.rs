//! Waiting for what the controller writes.

use std::time::{Duration, Instant};

use initwatch::api::v1alpha1::{InitDiagnosis, InitDiagnosisStatus, InitLog};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(180);

/// Asks until an answer comes; a test waits for conditions, never for time.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "waited {} s for {what}", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Waits for the one diagnosis of the namespace whose name begins so and whose status fits.
pub async fn diagnosis(
    client: &Client,
    namespace: &str,
    prefix: &str,
    fits: impl Fn(&InitDiagnosisStatus) -> bool,
) -> InitDiagnosis {
    let diagnoses = Api::<InitDiagnosis>::namespaced(client.clone(), namespace);
    let mut last = Vec::new();
    let end = Instant::now() + PATIENCE;
    loop {
        let found = diagnoses.list(&ListParams::default()).await.unwrap().items;
        let mut named = found.into_iter().filter(|diagnosis| diagnosis.name_any().starts_with(prefix));
        if let Some(diagnosis) = named.next() {
            assert!(named.next().is_none(), "one workload revision is one object");
            if diagnosis.status.as_ref().is_some_and(&fits) {
                return diagnosis;
            }
            last = vec![diagnosis];
        }
        let shown = || serde_json::to_string_pretty(&last).unwrap();
        assert!(Instant::now() < end, "waited for the diagnosis {prefix}* to fit; last seen: {}", shown());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The Events that initwatch has sent in a namespace, oldest first.
pub async fn events(client: &Client, namespace: &str) -> Vec<Event> {
    let events = Api::<Event>::namespaced(client.clone(), namespace);
    let ours = ListParams::default().fields("reportingController=initwatch");
    let mut events = events.list(&ours).await.unwrap().items;
    events.sort_by_key(|event| event.event_time.clone());
    events
}

/// Kind and reason of each Event.
pub fn reasons(events: &[Event]) -> Vec<String> {
    let shown = events.iter().map(|event| {
        let kind = event.regarding.as_ref().and_then(|regarding| regarding.kind.clone());
        format!("{} {}", kind.unwrap_or_default(), event.reason.clone().unwrap_or_default())
    });
    shown.collect()
}

/// The kept logs of a namespace by name.
pub async fn logs(client: &Client, namespace: &str) -> Vec<InitLog> {
    let mut logs = Api::<InitLog>::namespaced(client.clone(), namespace)
        .list(&ListParams::default())
        .await
        .unwrap()
        .items;
    logs.sort_by_key(ResourceExt::name_any);
    logs
}

/// Waits until a namespace has as many Pods with a label.
pub async fn pods(client: &Client, namespace: &str, labels: &str, count: usize) -> Vec<Pod> {
    let api = Api::<Pod>::namespaced(client.clone(), namespace);
    until(&format!("{count} Pods with {labels}"), async || {
        let pods = api.list(&ListParams::default().labels(labels)).await.unwrap().items;
        (pods.len() == count).then_some(pods)
    })
    .await
}
