//! From a container's `command` and `args` to what it waits for.

use super::environment::{EnvVariable, Environment};
use super::script::{Findings, Walker};
use super::types::{MAX_TARGETS, Parsed, WaitAnalysis};
use super::{marked, opaque, tolerant, tools};

/// The longest script that is read, in bytes; of a longer one the beginning is searched line by line.
pub const MAX_SCRIPT_BYTES: usize = 64 * 1024;

/// Most words of `command` and `args` together that are read.
const MAX_WORDS: usize = 1024;

/// Wrappers around wrappers are followed this deep.
const MAX_WRAPPERS: usize = 8;

/// What a container runs, as its Pod says.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContainerCommand<'a> {
    /// The image: for images whose entry point is itself a tool to wait with, such as `groundnuty/k8s-wait-for`.
    pub image: Option<&'a str>,
    /// `command`; empty: the image's entry point.
    pub command: &'a [String],
    /// `args`.
    pub args: &'a [String],
    /// `env`, in its order.
    pub env: &'a [EnvVariable],
    /// There is `envFrom`: variables may be set whose names are not known.
    pub has_env_from: bool,
}

/// What the container waits for. Pure, bounded, and never panics.
pub fn analyse(container: &ContainerCommand<'_>) -> WaitAnalysis {
    let environment = Environment::new(container.env, container.has_env_from);
    let mut words: Vec<String> = Vec::new();
    if container.command.is_empty()
        && let Some(entry_point) = tools::entry_point(container.image.unwrap_or(""), container.args)
    {
        words.push(entry_point.to_owned());
    }
    for word in container.command.iter().chain(container.args).take(MAX_WORDS) {
        // A longer word is cut, and is then read line by line.
        let cut = word
            .char_indices()
            .nth(MAX_SCRIPT_BYTES + 1)
            .and_then(|(end, _)| word.get(..end))
            .unwrap_or(word);
        words.push(environment.expand(&marked::clean(cut)));
    }
    let (unwrapped, deadline) = unwrap(words);
    let mut walker = Walker::new(&environment);
    let mut parsed;
    let mut findings;
    let mut assigned = Vec::new();
    match unwrapped {
        Unwrapped::Script { text, positional } => {
            parsed = Parsed::Shell;
            if walker.script(&text, positional, deadline) {
                (findings, assigned) = walker.finish();
            } else {
                parsed = Parsed::Tolerant;
                findings = Findings::default();
                tolerant::scan_with_environment(&text, &environment, &mut findings);
            }
        }
        Unwrapped::Program(words) | Unwrapped::ScriptFile(words) if words.is_empty() => {
            parsed = Parsed::Nothing;
            findings = Findings::default();
        }
        Unwrapped::ScriptFile(words) => {
            parsed = Parsed::Nothing;
            findings = Findings::default();
            findings.opaque(words, None);
        }
        Unwrapped::Program(words) => {
            parsed = Parsed::Direct;
            // As written: a variable that the kubelet fills in may be a secret.
            let raw: Vec<&str> =
                container.command.iter().chain(container.args).take(64).map(String::as_str).collect();
            walker.program(words, &raw.join(" "), deadline);
            (findings, assigned) = walker.finish();
            if findings.targets().is_empty() && !findings.opaque.is_empty() {
                parsed = Parsed::Nothing;
            }
        }
    }
    if findings.targets().is_empty() {
        let mut environment = environment.clone();
        for (name, text) in assigned {
            environment.set(name, text);
        }
        opaque::from_environment(&environment, &mut findings);
    }
    let (unbounded_wait, never_ends) = (findings.unbounded_wait, findings.never_ends);
    let mut targets = findings.into_targets();
    targets.truncate(MAX_TARGETS);
    WaitAnalysis {
        never_ends: never_ends && targets.iter().all(|target| target.repeats.is_none()),
        targets,
        unbounded_wait,
        parsed,
    }
}

/// A command without what is wrapped around it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unwrapped {
    /// `sh -c TEXT NAME POSITIONAL…`
    Script {
        /// The script.
        text: String,
        /// `$1`, `$2` …
        positional: Vec<String>,
    },
    /// A shell that runs a file, with its arguments.
    ScriptFile(Vec<String>),
    /// Any other program, with its arguments.
    Program(Vec<String>),
}

