//! The work queue: each diagnosis is worked on once at a time, the one that is due longest first.
//!
//! kube-runtime's own runner keeps its pending keys in a hash set (no order) and demands a stored object for
//! each key; our key is a workload, which is no object of the watch.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

use crate::pod::identity::DiagnosisKey;

/// Time between a trigger and the work, so that a burst of events about one workload is one piece of work.
const COALESCE: Duration = Duration::from_millis(150);
/// Longest pause after repeated failures of one key.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// Where the other parts say that a diagnosis should be looked at. Bounded by the number of workloads: a key
/// that is asked for twice is there once.
#[derive(Clone, Debug, Default)]
pub struct Triggers {
    inner: Arc<TriggersInner>,
}

#[derive(Debug, Default)]
struct TriggersInner {
    pending: Mutex<HashSet<DiagnosisKey>>,
    notify: Notify,
}

impl Triggers {
    /// Asks for a look at a diagnosis, soon.
    pub fn look(&self, key: DiagnosisKey) {
        self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        self.inner.notify.notify_one();
    }

    async fn take(&self) -> HashSet<DiagnosisKey> {
        loop {
            let pending =
                std::mem::take(&mut *self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner));
            if !pending.is_empty() {
                return pending;
            }
            self.inner.notify.notified().await;
        }
    }
}

/// What a piece of work asks for next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Nothing until something happens.
    Await,
    /// Another look at that time.
    At(Timestamp),
    /// It failed: again, after a pause that grows.
    Retry,
}

/// Runs `work` for each key that is asked for or due, at most `concurrency` at once, until `stop`; then lets
/// the work that runs end.
pub async fn run<W, F>(triggers: Triggers, concurrency: usize, stop: impl Future<Output = ()>, work: W)
where
    W: Fn(DiagnosisKey) -> F,
    F: Future<Output = Next> + Send + 'static,
{
    let mut queue = Queue::default();
    let mut running = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            keys = triggers.take() => {
                for key in keys {
                    queue.push(key, Instant::now() + COALESCE);
                }
            }
            Some(key) = queue.due(), if running.len() < concurrency.max(1) => {
                if queue.busy.contains(&key) {
                    queue.again.insert(key);
                } else {
                    queue.busy.insert(key.clone());
                    let work = work(key.clone());
                    running.spawn(async move {
                        // A panic ends this piece of work, not the controller: the inner task is joined here.
                        let next = tokio::spawn(work).await.unwrap_or_else(|error| {
                            tracing::error!(%key, %error, "a reconcile panicked");
                            Next::Retry
                        });
                        (key, next)
                    });
                }
            }
            Some(Ok((key, next))) = running.join_next() => queue.done(key, next),
        }
    }
    while running.join_next().await.is_some() {}
}

#[derive(Default)]
struct Queue {
    delays: DelayQueue<DiagnosisKey>,
    waiting: HashMap<DiagnosisKey, (delay_queue::Key, Instant)>,
    busy: HashSet<DiagnosisKey>,
    again: HashSet<DiagnosisKey>,
    failures: HashMap<DiagnosisKey, u32>,
}

impl Queue {
    /// Puts a key in line; one that waits already keeps the earlier time.
    fn push(&mut self, key: DiagnosisKey, at: Instant) {
        match self.waiting.get_mut(&key) {
            Some((_, due)) if *due <= at => {}
            Some((slot, due)) => {
                self.delays.reset_at(slot, at);
                *due = at;
            }
            None => {
                let slot = self.delays.insert_at(key.clone(), at);
                self.waiting.insert(key, (slot, at));
            }
        }
    }

    /// The next key that is due; pending for ever while none waits.
    async fn due(&mut self) -> Option<DiagnosisKey> {
        let Some(expired) = self.delays.next().await else {
            return std::future::pending().await;
        };
        let key = expired.into_inner();
        self.waiting.remove(&key);
        Some(key)
    }

    fn done(&mut self, key: DiagnosisKey, next: Next) {
        self.busy.remove(&key);
        if next != Next::Retry {
            self.failures.remove(&key);
        }
        let now = Instant::now();
        if self.again.remove(&key) {
            self.push(key.clone(), now + COALESCE);
        }
        match next {
            Next::Await => {}
            Next::At(at) => {
                let wait = Duration::try_from(Timestamp::now().duration_until(at)).unwrap_or_default();
                // Never a hot loop, whatever the clocks say.
                self.push(key, now + wait.max(Duration::from_secs(1)));
            }
            Next::Retry => {
                let failures = self.failures.entry(key.clone()).or_default();
                *failures = failures.saturating_add(1);
                let pause = Duration::from_secs(1).saturating_mul(1 << (*failures - 1).min(9));
                self.push(key, now + pause.min(MAX_BACKOFF));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn key(name: &str) -> DiagnosisKey {
        DiagnosisKey { namespace: "shop".to_owned(), name: name.to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_worked_on_once_at_a_time_and_again_when_asked_meanwhile() {
        let triggers = Triggers::default();
        let (running, most, runs) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = {
            let (running, most, runs) = (running.clone(), most.clone(), runs.clone());
            move |_: DiagnosisKey| {
                let (running, most, runs) = (running.clone(), most.clone(), runs.clone());
                async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    runs.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    Next::Await
                }
            }
        };
        let asking = triggers.clone();
        let stop = async move {
            asking.look(key("a"));
            tokio::time::sleep(Duration::from_secs(2)).await;
            asking.look(key("a"));
            asking.look(key("a"));
            tokio::time::sleep(Duration::from_secs(60)).await;
        };
        run(triggers, 4, stop, work).await;
        assert_eq!(most.load(Ordering::SeqCst), 1, "at once");
        assert_eq!(runs.load(Ordering::SeqCst), 2, "runs");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_retried_with_growing_pauses_and_a_panic_is_a_failure() {
        let triggers = Triggers::default();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = runs.clone();
        let work = move |_: DiagnosisKey| {
            let count = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                assert!(count != 1, "the second run panics");
                Next::Retry
            }
        };
        triggers.look(key("a"));
        run(triggers, 1, tokio::time::sleep(Duration::from_secs(8)), work).await;
        // At 0.15 s, then after pauses of 1, 2 and 4 s.
        assert_eq!(runs.load(Ordering::SeqCst), 4);
    }
}
