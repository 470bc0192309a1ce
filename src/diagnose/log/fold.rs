//! Folds what repeats: a wait loop prints the same one to four lines a thousand times.

use std::collections::VecDeque;

/// Longest cycle that is seen as one, in lines.
const MAX_PERIOD: usize = 4;

/// Folds a stream of lines. Lines come out in order, the last one of a repeated group with a count.
#[derive(Clone, Debug, Default)]
pub(super) struct Folder {
    /// Lines that may still turn out to be the begin of a cycle.
    pending: VecDeque<String>,
    cycle: Option<Cycle>,
}

/// The last `period` lines of `pending`, seen again and again.
#[derive(Clone, Debug)]
struct Cycle {
    period: usize,
    /// Complete turns.
    turns: u64,
    /// Lines of the next turn that have come.
    position: usize,
}

impl Folder {
    /// Takes a line, and gives those that are settled.
    pub(super) fn push(&mut self, line: String, out: &mut impl FnMut(String)) {
        if let Some(cycle) = &mut self.cycle {
            let first = self.pending.len() - cycle.period;
            if self.pending.get(first + cycle.position) == Some(&line) {
                cycle.position += 1;
                if cycle.position == cycle.period {
                    cycle.position = 0;
                    cycle.turns += 1;
                }
                return;
            }
            self.end_cycle(out);
        }
        self.pending.push_back(line);
        let found = (1..=MAX_PERIOD).find(|period| self.ends_with_two_turns(*period));
        if let Some(period) = found {
            self.pending.truncate(self.pending.len() - period);
            self.cycle = Some(Cycle { period, turns: 2, position: 0 });
        }
        // A cycle needs two turns in sight.
        while self.cycle.is_none() && self.pending.len() > 2 * MAX_PERIOD {
            self.pending.pop_front().into_iter().for_each(&mut *out);
        }
    }

    /// Gives all that is left.
    pub(super) fn finish(mut self, out: &mut impl FnMut(String)) {
        self.end_cycle(out);
        self.pending.into_iter().for_each(out);
    }

    fn ends_with_two_turns(&self, period: usize) -> bool {
        let count = self.pending.len();
        count >= 2 * period
            && (0..period).all(|index| {
                self.pending.get(count - 1 - index) == self.pending.get(count - 1 - index - period)
            })
    }

    /// Settles a cycle: its lines once, with the count, and what had come of the next turn.
    fn end_cycle(&mut self, out: &mut impl FnMut(String)) {
        let Some(Cycle { period, turns, position }) = self.cycle.take() else { return };
        let first = self.pending.len() - period;
        let rest: Vec<_> = self.pending.iter().skip(first).take(position).cloned().collect();
        if let Some(last) = self.pending.back_mut() {
            *last = match period {
                1 => format!("{last} (× {turns})"),
                _ => format!("{last} (these {period} lines × {turns})"),
            };
        }
        self.pending.drain(..).for_each(out);
        self.pending.extend(rest);
    }
}

/// Whether a text that was folded ends in lines that repeat: with the count of a fold among its last lines.
pub fn ends_in_repetition(text: &str) -> bool {
    // After the count may come what had begun of the next turn.
    text.lines().rev().take(MAX_PERIOD).any(|line| line.ends_with(')') && line.contains("× "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(lines: &[&str]) -> Vec<String> {
        let mut out = Vec::new();
        let mut folder = Folder::default();
        for line in lines {
            folder.push((*line).to_owned(), &mut |line| out.push(line));
        }
        folder.finish(&mut |line| out.push(line));
        out
    }

    #[test]
    fn one_line_again_and_again_is_counted() {
        assert_eq!(folded(&["start", "wait", "wait", "wait", "end"]), ["start", "wait (× 3)", "end"]);
        assert_eq!(folded(&["wait"; 214]), ["wait (× 214)"]);
    }

    #[test]
    fn a_cycle_of_lines_is_counted_and_its_begun_turn_is_kept() {
        assert_eq!(folded(&["a", "b", "a", "b", "a", "b", "a"]), ["a", "b (these 2 lines × 3)", "a"]);
        assert_eq!(
            folded(&["x", "a", "b", "c", "d", "a", "b", "c", "d", "y"]),
            ["x", "a", "b", "c", "d (these 4 lines × 2)", "y"]
        );
    }

    #[test]
    fn a_loop_is_told_by_its_last_lines() {
        assert!(ends_in_repetition(&folded(&["a", "b", "a", "b", "a"]).join("\n")));
        assert!(ends_in_repetition(&folded(&["wait"; 20]).join("\n")));
        assert!(!ends_in_repetition(&folded(&["wait", "wait", "1", "2", "3", "4"]).join("\n")));
    }

    #[test]
    fn what_does_not_repeat_stays_as_it_is() {
        let lines: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        assert_eq!(folded(&lines), lines);
    }
}
