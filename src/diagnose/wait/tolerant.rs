//! For a script that no parser takes (fish, a syntax error, a template left unfilled): its lines are searched for
//! tools that we know. Loops and negations are guesses then.

use super::environment::Environment;
use super::marked;
use super::script::{Findings, duration};
use super::tools::{self, Lookup, Recognised};
use super::types::LoopShape;
use super::{MAX_SCRIPT_BYTES, command};

/// Words of a shell that may stand before a command.
const KEYWORDS: [&str; 14] =
    ["if", "then", "else", "elif", "until", "while", "do", "!", "not", "and", "or", "{", "(", "begin"];

/// Most commands that are looked at.
const MAX_COMMANDS: usize = 2000;

/// Searches a script with the variables of the container.
pub(super) fn scan_with_environment(script: &str, environment: &Environment, findings: &mut Findings) {
    scan(script, &|name| environment.get(name).map(str::to_owned), findings);
}

/// Searches a script with the variables that `lookup` knows.
pub(super) fn scan(script: &str, lookup: &Lookup<'_>, findings: &mut Findings) {
    let end =
        (0..=MAX_SCRIPT_BYTES.min(script.len())).rev().find(|end| script.is_char_boundary(*end)).unwrap_or(0);
    let script = script.get(..end).unwrap_or("");
    let loops = ["until ", "while ", "for "].iter().any(|word| script.contains(word));
    let counted = ["for ", "-gt", "-ge", "-lt", "exit 1", "{1.."].iter().any(|word| script.contains(word));
    let sleep = script
        .split_once("sleep ")
        .and_then(|(_, rest)| rest.split([';', '\n', ' ', '&', '|']).next())
        .and_then(duration);
    let around = loops.then_some(LoopShape { unbounded: !counted, sleep });
    for text in script.split([';', '\n', '|', '&', '`']).take(MAX_COMMANDS) {
        let mut words = words(text, lookup);
        let keywords = words.iter().take_while(|word| KEYWORDS.contains(&word.as_str())).count();
        let before: Vec<String> = words.drain(..keywords).collect();
        let negated = before.iter().any(|word| word == "!" || word == "not");
        if before.iter().any(|word| word == "while") && !negated {
            continue;
        }
        let (command::Unwrapped::Program(words), _) = command::unwrap(words) else {
            continue;
        };
        if let Recognised::Targets(found) = tools::recognise(&words, lookup) {
            for one in found {
                findings.target(one, text, around);
            }
        }
    }
}

/// The words of one command: split at whitespace, quotes taken off, plain variables filled in.
fn words(text: &str, lookup: &Lookup<'_>) -> Vec<String> {
    text.split_whitespace()
        .map(|word| word.trim_matches(['"', '\'', ')', '(']))
        .take_while(|word| !word.starts_with('#') && !word.starts_with('>') && !word.starts_with("2>"))
        .filter(|word| !word.is_empty())
        .take(64)
        .map(|word| variables(word, lookup))
        .collect()
}

fn variables(word: &str, lookup: &Lookup<'_>) -> String {
    let mut output = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        output.push_str(before);
        let braced = after.strip_prefix('{');
        let body = braced.unwrap_or(after);
        let end = body.find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
        let (name, behind) = body.split_at_checked(end.unwrap_or(body.len())).unwrap_or((body, ""));
        if name.is_empty() {
            output.push('$');
        } else {
            output.push_str(&lookup(name).unwrap_or_else(|| marked::unknown(name)));
        }
        rest = match (braced, behind.split_once('}')) {
            (Some(_), Some((_, after_brace))) => after_brace,
            _ => behind,
        };
    }
    output.push_str(rest);
    marked::bound(output)
}
