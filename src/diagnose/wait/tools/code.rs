//! One-liners in Python, Node, Ruby, PHP and Perl: not parsed, searched for the usual ways to connect.

use std::sync::LazyLock;

use regex::Regex;

use super::{Found, Lookup, urls};
use crate::diagnose::wait::marked;
use crate::diagnose::wait::types::{LoopShape, Port, Protocol, TargetKind};

/// More of a program than this is not searched.
const MAX_CODE_BYTES: usize = 16 * 1024;

/// A string, or an expression that reads a variable.
const TERM: &str = r#"(?P<NAME>["'`][^"'`\n]{0,253}["'`]|int\([^()]*(?:\([^()]*\))?[^()]*\)|[A-Za-z_$][\w$.]*(?:\(["'][\w]+["'](?:,\s*["'][^"']*["'])?\)|\[["'][\w]+["']\])?|\d{1,5})"#;

/// Ways to connect, by host and port; `HOST` and `PORT` stand for a [`TERM`] each.
const CONNECTS: [&str; 7] = [
    r"create_connection\(\s*\(\s*HOST\s*,\s*PORT",
    r"\.connect(?:_ex)?\(\s*\(\s*HOST\s*,\s*PORT",
    r"(?:TCPSocket|Socket)\.(?:new|open|tcp)\(\s*HOST\s*,\s*PORT",
    r"fsockopen\(\s*HOST\s*,\s*PORT",
    r"(?:createConnection|connect)\(\s*\{[^{}]{0,80}?\bhost\s*:\s*HOST[^{}]{0,80}?\bport\s*:\s*PORT",
    r"(?:createConnection|connect)\(\s*\{[^{}]{0,80}?\bport\s*:\s*PORT[^{}]{0,80}?\bhost\s*:\s*HOST",
    r"(?:net|socket|client|s)\.(?:createConnection|connect)\(\s*PORT\s*,\s*HOST",
];

static CONNECT: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    CONNECTS
        .iter()
        .filter_map(|pattern| {
            let pattern = pattern
                .replace("HOST", &TERM.replace("NAME", "host"))
                .replace("PORT", &TERM.replace("NAME", "port"));
            Regex::new(&pattern).ok()
        })
        .collect()
});

static RESOLVE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?:gethostbyname|getaddrinfo|dns\.(?:lookup|resolve\w*))\(\s*["']([^"'\n]{1,253})["']"#)
        .ok()
});

static KEYWORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?s)connect\([^()]{0,200}?\bhost\s*=\s*["'](?<host>[^"'\n]{1,253})["'](?:[^()]{0,200}?\bport\s*=\s*["']?(?<port>\d{1,5}))?"#).ok()
});

static URL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"["'`]([a-z][a-z0-9+]{1,20}://[^"'`\s]{1,500})["'`]"#).ok());

