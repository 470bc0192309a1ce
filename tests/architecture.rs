//! Modules may import downwards only, and the pure ones do no I/O. See docs/architecture.md.
//!
//! The sources are read as text: `use` trees are unfolded and `self::` and `super::` resolved, so that neither
//! `use kube::{Api, Client}` nor `super::super::controller` slips through.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails must say so"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// From the lowest to the highest.
const ORDER: [&str; 9] =
    ["api", "pod", "diagnose", "plan", "cluster", "archive", "telemetry", "controller", "cli"];
/// Values in, values out.
const PURE: [&str; 4] = ["api", "pod", "diagnose", "plan"];
/// What a pure module must not name: I/O, tasks, and the time.
const IMPURE: [&str; 22] = [
    "tokio",
    "axum",
    "hyper",
    "kube::*",
    "kube::Client",
    "kube::Api",
    "kube::api::Api",
    "kube::client",
    "kube_runtime",
    "Timestamp::now",
    "Zoned::now",
    "SystemTime",
    "Instant",
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    // Not all of std::net: an address is a value.
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "ToSocketAddrs",
    "std::os",
];

// --- reading Rust, as far as paths need it -------------------------------------------------------------

/// The source without comments, and with empty strings.
fn strip(source: &str) -> String {
    let text: Vec<char> = source.chars().collect();
    let at = |index: usize| text.get(index).copied().unwrap_or('\0');
    let mut out = String::new();
    let mut index = 0;
    while index < text.len() {
        let in_word = out.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        match (at(index), at(index + 1)) {
            ('/', '/') => {
                while index < text.len() && at(index) != '\n' {
                    index += 1;
                }
            }
            ('/', '*') => {
                let mut depth = 0;
                loop {
                    match (at(index), at(index + 1)) {
                        ('/', '*') => (depth, index) = (depth + 1, index + 2),
                        ('*', '/') => (depth, index) = (depth - 1, index + 2),
                        _ => index += 1,
                    }
                    if depth == 0 || index >= text.len() {
                        break;
                    }
                }
            }
            ('r', '"' | '#') if !in_word && raw_string(&text, index).is_some() => {
                index = raw_string(&text, index).unwrap();
                out.push_str("\"\"");
            }
            ('"', _) => {
                index += 1;
                while index < text.len() && at(index) != '"' {
                    index += if at(index) == '\\' { 2 } else { 1 };
                }
                index += 1;
                out.push_str("\"\"");
            }
            // A character, not a lifetime.
            ('\'', next) if next == '\\' || at(index + 2) == '\'' => {
                index += if next == '\\' { 3 } else { 2 };
                while index < text.len() && at(index) != '\'' {
                    index += 1;
                }
                index += 1;
            }
            (character, _) => {
                out.push(character);
                index += 1;
            }
        }
    }
    out
}

/// Where the raw string that begins at `start` ends, if one does.
fn raw_string(text: &[char], start: usize) -> Option<usize> {
    let hashes = text[start + 1..].iter().take_while(|character| **character == '#').count();
    let open = start + 1 + hashes;
    (text.get(open) == Some(&'"')).then_some(())?;
    let is_end = |index: &usize| {
        text[*index] == '"'
            && text[index + 1..].iter().take(hashes).filter(|character| **character == '#').count() == hashes
    };
    (open + 1..text.len()).find(is_end).map(|end| end + 1 + hashes)
}

/// Words, `::`, and single characters.
fn tokens(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let length = if rest.starts_with("::") {
            2
        } else if is_word(first) {
            rest.find(|character| !is_word(character)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        if !token.trim().is_empty() {
            found.push(token.to_owned());
        }
        rest = after;
    }
    found
}

/// The tokens without the items that stand under `#[cfg(test)]`: a test may do what it likes.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let marker = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        if !tokens[index..].iter().take(marker.len()).eq(marker.iter()) {
            kept.push(tokens[index].clone());
            index += 1;
            continue;
        }
        index += marker.len();
        // To the end of the item: its `;`, or the `}` that closes its body.
        let mut depth = 0;
        while index < tokens.len() {
            let token = tokens[index].as_str();
            index += 1;
            match token {
                "{" | "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                "}" => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                ";" if depth == 0 => break,
                _ => {}
            }
        }
    }
    kept
}

