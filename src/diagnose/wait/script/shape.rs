//! What a loop's body does besides checking: how it ends, how long it sleeps.

use std::collections::HashSet;
use std::time::Duration;

use brush_parser::ast::{
    AndOr, AndOrList, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem, CompoundCommand,
    CompoundList, ExtendedTestExpr, SimpleCommand,
};

/// How a list of commands leaves what it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    /// `break`, `exit 0`, `return`: the wait is over.
    Done,
    /// `exit 1`, `return 1`: the container fails.
    Failed,
    /// `continue`: once more.
    Again,
    /// It goes on with the next command.
    Not,
}

/// The first way out of a list, functions and inner loops not looked into.
pub(super) fn leaves(list: &CompoundList) -> Leaves {
    list.0
        .iter()
        .map(|item| and_or_leaves(&item.0))
        .find(|found| *found != Leaves::Not)
        .unwrap_or(Leaves::Not)
}

fn and_or_leaves(commands: &AndOrList) -> Leaves {
    // `a || exit 1` leaves only perhaps: what counts is `echo bye && exit 1`.
    let mut last = &commands.first;
    for next in &commands.additional {
        match next {
            AndOr::And(pipeline) => last = pipeline,
            AndOr::Or(_) => return Leaves::Not,
        }
    }
    last.seq.last().map_or(Leaves::Not, command_leaves)
}

/// How one command leaves.
pub(super) fn command_leaves(command: &Command) -> Leaves {
    match command {
        Command::Simple(simple) => simple_leaves(simple),
        Command::Compound(CompoundCommand::BraceGroup(group), _) => leaves(&group.list),
        Command::Compound(CompoundCommand::Subshell(subshell), _) => leaves(&subshell.list),
        _ => Leaves::Not,
    }
}

fn simple_leaves(simple: &SimpleCommand) -> Leaves {
    let name = simple.word_or_name.as_ref().map_or("", |word| word.value.as_str());
    let argument = suffix_words(simple).next().map(|word| word.trim_matches(['"', '\'']));
    match name {
        "break" => Leaves::Done,
        "continue" => Leaves::Again,
        "exit" | "return" => match argument {
            // A bare `exit` passes on the last status, which is that of the check that succeeded.
            None | Some("0") => Leaves::Done,
            Some(_) => Leaves::Failed,
        },
        "exec" if argument.is_some() => Leaves::Done,
        _ => Leaves::Not,
    }
}

/// The raw words behind the command's name.
pub(super) fn suffix_words(simple: &SimpleCommand) -> impl Iterator<Item = &str> {
    simple.suffix.iter().flat_map(|suffix| suffix.0.iter()).filter_map(|item| match item {
        CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
            Some(word.value.as_str())
        }
        _ => None,
    })
}

/// What a loop does, inner commands included.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The last literal `sleep`.
    pub(super) sleep: Option<Duration>,
    /// There is `exit 1`, `return 1` or the like.
    pub(super) fails: bool,
    /// There is any `break`, `exit`, `return` or `exec`.
    pub(super) ends: bool,
    /// A number is compared by order (`-gt`, `((i > 9))`): names in it.
    counters: Vec<String>,
    /// Variables that hold a status or the output of a command: comparing them counts nothing.
    results: HashSet<String>,
}

