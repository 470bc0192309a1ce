//! Options and operands of a command line.

/// Which options of a tool take a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grammar {
    /// Letters of short options with a value, attached (`-p5432`) or as the next word.
    pub(super) short: &'static str,
    /// Letters of short options whose value is always attached (`mysql -psecret`).
    pub(super) attached: &'static str,
    /// Long options with a value, without dashes. With `=` every long option takes a value.
    pub(super) long: &'static [&'static str],
    /// Long options may have one dash (Go's `flag`, openssl, java).
    pub(super) one_dash: bool,
}

/// Nothing takes a value.
pub(super) const PLAIN: Grammar = Grammar { short: "", attached: "", long: &[], one_dash: false };

/// A command line taken apart.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    options: Vec<(String, Option<String>)>,
    /// The words that are no options, those behind `--` not counted.
    pub(super) operands: Vec<String>,
    /// The words behind `--`.
    pub(super) behind_dashes: Vec<String>,
}

impl Arguments {
    /// Takes apart the words behind the program's name.
    pub(super) fn parse(words: &[String], grammar: Grammar) -> Self {
        let mut parsed = Self::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                parsed.behind_dashes = rest.cloned().collect();
                break;
            }
            let long = word.strip_prefix("--").or_else(|| {
                word.strip_prefix('-').filter(|name| grammar.one_dash && name.chars().count() > 1)
            });
            if let Some(long) = long {
                let (name, attached) =
                    long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
                let value = match attached {
                    Some(value) => Some(value),
                    None if grammar.long.contains(&name) => rest.next().cloned(),
                    None => None,
                };
                parsed.options.push((name.to_owned(), value));
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                parsed.cluster(letters, grammar, &mut rest);
            } else {
                parsed.operands.push(word.clone());
            }
        }
        parsed
    }

    fn cluster(&mut self, letters: &str, grammar: Grammar, rest: &mut std::slice::Iter<'_, String>) {
        let mut characters = letters.chars();
        while let Some(letter) = characters.next() {
            let behind = characters.as_str();
            let value = if grammar.attached.contains(letter) {
                Some(behind.to_owned())
            } else if grammar.short.contains(letter) {
                let attached = behind.strip_prefix('=').unwrap_or(behind);
                if attached.is_empty() { rest.next().cloned() } else { Some(attached.to_owned()) }
            } else {
                None
            };
            let ends = value.is_some() || grammar.attached.contains(letter) || grammar.short.contains(letter);
            self.options.push((letter.to_string(), value));
            if ends {
                break;
            }
        }
    }

    /// The value of the last of these options.
    pub(super) fn value(&self, names: &[&str]) -> Option<&str> {
        let wanted = |option: &&(String, Option<String>)| names.contains(&option.0.as_str());
        self.options.iter().rev().filter(wanted).find_map(|(_, value)| value.as_deref())
    }

    /// The values of all of these options, in their order.
    pub(super) fn values<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.options
            .iter()
            .filter(move |(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.as_deref())
    }

    /// Whether one of these options is there.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// An operand by its position.
    pub(super) fn operand(&self, index: usize) -> Option<&str> {
        self.operands.get(index).map(String::as_str)
    }
}
