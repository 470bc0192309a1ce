//! What the kept logs take up in etcd, and how fast more may come: nothing that is written may endanger it.
//!
//! A state machine without I/O. Its figures are those of this process' own writes, set right by a list now and then.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use crate::pod::identity::DiagnosisKey;

/// What an object takes besides its text: metadata, identity, managed fields.
const OVERHEAD: u64 = 2 * 1024;

/// Bounds on what is kept, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StoreLimits {
    /// All logs of a namespace.
    pub per_namespace: u64,
    /// All logs of the cluster, or of the namespaces that are watched.
    pub total: u64,
    /// Written per second, in the long run.
    pub rate: u64,
    /// Written at once. A quarter of it is there for first attempts alone.
    pub burst: u64,
}

impl Default for StoreLimits {
    /// 8 MiB for a namespace, 64 MiB in all, 1 MiB/s with bursts of 32 MiB (DESIGN D6).
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self { per_namespace: 8 * MIB, total: 64 * MIB, rate: MIB, burst: 32 * MIB }
    }
}

/// Whether a log may be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Room {
    /// Now; it counts from here on.
    Yes,
    /// Not before that time.
    Later(Timestamp),
    /// Not unless another log of the namespace goes.
    NamespaceFull,
    /// Not unless another log goes.
    ClusterFull,
}

/// The kept logs.
#[derive(Debug)]
pub(super) struct Ledger {
    limits: StoreLimits,
    /// By namespace and name.
    logs: HashMap<(String, String), Kept>,
    by_namespace: HashMap<String, u64>,
    total: u64,
    /// What may be written now, in bytes.
    tokens: u64,
    refilled_at: Option<Timestamp>,
}

/// A kept log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    /// The diagnosis that owns it.
    pub(super) diagnosis: String,
    /// Its size.
    pub(super) bytes: u64,
}

impl Ledger {
    pub(super) fn new(limits: StoreLimits) -> Self {
        Self {
            limits,
            logs: HashMap::new(),
            by_namespace: HashMap::new(),
            total: 0,
            tokens: limits.burst,
            refilled_at: None,
        }
    }

    /// Asks for room for a log. One that is there already has it.
    pub(super) fn admit(
        &mut self,
        key: &DiagnosisKey,
        name: &str,
        text_bytes: u64,
        is_first_attempt: bool,
        now: Timestamp,
    ) -> Room {
        let id = (key.namespace.clone(), name.to_owned());
        if self.logs.contains_key(&id) {
            return Room::Yes;
        }
        let bytes = text_bytes + OVERHEAD;
        let in_namespace = self.by_namespace.get(&key.namespace).copied().unwrap_or(0);
        if in_namespace + bytes > self.limits.per_namespace {
            return Room::NamespaceFull;
        }
        if self.total + bytes > self.limits.total {
            return Room::ClusterFull;
        }
        self.refill(now);
        let reserved = if is_first_attempt { 0 } else { self.limits.burst / 4 };
        if self.tokens < bytes + reserved {
            let missing = (bytes + reserved - self.tokens).div_ceil(self.limits.rate.max(1));
            let wait = SignedDuration::from_secs(i64::try_from(missing.clamp(1, 3600)).unwrap_or(3600));
            return Room::Later(now.checked_add(wait).unwrap_or(now));
        }
        self.tokens -= bytes;
        self.add(id, Kept { diagnosis: key.name.clone(), bytes });
        Room::Yes
    }

    fn refill(&mut self, now: Timestamp) {
        let since = self.refilled_at.unwrap_or(now);
        let millis = u64::try_from(now.duration_since(since).as_millis()).unwrap_or(0);
        let gained = millis.saturating_mul(self.limits.rate) / 1000;
        if gained > 0 || self.refilled_at.is_none() {
            self.tokens = self.tokens.saturating_add(gained).min(self.limits.burst);
            self.refilled_at = Some(now);
        }
    }

    fn add(&mut self, id: (String, String), kept: Kept) {
        *self.by_namespace.entry(id.0.clone()).or_default() += kept.bytes;
        self.total += kept.bytes;
        self.logs.insert(id, kept);
    }

