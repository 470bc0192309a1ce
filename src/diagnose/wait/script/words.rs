//! The value of a shell word, as far as the script and the Pod tell.

use std::collections::HashMap;

use brush_parser::word::{
    Parameter, ParameterExpr, ParameterTestType, SpecialParameter, WordPiece, WordPieceWithSource,
};

use super::parse;
use crate::diagnose::wait::environment::Environment;
use crate::diagnose::wait::marked;

/// Nested default values (`${A:-${B:-c}}`) are followed this deep.
const MAX_DEPTH: usize = 8;

/// More words than this are not made from one word (`$@`, or an unquoted list).
const MAX_FIELDS: usize = 64;

/// What a script variable holds.
#[derive(Debug, Clone)]
pub(super) enum Binding {
    /// A marked text.
    Text(String),
    /// The output of this command.
    Output(String),
}

/// The variables in sight of a word.
#[derive(Debug)]
pub(super) struct Variables<'e> {
    pub(super) environment: &'e Environment,
    pub(super) script: HashMap<String, Binding>,
    /// `$1`, `$2` …
    pub(super) positional: Vec<String>,
}

/// What a word stands for.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    /// One text per word that the program sees, marked.
    pub(super) fields: Vec<String>,
    /// The scripts whose output is part of it: `$(…)` in the word, or in a variable of the word.
    pub(super) commands: Vec<String>,
    /// Variables that the word sets: `${NAME:=default}`.
    pub(super) assigned: Vec<(String, String)>,
}

impl Expansion {
    /// The fields as one text.
    pub(super) fn joined(&self) -> String {
        self.fields.join(" ")
    }
}

struct Builder {
    expansion: Expansion,
    /// The field under construction; none between fields.
    current: Option<String>,
}

impl Builder {
    fn quoted(&mut self, text: &str) {
        let field = self.current.get_or_insert_default();
        if field.len() <= marked::MAX_TEXT_BYTES {
            field.push_str(text);
        }
    }

    /// The result of an unquoted expansion: whitespace in it separates words.
    fn split(&mut self, text: &str) {
        if text.starts_with(char::is_whitespace) {
            self.end_field();
        }
        for (index, part) in text.split_whitespace().enumerate() {
            if index > 0 {
                self.end_field();
            }
            self.quoted(part);
        }
        if text.ends_with(char::is_whitespace) {
            self.end_field();
        }
    }

    fn end_field(&mut self) {
        if let Some(field) = self.current.take()
            && self.expansion.fields.len() < MAX_FIELDS
        {
            self.expansion.fields.push(marked::bound(field));
        }
    }

    fn value(&mut self, text: &str, in_quotes: bool) {
        if in_quotes {
            self.quoted(text);
        } else {
            self.split(text);
        }
    }
}

