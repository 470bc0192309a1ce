//! The few lines of a log that matter: the decisive ones, and the last.

use std::sync::LazyLock;

use regex::RegexSet;

use crate::diagnose::cut;

/// What stands between lines that were not neighbours.
const GAP: &str = "…";
/// What a single line may take of an excerpt, in bytes.
const MAX_LINE: usize = 400;

/// An excerpt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Excerpt {
    /// The lines in the order in which they stood, gaps marked.
    pub text: String,
    /// The single most telling line; none where no line tells of a failure.
    pub decisive_line: Option<String>,
    /// The last line that is not empty.
    pub last_line: Option<String>,
}

/// How telling a line is. Later rules are weaker; the first that fits counts.
const RULES: &[(i32, &str)] = &[
    // Noise that looks like an error: locale warnings of perl, apt's complaint about its own interface.
    (
        0,
        r"(?i)^perl: warning|^\s*(LC_ALL|LANG|LANGUAGE) = |are supported and installed on your system|stable CLI interface",
    ),
    (
        0,
        r"(?i)\b(0 errors?|no errors?|errors?: 0|0 failed|without errors?|error_log|on-error|ignore-errors?)\b",
    ),
    // The root of a chain of exceptions.
    (9, r"(?i)^\s*caused by:"),
    (
        8,
        r"(?i)^\s*(fatal|panic|emerg|critical)\b|\b(FATAL|PANIC|CRITICAL)\b|\[(fatal|critical|emerg|alert)\]",
    ),
    // The head of a trace says nothing; the exception comes at its end.
    (4, r"^Traceback \(most recent call last\)"),
    (8, r"^(\w+\.)*\w*(Error|Exception)\b(:|$)|^thread '.*' panicked"),
    (7, r"(?i)\b(error|err!|exception)\b[\]:\s]|^\s*(error|err)\b|\berrno\b|^E[0-9]{4} "),
    (
        7,
        r"(?i)\b(permission denied|operation not permitted|no such file or directory|command not found|not found|read-only file system|no space left|out of memory|cannot allocate|exec format error|segmentation fault|killed)\b",
    ),
    (
        7,
        r"(?i)\b(connection refused|connection reset|no route to host|timed? ?out|could not (connect|resolve|translate)|name or service not known|temporary failure in name resolution|no such host|unknown host|bad address|certificate|x509|unauthorized|forbidden|access denied|authentication failed|already exists|does not exist|dirty|lock(ed)? by)\b",
    ),
    (
        5,
        r"(?i)\b(failed|failure|fails|unable|cannot|can't|couldn't|could not|invalid|missing|denied|refused|aborted|rejected|unexpected)\b",
    ),
    (3, r"(?i)\b(warn(ing)?|usage:)"),
];

static SET: LazyLock<Option<RegexSet>> =
    // A pattern that does not compile is found by the tests below; without any, the last lines are the excerpt.
    LazyLock::new(|| RegexSet::new(RULES.iter().map(|(_, pattern)| *pattern)).ok());

/// How telling a line is: 0 = not at all.
fn score(line: &str) -> i32 {
    let Some(set) = SET.as_ref() else { return 0 };
    let first = set.matches(line).into_iter().next();
    first.and_then(|index| RULES.get(index)).map_or(0, |(score, _)| *score)
}

/// How telling the error in a text is, 0 to 9: that of its most telling line. Used to keep, among many attempts,
/// the one that says most.
pub fn telling_score(text: &str) -> u32 {
    text.lines().map(score).max().unwrap_or(0).try_into().unwrap_or(0)
}

