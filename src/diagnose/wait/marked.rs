//! Texts in which unknown parts are marked.
//!
//! A marked text is a string in which a variable without a known value stands as `OPEN name CLOSE`, two characters
//! of the Unicode private use area. So the usual string operations and the shell parser work on it, and
//! `$DB_HOST:5432` splits into an unknown host and a known port. [`clean`] takes the two characters out of every
//! input first.

use super::types::{Port, Value};

const OPEN: char = '\u{E000}';
const CLOSE: char = '\u{E001}';

/// Longest marked text that an expansion may produce, in bytes. Nobody waits for a longer name.
pub(super) const MAX_TEXT_BYTES: usize = 8 * 1024;

const MAX_VARIABLES: usize = 8;

/// The input without our two marks.
pub(super) fn clean(input: &str) -> String {
    input.chars().filter(|character| !matches!(*character, OPEN | CLOSE)).collect()
}

/// A mark for the value of the variable `name`.
pub(super) fn unknown(name: &str) -> String {
    let mut mark = String::with_capacity(name.len() + 6);
    mark.push(OPEN);
    // A name must not contain what hosts, URLs and addresses are split at.
    mark.extend(name.chars().take(64).map(|character| {
        if character.is_alphanumeric() || matches!(character, '_' | '.' | '-' | '?' | '…' | '(' | ')') {
            character
        } else {
            '_'
        }
    }));
    mark.push(CLOSE);
    mark
}

/// A mark for the output of a command.
pub(super) fn command_output() -> String {
    unknown("(…)")
}

/// Whether any part is unknown.
pub(super) fn has_unknown(text: &str) -> bool {
    text.contains(OPEN)
}

/// The public form of a marked text.
pub(super) fn to_value(marked: &str) -> Value {
    if !has_unknown(marked) {
        return Value::Known(marked.to_owned());
    }
    let mut text = String::with_capacity(marked.len());
    let mut variables = Vec::new();
    let mut rest = marked;
    while let Some((before, after)) = rest.split_once(OPEN) {
        text.push_str(before);
        let (name, behind) = after.split_once(CLOSE).unwrap_or((after, ""));
        text.push('$');
        let joined = behind.chars().next().is_some_and(|next| next.is_alphanumeric() || next == '_');
        if joined && !name.starts_with('(') {
            text.push('{');
            text.push_str(name);
            text.push('}');
        } else {
            text.push_str(name);
        }
        if variables.len() < MAX_VARIABLES
            && !name.starts_with('(')
            && !variables.iter().any(|seen| seen == name)
        {
            variables.push(name.to_owned());
        }
        rest = behind;
    }
    text.push_str(rest);
    Value::Unknown { text, variables }
}

/// A port from a marked text; none for an empty text and for a number that is no port.
pub(super) fn to_port(marked: &str) -> Option<Port> {
    match to_value(marked.trim()) {
        Value::Unknown { text, variables } => Some(Port::Unknown { text, variables }),
        Value::Known(text) if text.is_empty() => None,
        Value::Known(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().ok().filter(|number| *number != 0).map(Port::Number)
        }
        Value::Known(text) => Some(Port::Named(text)),
    }
}

/// Splits `host:port`, `[::1]:port`, `host` and a bare IPv6 address.
pub(super) fn split_host_port(address: &str) -> (&str, Option<&str>) {
    let address = address.trim();
    if let Some(inner) = address.strip_prefix('[')
        && let Some((host, rest)) = inner.split_once(']')
    {
        return (host, rest.strip_prefix(':').filter(|port| !port.is_empty()));
    }
    match address.split_once(':') {
        Some((_, port)) if port.contains(':') && !has_unknown(address) => (address, None),
        Some((host, port)) => (host, Some(port).filter(|port| !port.is_empty())),
        None => (address, None),
    }
}

/// Cuts a text that grew too long, and marks it as not fully known.
pub(super) fn bound(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES { text } else { unknown("(too long)") }
}