/// A variable that the program reads: `os.environ["X"]`, `os.getenv('X', 'default')`, `process.env.X`, `ENV['X']`.
static VARIABLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?:environ(?:\.get)?|getenv|process\.env|ENV(?:\.fetch)?)\s*[\[(.]\s*["']?(\w+)["']?(?:\s*,\s*["']?([^"')]*)["']?)?"#).ok()
});

static ASSIGNMENT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)(?:^|[;\s])(\w+)\s*=\s*([^\n;=][^\n;]{0,300})").ok());

static LOOP: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)\bwhile\s+(?:True|1|not\b|\(true\))|\bwhile\s*\(|setInterval\(").ok());

/// What the code of an interpreter's one-liner connects to; none if `name` is no interpreter or is given a file.
pub(super) fn find(name: &str, words: &[String], lookup: &Lookup<'_>) -> Option<Vec<Found>> {
    let (tool, option): (&'static str, &[&str]) = match name {
        python if python.starts_with("python") => ("python", &["-c"]),
        "node" | "nodejs" | "deno" => ("node", &["-e", "--eval", "-p", "-pe", "eval"]),
        "ruby" => ("ruby", &["-e"]),
        "perl" => ("perl", &["-e"]),
        "php" => ("php", &["-r"]),
        _ => return None,
    };
    let position = words.iter().position(|word| option.contains(&word.as_str()))?;
    let code = words.get(position + 1)?;
    let end = (0..=MAX_CODE_BYTES.min(code.len())).rev().find(|end| code.is_char_boundary(*end)).unwrap_or(0);
    let code = code.get(..end).unwrap_or("");
    let kinds = kinds(code, lookup);
    let looping = LOOP.as_ref().is_some_and(|pattern| pattern.is_match(code));
    let limited = ["exit(1", "raise ", "throw ", "range(", "retries", "attempt", "deadline", "max_"];
    let repeats = looping
        .then(|| LoopShape { unbounded: !limited.iter().any(|word| code.contains(word)), sleep: None });
    // Code that we cannot read may still connect by variables.
    if kinds.is_empty() {
        None
    } else {
        Some(kinds.into_iter().map(|kind| Found { kind, tool, repeats }).collect())
    }
}

fn kinds(code: &str, lookup: &Lookup<'_>) -> Vec<TargetKind> {
    let mut kinds = Vec::new();
    for found in CONNECT.iter().flat_map(|pattern| pattern.captures_iter(code)) {
        let text = |name: &str| found.name(name).map_or("", |group| group.as_str());
        let host = term(text("host"), code, lookup);
        let port = marked::to_port(&term(text("port"), code, lookup));
        kinds.push(TargetKind::Network { host: marked::to_value(&host), port, protocol: Protocol::Tcp });
    }
    for found in KEYWORDS.iter().flat_map(|pattern| pattern.captures_iter(code)) {
        let host = found.name("host").map_or("", |group| group.as_str());
        let port = found.name("port").and_then(|group| group.as_str().parse().ok()).map(Port::Number);
        kinds.push(TargetKind::Network { host: marked::to_value(host), port, protocol: Protocol::Tcp });
    }
    for found in URL.iter().flat_map(|pattern| pattern.captures_iter(code)) {
        kinds.extend(found.get(1).map(|url| urls::servers(url.as_str())).unwrap_or_default());
    }
    for found in RESOLVE.iter().flat_map(|pattern| pattern.captures_iter(code)) {
        let host = found.get(1).map_or("", |group| group.as_str());
        kinds.push(TargetKind::Name { host: marked::to_value(host) });
    }
    kinds
}

/// The marked value of a term: a string, a number, a variable of the environment, or a name assigned from one.
fn term(text: &str, code: &str, lookup: &Lookup<'_>) -> String {
    if let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'' | '`')) {
        return text.trim_matches(quote).to_owned();
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.to_owned();
    }
    if let Some(value) = environment_value(text, lookup) {
        return value;
    }
    let assigned = ASSIGNMENT
        .iter()
        .flat_map(|pattern| pattern.captures_iter(code))
        .find(|found| found.get(1).is_some_and(|name| name.as_str() == text))
        .and_then(|found| found.get(2).map(|value| value.as_str().trim().to_owned()));
    match assigned {
        Some(value) => {
            let quoted = value.trim_end_matches([',', ')']).trim();
            let quote = quoted.chars().next().filter(|first| matches!(first, '"' | '\''));
            match (environment_value(&value, lookup), quote) {
                (Some(known), _) => known,
                (None, Some(quote)) if quoted.ends_with(quote) => quoted.trim_matches(quote).to_owned(),
                (None, _) if quoted.bytes().all(|byte| byte.is_ascii_digit()) => quoted.to_owned(),
                (None, _) => marked::unknown(text),
            }
        }
        None => marked::unknown(text),
    }
}

fn environment_value(text: &str, lookup: &Lookup<'_>) -> Option<String> {
    let found = VARIABLE.as_ref()?.captures(text)?;
    let name = found.get(1)?.as_str();
    let default = || found.get(2).map(|value| value.as_str().to_owned()).filter(|value| !value.is_empty());
    Some(lookup(name).or_else(default).unwrap_or_else(|| marked::unknown(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_compile() {
        assert_eq!(CONNECT.len(), CONNECTS.len());
        for pattern in [&RESOLVE, &KEYWORDS, &URL, &VARIABLE, &ASSIGNMENT, &LOOP] {
            assert!(pattern.is_some());
        }
    }
}
