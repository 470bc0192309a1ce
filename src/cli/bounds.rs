//! The bounds on logs as they can be typed.

use bytesize::ByteSize;
use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::controller::{CaptureLimits, ReadLimits, StoreLimits, StreamLimits};
use crate::diagnose::log::LogLimits;
use crate::plan::KeepLimits;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// What is read of logs, and what is kept of them.
#[derive(Args, Debug)]
#[command(next_help_heading = "Bounds on logs")]
pub(super) struct LogBounds {
    /// What is kept of one log, the begin and the end, for example 16KiB
    #[arg(long, env = "INITWATCH_LOG_SIZE", default_value = "16KiB", value_name = "SIZE", value_parser = size::<{2 * KIB}, {256 * KIB}>)]
    log_size: u64,
    /// Pods of a diagnosis whose logs are kept (1 to 20)
    #[arg(long, env = "INITWATCH_KEEP_PODS", default_value_t = 5, value_name = "COUNT", value_parser = count(1, 20))]
    keep_pods: usize,
    /// Attempts of a Pod whose logs are kept: the first, the most telling and the last ones (3 to 6)
    #[arg(long, env = "INITWATCH_KEEP_ATTEMPTS", default_value_t = 5, value_name = "COUNT", value_parser = count(3, 6))]
    keep_attempts: usize,
    /// What all kept logs of a namespace may take up; the diagnosis that ended first makes room
    #[arg(long, env = "INITWATCH_NAMESPACE_LOGS", default_value = "8MiB", value_name = "SIZE", value_parser = size::<{64 * KIB}, GIB>)]
    namespace_logs: u64,
    /// What all kept logs may take up
    #[arg(long, env = "INITWATCH_CLUSTER_LOGS", default_value = "64MiB", value_name = "SIZE", value_parser = size::<{64 * KIB}, {4 * GIB}>)]
    cluster_logs: u64,
    /// Bytes of logs that are written in a second, in the long run
    #[arg(long, env = "INITWATCH_LOG_WRITE_RATE", default_value = "1MiB", value_name = "SIZE", value_parser = size::<{16 * KIB}, GIB>)]
    log_write_rate: u64,
    /// Bytes of logs that are written at once; a quarter of it is there for first attempts alone
    #[arg(long, env = "INITWATCH_LOG_WRITE_BURST", default_value = "32MiB", value_name = "SIZE", value_parser = size::<{512 * KIB}, GIB>)]
    log_write_burst: u64,
    /// Logs that are read at once
    #[arg(long, env = "INITWATCH_LOG_READS", default_value_t = 32, value_name = "COUNT", value_parser = count(1, 1_000))]
    log_reads: usize,
    /// Logs that are read at once from one node
    #[arg(long, env = "INITWATCH_LOG_READS_PER_NODE", default_value_t = 4, value_name = "COUNT", value_parser = count(1, 100))]
    log_reads_per_node: usize,
    /// Containers whose log is followed at once; 0 follows none
    #[arg(long, env = "INITWATCH_LOG_STREAMS", default_value_t = 64, value_name = "COUNT", value_parser = count(0, 2_000))]
    log_streams: usize,
    /// Containers of one node whose log is followed at once
    #[arg(long, env = "INITWATCH_LOG_STREAMS_PER_NODE", default_value_t = 8, value_name = "COUNT", value_parser = count(0, 250))]
    log_streams_per_node: usize,
    /// Containers of one workload whose log is followed at once
    #[arg(long, env = "INITWATCH_LOG_STREAMS_PER_WORKLOAD", default_value_t = 3, value_name = "COUNT", value_parser = count(0, 250))]
    log_streams_per_workload: usize,
}

impl LogBounds {
    pub(super) fn capture(&self) -> CaptureLimits {
        CaptureLimits {
            reads: ReadLimits {
                total: self.log_reads,
                per_node: self.log_reads_per_node,
                ..CaptureLimits::default().reads
            },
            streams: StreamLimits {
                total: self.log_streams,
                per_node: self.log_streams_per_node,
                per_workload: self.log_streams_per_workload,
            },
            log: LogLimits::of_size(usize::try_from(self.log_size).unwrap_or(usize::MAX)),
            ..CaptureLimits::default()
        }
    }

    pub(super) fn keep(&self) -> KeepLimits {
        KeepLimits { pods: self.keep_pods, attempts: self.keep_attempts }
    }

    pub(super) fn store(&self) -> StoreLimits {
        StoreLimits {
            per_namespace: self.namespace_logs,
            total: self.cluster_logs,
            rate: self.log_write_rate,
            burst: self.log_write_burst,
        }
    }
}

fn count(least: u64, most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(least..=most)
}

/// A size as people write it (`16KiB`, `8MB`, `4096`), within bounds.
fn size<const LEAST: u64, const MOST: u64>(text: &str) -> Result<u64, String> {
    let size: ByteSize = text.parse().map_err(|_| "not a size like 16KiB, 8MiB or 4096".to_owned())?;
    let bytes = size.as_u64();
    if (LEAST..=MOST).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("must be between {} and {}", ByteSize(LEAST), ByteSize(MOST)))
}
