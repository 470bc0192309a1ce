//! Walks a parsed script in the order in which it runs.
//!
//! Each command is looked at with a [`Scope`]: does the script go on when the command succeeds, or when it fails?
//! `until nc …`, `while ! nc …`, `if ! nc …; then exit 1` and `nc … && break` all go on when `nc` succeeds, so each
//! waits for what `nc` connects to. `while pgrep foo` goes on when it fails: it waits for an end, which is no
//! dependency.

mod compound;
mod conditions;
mod findings;
mod parse;
mod shape;
mod simple;
mod words;

use std::collections::HashMap;
use std::rc::Rc;

use brush_parser::ast::{
    AndOr, AndOrList, Command, CompoundCommand, CompoundList, Pipeline, SeparatorOperator,
};

pub(super) use findings::Findings;
pub(super) use shape::duration;

use self::shape::Leaves;
use self::words::Variables;
use super::environment::Environment;
use super::types::LoopShape;

/// Most commands that one analysis looks at.
const MAX_STEPS: usize = 10_000;

/// Deepest nesting of functions, scripts within scripts and compound commands that is followed.
const MAX_DEPTH: usize = 48;

/// Deepest nesting of scripts within scripts (`sh -c "bash -c …"`).
const MAX_SCRIPTS: usize = 4;

/// Which result of a command lets the script go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Success: it is waited for.
    Success,
    /// Failure: an end is waited for.
    Failure,
    /// The script looks at the result in a way we do not follow.
    Either,
    /// No matter: `ping … || true`.
    Ignored,
}

/// How the result of a command is used.
#[derive(Debug, Clone, Copy)]
struct Scope {
    wanted: Wanted,
    /// The result decides whether a loop goes on or the container fails. A test of a file counts only then.
    decisive: bool,
}

impl Scope {
    /// A command whose result nobody looks at; if it fails, the script may end.
    const PLAIN: Self = Self { wanted: Wanted::Success, decisive: false };

    fn deciding(wanted: Wanted) -> Self {
        Self { wanted, decisive: true }
    }

    fn negated(self, negate: bool) -> Self {
        let wanted = match self.wanted {
            Wanted::Success if negate => Wanted::Failure,
            Wanted::Failure if negate => Wanted::Success,
            other => other,
        };
        Self { wanted, ..self }
    }

    /// Whether a check in this scope is waited for.
    fn counts(self) -> bool {
        matches!(self.wanted, Wanted::Success | Wanted::Either)
    }
}

/// The walk over one container's script.
pub(super) struct Walker<'e> {
    variables: Variables<'e>,
    functions: HashMap<String, Rc<CompoundCommand>>,
    loops: Vec<LoopShape>,
    /// `timeout 60 sh -c …` around what is walked now: it bounds the loops that start within.
    deadlines: usize,
    scripts: usize,
    depth: usize,
    steps: usize,
    findings: Findings,
}

impl<'e> Walker<'e> {
    pub(super) fn new(environment: &'e Environment) -> Self {
        Self {
            variables: Variables { environment, script: HashMap::new(), positional: Vec::new() },
            functions: HashMap::new(),
            loops: Vec::new(),
            deadlines: 0,
            scripts: 0,
            depth: 0,
            steps: 0,
            findings: Findings::default(),
        }
    }

    /// What was found, and the variables that the script has set to a text, marked.
    pub(super) fn finish(self) -> (Findings, Vec<(String, String)>) {
        let texts = self.variables.script.into_iter().filter_map(|(name, binding)| match binding {
            words::Binding::Text(text) => Some((name, text)),
            words::Binding::Output(_) => None,
        });
        (self.findings, texts.collect())
    }

    /// Walks a script that starts with `positional` as `$1` and so on. False if it does not parse.
    pub(super) fn script(&mut self, text: &str, positional: Vec<String>, deadline: bool) -> bool {
        self.script_in(text, positional, deadline, Scope::PLAIN)
    }

    fn script_in(&mut self, text: &str, positional: Vec<String>, deadline: bool, scope: Scope) -> bool {
        if self.scripts >= MAX_SCRIPTS || text.len() > super::MAX_SCRIPT_BYTES {
            return false;
        }
        let Some(program) = parse::program(text) else {
            return false;
        };
        let outer = std::mem::replace(&mut self.variables.positional, positional);
        self.scripts += 1;
        self.deadlines += usize::from(deadline);
        for list in &program.complete_commands {
            self.list(list, scope);
        }
        self.deadlines -= usize::from(deadline);
        self.scripts -= 1;
        self.variables.positional = outer;
        true
    }

