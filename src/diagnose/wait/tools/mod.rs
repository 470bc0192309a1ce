//! The tools that people wait with: which words of their command lines name what they connect to.

mod arguments;
mod clients;
mod code;
mod kubernetes;
mod local;
mod urls;
mod waiters;

pub(super) use urls::{connection_urls, servers};

use super::command::base_name;
use super::types::{LoopShape, TargetKind};

/// A target, and how the tool itself repeats its check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: TargetKind,
    pub(super) tool: &'static str,
    pub(super) repeats: Option<LoopShape>,
}

/// What a command is to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recognised {
    /// It works on files or values: it waits for nothing.
    Local,
    /// A tool that we know, with what it connects to (nothing for `nc -l`).
    Targets(Vec<Found>),
    /// A program that we do not know.
    Unknown,
}

/// The marked value of a variable, for tools that read variables themselves.
pub(super) type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Looks up a command by its words, marked, the program's name first.
pub(super) fn recognise(words: &[String], lookup: &Lookup<'_>) -> Recognised {
    let Some((program, rest)) = words.split_first() else {
        return Recognised::Local;
    };
    let name = base_name(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    if let Some(found) = clients::find(name, rest, lookup)
        .or_else(|| waiters::find(name, rest, lookup))
        .or_else(|| kubernetes::find(name, rest, lookup))
        .or_else(|| code::find(name, rest, lookup))
    {
        return Recognised::Targets(found);
    }
    if local::is_local(name) { Recognised::Local } else { Recognised::Unknown }
}

/// The tool that an image runs when the Pod gives only arguments.
pub(super) fn entry_point(image: &str, args: &[String]) -> Option<&'static str> {
    let first = args.first().map_or("", String::as_str);
    let repository = image.split('@').next().unwrap_or("");
    let last = repository.rsplit('/').next().unwrap_or("");
    match last.split(':').next().unwrap_or("") {
        "k8s-wait-for" => Some("k8s-wait-for"),
        "wait-for-it" | "docker-wait-for-it" => Some("wait-for-it"),
        "dockerize" => Some("dockerize"),
        "wait4x" => Some("wait4x"),
        "kubectl" | "k8s-kubectl"
            if matches!(first, "wait" | "get" | "rollout") || first.starts_with('-') =>
        {
            Some("kubectl")
        }
        "curl" if first.starts_with('-') || first.contains("://") => Some("curl"),
        // Renamed and mirrored images: the arguments have an unmistakable form.
        _ if kubernetes::looks_like_wait_for(args) => Some("k8s-wait-for"),
        _ if waiters::looks_like_address(first) => Some("wait-for-it"),
        _ => None,
    }
}
