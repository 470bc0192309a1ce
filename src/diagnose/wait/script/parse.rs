//! The shell parser behind guards: it is a recursive descent parser, so that deep nesting would overflow the
//! stack, and unclosed parentheses make it try every reading (2ⁿ of them).

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::Program;
use brush_parser::word::WordPieceWithSource;
use brush_parser::{ParserOptions, Token};

/// Deepest nesting of brackets or of compound commands that is parsed. Measured: 60 fits into the 2 MiB stack of a
/// Tokio worker in a debug build, 300 does not; our own walk needs room as well.
const MAX_NESTING: usize = 24;

/// Deepest nesting of parentheses between words: `( ( (` is ambiguous with `((`.
const MAX_PARENTHESES: usize = 8;

/// Deepest nesting of brackets in a word: `$((` unclosed is tried both ways at each level.
const MAX_WORD_NESTING: usize = 10;

/// Parses a script; none if it is no valid script or is nested too deeply.
pub(super) fn program(script: &str) -> Option<Program> {
    if bracket_depth(script) > MAX_NESTING {
        return None;
    }
    // The parser has its own unwraps; a script that makes it panic is one that it cannot parse.
    catch_unwind(AssertUnwindSafe(|| {
        let options = ParserOptions::default();
        let tokens = brush_parser::uncached_tokenize_str(script, &options.tokenizer_options()).ok()?;
        if too_deep(&tokens) {
            return None;
        }
        brush_parser::parse_tokens(&tokens, &options).ok()
    }))
    .ok()
    .flatten()
}

/// Parses a word into its quoted, literal and expanded pieces.
pub(super) fn word(raw: &str) -> Option<Vec<WordPieceWithSource>> {
    if bracket_depth(raw) > MAX_WORD_NESTING {
        return None;
    }
    catch_unwind(AssertUnwindSafe(|| brush_parser::word::parse(raw, &ParserOptions::default()).ok()))
        .ok()
        .flatten()
}

/// The deepest nesting of brackets in the raw text, quotes not looked at: never less than the true one.
fn bracket_depth(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for character in text.chars() {
        match character {
            '(' | '{' => {
                depth = depth.saturating_add(1);
                deepest = deepest.max(depth);
            }
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    // Backquotes nest by escaping, at two backslashes or more per level.
    deepest.max(text.matches("\\\\`").count())
}

fn too_deep(tokens: &[Token]) -> bool {
    let (mut parentheses, mut compounds, mut negations) = (0_usize, 0_usize, 0_usize);
    for token in tokens {
        match token.to_str() {
            "(" | "((" | "<(" | ">(" => parentheses = parentheses.saturating_add(1),
            ")" | "))" => parentheses = parentheses.saturating_sub(1),
            "if" | "while" | "until" | "for" | "case" | "select" | "{" | "[[" => {
                compounds = compounds.saturating_add(1);
            }
            "fi" | "done" | "esac" | "}" | "]]" => compounds = compounds.saturating_sub(1),
            "!" => negations = negations.saturating_add(1),
            _ => negations = 0,
        }
        if parentheses > MAX_PARENTHESES || compounds > MAX_NESTING || negations > MAX_NESTING {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn nesting_is_refused_in_time() {
        for opening in [
            "(",
            "( ",
            "((",
            "{ ",
            "$(",
            "$((",
            "if a; then ",
            "while ",
            "until a; do ",
            "case a in b) ",
            "[[ ( ",
            "[[ ! ",
            "! ",
            "f() { ",
            "<(a ",
            "\"$(",
            "${a:-",
            "`\\`",
            "for i in a; do ",
            "a | ",
            "a && ",
        ] {
            for count in [3, 9, 25, 200, 3000] {
                let script = format!("echo; {}", opening.repeat(count));
                let started = Instant::now();
                let _ = program(&script);
                let _ = word(&script);
                assert!(started.elapsed() < Duration::from_secs(2), "{count} of {opening}");
            }
        }
    }

    #[test]
    fn usual_nesting_is_parsed() {
        let script = "if a; then for i in 1 2; do until ( nc -z a 1 && { b; } ); do sleep $((1 + (2))); done; done; fi";
        assert!(program(script).is_some());
    }
}
