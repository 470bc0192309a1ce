//! The flight recorder: follows the log of a container that may be gone, log and all, before its end is seen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use crate::cluster::logs::{self, LogError, LogRequest, Part, Pumped};
use crate::diagnose::log::{CollectedLog, FullText, LogCollector, LogWindow};
use crate::pod::attempt::{EndedAttempt, RunningAttempt};

/// How long a stream pauses that has brought 32 MiB: a container that prints 100 MB/s gets 3 MB/s of our attention.
const PAUSE: Duration = Duration::from_secs(10);
/// Lines with which it goes on after the pause.
const NEWEST_LINES: i64 = 1_000;
/// Times that a stream which breaks is asked for again, when it brought nothing in between.
const RETRIES: u32 = 5;
/// A kubelet answers 400 or 404 to who comes a moment too early.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How long reading the newest lines may take.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(10);

/// How a stream came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StreamState {
    /// It has not.
    Follows,
    /// The kubelet ended it: the container has ended, or a server in between was restarted.
    Ended(Timestamp),
    /// It was given up, or had to make room.
    Broken(Timestamp),
}

/// The recording of one attempt.
pub(super) struct Recording {
    pub(super) attempt: RunningAttempt,
    /// All of it, for an archive.
    pub(super) full: Option<FullText>,
    collector: Mutex<LogCollector>,
    state: watch::Sender<StreamState>,
    task: Mutex<Option<AbortHandle>>,
}

impl Recording {
    /// Begins to follow a container that runs.
    pub(super) fn begin(client: Client, request: LogRequest, attempt: RunningAttempt) -> Arc<Self> {
        let window = LogWindow { started_at: attempt.started_at, finished_at: None };
        let recording = Arc::new(Self {
            attempt,
            collector: Mutex::new(LogCollector::new(window, request.limits).into_full(request.full.clone())),
            full: request.full.clone(),
            state: watch::Sender::new(StreamState::Follows),
            task: Mutex::new(None),
        });
        recording.follow(client, request, Part::Follow);
        recording
    }

    /// Goes on with a recording whose stream has ended although its container runs.
    pub(super) fn go_on(self: &Arc<Self>, client: Client, request: LogRequest) {
        let since = self.collector().last_at();
        self.collector().go_on();
        self.state.send_replace(StreamState::Follows);
        self.follow(client, request, Part::FollowFrom { newest: None, since });
    }

    fn follow(self: &Arc<Self>, client: Client, request: LogRequest, part: Part) {
        let recording = self.clone();
        let task = tokio::spawn(async move {
            let ended = recording.record(&client, &request, part).await;
            let now = Timestamp::now();
            recording.state.send_replace(if ended {
                StreamState::Ended(now)
            } else {
                StreamState::Broken(now)
            });
        });
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
    }

    /// Follows until the stream ends for good; false when it was given up before.
    async fn record(&self, client: &Client, request: &LogRequest, mut part: Part) -> bool {
        let mut failures = 0;
        loop {
            let mut brought = false;
            let pumped = match logs::open(client, request, part).await {
                Ok(stream) => {
                    logs::pump(stream, None, |chunk| {
                        brought = true;
                        self.collector().push(chunk);
                    })
                    .await
                }
                // 404 is not the end: a kubelet says so of a Pod that it does not know yet.
                Err(LogError::Forbidden) => return false,
                Err(error) => Pumped::Broken(error.to_string()),
            };
            let since = self.collector().last_at();
            match pumped {
                Pumped::End => return true,
                Pumped::Full => {
                    tokio::time::sleep(PAUSE).await;
                    let mut collector = self.collector();
                    collector.go_on();
                    collector.gap();
                    part = Part::FollowFrom { newest: Some(NEWEST_LINES), since };
                }
                Pumped::Broken(error) => {
                    failures = if brought { 1 } else { failures + 1 };
                    if failures > RETRIES {
                        tracing::debug!(error, pod = request.pod, "a log is followed no longer");
                        return false;
                    }
                    tokio::time::sleep(RETRY_AFTER * failures).await;
                    self.collector().go_on();
                    part = Part::FollowFrom { newest: None, since };
                }
            }
        }
    }

    /// Ends the stream; what was recorded stays.
    pub(super) fn stop(&self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
        self.state.send_if_modified(|state| {
            let follows = *state == StreamState::Follows;
            if follows {
                *state = StreamState::Broken(Timestamp::now());
            }
            follows
        });
    }

