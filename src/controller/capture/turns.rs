//! Whose log is read next: fair between workloads, gentle to nodes.
//!
//! `pods/log` has no rate limit on the server, so the limits are ours. A Deployment of 300 Pods that fail at once must
//! not keep the one Job waiting whose log is gone in two seconds: workloads take turns, and within one the first
//! attempts come first.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Bounds on reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReadLimits {
    /// At once, over all nodes.
    pub total: usize,
    /// At once, from one node.
    pub per_node: usize,
    /// Waiting for their turn.
    pub waiting: usize,
}

/// What waits for a turn, and what has one. `K` is a workload.
#[derive(Debug)]
struct Turns<K, T> {
    limits: ReadLimits,
    /// Workloads in the order of their turns.
    order: VecDeque<K>,
    waiting: HashMap<K, Waiting<T>>,
    count: usize,
    in_flight: usize,
    by_node: HashMap<String, usize>,
}

#[derive(Debug)]
struct Waiting<T> {
    first_attempts: VecDeque<Ticket<T>>,
    others: VecDeque<Ticket<T>>,
}

#[derive(Debug)]
struct Ticket<T> {
    node: String,
    item: T,
}

impl<T> Waiting<T> {
    fn count(&self) -> usize {
        self.first_attempts.len() + self.others.len()
    }

    /// The next whose node has room.
    fn take(&mut self, has_room: impl Fn(&str) -> bool) -> Option<Ticket<T>> {
        for queue in [&mut self.first_attempts, &mut self.others] {
            if let Some(index) = queue.iter().position(|ticket| has_room(&ticket.node)) {
                return queue.remove(index);
            }
        }
        None
    }
}

impl<K: Clone + Eq + Hash, T> Turns<K, T> {
    fn new(limits: ReadLimits) -> Self {
        Self {
            limits,
            order: VecDeque::new(),
            waiting: HashMap::new(),
            count: 0,
            in_flight: 0,
            by_node: HashMap::new(),
        }
    }

    /// Queues an item. Where the queue is full, the workload with the most waiting gives up its newest; what is given
    /// up, perhaps the item itself, is returned.
    fn push(&mut self, key: &K, node: &str, is_first_attempt: bool, item: T) -> Option<T> {
        let given_up =
            if self.count >= self.limits.waiting { self.give_up(key, is_first_attempt) } else { None };
        if given_up.is_none() && self.count >= self.limits.waiting {
            return Some(item);
        }
        let waiting = self.waiting.entry(key.clone()).or_insert_with(|| {
            self.order.push_back(key.clone());
            Waiting { first_attempts: VecDeque::new(), others: VecDeque::new() }
        });
        let queue = if is_first_attempt { &mut waiting.first_attempts } else { &mut waiting.others };
        queue.push_back(Ticket { node: node.to_owned(), item });
        self.count += 1;
        given_up
    }

    /// Makes room for an item of `key`: from the workload with the most waiting, if that has more than `key`, or for a
    /// first attempt from what is none.
    fn give_up(&mut self, key: &K, is_first_attempt: bool) -> Option<T> {
        let own = self.waiting.get(key).map_or(0, Waiting::count);
        let (_, longest) = self.waiting.iter_mut().max_by_key(|(_, waiting)| waiting.count())?;
        let ticket = if longest.count() > own + 1 {
            longest.others.pop_back().or_else(|| longest.first_attempts.pop_back())
        } else if is_first_attempt {
            longest.others.pop_back()
        } else {
            None
        }?;
        self.count -= 1;
        Some(ticket.item)
    }

    /// The next that may begin.
    fn next(&mut self) -> Option<(String, T)> {
        if self.in_flight >= self.limits.total {
            return None;
        }
        for _ in 0..self.order.len() {
            let key = self.order.pop_front()?;
            let Some(waiting) = self.waiting.get_mut(&key) else { continue };
            let per_node = self.limits.per_node;
            let by_node = &self.by_node;
            let ticket = waiting.take(|node| by_node.get(node).is_none_or(|count| *count < per_node));
            if waiting.count() == 0 {
                self.waiting.remove(&key);
            } else {
                self.order.push_back(key);
            }
            if let Some(Ticket { node, item }) = ticket {
                self.count -= 1;
                self.in_flight += 1;
                *self.by_node.entry(node.clone()).or_default() += 1;
                return Some((node, item));
            }
        }
        None
    }

    /// One from this node has ended.
    fn ended(&mut self, node: &str) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(count) = self.by_node.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                self.by_node.remove(node);
            }
        }
    }
}

