//! Masks secrets in texts before they are stored, printed or put into an Event.
//!
//! Best effort, and said so: a secret that looks like a word is a word. Patterns are data
//! (`config/masking.yaml`), each with samples that the tests replay.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::Deserialize;

/// What stands in the place of a secret.
const MASK: &str = "[masked]";
/// Size of a compiled pattern, in bytes.
const MAX_COMPILED: usize = 4 << 20;
/// Secrets of a text that are looked for in all of it.
const MAX_AGAIN: usize = 64;
/// A literal that is shorter stands in ordinary text as well.
const MIN_LITERAL: usize = 6;

/// A pattern.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskRule {
    /// Name, for messages.
    pub name: String,
    /// Regular expression; its group `secret` is masked, or all of it where there is none.
    pub pattern: String,
    /// Samples with the secret marked by `«…»`.
    #[serde(default)]
    pub masked: Vec<String>,
    /// Samples that must stay as they are.
    #[serde(default)]
    pub untouched: Vec<String>,
}

/// A pattern that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("masking rule {name:?}: {reason}")]
pub struct MaskerError {
    name: String,
    reason: String,
}

/// A masked text.
#[derive(Clone, Debug, PartialEq)]
pub struct Masked<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// How many secrets were masked.
    pub count: usize,
}

/// Masks secrets.
#[derive(Clone, Debug)]
pub struct Masker {
    patterns: Vec<Regex>,
    /// The same, to find out in one pass which of them match.
    set: RegexSet,
}

static SHIPPED: LazyLock<Vec<MaskRule>> = LazyLock::new(|| {
    // A broken file cannot get into a release: the tests below read it.
    serde_saphyr::from_str(include_str!("../../../config/masking.yaml")).unwrap_or_default()
});

impl Masker {
    /// The shipped patterns.
    pub fn shipped() -> Self {
        // Each of them compiles, as the tests below prove; were it otherwise, the others still mask.
        Self::of(SHIPPED.iter().filter_map(|rule| compile(rule).ok()).collect())
    }

    /// The shipped patterns and a team's own.
    ///
    /// # Errors
    /// Names the first rule that is not valid or too large, or of which a sample does not hold.
    pub fn with_own(rules: &[MaskRule]) -> Result<Self, MaskerError> {
        let mut patterns = Self::shipped().patterns;
        for rule in rules {
            patterns.push(compile(rule)?);
        }
        let masker = Self::of(patterns);
        for rule in rules {
            rule.check(&masker)?;
        }
        Ok(masker)
    }

    fn of(patterns: Vec<Regex>) -> Self {
        let texts = patterns.iter().map(Regex::as_str);
        let set = RegexSetBuilder::new(texts).size_limit(MAX_COMPILED * 16).build();
        // Each compiles by itself; should they be too large together, each is tried in its turn.
        let set = set.unwrap_or_else(|_| every(patterns.len()));
        Self { patterns, set }
    }

    /// Masks what the patterns find, and the literal values of `literals`.
    pub fn mask<'t>(&self, text: &'t str, literals: &[String]) -> Masked<'t> {
        let mut found: Vec<Range<usize>> = Vec::new();
        // One pass says which patterns are worth a closer look: in most texts none.
        for index in self.set.matches(text) {
            let pattern = self.patterns.get(index).into_iter();
            found.extend(
                pattern
                    .flat_map(|pattern| pattern.captures_iter(text))
                    .filter_map(|captures| secret_of(&captures, text)),
            );
        }
        // What was a secret in one line is one in the next.
        let again: BTreeSet<&str> = found
            .iter()
            .filter_map(|range| text.get(range.clone()))
            .filter(|secret| is_no_word(secret))
            .take(MAX_AGAIN)
            .collect();
        for secret in again {
            found.extend(text.match_indices(secret).map(|(at, _)| at..at + secret.len()));
        }
        for literal in literals.iter().filter(|literal| literal.len() >= MIN_LITERAL) {
            found.extend(text.match_indices(literal.as_str()).map(|(at, _)| at..at + literal.len()));
        }
        found.sort_by_key(|range| (range.start, range.end));
        let mut out = String::new();
        let (mut from, mut count) = (0, 0);
        for Range { start, end } in found {
            if start >= from {
                out.push_str(text.get(from..start).unwrap_or_default());
                out.push_str(MASK);
                count += 1;
            }
            from = from.max(end);
        }
        if count == 0 {
            return Masked { text: Cow::Borrowed(text), count };
        }
        out.push_str(text.get(from..).unwrap_or_default());
        Masked { text: Cow::Owned(out), count }
    }
}