fn is_word(token: Option<&String>) -> bool {
    token.is_some_and(|token| token.starts_with(|first: char| first.is_alphabetic() || first == '_'))
}

/// Every path of the code, with `use` trees unfolded.
fn paths(tokens: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        // A method or a field is no path.
        let after_dot = index > 0 && tokens[index - 1] == ".";
        if is_word(tokens.get(index)) && !after_dot {
            index = unfold(tokens, index, Vec::new(), &mut found);
        } else {
            index += 1;
        }
    }
    found
}

/// Reads the path, or the tree of a `use`, that begins at `index`; returns where it ends.
fn unfold(tokens: &[String], mut index: usize, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let token = |index: usize| tokens.get(index).map_or("", String::as_str);
    loop {
        match token(index) {
            "{" => {
                index += 1;
                while index < tokens.len() && token(index) != "}" {
                    if is_word(tokens.get(index)) || ["{", "*"].contains(&token(index)) {
                        index = unfold(tokens, index, path.clone(), found);
                        // `a as b`
                        while index < tokens.len() && ![",", "}"].contains(&token(index)) {
                            index += 1;
                        }
                    } else {
                        index += 1;
                    }
                }
                return index + 1;
            }
            "self" if !path.is_empty() => index += 1,
            name => {
                path.push(name.to_owned());
                index += 1;
            }
        }
        let goes_on = is_word(tokens.get(index + 1)) || ["{", "*"].contains(&token(index + 1));
        if token(index) != "::" || !goes_on {
            found.push(path);
            return index;
        }
        index += 1;
    }
}

/// A path from the root of the crate, if it is one of the crate; `file` is the module in which it stands.
fn resolve(path: &[String], file: &[String]) -> Option<Vec<String>> {
    let mut base = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => file.to_vec(),
        _ => return None,
    };
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" | "self" => {}
            "super" => drop(base.pop()),
            _ => break,
        }
        rest = after;
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

// --- the rules -------------------------------------------------------------------------------------------

fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|other| *other == module)
}

