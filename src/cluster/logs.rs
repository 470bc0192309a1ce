//! Reading the log of one attempt: the right instance, within its time, in bounded memory.
//!
//! `pods/log` has no rate limit on the server (it bypasses API Priority and Fairness): the callers hold
//! budgets. There is no parameter for a container ID either: which instance answers is the kubelet's choice
//! at that moment, so each answer is checked against the attempt's times.

use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt};
use jiff::Timestamp;
use kube::api::LogParams;
use kube::{Api, Client};
use tokio::time::{Instant, timeout_at};

use super::error::summary;
use crate::diagnose::log::{CollectedLog, FullText, LogCollector, LogLimits, LogWindow};
use crate::pod::PodView;
use crate::pod::attempt::LogRole;

/// How long reading one log may take.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of one log is read: three times the size at which the kubelet rotates it. What comes after is not worth the
/// traffic, but for the newest lines, which are asked for by themselves. (`limitBytes` would cut off just those.)
const MAX_READ_BYTES: u64 = 32 * 1024 * 1024;
/// The newest lines of a log that is larger. The runtime cuts lines at 16 KiB, so these are 16 MiB at most.
const NEWEST_LINES: i64 = 1_000;
/// Lines of a running container that are looked at.
const RUNNING_TAIL_LINES: i64 = 400;

/// The log that is wanted.
#[derive(Clone, Debug)]
pub struct LogRequest {
    /// Namespace of the Pod.
    pub namespace: String,
    /// Name of the Pod.
    pub pod: String,
    /// Name of the init container.
    pub container: String,
    /// Which instance, by the status that was seen.
    pub role: LogRole,
    /// Start of the attempt.
    pub started_at: Option<Timestamp>,
    /// End of the attempt; none while it runs.
    pub finished_at: Option<Timestamp>,
    /// How much of it is kept.
    pub limits: LogLimits,
    /// Takes all of it, for an archive.
    pub full: Option<FullText>,
}

/// Why a log could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The Pod, or its container, does not exist any more.
    #[error("the Pod is gone")]
    Gone,
    /// `pods/log` may not be read.
    #[error("pods/log: forbidden")]
    Forbidden,
    /// The kubelet has removed it, or answered with an error text in place of a log.
    #[error("the kubelet no longer has it: {0}")]
    Removed(String),
    /// The kubelet returned the log of another attempt.
    #[error("the kubelet answered with another attempt's log")]
    OtherAttempt,
    /// The request failed.
    #[error("{0}")]
    Failed(String),
}

impl LogError {
    /// Whether asking again in a moment may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// Reads the log of an attempt that has ended. When the answer is another attempt's, the other instance is
/// asked for: roles move on between the status and the request.
///
/// # Errors
/// When no log of this attempt could be had.
pub async fn read_ended(client: &Client, request: &LogRequest) -> Result<CollectedLog, LogError> {
    let first = read(client, request, request.role).await;
    let other_role = match request.role {
        LogRole::Current => LogRole::Previous,
        LogRole::Previous => LogRole::Current,
    };
    match first {
        Ok(log) => Ok(log),
        // Nothing else can be there.
        Err(error @ (LogError::Gone | LogError::Forbidden)) => Err(error),
        Err(error) => read(client, request, other_role).await.map_err(|_| error),
    }
}

/// Reads the last lines of a container that runs.
///
/// # Errors
/// When nothing could be read.
pub async fn read_running(client: &Client, request: &LogRequest) -> Result<CollectedLog, LogError> {
    read(client, request, LogRole::Current).await
}

async fn read(client: &Client, request: &LogRequest, role: LogRole) -> Result<CollectedLog, LogError> {
    let log = read_stream(client, request, role).await?;
    if let Some(text) = &log.not_a_log {
        return Err(LogError::Removed(text.clone()));
    }
    if log.lines_seen > 0 && log.lines_outside_window == log.lines_seen {
        return Err(LogError::OtherAttempt);
    }
    Ok(log)
}

async fn read_stream(client: &Client, request: &LogRequest, role: LogRole) -> Result<CollectedLog, LogError> {
    let deadline = Instant::now() + READ_TIMEOUT;
    let window = LogWindow { started_at: request.started_at, finished_at: request.finished_at };
    let mut collector = LogCollector::new(window, request.limits).into_full(request.full.clone());
    let part = match request.finished_at {
        Some(_) => Part::Whole(role),
        None => Part::Newest(role, RUNNING_TAIL_LINES),
    };
    let mut read = 0;
    let opened = timeout_at(deadline, open(client, request, part)).await;
    let stream = opened.unwrap_or_else(|_| Err(LogError::Failed(late())))?;
    match pump(stream, Some(deadline), |chunk| {
        read += chunk.len();
        collector.push(chunk);
    })
    .await
    {
        Pumped::End => {}
        Pumped::Full => {
            collector.go_on();
            collector.gap();
            // Without them the log ends at the gap, which says so.
            let newest = timeout_at(deadline, open(client, request, Part::Newest(role, NEWEST_LINES))).await;
            if let Ok(Ok(stream)) = newest {
                pump(stream, Some(deadline), |chunk| collector.push(chunk)).await;
            }
        }
        Pumped::Broken(error) if read == 0 => return Err(LogError::Failed(error)),
        // What came before the break is genuine.
        Pumped::Broken(error) => {
            tracing::debug!(error, pod = request.pod, "log broke off");
            collector.mark_partial();
        }
    }
    Ok(collector.finish())
}

/// Which part of a log is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// All that is there.
    Whole(LogRole),
    /// The last lines.
    Newest(LogRole, i64),
    /// All that is there and all that comes, until the container ends.
    Follow,
    /// Of what is there the last lines, but nothing older than that, and all that comes.
    FollowFrom {
        /// Lines.
        newest: Option<i64>,
        /// Time of the first line wanted; to the second, so that some lines come twice.
        since: Option<Timestamp>,
    },
}