/// A set that matches any text with each of so many patterns.
fn every(count: usize) -> RegexSet {
    RegexSet::new(std::iter::repeat_n("", count)).unwrap_or_else(|_| RegexSet::empty())
}

impl MaskRule {
    /// Whether its own samples hold.
    ///
    /// # Errors
    /// Names the first that does not.
    pub fn check(&self, masker: &Masker) -> Result<(), MaskerError> {
        let fail = |reason: String| Err(MaskerError { name: self.name.clone(), reason });
        for sample in &self.masked {
            let plain = sample.replace(['«', '»'], "");
            let after = masker.mask(&plain, &[]).text.into_owned();
            let mut secrets = sample.split('«').skip(1).filter_map(|part| part.split('»').next());
            if secrets.any(|secret| after.contains(secret)) || !after.contains(MASK) {
                return fail(format!("its sample {plain:?} becomes {after:?}"));
            }
        }
        for sample in &self.untouched {
            let after = masker.mask(sample, &[]);
            if after.count > 0 {
                return fail(format!("its sample {sample:?}, which must stay, becomes {:?}", after.text));
            }
        }
        Ok(())
    }
}

/// Whether a secret is none that stands in ordinary text as well: `postgres` is a password, and the name of everything.
fn is_no_word(secret: &str) -> bool {
    let has_digit = secret.bytes().any(|byte| byte.is_ascii_digit());
    secret.len() >= 12 || (secret.len() >= 8 && has_digit)
}

fn compile(rule: &MaskRule) -> Result<Regex, MaskerError> {
    let built = RegexBuilder::new(&rule.pattern).size_limit(MAX_COMPILED).multi_line(false).build();
    built.map_err(|error| MaskerError { name: rule.name.clone(), reason: one_line(&error.to_string()) })
}

/// The last line of an error: the others draw the place.
fn one_line(text: &str) -> String {
    text.lines().next_back().unwrap_or_default().trim().to_owned()
}

/// Where the secret of a match stands; none where it is no secret after all.
fn secret_of(captures: &Captures<'_>, text: &str) -> Option<Range<usize>> {
    let secret = captures.name("secret").or_else(|| captures.get(0))?;
    let (value, quoted) = unquoted(secret.as_str());
    if value.is_empty() || value.contains(MASK) || MASK.contains(value) || is_hidden(value) {
        return None;
    }
    let start = secret.start() + secret.as_str().find(value).unwrap_or(0);
    let end = start + value.len();
    if let Some(separator) = captures.name("separator") {
        let assigned = Assigned {
            name: captures.name("name").map_or("", |name| name.as_str()),
            separator: separator.as_str(),
            value,
            quoted,
            rest: text.get(secret.end()..).unwrap_or_default(),
        };
        if !assigned.is_secret() {
            return None;
        }
    }
    Some(start..end)
}

/// What stands between quotes, which may be escaped; of what is not quoted all but a bracket that was opened before it.
fn unquoted(text: &str) -> (&str, bool) {
    for (open, close) in [("\\\"", "\\\""), ("\"", "\""), ("'", "'")] {
        if let Some(inner) = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)) {
            return (inner, true);
        }
    }
    let mut value = text;
    for (open, close) in [('{', '}'), ('[', ']'), ('(', ')'), ('<', '>')] {
        if !value.contains(open) {
            value = value.trim_end_matches(close);
        }
    }
    (value.trim_end_matches('\\'), false)
}

/// Somebody has hidden it already.
fn is_hidden(value: &str) -> bool {
    value.len() > 2 && value.chars().all(|character| matches!(character, '*' | 'x' | 'X' | '.' | '•'))
}

/// What is assigned to something that is called like a secret.
struct Assigned<'t> {
    name: &'t str,
    separator: &'t str,
    value: &'t str,
    quoted: bool,
    rest: &'t str,
}

/// Values that say something about a secret.
const NO_VALUES: [&str; 31] = [
    "null",
    "none",
    "nil",
    "true",
    "false",
    "yes",
    "no",
    "unset",
    "empty",
    "required",
    "invalid",
    "expired",
    "missing",
    "not",
    "is",
    "was",
    "the",
    "must",
    "undefined",
    "redacted",
    "unknown",
    "denied",
    "failed",
    "error",
    "ok",
    "bearer",
    "basic",
    "digest",
    "set",
    "loaded",
    "aws4-hmac-sha256",
];

