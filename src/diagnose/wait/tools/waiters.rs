//! Tools that are made for waiting, with a loop of their own.

use std::time::Duration;

use super::arguments::{Arguments, Grammar, PLAIN};
use super::{Found, Lookup, clients, urls};
use crate::diagnose::wait::marked;
use crate::diagnose::wait::script::duration;
use crate::diagnose::wait::types::{LoopShape, Protocol, TargetKind};

/// What a waiting tool waits for; none if `name` is no such tool.
pub(super) fn find(name: &str, words: &[String], _lookup: &Lookup<'_>) -> Option<Vec<Found>> {
    let stem = name.strip_suffix(".sh").unwrap_or(name);
    match stem {
        "wait-for-it" | "wait_for_it" | "waitforit" | "wait-for" | "wait_for" | "wait" => {
            wait_for_it(stem, words)
        }
        "dockerize" => Some(dockerize(words)),
        "wait4x" => Some(wait4x(words)),
        "wait-port" | "wait-on" => Some(wait_port(name, words)),
        "wait-for-port" => Some(wait_for_port(words)),
        "peer-finder" => Some(peer_finder(words)),
        _ => None,
    }
}

/// `host:port`, with a port that is a number or unknown.
pub(super) fn looks_like_address(text: &str) -> bool {
    let (host, port) = marked::split_host_port(text);
    !host.is_empty()
        && host.chars().all(|character| {
            character.is_ascii_alphanumeric() || matches!(character, '-' | '.' | '_' | '$' | '(' | ')')
        })
        && port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()) || port.starts_with("$("))
}

fn bounded(timeout: Option<&str>, default: Duration, sleep: Option<Duration>) -> LoopShape {
    let timeout = timeout.and_then(duration).unwrap_or(default);
    LoopShape { unbounded: timeout.is_zero(), sleep }
}

/// vishnubob/wait-for-it and eficode/wait-for: `host:port`, `-h HOST -p PORT`, or a URL; 15 s unless `-t` says
/// otherwise, `-t 0` for ever. None for the shell's own `wait`.
fn wait_for_it(stem: &str, words: &[String]) -> Option<Vec<Found>> {
    let grammar = Grammar { short: "hpt", attached: "", long: &["host", "port", "timeout"], one_dash: false };
    let arguments = Arguments::parse(words, grammar);
    let repeats = Some(bounded(
        arguments.value(&["t", "timeout"]),
        Duration::from_secs(15),
        Some(Duration::from_secs(1)),
    ));
    let mut kinds = Vec::new();
    if let Some(host) = arguments.value(&["h", "host"]) {
        kinds.push(urls::host_and_port(host, arguments.value(&["p", "port"]), 0, Protocol::Tcp));
    }
    for operand in &arguments.operands {
        if operand.contains("://") {
            kinds.extend(urls::servers(operand));
        } else if looks_like_address(operand) || (marked::has_unknown(operand) && operand.contains(':')) {
            kinds.extend(urls::network(operand, 0, Protocol::Tcp));
        } else {
            // What follows is the command to run, or this is another tool of that name.
            break;
        }
    }
    if kinds.is_empty() && stem == "wait" {
        return None;
    }
    let two_words = match (arguments.operand(0), arguments.operand(1)) {
        (Some(host), Some(port))
            if kinds.is_empty()
                && marked::to_port(port)
                    .is_some_and(|port| !matches!(port, crate::diagnose::wait::types::Port::Named(_))) =>
        {
            Some(urls::host_and_port(host, Some(port), 0, Protocol::Tcp))
        }
        _ => None,
    };
    kinds.extend(two_words);
    Some(kinds.into_iter().map(|kind| Found { kind, tool: "wait-for-it", repeats }).collect())
}

/// jwilder/dockerize: `-wait URL` any number of times; `-timeout` is 10 s unless given.
fn dockerize(words: &[String]) -> Vec<Found> {
    let grammar = Grammar {
        short: "",
        attached: "",
        long: &["wait", "timeout", "wait-retry-interval", "template", "stdout", "stderr", "wait-http-header"],
        one_dash: true,
    };
    let arguments = Arguments::parse(words, grammar);
    let sleep = arguments.value(&["wait-retry-interval"]).and_then(duration).or(Some(Duration::from_secs(1)));
    let repeats = Some(bounded(arguments.value(&["timeout"]), Duration::from_secs(10), sleep));
    arguments
        .values(&["wait"])
        .flat_map(|text| match text.strip_prefix("file://") {
            Some(path) => vec![TargetKind::File { path: marked::to_value(path) }],
            None => urls::servers(text),
        })
        .map(|kind| Found { kind, tool: "dockerize", repeats })
        .collect()
}

