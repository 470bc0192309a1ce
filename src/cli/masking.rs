//! Reads a team's own masking rules.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::diagnose::log::{MaskRule, Masker, MaskerError};

/// Largest file.
const MAX_BYTES: u64 = 1024 * 1024;
/// Most rules in it: each costs a little on every line of every log.
const MAX_RULES: usize = 500;

/// Why a file of rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum MaskingRulesError {
    #[error("--masking-rules {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("--masking-rules {}: larger than 1 MiB", .0.display())]
    TooLarge(PathBuf),
    #[error("--masking-rules {}: {reason} (config/examples/masking-rules.yaml shows the form)", path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error("--masking-rules {}: {count} rules; at most {MAX_RULES}", path.display())]
    TooMany { path: PathBuf, count: usize },
    #[error("--masking-rules {}: {source}", path.display())]
    Invalid { path: PathBuf, source: MaskerError },
}

/// The shipped rules and those of a file.
pub(super) fn masker(path: Option<&Path>) -> Result<Masker, MaskingRulesError> {
    let Some(path) = path else { return Ok(Masker::shipped()) };
    let unreadable = |source| MaskingRulesError::Unreadable { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    // One byte more than may be, to tell that it is too large, whatever its size says (a pipe has none).
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(MaskingRulesError::TooLarge(path.to_owned()));
    }
    let rules: Vec<MaskRule> = serde_saphyr::from_str(&text).map_err(|error| {
        // The first line names the place; the rest draws it.
        let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
        MaskingRulesError::Malformed { path: path.to_owned(), reason }
    })?;
    if rules.len() > MAX_RULES {
        return Err(MaskingRulesError::TooMany { path: path.to_owned(), count: rules.len() });
    }
    Masker::with_own(&rules).map_err(|source| MaskingRulesError::Invalid { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn with(text: &str) -> Result<Masker, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let name = file.path().display().to_string();
        masker(Some(file.path())).map_err(|error| error.to_string().replace(&name, "FILE"))
    }

    #[test]
    fn own_rules_mask_beside_the_shipped_ones() {
        let masker = with(include_str!("../../config/examples/masking-rules.yaml")).unwrap();
        let text = masker.mask("voucher=ZZ99YY88XX77 password=hunter2", &[]).text.into_owned();
        assert_eq!(text, "voucher=[masked] password=[masked]");
    }

    #[rstest::rstest]
    #[case("- name: a", "missing field")]
    #[case("- {name: a, pattern: x, colour: red}", "colour")]
    #[case("- {name: ours, pattern: '('}", "masking rule \"ours\": ")]
    #[case(
        "- {name: ours, pattern: 'x', masked: ['«y»']}",
        "masking rule \"ours\": its sample \"y\" becomes"
    )]
    #[case("- {name: ours, pattern: 'x', untouched: ['an x']}", "which must stay, becomes")]
    fn a_broken_file_names_what_is_wrong(#[case] text: &str, #[case] expected: &str) {
        let message = with(text).unwrap_err();
        assert!(message.starts_with("--masking-rules FILE: ") && message.contains(expected), "{message}");
        assert!(!message.contains('\n'), "one line: {message}");
    }

    #[test]
    fn a_file_that_is_not_there_or_too_large_is_said() {
        let message = masker(Some(Path::new("/nowhere/rules.yaml"))).unwrap_err().to_string();
        assert_eq!(message, "--masking-rules /nowhere/rules.yaml: No such file or directory (os error 2)");
        assert_eq!(
            with(&" ".repeat(1024 * 1024 + 1)).unwrap_err(),
            "--masking-rules FILE: larger than 1 MiB"
        );
    }
}