impl Assigned<'_> {
    /// Whether it is a value, and not a reference, a place or prose.
    fn is_secret(&self) -> bool {
        let value = self.value;
        let lower = value.to_ascii_lowercase();
        let is_reference = value.starts_with(['$', '<', '{', '%', '[', '(', '`']) || value.starts_with("--");
        if is_reference || NO_VALUES.contains(&lower.trim_end_matches(['.', ',', ')'])) {
            return false;
        }
        let name = self.name.to_ascii_lowercase();
        let is_password = ["password", "passwd", "pwd", "passcode"].iter().any(|end| name.ends_with(end));
        if !is_password {
            // `pass: 12`, `credentials:1102]`: a count, or a line of a source file.
            if value.bytes().all(|byte| byte.is_ascii_digit()) {
                return false;
            }
            // The place of a key, not the key.
            let is_path = value.starts_with('/') && value.matches('/').count() > 1 || value.starts_with("./");
            if is_path && !value.contains(['+', '=']) {
                return false;
            }
        }
        // The name of a Secret; the kind that the API has.
        let is_object_name = value.contains('-')
            && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && !self.quoted;
        if name == "secret" && is_object_name {
            return false;
        }
        if name == "sig" && self.separator != "=" {
            return false;
        }
        // `token: this one has…` is a sentence; `password: hunter2` at the end of a line, or quoted, is not.
        let is_word = value.chars().all(|character| character.is_ascii_lowercase());
        let more_words = self.rest.starts_with(' ')
            && self.rest.trim_start().starts_with(|next: char| next.is_alphabetic());
        !(self.separator == ":" && !self.quoted && is_word && more_words)
    }
}

/// Whether an environment variable of this name holds a secret. Its literal value is then masked wherever it
/// appears.
pub fn secret_like_env_name(name: &str) -> bool {
    const PARTS: [&str; 12] = [
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "SECRET",
        "TOKEN",
        "APIKEY",
        "API_KEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
        "CREDENTIAL",
        "ACCOUNT_KEY",
        "_PASS",
    ];
    // These name where a secret is, not the secret.
    const PLACES: [&str; 6] = ["_FILE", "_PATH", "_NAME", "_URL", "_DIR", "_EXPIRY"];
    let name = name.to_ascii_uppercase();
    PARTS.iter().any(|part| name.contains(part)) && !PLACES.iter().any(|place| name.ends_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_rule_compiles_and_its_samples_hold() {
        let rules: Vec<MaskRule> =
            serde_saphyr::from_str(include_str!("../../../config/masking.yaml")).unwrap();
        let masker = Masker::shipped();
        assert_eq!(masker.patterns.len(), rules.len());
        assert_eq!(masker.set.len(), rules.len());
        assert!(masker.set.matches("nothing").iter().count() < rules.len(), "the set is the real one");
        for rule in &rules {
            compile(rule).unwrap();
            assert!(!rule.masked.is_empty() && !rule.untouched.is_empty(), "{} has no samples", rule.name);
            rule.check(&masker).unwrap();
        }
    }

    #[test]
    fn values_of_the_pod_are_masked_wherever_they_appear() {
        let masked =
            Masker::shipped().mask("dialing with hunter2hunter2 now", &["hunter2hunter2".to_owned()]);
        assert_eq!((masked.text.as_ref(), masked.count), ("dialing with [masked] now", 1));
        // `true` and `shop` are values as well, and words.
        assert_eq!(Masker::shipped().mask("it is true", &["true".to_owned()]).count, 0);
    }

    #[test]
    fn masking_twice_changes_nothing() {
        let text = "password=hunter2 postgres://a:b@c/d Authorization: Bearer abcdefgh";
        let masker = Masker::shipped();
        let once = masker.mask(text, &[]).text.into_owned();
        assert_eq!(masker.mask(&once, &[]).text, once);
    }

    #[test]
    fn a_broken_rule_is_named() {
        let rule =
            MaskRule { name: "ours".to_owned(), pattern: "(".to_owned(), masked: vec![], untouched: vec![] };
        let error = Masker::with_own(&[rule]).unwrap_err().to_string();
        assert!(error.starts_with("masking rule \"ours\": "), "{error}");
    }

    #[rstest::rstest]
    #[case("DB_PASSWORD", true)]
    #[case("GITHUB_TOKEN", true)]
    #[case("DB_PASSWORD_FILE", false)]
    #[case("SECRET_NAME", false)]
    #[case("COMPASS", false)]
    #[case("PGHOST", false)]
    fn names_tell_secrets(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(secret_like_env_name(name), expected);
    }
}