/// Asks for a log.
///
/// # Errors
/// What API server or kubelet answered in place of a log.
pub async fn open(client: &Client, request: &LogRequest, part: Part) -> Result<impl AsyncBufRead, LogError> {
    let pods: Api<PodView> = Api::namespaced(client.clone(), &request.namespace);
    let params =
        LogParams { container: Some(request.container.clone()), timestamps: true, ..LogParams::default() };
    let params = match part {
        Part::Whole(role) => LogParams { previous: role == LogRole::Previous, ..params },
        Part::Newest(role, lines) => {
            LogParams { previous: role == LogRole::Previous, tail_lines: Some(lines), ..params }
        }
        Part::Follow => LogParams { follow: true, ..params },
        Part::FollowFrom { newest, since } => {
            LogParams { follow: true, tail_lines: newest, since_time: since, ..params }
        }
    };
    pods.log_stream(&request.pod, &params).await.map_err(|error| refused(&error))
}

/// How reading ended.
#[derive(Debug)]
pub enum Pumped {
    /// At the end of the log.
    End,
    /// At the bound of what is read at once, 32 MiB.
    Full,
    /// Before it: the connection broke, or it took too long.
    Broken(String),
}

/// Reads a stream to its end, or up to 32 MiB.
pub async fn pump(
    stream: impl AsyncBufRead,
    deadline: Option<Instant>,
    mut take: impl FnMut(&[u8]),
) -> Pumped {
    let mut stream = std::pin::pin!(stream);
    let mut read: u64 = 0;
    loop {
        let chunk = match deadline {
            Some(deadline) => timeout_at(deadline, stream.fill_buf()).await,
            None => Ok(stream.fill_buf().await),
        };
        let chunk = match chunk {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Pumped::Broken(error.to_string()),
            Err(_) => return Pumped::Broken(late()),
        };
        if chunk.is_empty() {
            return Pumped::End;
        }
        take(chunk);
        let length = chunk.len();
        read += length as u64;
        stream.as_mut().consume(length);
        if read >= MAX_READ_BYTES {
            return Pumped::Full;
        }
    }
}

fn late() -> String {
    format!("not read within {} s", READ_TIMEOUT.as_secs())
}

/// The answers of API server and kubelet to a log request (semantics §3.3).
fn refused(error: &kube::Error) -> LogError {
    let kube::Error::Api(status) = error else {
        return LogError::Failed(summary(error));
    };
    match status.code {
        404 => LogError::Gone,
        403 => LogError::Forbidden,
        // `previous terminated container … not found`, `… is waiting to start`: not there, and no failure.
        400 => LogError::Removed(summary(error)),
        _ => LogError::Failed(summary(error)),
    }
}