impl Variables<'_> {
    /// The words that `raw` stands for.
    pub(super) fn expand(&self, raw: &str) -> Expansion {
        self.expand_to(raw, 0)
    }

    fn expand_to(&self, raw: &str, depth: usize) -> Expansion {
        let mut builder = Builder { expansion: Expansion::default(), current: None };
        match parse::word(raw) {
            Some(pieces) if depth < MAX_DEPTH => self.pieces(&pieces, false, &mut builder, depth),
            // Not a word that the parser knows: at least the quotes are no part of it.
            _ => builder.quoted(&brush_parser::unquote_str(raw)),
        }
        builder.end_field();
        builder.expansion
    }

    fn pieces(&self, pieces: &[WordPieceWithSource], in_quotes: bool, builder: &mut Builder, depth: usize) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text)
                | WordPiece::SingleQuotedText(text)
                | WordPiece::AnsiCQuotedText(text) => {
                    builder.quoted(text);
                }
                WordPiece::EscapeSequence(sequence) => {
                    builder.quoted(sequence.strip_prefix('\\').unwrap_or(sequence));
                }
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    builder.quoted("");
                    self.pieces(inner, true, builder, depth);
                }
                WordPiece::TildeExpansion(_) => builder.quoted("~"),
                WordPiece::CommandSubstitution(script) | WordPiece::BackquotedCommandSubstitution(script) => {
                    builder.expansion.commands.push(script.clone());
                    builder.quoted(&output_of(script));
                }
                WordPiece::ArithmeticExpression(_) => builder.quoted(&marked::unknown("((…))")),
                WordPiece::ParameterExpansion(expression) => {
                    self.parameter(expression, in_quotes, builder, depth);
                }
            }
        }
    }

    fn parameter(&self, expression: &ParameterExpr, in_quotes: bool, builder: &mut Builder, depth: usize) {
        match expression {
            ParameterExpr::Parameter { parameter, indirect: false }
            | ParameterExpr::IndicateErrorIfNullOrUnset { parameter, indirect: false, .. } => {
                if let Parameter::Special(SpecialParameter::AllPositionalParameters { .. }) = parameter
                    && !self.positional.is_empty()
                {
                    builder.split(&self.positional.join(" "));
                    return;
                }
                if let Parameter::NamedWithAllIndices { name, .. } = parameter
                    && let Some(Binding::Text(words)) = self.script.get(name)
                {
                    builder.split(words);
                    return;
                }
                let value = self.lookup(parameter, builder);
                builder.value(&value.unwrap_or_else(|| marked::unknown(&name_of(parameter))), in_quotes);
            }
            ParameterExpr::UseDefaultValues { parameter, indirect: false, test_type, default_value }
            | ParameterExpr::AssignDefaultValues { parameter, indirect: false, test_type, default_value } => {
                let value = self
                    .lookup(parameter, builder)
                    .filter(|value| !value.is_empty() || matches!(test_type, ParameterTestType::Unset));
                if let Some(value) = value {
                    builder.value(&value, in_quotes);
                } else {
                    let text = self.default(parameter, default_value.as_deref(), builder, depth);
                    builder.value(&text, in_quotes);
                    if matches!(expression, ParameterExpr::AssignDefaultValues { .. }) {
                        builder.expansion.assigned.push((name_of(parameter), text));
                    }
                }
            }
            ParameterExpr::UseAlternativeValue { parameter, indirect: false, alternative_value, .. } => {
                match self.lookup(parameter, builder) {
                    Some(value) if !marked::has_unknown(&value) && !value.is_empty() => {
                        let alternative =
                            self.expand_to(alternative_value.as_deref().unwrap_or(""), depth + 1);
                        builder.value(&alternative.joined(), in_quotes);
                    }
                    Some(value) if value.is_empty() => {}
                    _ => builder.quoted(&marked::unknown(&name_of(parameter))),
                }
            }
            other => match trimming(other) {
                Some((parameter, pattern, cut)) => self.remove(parameter, pattern, builder, cut),
                None => builder.quoted(&marked::unknown(parameter_name(other).as_deref().unwrap_or("…"))),
            },
        }
    }

    /// What `${NAME:-default}` stands for when nothing in sight sets the name.
    fn default(
        &self,
        parameter: &Parameter,
        default_value: Option<&str>,
        builder: &mut Builder,
        depth: usize,
    ) -> String {
        // The variable may come from `envFrom`, and then the default is not used.
        if self.environment.is_open() && matches!(parameter, Parameter::Named(_)) {
            return marked::unknown(&name_of(parameter));
        }
        let default = self.expand_to(default_value.unwrap_or(""), depth + 1);
        let text = default.joined();
        builder.expansion.commands.extend(default.commands);
        text
    }

    /// `${ADDRESS%%:*}` and its kin, for patterns that are a literal with a `*` at the outer end: what people split
    /// addresses with. Other patterns make the value unknown.
    fn remove(&self, parameter: &Parameter, pattern: &str, builder: &mut Builder, cut: Cut) {
        let name = name_of(parameter);
        let literal = pattern.trim_matches('*');
        let usual = !literal.is_empty()
            && pattern.matches('*').count() == 1
            && !literal.contains(['?', '[', '$', '\\', '"', '\'', '*']);
        match self.lookup(parameter, builder) {
            Some(value) if usual && !value.is_empty() => {
                let kept = cut(&value, literal).unwrap_or(&value).to_owned();
                builder.quoted(&kept);
            }
            _ => builder.quoted(&marked::unknown(&name)),
        }
    }

    /// The marked value of a parameter; none if nothing sets it.
    fn lookup(&self, parameter: &Parameter, builder: &mut Builder) -> Option<String> {
        match parameter {
            Parameter::Named(name) => match self.script.get(name) {
                Some(Binding::Text(text)) => Some(text.clone()),
                Some(Binding::Output(script)) => {
                    builder.expansion.commands.push(script.clone());
                    Some(marked::unknown(name))
                }
                None => self.environment.get(name).map(str::to_owned),
            },
            Parameter::Positional(number) => {
                let index = usize::try_from(*number).ok()?.checked_sub(1)?;
                self.positional.get(index).cloned()
            }
            _ => None,
        }
    }

    /// The marked value of a variable for a tool that reads it itself, such as `PGHOST`.
    pub(super) fn named(&self, name: &str) -> Option<String> {
        match self.script.get(name) {
            Some(Binding::Text(text)) => Some(text.clone()),
            Some(Binding::Output(_)) => Some(marked::unknown(name)),
            None => self.environment.get(name).map(str::to_owned),
        }
    }
}