/// atkrad/wait4x: `tcp|http|postgresql|… ADDRESS…`; `--timeout` is 10 s unless given, 0 for ever.
fn wait4x(words: &[String]) -> Vec<Found> {
    let grammar = Grammar {
        short: "tiq",
        attached: "",
        long: &[
            "timeout",
            "interval",
            "expect-status-code",
            "expect-body-regex",
            "connection-timeout",
            "expect-key",
        ],
        one_dash: false,
    };
    let arguments = Arguments::parse(words, grammar);
    let interval = arguments.value(&["i", "interval"]).and_then(duration).or(Some(Duration::from_secs(1)));
    let repeats = Some(bounded(arguments.value(&["t", "timeout"]), Duration::from_secs(10), interval));
    let kind = arguments.operand(0).unwrap_or("");
    let found = arguments.operands.iter().skip(1).flat_map(|address| match kind {
        "dns" => Vec::new(),
        "http" => clients::web_address(address),
        _ if address.contains("://") || address.contains("@tcp(") => urls::servers(address),
        _ => urls::network(address, 0, Protocol::Tcp).into_iter().collect(),
    });
    let names = (kind == "dns")
        .then(|| arguments.operand(2))
        .flatten()
        .map(|name| TargetKind::Name { host: marked::to_value(name) });
    found.chain(names).map(|kind| Found { kind, tool: "wait4x", repeats }).collect()
}

/// npm's wait-port and wait-on: `host:port`, `tcp:host:port`, URLs and, for wait-on, files; for ever unless `-t`.
fn wait_port(name: &str, words: &[String]) -> Vec<Found> {
    let grammar =
        Grammar { short: "tio", attached: "", long: &["timeout", "interval", "output"], one_dash: false };
    let arguments = Arguments::parse(words, grammar);
    let repeats = Some(bounded(arguments.value(&["t", "timeout"]), Duration::ZERO, None));
    let tool = if name == "wait-on" { "wait-on" } else { "wait-port" };
    arguments
        .operands
        .iter()
        .flat_map(|operand| {
            let operand =
                operand.strip_prefix("tcp:").filter(|rest| !rest.starts_with('/')).unwrap_or(operand);
            let operand =
                operand.replacen("http-get://", "http://", 1).replacen("https-get://", "https://", 1);
            if operand.contains("://") {
                urls::servers(&operand)
            } else if operand.starts_with(['/', '.']) || operand.starts_with("file:") {
                let path = operand.strip_prefix("file:").unwrap_or(&operand);
                vec![TargetKind::File { path: marked::to_value(path) }]
            } else if operand.bytes().all(|byte| byte.is_ascii_digit()) {
                vec![urls::host_and_port("localhost", Some(&operand), 0, Protocol::Tcp)]
            } else {
                urls::network(&operand, 0, Protocol::Tcp).into_iter().collect()
            }
        })
        .map(|kind| Found { kind, tool, repeats })
        .collect()
}

/// bitnami/wait-for-port: `--host=HOST PORT`; `--timeout` is 30 s unless given.
fn wait_for_port(words: &[String]) -> Vec<Found> {
    let grammar = Grammar { long: &["host", "timeout", "state"], ..PLAIN };
    let arguments = Arguments::parse(words, grammar);
    let repeats = Some(bounded(arguments.value(&["timeout"]), Duration::from_secs(30), None));
    let host = arguments.value(&["host"]).unwrap_or("localhost");
    let wanted = arguments.value(&["state"]).unwrap_or("inuse") == "inuse";
    arguments
        .operand(0)
        .filter(|_| wanted)
        .map(|port| Found {
            kind: urls::host_and_port(host, Some(port), 0, Protocol::Tcp),
            tool: "wait-for-port",
            repeats,
        })
        .into_iter()
        .collect()
}

/// kubernetes/contrib peer-finder: the SRV records of a headless Service, once a second.
fn peer_finder(words: &[String]) -> Vec<Found> {
    let grammar =
        Grammar { long: &["service", "on-start", "on-change", "ns", "domain"], one_dash: true, ..PLAIN };
    let arguments = Arguments::parse(words, grammar);
    let repeats = Some(LoopShape { unbounded: true, sleep: Some(Duration::from_secs(1)) });
    arguments
        .value(&["service"])
        .map(|service| Found {
            kind: TargetKind::Name { host: marked::to_value(service) },
            tool: "peer-finder",
            repeats,
        })
        .into_iter()
        .collect()
}
