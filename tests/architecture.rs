//! Modules may import downwards only, and the pure ones do no I/O. See docs/architecture.md.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails must say so")]

use std::fs;
use std::path::{Path, PathBuf};

/// From the lowest to the highest. `telemetry` stands beside them: it imports none of them.
const ORDER: [&str; 8] = ["api", "pod", "diagnose", "plan", "cluster", "telemetry", "controller", "cli"];
/// Values in, values out.
const PURE: [&str; 4] = ["api", "pod", "diagnose", "plan"];
/// What a pure module must not name: I/O, tasks, and the time.
const IMPURE: [&str; 12] = [
    "tokio",
    "kube::Client",
    "kube::Api",
    "kube_runtime",
    "Timestamp::now",
    "SystemTime",
    "Instant",
    "std::fs",
    // Not all of std::net: an address is a value.
    "TcpStream",
    "UdpSocket",
    "ToSocketAddrs",
    "std::env",
];

/// Code without comments and without the test module at the end of a file.
fn code(source: &str) -> String {
    let lines = source.lines().take_while(|line| !line.trim_start().starts_with("#[cfg(test)]"));
    lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The top-level modules that a piece of code names through `crate::`.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            // `use crate::{a::b, c}`: the first name of each part at the outermost level.
            let (mut depth, mut start) = (0, true);
            let mut name = String::new();
            for character in group.chars() {
                match character {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => start = true,
                    _ if character.is_alphanumeric() || character == '_' => {
                        if start && depth == 0 {
                            name.push(character);
                        }
                        continue;
                    }
                    _ => {}
                }
                if !name.is_empty() {
                    found.push(std::mem::take(&mut name));
                    start = character == ',';
                }
            }
            found.extend((!name.is_empty()).then_some(name));
        } else {
            let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_');
            found.push(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
    found
}

/// What is wrong with a file of a module.
fn faults(module: &str, source: &str) -> Vec<String> {
    let code = code(source);
    let rank = |name: &str| ORDER.iter().position(|other| *other == name);
    let own = rank(module);
    let upward = imports(&code).into_iter().filter(|name| rank(name) > own && rank(name).is_some());
    let mut faults: Vec<_> = upward.map(|name| format!("imports {name}, which is higher")).collect();
    if PURE.contains(&module) {
        let impure = IMPURE.iter().filter(|word| code.contains(**word));
        faults.extend(impure.map(|word| format!("is pure and names {word}")));
    }
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

#[test]
fn lower_modules_import_no_higher_ones_and_pure_ones_do_no_io() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut count = 0;
    for module in ORDER {
        for path in files(&source.join(module)) {
            count += 1;
            let faults = faults(module, &fs::read_to_string(&path).unwrap());
            found.extend(faults.into_iter().map(|fault| format!("{}: {fault}", path.display())));
        }
    }
    assert!(count > 30, "only {count} files were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_module_has_a_place_in_the_order() {
    let library = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let modules = library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let without: Vec<_> = modules.filter(|module| !ORDER.contains(module)).collect();
    assert!(without.is_empty(), "{without:?} have no place");
}

#[test]
fn this_test_can_fail() {
    assert_eq!(faults("pod", "use crate::controller::Settings;").len(), 1);
    assert_eq!(faults("pod", "use crate::{api::v1alpha1::{A, B}, plan::Plan};").len(), 1);
    assert_eq!(faults("plan", "let now = Timestamp::now();").len(), 1);
    assert!(faults("plan", "use crate::{api, pod::view};\n// Timestamp::now in a comment").is_empty());
    assert!(faults("cluster", "use tokio::time; use crate::plan;").is_empty());
}