/// Takes off `exec`, `timeout 60`, `env A=b`, `dumb-init --`, `busybox` and the like, and finds the script of a shell.
/// The second result: a time limit was among them.
pub(super) fn unwrap(words: Vec<String>) -> (Unwrapped, bool) {
    let mut words = words;
    let mut deadline = false;
    for _ in 0..MAX_WRAPPERS {
        let Some((name, rest)) = words.split_first() else {
            break;
        };
        let inner = match base_name(name) {
            "timeout" | "gtimeout" => {
                deadline = true;
                after_timeout(rest)
            }
            "exec" | "command" | "builtin" | "nohup" | "time" | "setsid" | "busybox" | "toybox"
            | "dumb-init" | "tini" | "tini-static" | "catatonit" | "docker-init" => after_options(rest, &[]),
            "sudo" => after_options(rest, &["-u", "-g"]),
            "nice" | "ionice" | "stdbuf" => after_options(rest, &["-n", "-c"]),
            "env" => after_environment(rest),
            "gosu" | "su-exec" | "setpriv" | "chpst" => after_options(rest, &[]).get(1..).unwrap_or_default(),
            "su" | "runuser" => {
                let script = rest.iter().position(|word| matches!(word.as_str(), "-c" | "-lc"));
                let text = script.and_then(|index| rest.get(index + 1));
                if let Some(text) = text {
                    return (Unwrapped::Script { text: text.clone(), positional: Vec::new() }, deadline);
                }
                break;
            }
            "entrypoint" | "entrypoint.sh" | "docker-entrypoint.sh"
                if rest.first().is_some_and(|word| is_shell(base_name(word))) =>
            {
                rest
            }
            shell if is_shell(shell) => return (shell_script(rest), deadline),
            _ => break,
        };
        words = inner.to_vec();
    }
    (Unwrapped::Program(words), deadline)
}

/// The last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "ash" | "dash" | "ksh" | "mksh" | "zsh" | "fish" | "hush")
}

fn shell_script(words: &[String]) -> Unwrapped {
    let mut runs_text = false;
    let mut index = 0;
    while let Some(word) = words.get(index) {
        if word == "--" || word == "-" {
            index += 1;
            break;
        }
        let Some(flags) = word.strip_prefix(['-', '+']).filter(|flags| !flags.is_empty()) else {
            break;
        };
        if !flags.starts_with('-') {
            runs_text |= flags.contains('c');
            // `-o pipefail` takes a word, also as `-eo pipefail`.
            if flags.ends_with(['o', 'O']) {
                index += 1;
            }
        }
        index += 1;
    }
    let rest = words.get(index..).unwrap_or_default();
    match rest.split_first() {
        Some((text, behind)) if runs_text => {
            Unwrapped::Script { text: text.clone(), positional: behind.iter().skip(1).cloned().collect() }
        }
        _ => Unwrapped::ScriptFile(rest.to_vec()),
    }
}

fn after_options<'w>(words: &'w [String], with_value: &[&str]) -> &'w [String] {
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        if word == "--" {
            return behind;
        }
        if !word.starts_with('-') {
            break;
        }
        rest = if with_value.contains(&word.as_str()) { behind.get(1..).unwrap_or_default() } else { behind };
    }
    rest
}

fn after_timeout(words: &[String]) -> &[String] {
    // Busybox once wanted `timeout -t 60 COMMAND`.
    let old = words.iter().take_while(|word| word.starts_with('-')).any(|word| word == "-t");
    let rest = after_options(words, &["-t", "-k", "-s", "--signal", "--kill-after"]);
    if old { rest } else { rest.get(1..).unwrap_or_default() }
}

fn after_environment(words: &[String]) -> &[String] {
    let mut rest = after_options(words, &["-u"]);
    while let Some((word, behind)) = rest.split_first() {
        if !word.contains('=') || word.starts_with('=') {
            break;
        }
        rest = behind;
    }
    rest
}