    /// The loop around the present command, if any.
    fn repeats(&self) -> Option<LoopShape> {
        let innermost = self.loops.last()?;
        Some(LoopShape {
            unbounded: self.loops.iter().any(|around| around.unbounded),
            sleep: innermost.sleep.or_else(|| self.loops.iter().rev().find_map(|around| around.sleep)),
        })
    }

    fn list(&mut self, list: &CompoundList, scope: Scope) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        for item in &list.0 {
            // What runs in the background holds nothing up.
            if !matches!(item.1, SeparatorOperator::Async)
                || matches!(item.0.first.seq.first(), Some(Command::Function(_)))
            {
                self.and_or(&item.0, scope);
            }
        }
        self.depth -= 1;
    }

    fn and_or(&mut self, list: &AndOrList, scope: Scope) {
        self.pipeline(&list.first, scope_before(list.additional.as_slice(), scope, &list.first));
        let mut rest = list.additional.as_slice();
        while let Some((next, behind)) = rest.split_first() {
            rest = behind;
            let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
            self.pipeline(pipeline, scope_before(rest, scope, pipeline));
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, scope: Scope) {
        let mut scope = scope.negated(pipeline.bang);
        // `while kubectl get pods | grep -v Running`: which text is good, only the author knows.
        if pipeline.seq.len() > 1
            && scope.wanted == Wanted::Failure
            && pipeline.seq.last().is_some_and(is_text_filter)
        {
            scope.wanted = Wanted::Either;
        }
        for command in &pipeline.seq {
            self.command(command, scope);
        }
    }

    fn command(&mut self, command: &Command, scope: Scope) {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return;
        }
        match command {
            Command::Simple(simple) => self.simple(simple, scope),
            Command::Compound(compound, redirects) => {
                for redirect in redirects.iter().flat_map(|redirects| redirects.0.iter()) {
                    self.redirect(redirect, scope);
                }
                self.compound(compound, scope);
            }
            Command::Function(function) => {
                if self.functions.len() < 256 {
                    self.functions.insert(function.fname.value.clone(), Rc::new(function.body.0.clone()));
                }
            }
            Command::ExtendedTest(test, _) => self.extended_test(&test.expr, scope),
        }
    }
}

/// The scope of a pipeline, given what follows it in its list.
fn scope_before(rest: &[AndOr], scope: Scope, pipeline: &Pipeline) -> Scope {
    // A `break` or an `echo` on the left has no result to look at.
    if pipeline.seq.last().is_some_and(|command| shape::command_leaves(command) != Leaves::Not) {
        return scope;
    }
    for next in rest {
        let AndOr::Or(alternative) = next else { continue };
        match alternative.seq.last() {
            Some(command) if is_shrug(command) => {
                return if scope.decisive { scope } else { Scope { wanted: Wanted::Ignored, ..scope } };
            }
            Some(command) if matches!(shape::command_leaves(command), Leaves::Failed | Leaves::Again) => {
                return Scope::deciding(Wanted::Success);
            }
            _ => {}
        }
    }
    let follows = rest.iter().find_map(|next| match next {
        AndOr::And(pipeline) => {
            pipeline.seq.last().map(shape::command_leaves).filter(|found| *found != Leaves::Not)
        }
        AndOr::Or(_) => None,
    });
    match follows {
        Some(Leaves::Done) => Scope::deciding(Wanted::Success),
        Some(Leaves::Failed | Leaves::Again) => Scope::deciding(Wanted::Failure),
        _ => scope,
    }
}

/// `|| true`, `|| :`
fn is_shrug(command: &Command) -> bool {
    simple_name(command).is_some_and(|name| matches!(name, "true" | ":" | "/bin/true"))
}

fn is_text_filter(command: &Command) -> bool {
    simple_name(command)
        .is_some_and(|name| matches!(name, "grep" | "egrep" | "fgrep" | "awk" | "sed" | "jq" | "rg" | "wc"))
}

fn simple_name(command: &Command) -> Option<&str> {
    match command {
        Command::Simple(simple) => simple.word_or_name.as_ref().map(|word| word.value.as_str()),
        _ => None,
    }
}
