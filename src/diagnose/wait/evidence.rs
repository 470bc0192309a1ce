//! The fragment of a command that is shown as evidence: short, and without secrets.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::marked;
use super::types::MAX_EVIDENCE_CHARS;

/// How much of a fragment is looked at before it is masked and cut. A mask must see more than is shown, so that a
/// secret is not cut in two and left half masked.
const MAX_RAW_CHARS: usize = 2048;

/// Each pattern keeps its first group and masks what follows it.
static SECRETS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| SECRET_PATTERNS.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect());

/// Options and forms in which people write secrets into commands.
const SECRET_PATTERNS: [&str; 9] = [
    // postgres://user:password@host, https://token@host; a password may hold a slash.
    r#"([A-Za-z][A-Za-z0-9+.\-]*://)[^\s"']+@"#,
    // user:password@tcp(host:3306)
    r#"(^|[\s"'=])[^\s"'=:@/]+:[^\s"'@]+@(?:tcp|unix)\("#,
    // PASSWORD=…, api_key: …, and JSON
    r#"(?i)((?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_\-]?key|access[_\-]?key|credentials?|private[_\-]?key)[A-Za-z0-9_]*["']?\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s"'&;|,)]+)"#,
    // --password …
    r#"(?i)((?:^|\s)--?[a-z\-]*(?:pass(?:word|wd|phrase)?|secret|token|api-?key|access-?key)\s+)(?:"[^"]*"|'[^']*'|[^\s"'&;|,)]+)"#,
    // Authorization: Bearer …
    r#"(?i)(authorization:?\s+(?:bearer|basic|token)?\s*)[^\s"']+"#,
    r"(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}",
    // curl -u user:password, --user=user:password
    r#"(\s(?:-u\s*|--(?:proxy-)?user(?:=|\s+))["']?)[^\s"':]*:[^\s"']*"#,
    // mysql -psecret; redis-cli -a secret
    r"(\b(?:mysql\w*|mariadb[\w\-]*)\b.*?\s-p)[^\s]+",
    r"(\bredis-cli\b.*?\s-a\s*)[^\s]+",
];

/// The evidence for a fragment of a command, at most [`MAX_EVIDENCE_CHARS`] characters on one line.
pub(super) fn fragment(raw: &str) -> String {
    let mut text = String::new();
    let mut space = false;
    for character in marked::to_value(raw).to_string().chars().take(MAX_RAW_CHARS) {
        if character.is_whitespace() || character.is_control() {
            space = !text.is_empty();
        } else {
            if space {
                text.push(' ');
            }
            space = false;
            text.push(character);
        }
    }
    for secret in SECRETS.iter() {
        text = secret
            .replace_all(&text, |found: &Captures<'_>| {
                let kept = found.get(1).map_or("", |group| group.as_str());
                let end = found.get(0).map_or("", |whole| whole.as_str());
                // A variable is no secret: its name is worth more than a mask.
                let hidden = end.strip_prefix(kept).unwrap_or(end);
                let tail = if hidden.ends_with("@tcp(") || hidden.ends_with("@unix(") {
                    hidden.get(hidden.rfind('@').unwrap_or(0)..).unwrap_or("")
                } else if hidden.ends_with('@') {
                    "@"
                } else {
                    ""
                };
                if is_only_variable(hidden) { end.to_owned() } else { format!("{kept}***{tail}") }
            })
            .into_owned();
    }
    shorten(&text, MAX_EVIDENCE_CHARS)
}

fn is_only_variable(text: &str) -> bool {
    let text = text.trim_matches(['"', '\'']);
    let name =
        text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).or_else(|| text.strip_prefix('$'));
    name.is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// At most `limit` characters; a cut shows as `…`.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(limit.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_compile() {
        assert_eq!(SECRETS.len(), SECRET_PATTERNS.len());
    }

    #[test]
    fn secrets_are_masked_and_variables_stay() {
        for (raw, shown) in [
            ("psql postgres://app:s3cret@db:5432/app -c x", "psql postgres://***@db:5432/app -c x"),
            ("migrate -database mysql://u:p@tcp(mysql:3306)/x", "migrate -database ***@tcp(mysql:3306)/x"),
            ("mysqladmin ping -h db -uroot -pS3cret!", "mysqladmin ping -h db -uroot -p***"),
            ("mysql -h db -p$MYSQL_ROOT_PASSWORD -e x", "mysql -h db -p$MYSQL_ROOT_PASSWORD -e x"),
            ("redis-cli -h r -a hunter2 ping", "redis-cli -h r -a *** ping"),
            ("curl -u elastic:changeme http://es:9200", "curl -u *** http://es:9200"),
            (
                "curl -H 'Authorization: Bearer abc.def.ghi' http://x",
                "curl -H 'Authorization: Bearer ***' http://x",
            ),
            ("mysql --password=abc -h db", "mysql --password=*** -h db"),
            ("pg_isready  -h db\n -p 5432", "pg_isready -h db -p 5432"),
        ] {
            assert_eq!(fragment(raw), shown);
        }
        assert!(fragment(&"x".repeat(5000)).chars().count() <= MAX_EVIDENCE_CHARS);
    }
}
