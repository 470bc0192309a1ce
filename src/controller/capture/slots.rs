//! Which containers are followed: few, those that need it most, no workload at the cost of all others.

use std::collections::HashMap;

use crate::pod::identity::DiagnosisKey;
use crate::telemetry::metrics::Budget;

/// Bounds on follow streams. Each is a connection to the API server, and from there to a kubelet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamLimits {
    /// Over all nodes.
    pub total: usize,
    /// To one node.
    pub per_node: usize,
    /// For one workload: its Pods fail alike.
    pub per_workload: usize,
}

/// Why a container is followed, the weakest reason first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Risk {
    /// It has taken a good part of its threshold.
    StuckAWhile,
    /// An earlier attempt failed: at a backoff limit, or with its Pod, this one goes at once.
    FailedBefore,
    /// The first attempt where there is reason to expect the worst: of a Job, of a Pod that nobody replaces, of a workload
    /// that failed before. Its log has the true error more often than any later one, and lives the shortest.
    FirstAttempt,
    /// Its Pod is being deleted.
    BeingDeleted,
}

/// The answer to a request for a slot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Admission {
    /// Go on.
    Admitted,
    /// Go on, and end that one.
    Instead {
        /// Its container ID.
        of: String,
    },
    /// No room, and no better claim than those that have some.
    Refused(Budget),
}

/// The slots, by container ID.
#[derive(Debug)]
pub(super) struct Slots {
    limits: StreamLimits,
    taken: HashMap<String, Taken>,
}

#[derive(Clone, Debug)]
struct Taken {
    key: DiagnosisKey,
    node: String,
    risk: Risk,
}

impl Slots {
    pub(super) fn new(limits: StreamLimits) -> Self {
        Self { limits, taken: HashMap::new() }
    }

    /// Asks for a slot. One that is there already is kept, with the stronger reason.
    pub(super) fn admit(
        &mut self,
        container_id: &str,
        key: &DiagnosisKey,
        node: &str,
        risk: Risk,
    ) -> Admission {
        if let Some(taken) = self.taken.get_mut(container_id) {
            taken.risk = taken.risk.max(risk);
            return Admission::Admitted;
        }
        let of_workload = |taken: &Taken| taken.key == *key;
        let on_node = |taken: &Taken| taken.node == node;
        let full = if self.count(of_workload) >= self.limits.per_workload {
            Some(Budget::StreamsWorkload)
        } else if self.count(on_node) >= self.limits.per_node {
            Some(Budget::StreamsNode)
        } else if self.taken.len() >= self.limits.total {
            Some(Budget::StreamsTotal)
        } else {
            None
        };
        let victim = match full {
            None => None,
            Some(Budget::StreamsWorkload) => self.victim(key, risk, of_workload),
            Some(Budget::StreamsNode) => self.victim(key, risk, on_node),
            Some(_) => self.victim(key, risk, |_| true),
        };
        if let (Some(budget), None) = (full, &victim) {
            return Admission::Refused(budget);
        }
        if let Some(victim) = &victim {
            self.taken.remove(victim);
        }
        let taken = Taken { key: key.clone(), node: node.to_owned(), risk };
        self.taken.insert(container_id.to_owned(), taken);
        victim.map_or(Admission::Admitted, |of| Admission::Instead { of })
    }

    /// Gives a slot back.
    pub(super) fn release(&mut self, container_id: &str) {
        self.taken.remove(container_id);
    }

    /// How many are taken.
    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    fn count(&self, is: impl Fn(&Taken) -> bool) -> usize {
        self.taken.values().filter(|taken| is(taken)).count()
    }

    /// Who gives way: the weakest reason, of the workload that has the most; only for a stronger reason, or for a
    /// workload that has at least two less.
    fn victim(&self, key: &DiagnosisKey, risk: Risk, is: impl Fn(&Taken) -> bool) -> Option<String> {
        let mut counts: HashMap<&DiagnosisKey, usize> = HashMap::new();
        for taken in self.taken.values() {
            *counts.entry(&taken.key).or_default() += 1;
        }
        let count_of = |key: &DiagnosisKey| counts.get(key).copied().unwrap_or(0);
        let own = count_of(key);
        let gives_way = |taken: &Taken| taken.risk < risk || count_of(&taken.key) > own + 1;
        self.taken
            .iter()
            .filter(|(_, taken)| is(taken) && gives_way(taken))
            .min_by_key(|(id, taken)| {
                (taken.risk, std::cmp::Reverse(count_of(&taken.key)), std::cmp::Reverse((*id).clone()))
            })
            .map(|(id, _)| id.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: StreamLimits = StreamLimits { total: 4, per_node: 3, per_workload: 2 };

    fn key(name: &str) -> DiagnosisKey {
        DiagnosisKey { namespace: "shop".to_owned(), name: name.to_owned() }
    }

    #[test]
    fn a_workload_a_node_and_all_together_are_bounded() {
        let mut slots = Slots::new(LIMITS);
        let risk = Risk::FailedBefore;
        assert_eq!(slots.admit("1", &key("a"), "n1", risk), Admission::Admitted);
        assert_eq!(slots.admit("2", &key("a"), "n1", risk), Admission::Admitted);
        assert_eq!(slots.admit("3", &key("a"), "n2", risk), Admission::Refused(Budget::StreamsWorkload));
        assert_eq!(slots.admit("4", &key("b"), "n1", risk), Admission::Admitted);
        assert_eq!(slots.admit("5", &key("b"), "n1", risk), Admission::Refused(Budget::StreamsNode));
        assert_eq!(slots.admit("6", &key("b"), "n2", risk), Admission::Admitted);
        assert_eq!(slots.admit("2", &key("a"), "n1", risk), Admission::Admitted, "it has its slot");
        slots.release("2");
        slots.release("4");
        assert_eq!(slots.len(), 2);
        assert_eq!(slots.admit("7", &key("c"), "n1", risk), Admission::Admitted);
    }

    #[test]
    fn a_stronger_reason_and_a_workload_without_any_find_room() {
        let mut slots = Slots::new(LIMITS);
        for (id, name) in [("1", "a"), ("2", "a"), ("3", "b"), ("4", "b")] {
            slots.admit(id, &key(name), id, Risk::FailedBefore);
        }
        let full = Admission::Refused(Budget::StreamsTotal);
        assert_eq!(
            slots.admit("5", &key("c"), "n", Risk::StuckAWhile),
            Admission::Instead { of: "4".into() }
        );
        assert_eq!(
            slots.admit("6", &key("d"), "n", Risk::StuckAWhile),
            Admission::Instead { of: "2".into() }
        );
        assert_eq!(slots.admit("7", &key("e"), "n", Risk::StuckAWhile), full, "all have one");
        assert_eq!(
            slots.admit("8", &key("e"), "n", Risk::BeingDeleted),
            Admission::Instead { of: "6".into() }
        );
    }
}