/// Lifts out what matters, in at most `max` bytes.
pub fn excerpt(text: &str, max: usize) -> Excerpt {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty() && *line != GAP).collect();
    let scores: Vec<i32> = lines.iter().map(|line| score(line)).collect();
    let best = scores.iter().copied().max().unwrap_or(0);
    // The first among equals: what follows is more often a consequence. In a chain of causes the last is the root.
    let decisive = match best {
        0 => None,
        9 => scores.iter().rposition(|score| *score == best),
        _ => scores.iter().position(|score| *score == best),
    };
    let last = lines.len().checked_sub(1);

    // By importance: the decisive line, the last ones, then the other telling ones, newest first.
    let mut order: Vec<usize> = decisive.into_iter().chain(last).collect();
    order.extend((0..lines.len()).rev().take(5));
    let mut telling: Vec<usize> = (0..lines.len()).filter(|index| scores.get(*index) > Some(&3)).collect();
    telling.sort_by_key(|index| (std::cmp::Reverse(scores.get(*index)), *index));
    order.extend(telling);
    // Room that is left is filled from the end backwards.
    order.extend((0..lines.len()).rev());

    let mut chosen: Vec<usize> = Vec::new();
    let mut room = max;
    // A repeated message says nothing new.
    let mut seen = std::collections::HashSet::new();
    for index in order {
        let Some(line) = lines.get(index) else { continue };
        let cost = line.len().min(MAX_LINE) + 1 + GAP.len() + 1;
        if chosen.contains(&index) || cost > room || !seen.insert(*line) {
            continue;
        }
        room -= cost;
        chosen.push(index);
        if chosen.len() >= 60 {
            break;
        }
    }
    chosen.sort_unstable();
    let mut out: Vec<String> = Vec::new();
    let mut next = 0;
    for index in chosen {
        if index > next {
            out.push(GAP.to_owned());
        }
        out.extend(lines.get(index).map(|line| cut(line, MAX_LINE)));
        next = index + 1;
    }
    let shown =
        |index: Option<usize>| index.and_then(|index| lines.get(index)).map(|line| (*line).to_owned());
    Excerpt { text: cut(&out.join("\n"), max), decisive_line: shown(decisive), last_line: shown(last) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_rule_compiles() {
        assert!(SET.is_some());
    }

    #[rstest::rstest]
    #[case(
        "connecting\nFATAL: password authentication failed for user \"shop\"\nbye",
        "FATAL: password authentication failed for user \"shop\""
    )]
    // The first failure, not its consequence.
    #[case("ERROR: relation exists\nERROR: current transaction is aborted", "ERROR: relation exists")]
    // The end of a chain of causes.
    #[case(
        "Exception in thread main\nCaused by: A\n  at x\nCaused by: java.net.UnknownHostException: db",
        "Caused by: java.net.UnknownHostException: db"
    )]
    #[case(
        "perl: warning: Setting locale failed.\npsql: error: connection refused",
        "psql: error: connection refused"
    )]
    #[case("chown: /data: Operation not permitted", "chown: /data: Operation not permitted")]
    fn the_decisive_line_is_found(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(excerpt(text, 1024).decisive_line.as_deref(), Some(expected));
    }

    #[rstest::rstest]
    #[case("waiting for postgres:5432 (× 214)")]
    #[case("migrated 12 tables with 0 errors")]
    fn a_line_without_a_failure_decides_nothing(#[case] text: &str) {
        let found = excerpt(text, 1024);
        assert_eq!((found.decisive_line, found.last_line.as_deref()), (None, Some(text)));
    }

    #[test]
    fn the_error_in_the_middle_is_lifted_out_of_a_long_log() {
        let mut lines: Vec<_> =
            (0..500).map(|number| format!("applying step {number} of the plan")).collect();
        lines.insert(200, "ERROR: deadlock detected".to_owned());
        let found = excerpt(&lines.join("\n"), 1024);
        assert!(found.text.contains("…\nERROR: deadlock detected\n…"), "{}", found.text);
        assert!(found.text.ends_with("applying step 499 of the plan"));
    }

    #[test]
    fn what_tells_of_an_excerpt_is_what_told_of_the_log() {
        let text = "a\nb\nERROR: one\nc\nERROR: two\nd";
        let once = excerpt(text, 1024);
        let twice = excerpt(&once.text, 1024);
        assert_eq!(once, twice);
    }

    proptest! {
        #[test]
        fn an_excerpt_is_never_too_long(text in "(?s).{0,4000}", max in 8_usize..2000) {
            prop_assert!(excerpt(&text, max).text.len() <= max);
        }
    }
}
