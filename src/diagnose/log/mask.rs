//! Masks secrets in texts before they are stored, printed or put into an Event.
//!
//! Best effort, and said so: a secret that looks like a word is a word. Patterns are data
//! (`config/masking.yaml`), each with samples that the tests replay.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexBuilder};
use serde::Deserialize;

/// What stands in the place of a secret.
const MASK: &str = "[masked]";
/// Size of a compiled pattern, in bytes.
const MAX_COMPILED: usize = 4 << 20;
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
}

static SHIPPED: LazyLock<Vec<MaskRule>> = LazyLock::new(|| {
    // A broken file cannot get into a release: the tests below read it.
    serde_saphyr::from_str(include_str!("../../../config/masking.yaml")).unwrap_or_default()
});

impl Masker {
    /// The shipped patterns.
    pub fn shipped() -> Self {
        // Each of them compiles, as the tests below prove; were it otherwise, the others still mask.
        Self { patterns: SHIPPED.iter().filter_map(|rule| compile(rule).ok()).collect() }
    }

    /// The shipped patterns and a team's own.
    ///
    /// # Errors
    /// Names the first rule that is not valid or too large.
    pub fn with_own(rules: &[MaskRule]) -> Result<Self, MaskerError> {
        let mut masker = Self::shipped();
        for rule in rules {
            masker.patterns.push(compile(rule)?);
        }
        Ok(masker)
    }

    /// Masks what the patterns find, and the literal values of `literals`.
    pub fn mask<'t>(&self, text: &'t str, literals: &[String]) -> Masked<'t> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for pattern in &self.patterns {
            found.extend(pattern.captures_iter(text).filter_map(|captures| secret_of(&captures, text)));
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

fn compile(rule: &MaskRule) -> Result<Regex, MaskerError> {
    let built = RegexBuilder::new(&rule.pattern).size_limit(MAX_COMPILED).multi_line(false).build();
    built.map_err(|error| MaskerError { name: rule.name.clone(), reason: error.to_string() })
}

/// Where the secret of a match stands; none where it is no secret after all.
fn secret_of(captures: &Captures<'_>, text: &str) -> Option<Range<usize>> {
    let secret = captures.name("secret").or_else(|| captures.get(0))?;
    let value = secret.as_str();
    if value.contains(MASK) || MASK.contains(value) {
        return None;
    }
    if let Some(separator) = captures.name("separator")
        && !is_secret_value(value, separator.as_str(), text.get(secret.end()..).unwrap_or_default())
    {
        return None;
    }
    Some(secret.range())
}

/// Whether what is assigned to `password` and its like is a value, and not a reference or prose.
fn is_secret_value(value: &str, separator: &str, rest: &str) -> bool {
    const NO_VALUES: [&str; 29] = [
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
    ];
    let bare = value.trim_matches(['"', '\'']);
    let lower = bare.to_ascii_lowercase();
    let is_reference = bare.starts_with(['$', '<', '{', '%', '[', '(', '`']) || bare.starts_with("--");
    let is_hidden =
        bare.len() > 2 && bare.chars().all(|character| matches!(character, '*' | 'x' | 'X' | '.' | '•'));
    if bare.is_empty()
        || is_reference
        || is_hidden
        || NO_VALUES.contains(&lower.trim_end_matches(['.', ',', ')']))
    {
        return false;
    }
    // `token: this one has…` is a sentence; `password: hunter2` at the end of a line, or quoted, is not.
    let quoted = bare.len() != value.len();
    let is_word = bare.chars().all(|character| character.is_ascii_lowercase());
    let more_words =
        rest.starts_with(' ') && rest.trim_start().starts_with(|next: char| next.is_alphabetic());
    !(separator == ":" && !quoted && is_word && more_words)
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
        let mut wrong = Vec::new();
        for rule in &rules {
            compile(rule).unwrap();
            assert!(!rule.masked.is_empty() && !rule.untouched.is_empty(), "{} has no samples", rule.name);
            for sample in &rule.masked {
                let plain = sample.replace(['«', '»'], "");
                let after = masker.mask(&plain, &[]).text.into_owned();
                for secret in sample.split('«').skip(1).filter_map(|part| part.split('»').next()) {
                    if after.contains(secret) || !after.contains(MASK) {
                        wrong.push(format!("{}: {plain:?} became {after:?}", rule.name));
                    }
                }
            }
            for sample in &rule.untouched {
                let after = masker.mask(sample, &[]);
                if after.count > 0 {
                    wrong.push(format!("{}: {sample:?} became {:?}", rule.name, after.text));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
