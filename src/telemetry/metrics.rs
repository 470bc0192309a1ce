//! Figures for Prometheus. Each is described in docs/metrics.md; a test compares the two.
//!
//! No label ever holds the name of a Pod, a node or a text from a cluster: what a label can be is an enum here.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// What became of the log of an attempt.
#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
pub enum AttemptOutcome {
    /// Written as an InitLog.
    Kept,
    /// Not kept within the bounds, or not to be kept.
    Dropped,
    /// It could not be read.
    Lost,
}

/// A bound that made initwatch leave something out.
#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
pub enum Budget {
    /// Containers that are followed, over all nodes.
    StreamsTotal,
    /// Containers of one node that are followed.
    StreamsNode,
    /// Containers of one workload that are followed.
    StreamsWorkload,
    /// Reads that wait for their turn.
    ReadsQueue,
    /// Attempts that are held until they are written.
    Held,
    /// Bytes written in a second: the log is written later.
    WriteRate,
    /// Logs of a namespace.
    NamespaceLogs,
    /// Logs of the cluster.
    ClusterLogs,
}

impl Budget {
    const ALL: [Self; 8] = [
        Self::StreamsTotal,
        Self::StreamsNode,
        Self::StreamsWorkload,
        Self::ReadsQueue,
        Self::Held,
        Self::WriteRate,
        Self::NamespaceLogs,
        Self::ClusterLogs,
    ];
}

/// What became of a log on its way to the archive.
#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
pub enum ArchiveOutcome {
    /// It is in the store.
    Stored,
    /// There was no room for it.
    Dropped,
    /// The store took it not.
    Failed,
}

#[derive(Clone, Copy, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ArchiveLabel {
    outcome: ArchiveOutcome,
}

#[derive(Clone, Copy, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OutcomeLabel {
    outcome: AttemptOutcome,
}

#[derive(Clone, Copy, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct BudgetLabel {
    budget: Budget,
}

/// The figures of a process. A clone counts the same.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    attempts: Family<OutcomeLabel, Counter>,
    skipped: Family<BudgetLabel, Counter>,
    archived: Family<ArchiveLabel, Counter>,
    /// Bytes of logs that were read.
    pub log_bytes: Counter,
    /// Containers that are followed now.
    pub log_streams: Gauge<i64, AtomicI64>,
    /// Pods in init that are held.
    pub pods: Gauge<i64, AtomicI64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("initwatch");
        let metrics = Self {
            registry: Arc::default(),
            attempts: Family::default(),
            skipped: Family::default(),
            archived: Family::default(),
            log_bytes: Counter::default(),
            log_streams: Gauge::default(),
            pods: Gauge::default(),
        };
        registry.register(
            "log_attempts",
            "Ended attempts of init containers by what became of their logs",
            metrics.attempts.clone(),
        );
        registry.register(
            "log_skipped",
            "What was left out or put off because a bound was reached, by bound",
            metrics.skipped.clone(),
        );
        registry.register(
            "archive_logs",
            "Full logs handed to the archive by what became of them",
            metrics.archived.clone(),
        );
        registry.register("log_bytes", "Bytes of logs read from kubelets", metrics.log_bytes.clone());
        registry.register("log_streams", "Containers whose log is followed now", metrics.log_streams.clone());
        registry.register("pods", "Pods in init that are held in memory", metrics.pods.clone());
        // From 0 on: a rate needs a first value, and who reads them sees what there is.
        for outcome in [AttemptOutcome::Kept, AttemptOutcome::Dropped, AttemptOutcome::Lost] {
            drop(metrics.attempts.get_or_create(&OutcomeLabel { outcome }));
        }
        for budget in Budget::ALL {
            drop(metrics.skipped.get_or_create(&BudgetLabel { budget }));
        }
        for outcome in [ArchiveOutcome::Stored, ArchiveOutcome::Dropped, ArchiveOutcome::Failed] {
            drop(metrics.archived.get_or_create(&ArchiveLabel { outcome }));
        }
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of this process", version);
        Self { registry: Arc::new(registry), ..metrics }
    }
}

impl Metrics {
    /// Counts what became of the log of an attempt.
    pub fn attempt(&self, outcome: AttemptOutcome) {
        self.attempts.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Counts what became of a log on its way to the archive.
    pub fn archived(&self, outcome: ArchiveOutcome) {
        self.archived.get_or_create(&ArchiveLabel { outcome }).inc();
    }

    /// Counts something that was left out, or put off, because of a bound.
    pub fn skipped(&self, budget: Budget) {
        self.skipped.get_or_create(&BudgetLabel { budget }).inc();
    }

    /// All figures in the OpenMetrics text format.
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_is_counted_is_shown() {
        let metrics = Metrics::default();
        metrics.attempt(AttemptOutcome::Kept);
        metrics.clone().skipped(Budget::StreamsNode);
        metrics.log_bytes.inc_by(7);
        let text = metrics.render();
        for line in [
            r#"initwatch_log_attempts_total{outcome="Kept"} 1"#,
            r#"initwatch_log_skipped_total{budget="StreamsNode"} 1"#,
            "initwatch_log_bytes_total 7",
            "initwatch_log_streams 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn each_figure_is_described_and_no_other() {
        let text = Metrics::default().render();
        let registered: BTreeSet<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .filter_map(|line| line.split_once(' '))
            .map(|(name, kind)| match kind {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_owned(),
            })
            .collect();
        let described: BTreeSet<_> = include_str!("../../docs/metrics.md")
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|line| line.split_once('`'))
            .map(|(name, _)| name.split('{').next().unwrap_or(name).to_owned())
            .collect();
        assert_eq!(registered, described);
    }
}
