//! How long init steps usually take: a workload that always needs twenty minutes is slow, not stuck.
//!
//! Only durations that could matter are remembered (a good part of the threshold), so that this holds the slow
//! workloads of a cluster and not all of them.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::progress::end_of;
use super::view::PodView;

/// Durations kept of one init container of one workload.
const KEPT: usize = 8;
/// Init containers of workloads that are kept.
const MAX_ENTRIES: usize = 10_000;
/// How many times its usual time a step may take.
const PATIENCE: i32 = 3;
/// Longest threshold that a history can bring about.
const MAX_THRESHOLD: SignedDuration = SignedDuration::from_hours(24);
/// Size as JSON: what one ConfigMap of ours holds (DESIGN D6).
const MAX_BYTES: usize = 512 * 1024;

/// Durations in whole seconds, oldest first, by workload and init container.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub struct History {
    entries: BTreeMap<String, VecDeque<u32>>,
}

/// A step that is past, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedStep {
    /// Name of the init container.
    pub container: String,
    /// From the end of the step before to its own end, retries included.
    pub took: SignedDuration,
}

impl History {
    /// Remembers a duration.
    pub fn record(&mut self, workload: &str, step: &CompletedStep) {
        let Ok(seconds) = u32::try_from(step.took.as_secs()) else { return };
        let key = key(workload, &step.container);
        if self.entries.len() >= MAX_ENTRIES && !self.entries.contains_key(&key) {
            // Which one goes is chance; it comes back with its next slow run.
            self.entries.pop_first();
        }
        let durations = self.entries.entry(key).or_default();
        durations.push_back(seconds);
        if durations.len() > KEPT {
            durations.pop_front();
        }
    }

    /// The threshold for a step: the given one, or three times its median if that is longer.
    pub fn threshold(&self, workload: &str, container: &str, least: SignedDuration) -> SignedDuration {
        let Some(durations) = self.entries.get(&key(workload, container)) else { return least };
        let mut sorted: Vec<u32> = durations.iter().copied().collect();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        let patient = SignedDuration::from_secs(i64::from(median)).saturating_mul(PATIENCE);
        least.max(patient.min(MAX_THRESHOLD))
    }

    /// As JSON, at most 512 KiB: what does not fit is left out.
    pub fn to_json(&self) -> String {
        let mut copy = self.clone();
        loop {
            let json = serde_json::to_string(&copy).unwrap_or_else(|_| "{}".to_owned());
            if json.len() <= MAX_BYTES || copy.entries.is_empty() {
                return json;
            }
            for _ in 0..copy.entries.len().div_ceil(10) {
                copy.entries.pop_first();
            }
        }
    }

    /// From JSON.
    ///
    /// # Errors
    /// When it is not what [`History::to_json`] writes.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        if json.trim().is_empty() {
            // As it is installed.
            return Ok(Self::default());
        }
        serde_json::from_str(json)
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn key(workload: &str, container: &str) -> String {
    format!("{workload}/{container}")
}

/// The workload of a Pod across its revisions: `namespace/kind/name`, a ReplicaSet without its template hash. None for
/// bare Pods: they come once.
pub fn workload_of(pod: &PodView) -> Option<String> {
    let owner = pod.controller()?;
    let hash = pod.label("pod-template-hash");
    let bare = hash.and_then(|hash| owner.name.strip_suffix(hash)?.strip_suffix('-'));
    // The runs of a CronJob end in their scheduled time.
    let run = owner.name.rsplit_once('-').filter(|(_, end)| {
        owner.kind == "Job" && end.len() >= 8 && end.chars().all(|character| character.is_ascii_digit())
    });
    let name = bare.or(run.map(|(name, _)| name)).unwrap_or(&owner.name);
    Some(format!("{}/{}/{name}", pod.namespace(), owner.kind.to_lowercase()))
}

/// The regular init containers of a Pod that are past, with their durations; without those that failed in between.
pub fn completed_steps(pod: &PodView) -> Vec<CompletedStep> {
    let mut begin = pod
        .condition("PodReadyToStartContainers")
        .filter(|condition| condition.status == "True")
        .and_then(|condition| condition.last_transition_time.as_ref())
        .or(pod.status.start_time.as_ref())
        .map(|time| time.0);
    let mut steps = Vec::new();
    for container in &pod.spec.init_containers {
        let status = pod.status.init_container_statuses.iter().find(|status| status.name == container.name);
        let Some(status) = status else { break };
        let Some(end) = end_of(status) else { break };
        let succeeded = status.state.terminated.as_ref().is_some_and(|ended| ended.exit_code == 0);
        if !container.is_sidecar() {
            if !succeeded {
                break;
            }
            // One that failed before it succeeded says how long the trouble lasted, not how long the work takes.
            let begin = begin.filter(|_| status.restart_count == 0);
            steps.extend(
                begin
                    .map(|begin| CompletedStep { container: container.name.clone(), took: span(begin, end) }),
            );
        }
        begin = Some(end);
    }
    steps
}

