//! What really ran, and the workloads that run it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use initwatch::api::v1alpha1::InitLog;
use serde_json::{Value, json};

/// One attempt as its container told it.
#[derive(Clone, Debug)]
pub struct RealAttempt {
    pub kind: String,
    pub pod: String,
    pub nonce: String,
    pub is_first: bool,
}

/// Attempts of one Pod; the next one succeeds, so that there is an end.
pub const MOST: usize = 4;

/// The folder in which containers tell of their attempts.
pub struct Truth {
    folder: tempfile::TempDir,
}

impl Truth {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        Self { folder }
    }

    /// A Pod template whose init container tells of each attempt, prints its nonce in the first and the last line of
    /// its log, and then does `end`.
    pub fn template(&self, kind: &str, end: &str, restart_policy: &str) -> Value {
        let script = format!(
            "c=$(cat /small/c 2>/dev/null || echo 0); [ $c -lt {MOST} ] || exit 0; echo $((c+1)) > /small/c; \
             n=$(cat /proc/sys/kernel/random/uuid); echo \"{kind} $HOSTNAME $n\" >> /truth/attempts; \
             echo nonce=$n; i=0; while [ $i -lt 20 ]; do echo line $i of $n; i=$((i+1)); done; {end}"
        );
        json!({
            "metadata": {"labels": {"kind": kind}},
            "spec": {
                "restartPolicy": restart_policy,
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": false,
                "volumes": [
                    {"name": "truth", "hostPath": {"path": self.folder.path(), "type": "Directory"}},
                    {"name": "small", "emptyDir": {"sizeLimit": "2Mi"}},
                ],
                "initContainers": [{
                    "name": "step", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
                    "command": ["sh", "-c", script],
                    "volumeMounts": [
                        {"name": "truth", "mountPath": "/truth"}, {"name": "small", "mountPath": "/small"},
                    ],
                }],
                "containers": [{
                    "name": "app", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
                    "command": ["sleep", "3600"],
                }],
            },
        })
    }

    /// All attempts so far, in their order.
    pub fn attempts(&self) -> Vec<RealAttempt> {
        let text = std::fs::read_to_string(self.folder.path().join("attempts")).unwrap_or_default();
        let mut pods = BTreeSet::new();
        let parse = |line: &str| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let (kind, pod, nonce) = (words.next()?, words.next()?, words.next()?);
            let is_first = pods.insert(pod.clone());
            Some(RealAttempt { kind, pod, nonce, is_first })
        };
        text.lines().filter_map(parse).collect()
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    pub real: usize,
    pub kept: usize,
    /// Lost, and not the first of its Pod.
    pub lost_later: usize,
}

/// Joins what ran with what is kept. Each log must hold one nonce, its Pod's own, and begin and end with it.
pub fn table(real: &[RealAttempt], logs: &[InitLog]) -> BTreeMap<String, Row> {
    let mut kept = BTreeSet::new();
    for log in logs {
        let text = &log.spec.text;
        let nonces: BTreeSet<_> = text.lines().filter_map(|line| line.strip_prefix("nonce=")).collect();
        assert_eq!(nonces.len(), 1, "one log is one attempt: {text}");
        let nonce = *nonces.first().unwrap();
        let attempt = real.iter().find(|attempt| attempt.nonce == nonce).expect("a nonce that was told");
        assert_eq!(attempt.pod, log.spec.pod, "a log is labelled with the Pod that wrote it");
        if !log.spec.partial {
            assert!(text.contains(&format!("line 19 of {nonce}")), "it is whole: {text}");
        }
        assert!(kept.insert(nonce.to_owned()), "an attempt is kept once");
    }
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for attempt in real {
        let number = numbers.entry(&attempt.pod).or_default();
        if !kept.contains(&attempt.nonce) {
            println!("lost: attempt {number} of {} ({})", attempt.pod, attempt.kind);
        }
        *number += 1;
        let is_kept = usize::from(kept.contains(&attempt.nonce));
        let names = [Some(attempt.kind.clone()), attempt.is_first.then(|| FIRST.to_owned())];
        for name in names.into_iter().flatten() {
            let row = rows.entry(name).or_default();
            row.real += 1;
            row.kept += is_kept;
            row.lost_later += usize::from(is_kept == 0 && !attempt.is_first);
        }
    }
    rows
}

/// The row over all kinds that counts first attempts alone.
pub const FIRST: &str = "first attempts";
