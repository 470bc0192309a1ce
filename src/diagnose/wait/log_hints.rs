//! What a log says its program waits for: the second source beside the command.
//!
//! The messages come from the tools themselves (nc of busybox and of OpenBSD, libpq, the MySQL client, curl, wget, Go,
//! Node, Java, Python, Ruby) and from what people print in their loops. What a resolver says does not tell a missing
//! Service from DNS trouble: only that a name did not resolve.

mod patterns;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};

use self::patterns::PATTERNS;
use super::evidence;

/// What became of the attempt, as the line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The name was not found, or could not be looked up.
    NameUnresolved,
    /// Nothing listens there.
    Refused,
    /// No answer in time.
    TimedOut,
    /// No route.
    Unreachable,
    /// Only that it waits, or that an attempt failed for a reason the line does not give.
    Waiting,
}

/// One thing that a log waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHint {
    /// The host as the log writes it.
    pub host: String,
    /// The port, if the line has one.
    pub port: Option<u16>,
    /// What became of the attempt.
    pub outcome: Outcome,
    /// The line, secrets masked, at most 200 characters.
    pub line: String,
}

/// Only this many of the last lines are read, since they tell of now.
const MAX_LINES: usize = 2000;

/// Of a longer line only this much is read, in characters.
const MAX_LINE_CHARS: usize = 1000;

/// Most hints, each host, port and outcome once.
const MAX_HINTS: usize = 16;

/// A host: not a bare number, not ending in a dot of the sentence.
const HOST: &str = r"(?P<host>[A-Za-z0-9_](?:[A-Za-z0-9_.\-]{0,251}[A-Za-z0-9_])?|\[[0-9a-fA-F:]+\])";

/// A single word that looks like a host and not like prose: it has a hyphen or a dot.
const HOST_LIKE: &str = r"(?P<host>[a-z0-9]+(?:[.\-][a-z0-9]+)+)";

static COMPILED: LazyLock<Vec<(Regex, Option<Outcome>)>> = LazyLock::new(|| {
    PATTERNS
        .iter()
        .filter_map(|pattern| Some((Regex::new(&full(pattern.regex)).ok()?, pattern.outcome)))
        .collect()
});

/// All patterns at once: most lines match none.
static ANY: LazyLock<Option<RegexSet>> =
    LazyLock::new(|| RegexSet::new(PATTERNS.iter().map(|pattern| full(pattern.regex))).ok());

fn full(regex: &str) -> String {
    regex
        .replace("{host}", HOST)
        .replace("{name}", HOST_LIKE)
        .replace("{port}", r"(?P<port>\d{1,5})")
        .replace("{why}", r"(?P<why>[^\n]{0,200})")
}

/// The hints in a log's lines, the newest first, each host, port and outcome once; at most 16.
///
/// Of the lines the last 2000 are read.
pub fn hints<S: AsRef<str>>(lines: &[S]) -> Vec<LogHint> {
    let mut found: Vec<LogHint> = Vec::new();
    for line in lines.iter().rev().take(MAX_LINES) {
        if found.len() >= MAX_HINTS {
            break;
        }
        if let Some(hint) = hint(line.as_ref())
            && !found.iter().any(|known| {
                known.host == hint.host && known.port == hint.port && known.outcome == hint.outcome
            })
        {
            found.push(hint);
        }
    }
    found
}

/// The hint in one line.
pub fn hint(line: &str) -> Option<LogHint> {
    let text: String = line.chars().take(MAX_LINE_CHARS).collect();
    let text = text.trim();
    let index = ANY.as_ref()?.matches(text).iter().next()?;
    let (regex, outcome) = COMPILED.get(index)?;
    let captures = regex.captures(text)?;
    let host = captures.name("host")?.as_str().trim_matches(['[', ']']).to_owned();
    if host.bytes().all(|byte| byte.is_ascii_digit()) || is_prose(&host) {
        return None;
    }
    let (host, port_in_host) = match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => (name.to_owned(), port.parse().ok()),
        _ => (host, None),
    };
    let port = captures.name("port").and_then(|port| port.as_str().parse().ok()).or(port_in_host);
    let outcome = outcome.or_else(|| reason(&captures))?;
    Some(LogHint { host, port: port.filter(|port| *port != 0), outcome, line: evidence::fragment(text) })
}

fn reason(captures: &Captures<'_>) -> Option<Outcome> {
    let text = captures.name("why").map_or_else(
        || captures.get(0).map_or("", |whole| whole.as_str()).to_ascii_lowercase(),
        |why| why.as_str().to_ascii_lowercase(),
    );
    let any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if any(&["succeeded", "open"]) && !any(&["refused", "timed out"]) {
        return None;
    }
    Some(if any(&["refused", "econnrefused", "111)", "(111", "errno 111"]) || text.starts_with("111") {
        Outcome::Refused
    } else if any(&["name or service", "temporary failure", "no such host", "not known", "nodename"]) {
        Outcome::NameUnresolved
    } else if any(&["no route", "unreachable", "ehostunreach", "enetunreach"]) || text.starts_with("113") {
        Outcome::Unreachable
    } else if any(&["timed out", "timeout", "etimedout", "deadline", "in progress"])
        || text.starts_with("110")
    {
        Outcome::TimedOut
    } else {
        Outcome::Waiting
    })
}

/// Words that a sentence has where a host could be.
fn is_prose(host: &str) -> bool {
    matches!(
        host.to_ascii_lowercase().as_str(),
        "the"
            | "a"
            | "an"
            | "to"
            | "all"
            | "host"
            | "hostname"
            | "server"
            | "service"
            | "database"
            | "db-ready"
            | "is"
            | "for"
            | "and"
            | "not"
            | "be"
            | "null"
            | "name"
            | "port"
            | "at"
            | "on"
            | "start-up"
            | "startup"
    )
}