impl Survey {
    /// Looks at a list.
    pub(super) fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.command_list(&item.0.first.seq);
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                self.command_list(&pipeline.seq);
            }
        }
    }

    /// Whether some comparison counts attempts or time.
    pub(super) fn counts(&self) -> bool {
        self.counters.iter().any(|name| !self.results.contains(name))
    }

    /// Adds an arithmetic expression such as `i < 30`.
    pub(super) fn arithmetic(&mut self, expression: &str) {
        if expression.contains(['<', '>']) {
            self.counters.extend(names_in(expression));
        }
    }

    fn command_list(&mut self, commands: &[Command]) {
        for command in commands {
            self.command(command);
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, _) => self.compound(compound),
            Command::ExtendedTest(test, _) => self.extended(&test.expr),
            Command::Function(_) => {}
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => self.arithmetic(&arithmetic.expr.value),
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list),
            CompoundCommand::ForClause(clause) => self.list(&clause.body.list),
            CompoundCommand::ArithmeticForClause(clause) => self.list(&clause.body.list),
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for branch in clause.elses.iter().flatten() {
                    if let Some(condition) = &branch.condition {
                        self.list(condition);
                    }
                    self.list(&branch.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0);
                self.list(&clause.1.list);
            }
            CompoundCommand::CaseClause(clause) => {
                for body in clause.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                    self.list(body);
                }
            }
            CompoundCommand::Coprocess(_) => {}
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        for item in simple.prefix.iter().flat_map(|prefix| prefix.0.iter()) {
            if let CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) = item
                && let (AssignmentName::VariableName(name), AssignmentValue::Scalar(value)) =
                    (&assignment.name, &assignment.value)
                && is_result(&value.value)
            {
                self.results.insert(name.clone());
            }
        }
        match simple_leaves(simple) {
            Leaves::Failed => {
                self.fails = true;
                self.ends = true;
            }
            Leaves::Done => self.ends = true,
            Leaves::Again | Leaves::Not => {}
        }
        let words: Vec<&str> = suffix_words(simple).collect();
        match simple.word_or_name.as_ref().map_or("", |word| word.value.as_str()) {
            "sleep" => self.sleep = words.first().and_then(|word| duration(word)).or(self.sleep),
            "[" | "test" | "[[" => {
                for window in words.windows(3) {
                    if let [left, operator, right] = window {
                        self.comparison(left, operator, right);
                    }
                }
            }
            "kill" if words.contains(&"$$") && !words.contains(&"-0") => self.ends = true,
            _ => {}
        }
    }

    fn extended(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.extended(left);
                self.extended(right);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.extended(inner),
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                self.comparison(&left.value, &predicate.to_string(), &right.value);
            }
            ExtendedTestExpr::UnaryTest(..) => {}
        }
    }

    fn comparison(&mut self, left: &str, operator: &str, right: &str) {
        if matches!(operator, "-gt" | "-ge" | "-lt" | "-le") {
            for side in [left, right] {
                if !side.contains("$(") || side.contains("$((") {
                    self.counters.extend(names_in(side));
                } else if side.contains("date ") {
                    // A deadline: `[ $(date +%s) -gt $end ]`.
                    self.counters.push("date".to_owned());
                }
            }
        }
    }
}

/// Whether the raw value is the output of a command or the last status. Counting with `expr` is no such thing, and
/// neither is the time.
fn is_result(value: &str) -> bool {
    value.contains("$?")
        || ((value.contains("$(") || value.contains('`'))
            && !value.contains("$((")
            && !value.contains("expr ")
            && !value.contains("date "))
}

fn names_in(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
        .filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'))
        .map(str::to_owned)
}

/// A duration as `sleep` and `timeout` take it (`5`, `0.5`, `2s`, `1m`), and as Go programs do (`1m30s`, `500ms`);
/// none for anything else and for more than a hundred years.
pub(in crate::diagnose::wait) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim().trim_matches(['"', '\'']);
    let mut seconds = 0.0_f64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !(character.is_ascii_digit() || character == '.'));
        let (number, behind) = rest.split_at_checked(digits.unwrap_or(rest.len()))?;
        let unit_end = behind.find(|character: char| character.is_ascii_digit() || character == '.');
        let (unit, behind) = behind.split_at_checked(unit_end.unwrap_or(behind.len()))?;
        let factor = match unit {
            "" | "s" => 1.0,
            "ms" => 0.001,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * factor;
        rest = behind;
    }
    if seconds > 3.2e9 { None } else { Duration::try_from_secs_f64(seconds).ok() }
}