/// What is wrong with a file; `module` is its path, `pod::view` for example.
fn faults(module: &str, source: &str) -> Vec<String> {
    let file: Vec<String> = module.split("::").map(str::to_owned).collect();
    let own = file[0].as_str();
    let mut faults = Vec::new();
    for path in paths(&without_tests(&tokens(&strip(source)))) {
        let Some(target) = resolve(&path, &file) else {
            let names = |impure: &&&str| {
                let impure: Vec<_> = impure.split("::").collect();
                path.windows(impure.len()).any(|part| part.iter().eq(impure.iter()))
            };
            let impure = IMPURE.iter().filter(|_| PURE.contains(&own)).find(names);
            faults.extend(impure.map(|impure| format!("is pure and names {impure}")));
            continue;
        };
        let Some(target) = target.first().map(String::as_str) else { continue };
        if target == "*" {
            faults.push("imports the whole crate".to_owned());
        } else if rank(target) > rank(own) {
            faults.push(format!("imports {target}, which is higher"));
        } else if own == "telemetry" && target != own && rank(target).is_some() {
            faults.push(format!("imports {target}: it stands beside the others and imports none of them"));
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        // Tests of a pure module may do what they like.
        .filter(|path| path.iter().all(|part| part != "tests.rs" && part != "tests"))
        .collect()
}

/// `pod/view.rs` is `pod::view`, `pod/mod.rs` is `pod`.
fn module_of(path: &Path) -> String {
    let parts = path.with_extension("");
    let parts: Vec<_> = parts.iter().map(|part| part.to_str().unwrap()).collect();
    parts.strip_suffix(&["mod"]).unwrap_or(&parts).join("::")
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn lower_modules_import_no_higher_ones_and_pure_ones_do_no_io() {
    let source = source();
    let mut found = Vec::new();
    let mut count = 0;
    for path in ORDER.iter().flat_map(|module| files(&source.join(module))) {
        count += 1;
        // Below the folder of the package only: its own path may hold any name.
        let module = module_of(path.strip_prefix(&source).unwrap());
        let faults = faults(&module, &fs::read_to_string(&path).unwrap());
        found.extend(faults.into_iter().map(|fault| format!("{}: {fault}", path.display())));
    }
    assert!(count > 30, "only {count} files were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_module_has_a_place_in_the_order() {
    let library = fs::read_to_string(source().join("lib.rs")).unwrap();
    let modules = library.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    let without: Vec<_> = modules.filter(|module| !ORDER.contains(module)).collect();
    assert!(without.is_empty(), "{without:?} have no place");
}

#[test]
fn what_is_forbidden_is_found() {
    let forbidden = [
        ("pod", "use crate::controller::Settings;"),
        ("pod", "use crate::{api::v1alpha1::{A, B}, plan::Plan};"),
        ("pod", "use crate::{\n    api,\n    plan::{self, Plan as P},\n};"),
        ("pod::view", "use super::super::plan::Plan;"),
        ("diagnose::wait::host", "use super::super::super::{api, cluster};"),
        ("pod", "fn f() { let x = crate::plan::plan(); }"),
        ("api", "use crate::*;"),
        ("cluster", "use crate::telemetry::health;"),
        ("telemetry", "use crate::api;"),
        ("plan", "let now = Timestamp::now();"),
        ("plan", "let now = jiff::Timestamp::now();"),
        ("api", "use kube::{Client, Resource};"),
        ("api", "use kube::{CustomResource, client::{self}};"),
        ("diagnose", "use std::{collections::HashMap, fs};"),
        ("diagnose", "use std::time::{Duration, Instant};"),
        ("diagnose", "fn f() { ::tokio::spawn(async {}); }"),
        // What stands behind the tests of a file, or behind a string with slashes in it, counts as well.
        ("pod", "#[cfg(test)]\nmod tests;\nuse crate::plan::Plan;"),
        ("pod", "#[cfg(test)]\nmod tests { fn f() { [0; 3]; } }\nuse crate::plan::Plan;"),
        ("pod", "const URL: &str = \"http://x\"; use crate::plan::Plan;"),
        ("pod", "const QUOTE: char = '\"'; use crate::plan::Plan; const OTHER: char = '\"';"),
        ("pod", "const RAW: &str = r#\"a \" b\"#; use crate::plan::Plan;"),
    ];
    for (module, source) in forbidden {
        assert_eq!(faults(module, source).len(), 1, "in {module}: {source}");
    }
}

#[test]
fn what_is_allowed_is_not_reported() {
    let allowed = [
        ("plan", "use crate::{api, pod::view};\n// Timestamp::now in a comment, /* tokio */ too"),
        ("plan", "/// Like tokio::time.\n/* crate::cluster /* nested */ crate::cli */ fn f() {}"),
        ("plan", "const TEXT: &str = \"crate::cluster and tokio::spawn\";"),
        ("plan::life", "use super::observed::Fate; use super::super::pod;"),
        ("plan", "#[cfg(test)]\nmod tests { use crate::cluster; fn f() { tokio::spawn(async {}); } }"),
        ("plan", "fn f<'a>(pod: &'a Pod) -> Option<&'a str> { pod.instant.tokio }"),
        ("api", "use kube::{CustomResource, KubeSchema};"),
        ("diagnose", "use std::net::IpAddr; use std::time::Duration;"),
        ("cluster", "use tokio::time; use crate::plan; use kube::{Api, Client};"),
        ("controller", "use crate::telemetry::health;"),
    ];
    for (module, source) in allowed {
        assert_eq!(faults(module, source), Vec::<String>::new(), "in {module}: {source}");
    }
}