/// Gives out turns.
#[derive(Clone)]
pub(super) struct Turnstile<K> {
    turns: Arc<Mutex<Turns<K, oneshot::Sender<()>>>>,
}

/// A turn; it ends when this is dropped.
pub(super) struct Turn<K: Clone + Eq + Hash> {
    turnstile: Turnstile<K>,
    node: String,
}

/// The queue is full, and others come first.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error("too many logs wait to be read")]
pub(super) struct Refused;

impl<K: Clone + Eq + Hash> Turnstile<K> {
    pub(super) fn new(limits: ReadLimits) -> Self {
        Self { turns: Arc::new(Mutex::new(Turns::new(limits))) }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// When the queue is full and this is what gives way, now or while it waits.
    pub(super) async fn turn(&self, key: &K, node: &str, is_first_attempt: bool) -> Result<Turn<K>, Refused> {
        let (sender, receiver) = oneshot::channel();
        // What is given up is dropped, and with it its sender: the one who waits for it is told so.
        drop(self.lock().push(key, node, is_first_attempt, sender));
        self.dispatch();
        receiver.await.map_err(|_| Refused)?;
        Ok(Turn { turnstile: self.clone(), node: node.to_owned() })
    }

    /// How many have a turn now.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    fn dispatch(&self) {
        let mut turns = self.lock();
        while let Some((node, sender)) = turns.next() {
            // Nobody waits for it any more.
            if sender.send(()).is_err() {
                turns.ended(&node);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Turns<K, oneshot::Sender<()>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> Drop for Turn<K> {
    fn drop(&mut self) {
        self.turnstile.lock().ended(&self.node);
        self.turnstile.dispatch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ReadLimits = ReadLimits { total: 100, per_node: 2, waiting: 4 };

    fn order(turns: &mut Turns<&'static str, u32>) -> Vec<u32> {
        let mut all = Vec::new();
        while let Some((node, item)) = turns.next() {
            all.push(item);
            turns.ended(&node);
        }
        all
    }

    #[test]
    fn workloads_take_turns_and_first_attempts_come_first() {
        let mut turns = Turns::new(ReadLimits { waiting: 100, ..LIMITS });
        for item in 1..=3 {
            assert_eq!(turns.push(&"storm", "a", false, item), None);
        }
        turns.push(&"storm", "a", true, 4);
        turns.push(&"job", "a", false, 10);
        assert_eq!(order(&mut turns), [4, 10, 1, 2, 3]);
        assert!(turns.waiting.is_empty() && turns.order.is_empty() && turns.by_node.is_empty());
    }

    #[test]
    fn a_node_gets_no_more_than_its_share_and_holds_up_no_other() {
        let mut turns = Turns::new(ReadLimits { waiting: 100, ..LIMITS });
        for item in 1..=3 {
            turns.push(&"storm", "a", false, item);
        }
        turns.push(&"storm", "b", false, 4);
        let begun: Vec<_> = std::iter::from_fn(|| turns.next()).map(|(_, item)| item).collect();
        assert_eq!(begun, [1, 2, 4]);
        turns.ended("a");
        assert_eq!(turns.next().map(|(_, item)| item), Some(3));
    }

    #[test]
    fn a_full_queue_makes_room_at_the_cost_of_the_one_that_waits_most() {
        let mut turns = Turns::new(LIMITS);
        for item in 1..=4 {
            assert_eq!(turns.push(&"storm", "a", false, item), None);
        }
        assert_eq!(turns.push(&"storm", "a", false, 5), Some(5), "it has no claim on more");
        assert_eq!(turns.push(&"storm", "a", true, 6), Some(4), "a first attempt has");
        assert_eq!(turns.push(&"job", "a", false, 10), Some(3), "another workload has");
        assert_eq!(order(&mut turns), [6, 10, 1, 2]);
    }

    #[tokio::test]
    async fn a_turn_that_ends_lets_the_next_one_in() {
        let turnstile = Turnstile::new(ReadLimits { total: 1, per_node: 1, waiting: 1 });
        let first = turnstile.turn(&"a", "n", false).await.unwrap();
        let second = tokio::spawn({
            let turnstile = turnstile.clone();
            async move { turnstile.turn(&"b", "n", false).await.map(drop) }
        });
        while turnstile.lock().count == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turnstile.turn(&"b", "n", false).await.map(drop), Err(Refused));
        drop(first);
        assert_eq!(second.await.unwrap(), Ok(()));
        assert_eq!(turnstile.in_flight(), 0);
    }
}
