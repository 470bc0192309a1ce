//! One line of raw bytes made readable.

/// Makes a line readable: valid UTF-8, no escape sequences, no control characters but tabs, and of a progress
/// bar that overwrites itself only what stood there last.
pub(super) fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_escape(&mut characters),
            // The 8-bit form of the same introducer.
            '\u{9b}' => skip_csi(&mut characters),
            // What follows overwrites the line; at the very end (CRLF) there is nothing to overwrite it with.
            '\r' => {
                if characters.peek().is_some_and(|next| *next != '\r') {
                    out.clear();
                }
            }
            '\t' => out.push('\t'),
            character if character.is_control() => {}
            // Marks that reorder text could make a line read as what it is not.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            character => out.push(character),
        }
    }
    let end = out.trim_end().len();
    out.truncate(end);
    out
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// ECMA-48: `ESC [` begins a control sequence, `ESC ]` and its like a string that BEL or `ESC \` ends, anything else is
/// one or two characters.
fn skip_escape(characters: &mut Characters<'_>) {
    match characters.next() {
        Some('[') => skip_csi(characters),
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(character) = characters.next() {
                if character == '\u{7}' {
                    break;
                }
                if character == '\u{1b}' {
                    characters.next_if_eq(&'\\');
                    break;
                }
            }
        }
        Some(' '..='/') => {
            characters.next();
        }
        _ => {}
    }
}

fn skip_csi(characters: &mut Characters<'_>) {
    // Parameters and intermediates, then one final character.
    while characters.next_if(|character| (' '..='?').contains(character)).is_some() {}
    characters.next_if(|character| ('@'..='~').contains(character));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(b"plain \xc3\xbc", "plain ü")]
    #[case(b"bad \xff\xfe bytes", "bad \u{fffd}\u{fffd} bytes")]
    #[case(b"a\0b\x08c", "abc")]
    #[case(b"\x1b[31mERROR\x1b[0m: no", "ERROR: no")]
    #[case(b"\x1b]0;title\x07text", "text")]
    #[case(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link")]
    #[case(b"10%\r50%\r100% done", "100% done")]
    #[case(b"windows line\r", "windows line")]
    #[case(b"\ttab stays  ", "\ttab stays")]
    #[case(b"\x1b[", "")]
    #[case("abc\u{202e}def".as_bytes(), "abcdef")]
    fn a_line_becomes_readable(#[case] bytes: &[u8], #[case] expected: &str) {
        assert_eq!(clean(bytes), expected);
    }
}