fn span(begin: Timestamp, end: Timestamp) -> SignedDuration {
    end.duration_since(begin).max(SignedDuration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(seconds: i64) -> CompletedStep {
        CompletedStep { container: "restore".to_owned(), took: SignedDuration::from_secs(seconds) }
    }

    #[test]
    fn the_threshold_follows_the_median_of_the_last_eight() {
        let mut history = History::default();
        let least = SignedDuration::from_secs(120);
        assert_eq!(history.threshold("shop/deployment/api", "restore", least), least);
        for _ in 0..8 {
            history.record("shop/deployment/api", &step(1200));
        }
        // One that hung for a day and was mended does not count.
        history.record("shop/deployment/api", &step(86_400));
        assert_eq!(
            history.threshold("shop/deployment/api", "restore", least),
            SignedDuration::from_secs(3600)
        );
        assert_eq!(history.threshold("shop/deployment/api", "other", least), least);
        for _ in 0..8 {
            history.record("shop/deployment/api", &step(10));
        }
        assert_eq!(history.threshold("shop/deployment/api", "restore", least), least, "it has become fast");
    }

    #[test]
    fn it_survives_as_json_and_stays_within_its_size() {
        let mut history = History::default();
        for number in 0..10_100 {
            for _ in 0..8 {
                history
                    .record(&format!("namespace-{number}/replicaset/{}", "x".repeat(200)), &step(4_000_000));
            }
        }
        assert!(history.entries.len() <= MAX_ENTRIES);
        let json = history.to_json();
        assert!(json.len() <= MAX_BYTES, "{}", json.len());
        let back = History::from_json(&json).unwrap();
        assert!(!back.is_empty());
        assert!(History::from_json("[]").is_err());
        assert!(History::from_json("").unwrap().is_empty(), "as it is installed");
    }

    #[rstest::rstest]
    #[case("ReplicaSet", "api-7d9c6b8f5d", "pod-template-hash: 7d9c6b8f5d", "shop/replicaset/api")]
    #[case("Job", "nightly-29412345", "", "shop/job/nightly")]
    #[case("Job", "migrate-2", "", "shop/job/migrate-2")]
    #[case("StatefulSet", "mysql", "", "shop/statefulset/mysql")]
    fn revisions_and_runs_are_one_workload(
        #[case] kind: &str,
        #[case] name: &str,
        #[case] labels: &str,
        #[case] expected: &str,
    ) {
        let pod: PodView = serde_saphyr::from_str(&format!(
            "metadata: {{namespace: shop, labels: {{{labels}}}, ownerReferences: [{{apiVersion: v1, kind: {kind}, name: {name}, uid: u, controller: true}}]}}"
        ))
        .unwrap();
        assert_eq!(workload_of(&pod).as_deref(), Some(expected));
    }

    #[test]
    fn steps_are_measured_from_end_to_end() {
        let pod: PodView = serde_saphyr::from_str(
            r#"
spec: {initContainers: [{name: one}, {name: side, restartPolicy: Always}, {name: two}, {name: three}]}
status:
  conditions: [{type: PodReadyToStartContainers, status: "True", lastTransitionTime: "2026-12-01T10:00:00Z"}]
  initContainerStatuses:
  - {name: one, state: {terminated: {exitCode: 0, startedAt: "2026-12-01T10:00:50Z", finishedAt: "2026-12-01T10:01:00Z"}}}
  - {name: side, started: true, state: {running: {startedAt: "2026-12-01T10:01:05Z"}}}
  - {name: two, state: {terminated: {exitCode: 0, finishedAt: "2026-12-01T10:21:05Z"}}}
  - {name: three, restartCount: 2, state: {terminated: {exitCode: 0, finishedAt: "2026-12-01T10:31:05Z"}}}
"#,
        )
        .unwrap();
        let seen: Vec<_> =
            completed_steps(&pod).into_iter().map(|step| (step.container, step.took.as_secs())).collect();
        assert_eq!(seen, [("one".to_owned(), 60), ("two".to_owned(), 1200)]);
    }
}