/// `$(printf '%s' db)` and `$(echo db)` are known, every other output is not.
fn output_of(script: &str) -> String {
    let mut words = script.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("echo"), Some(word), None) if !word.contains(['$', '`', '"', '\'', '|', '-', '\\']) => {
            word.to_owned()
        }
        _ => marked::command_output(),
    }
}

/// Cuts a text at a literal; none if the literal is not in it.
type Cut = for<'t> fn(&'t str, &str) -> Option<&'t str>;

/// The four expansions that take off a pattern at one end.
fn trimming(expression: &ParameterExpr) -> Option<(&Parameter, &str, Cut)> {
    let (parameter, pattern, cut): (_, _, Cut) = match expression {
        ParameterExpr::RemoveSmallestSuffixPattern { parameter, pattern, .. } => {
            (parameter, pattern, |text, literal| text.rsplit_once(literal).map(|(kept, _)| kept))
        }
        ParameterExpr::RemoveLargestSuffixPattern { parameter, pattern, .. } => {
            (parameter, pattern, |text, literal| text.split_once(literal).map(|(kept, _)| kept))
        }
        ParameterExpr::RemoveSmallestPrefixPattern { parameter, pattern, .. } => {
            (parameter, pattern, |text, literal| text.split_once(literal).map(|(_, kept)| kept))
        }
        ParameterExpr::RemoveLargestPrefixPattern { parameter, pattern, .. } => {
            (parameter, pattern, |text, literal| text.rsplit_once(literal).map(|(_, kept)| kept))
        }
        _ => return None,
    };
    Some((parameter, pattern.as_deref()?, cut))
}

fn name_of(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Positional(number) => number.to_string(),
        Parameter::Special(special) => special.to_string(),
        Parameter::Named(name)
        | Parameter::NamedWithIndex { name, .. }
        | Parameter::NamedWithAllIndices { name, .. } => name.clone(),
    }
}

fn parameter_name(expression: &ParameterExpr) -> Option<String> {
    match expression {
        ParameterExpr::Parameter { parameter, .. }
        | ParameterExpr::UseDefaultValues { parameter, .. }
        | ParameterExpr::AssignDefaultValues { parameter, .. }
        | ParameterExpr::IndicateErrorIfNullOrUnset { parameter, .. }
        | ParameterExpr::UseAlternativeValue { parameter, .. }
        | ParameterExpr::ParameterLength { parameter, .. }
        | ParameterExpr::RemoveSmallestSuffixPattern { parameter, .. }
        | ParameterExpr::RemoveLargestSuffixPattern { parameter, .. }
        | ParameterExpr::RemoveSmallestPrefixPattern { parameter, .. }
        | ParameterExpr::RemoveLargestPrefixPattern { parameter, .. }
        | ParameterExpr::Substring { parameter, .. }
        | ParameterExpr::Transform { parameter, .. }
        | ParameterExpr::UppercaseFirstChar { parameter, .. }
        | ParameterExpr::UppercasePattern { parameter, .. }
        | ParameterExpr::LowercaseFirstChar { parameter, .. }
        | ParameterExpr::LowercasePattern { parameter, .. }
        | ParameterExpr::ReplaceSubstring { parameter, .. } => Some(name_of(parameter)),
        ParameterExpr::VariableNames { .. } | ParameterExpr::MemberKeys { .. } => None,
    }
}