    /// A log is gone, or could not be written.
    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        let id = (namespace.to_owned(), name.to_owned());
        let Some(kept) = self.logs.remove(&id) else { return };
        self.total -= kept.bytes;
        if let Some(bytes) = self.by_namespace.get_mut(namespace) {
            *bytes -= kept.bytes;
            if *bytes == 0 {
                self.by_namespace.remove(namespace);
            }
        }
    }

    /// A diagnosis is gone, and its logs with it.
    pub(super) fn remove_diagnosis(&mut self, key: &DiagnosisKey) {
        let of_it = |(namespace, _): &&(String, String), kept: &Kept| {
            *namespace == key.namespace && kept.diagnosis == key.name
        };
        let names: Vec<_> =
            self.logs.iter().filter(|(id, kept)| of_it(id, kept)).map(|(id, _)| id.1.clone()).collect();
        for name in names {
            self.remove(&key.namespace, &name);
        }
    }

    /// Whether a diagnosis has logs.
    pub(super) fn has_logs(&self, key: &DiagnosisKey) -> bool {
        self.logs
            .iter()
            .any(|((namespace, _), kept)| *namespace == key.namespace && kept.diagnosis == key.name)
    }

    /// Sets the figures right by what a list has shown.
    pub(super) fn set(&mut self, logs: impl IntoIterator<Item = ((String, String), Kept)>) {
        self.logs.clear();
        self.by_namespace.clear();
        self.total = 0;
        for (id, kept) in logs {
            self.add(id, kept);
        }
    }
}

/// What a log of that text is counted with.
pub(super) fn counted(text_bytes: u64) -> u64 {
    text_bytes + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;
    /// Room for four logs of 8 KiB in a namespace, six in all; four at once, of which one is for first attempts.
    const LIMITS: StoreLimits =
        StoreLimits { per_namespace: 40 * KIB, total: 60 * KIB, rate: 10 * KIB, burst: 40 * KIB };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_764_579_600 + second).unwrap()
    }

    fn key(namespace: &str) -> DiagnosisKey {
        DiagnosisKey { namespace: namespace.to_owned(), name: "deployment.api".to_owned() }
    }

    fn admit(ledger: &mut Ledger, namespace: &str, name: &str, first: bool, second: i64) -> Room {
        ledger.admit(&key(namespace), name, 8 * KIB, first, at(second))
    }

    #[test]
    fn the_last_quarter_of_a_burst_is_for_first_attempts() {
        let mut ledger = Ledger::new(LIMITS);
        for name in ["a", "b", "c"] {
            assert_eq!(admit(&mut ledger, "shop", name, false, 0), Room::Yes);
        }
        assert_eq!(admit(&mut ledger, "shop", "d", false, 0), Room::Later(at(1)));
        assert_eq!(admit(&mut ledger, "shop", "e", true, 0), Room::Yes);
        assert_eq!(admit(&mut ledger, "other", "f", false, 2), Room::Yes, "the bucket fills again");
        assert_eq!(admit(&mut ledger, "shop", "a", false, 2), Room::Yes, "it is there");
    }

    #[test]
    fn a_namespace_and_the_cluster_have_caps_and_what_goes_makes_room() {
        let mut ledger = Ledger::new(StoreLimits { burst: 1 << 30, ..LIMITS });
        for name in ["a", "b", "c", "d"] {
            assert_eq!(admit(&mut ledger, "shop", name, false, 0), Room::Yes);
        }
        assert_eq!(admit(&mut ledger, "shop", "e", true, 0), Room::NamespaceFull);
        assert_eq!(admit(&mut ledger, "other", "a", false, 0), Room::Yes);
        assert_eq!(admit(&mut ledger, "other", "b", false, 0), Room::Yes);
        assert_eq!(admit(&mut ledger, "other", "c", false, 0), Room::ClusterFull);
        ledger.remove("shop", "a");
        assert_eq!(admit(&mut ledger, "other", "c", false, 0), Room::Yes);
        ledger.remove_diagnosis(&key("other"));
        assert!(!ledger.has_logs(&key("other")) && ledger.has_logs(&key("shop")));
        assert_eq!(ledger.total, 3 * counted(8 * KIB));
        ledger.set([]);
        assert_eq!((ledger.total, ledger.by_namespace.len()), (0, 0));
    }
}