    /// Ends a stream that has not come to its end although its container has (it is behind, or pauses), and reads the
    /// newest lines in its place. None where what was recorded may be another attempt's.
    pub(super) async fn catch_up(
        &self,
        client: &Client,
        request: &LogRequest,
        end: &EndedAttempt,
    ) -> Option<CollectedLog> {
        if self.state() != StreamState::Follows {
            return None;
        }
        self.stop();
        let first = self.recorded()?.first_at?;
        // As in `is_whole`.
        if first.as_second() >= end.finished_at?.as_second() {
            return None;
        }
        let mut collector = self.collector().clone();
        collector.ends_at(end.finished_at);
        collector.go_on();
        collector.gap();
        let newest = logs::open(client, request, Part::Newest(request.role, NEWEST_LINES));
        let deadline = Instant::now() + CATCH_UP_WITHIN;
        let Ok(Ok(stream)) = timeout_at(deadline, newest).await else { return None };
        match logs::pump(stream, Some(deadline), |chunk| collector.push(chunk)).await {
            Pumped::End | Pumped::Full => Some(collector.finish()).filter(|log| log.not_a_log.is_none()),
            Pumped::Broken(_) => None,
        }
    }

    /// How its stream stands.
    pub(super) fn state(&self) -> StreamState {
        *self.state.borrow()
    }

    /// Waits until the stream has ended, at most so long.
    pub(super) async fn ended_within(&self, limit: Duration) {
        let mut state = self.state.subscribe();
        // Its sender lives as long as this.
        let _ = tokio::time::timeout(limit, state.wait_for(|state| *state != StreamState::Follows)).await;
    }

    /// What was recorded so far; none when there is nothing, or nothing but an error text.
    pub(super) fn recorded(&self) -> Option<CollectedLog> {
        let log = self.collector().snapshot();
        (log.first_at.is_some() && log.not_a_log.is_none()).then_some(log)
    }

    /// The whole log of an attempt that has ended, where it is certain that this is it.
    pub(super) fn whole(&self, end: &EndedAttempt) -> Option<CollectedLog> {
        let StreamState::Ended(at) = self.state() else { return None };
        self.recorded().filter(|log| is_whole(log, end, at))
    }

    /// What was recorded of an attempt that has ended, as far as it goes: better than nothing.
    pub(super) fn part(&self, end: &EndedAttempt) -> Option<CollectedLog> {
        let mut log = self.recorded()?;
        let whole = matches!(self.state(), StreamState::Ended(at) if is_whole(&log, end, at));
        log.partial |= !whole;
        let seconds = |at: Option<Timestamp>| at.map(Timestamp::as_second);
        let fits = seconds(log.first_at) <= seconds(end.finished_at).map(|end| end + 1);
        (end.finished_at.is_none() || fits).then_some(log)
    }

    fn collector(&self) -> MutexGuard<'_, LogCollector> {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a recording is this attempt's and complete. There is no way to ask for a container by its ID: a stream that
/// was asked for while the status still named this attempt may be that of the next. So its first line must be older than
/// the second in which this attempt ended, and its last one not younger than it; and the stream must have lasted to the
/// end, for a server in between that is restarted ends it without a word.
fn is_whole(log: &CollectedLog, end: &EndedAttempt, stream_ended_at: Timestamp) -> bool {
    let (Some(first), Some(last), Some(finished)) = (log.first_at, log.last_at, end.finished_at) else {
        return false;
    };
    // Clocks of nodes differ from ours by as much.
    let leave = SignedDuration::from_secs(2);
    first.as_second() < finished.as_second()
        && last.as_second() <= finished.as_second() + 1
        && stream_ended_at.checked_add(leave).is_ok_and(|at| at.as_second() >= finished.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::attempt::LogRole;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_764_579_600 + second).unwrap()
    }

    fn end(finished: i64) -> EndedAttempt {
        EndedAttempt {
            container: "migrate".to_owned(),
            number: 0,
            container_id: "containerd://1".to_owned(),
            started_at: Some(at(0)),
            finished_at: Some(at(finished)),
            exit_code: 1,
            failed: true,
            signal: None,
            reason: None,
            message: None,
            role: LogRole::Current,
        }
    }

    fn log(first: i64, last: i64) -> CollectedLog {
        CollectedLog { first_at: Some(at(first)), last_at: Some(at(last)), ..CollectedLog::default() }
    }

    #[test]
    fn a_recording_is_whole_when_it_began_before_the_end_and_lasted_to_it() {
        assert!(is_whole(&log(1, 9), &end(10), at(10)));
        assert!(is_whole(&log(1, 9), &end(10), at(8)), "the clock of the node may be ahead");
        assert!(!is_whole(&log(1, 4), &end(10), at(5)), "a restarted server cut it");
        assert!(!is_whole(&log(10, 10), &end(10), at(11)), "it may be the next attempt's");
        assert!(!is_whole(&log(1, 14), &end(10), at(15)), "it goes on after the end");
        assert!(!is_whole(&CollectedLog::default(), &end(10), at(11)), "nothing came");
    }
}
