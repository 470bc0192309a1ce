//! Real commands, and what they wait for.

mod corpus;
mod programs;
mod properties;
mod scripts;

use std::fmt::Write as _;

use super::*;

/// The short form of a target: `tcp db:5432`, `name db`, `object job/x -n ns -l sel (complete)`, `file /x`; a check
/// that is made once is followed by ` once`, an unbounded one by ` forever`.
fn shown(target: &WaitTarget) -> String {
    let mut text = match &target.kind {
        TargetKind::Network { host, port, protocol } => {
            let protocol = format!("{protocol:?}").to_ascii_lowercase();
            match port {
                Some(port) => format!("{protocol} {host}:{port}"),
                None => format!("{protocol} {host}"),
            }
        }
        TargetKind::Name { host } => format!("name {host}"),
        TargetKind::KubernetesObject { kind, name, namespace, selector, condition } => {
            let mut text = format!("object {kind}");
            for (before, part) in [("/", name), (" -n ", namespace), (" -l ", selector)] {
                if let Some(part) = part {
                    let _ = write!(text, "{before}{part}");
                }
            }
            if let Some(condition) = condition {
                let _ = write!(text, " ({condition})");
            }
            text
        }
        TargetKind::File { path } => format!("file {path}"),
    };
    match target.repeats {
        None => text.push_str(" once"),
        Some(shape) if shape.unbounded => text.push_str(" forever"),
        Some(_) => {}
    }
    text
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `NAME=value` is a literal, `NAME` alone a reference.
fn environment(entries: &[&str]) -> Vec<EnvVariable> {
    entries
        .iter()
        .map(|entry| match entry.split_once('=') {
            Some((name, value)) => {
                EnvVariable { name: name.to_owned(), value: EnvValue::Literal(value.to_owned()) }
            }
            None => EnvVariable { name: (*entry).to_owned(), value: EnvValue::Reference },
        })
        .collect()
}

fn of_script(script: &str, env: &[&str]) -> WaitAnalysis {
    let command = strings(&["sh", "-c", script]);
    let env = environment(env);
    analyse(&ContainerCommand { command: &command, env: &env, ..ContainerCommand::default() })
}

fn all_shown(analysis: &WaitAnalysis) -> Vec<String> {
    analysis.targets.iter().map(shown).collect()
}
