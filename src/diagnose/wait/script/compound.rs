//! Loops, branches and groups.

use brush_parser::ast::{
    CompoundCommand, CompoundList, ForClauseCommand, IfClauseCommand, UnexpandedArithmeticExpr,
    WhileOrUntilClauseCommand,
};

use super::shape::{self, Leaves, Survey};
use super::words::Binding;
use super::{Scope, Walker, Wanted, simple_name};
use crate::diagnose::wait::marked;
use crate::diagnose::wait::types::LoopShape;

/// A `for` loop over more literal words than this is walked for the first ones only.
const MAX_ITERATIONS: usize = 16;

impl Walker<'_> {
    pub(super) fn compound(&mut self, compound: &CompoundCommand, scope: Scope) {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, scope),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list, scope),
            CompoundCommand::IfClause(clause) => self.if_clause(clause, scope),
            CompoundCommand::WhileClause(clause) => self.conditional_loop(clause, Wanted::Failure),
            CompoundCommand::UntilClause(clause) => self.conditional_loop(clause, Wanted::Success),
            CompoundCommand::ForClause(clause) => self.for_loop(clause),
            CompoundCommand::ArithmeticForClause(clause) => {
                let survey = survey(&clause.body.list);
                let endless = |condition: &UnexpandedArithmeticExpr| condition.value.trim().is_empty();
                let unbounded = self.deadlines == 0 && clause.condition.as_ref().is_none_or(endless);
                self.retry(&clause.body.list, LoopShape { unbounded, sleep: survey.sleep }, &survey);
            }
            CompoundCommand::CaseClause(clause) => {
                for body in clause.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                    self.branch(body, scope);
                }
            }
            CompoundCommand::Arithmetic(_) | CompoundCommand::Coprocess(_) => {}
        }
    }

    fn if_clause(&mut self, clause: &IfClauseCommand, scope: Scope) {
        let then = shape::leaves(&clause.then);
        let otherwise = clause
            .elses
            .as_ref()
            .and_then(|branches| branches.last())
            .filter(|branch| branch.condition.is_none())
            .map_or(Leaves::Not, |branch| shape::leaves(&branch.body));
        self.list(&clause.condition, branch_scope(then, otherwise));
        self.branch(&clause.then, scope);
        for branch in clause.elses.iter().flatten() {
            if let Some(condition) = &branch.condition {
                self.list(condition, branch_scope(shape::leaves(&branch.body), Leaves::Not));
            }
            self.branch(&branch.body, scope);
        }
    }

    fn branch(&mut self, body: &CompoundList, scope: Scope) {
        self.findings.branches += 1;
        self.list(body, scope);
        self.findings.branches -= 1;
    }

    fn conditional_loop(&mut self, clause: &WhileOrUntilClauseCommand, wanted: Wanted) {
        let (condition, body) = (&clause.0, &clause.1.list);
        let mut survey = survey(body);
        let forever = is_constant(condition);
        let own_exits = survey.ends;
        let fails = survey.fails;
        survey.list(condition);
        let counted = survey.counts();
        let shape = LoopShape {
            // In `until CHECK` any other way out is a bound. In `while true` the way out is the check's own, unless
            // it fails or counts.
            unbounded: self.deadlines == 0 && !(counted || fails || (own_exits && !forever)),
            sleep: survey.sleep,
        };
        if forever {
            self.retry(body, shape, &survey);
            return;
        }
        let before = (self.findings.targets().len(), self.findings.opaque.len());
        self.loops.push(shape);
        self.list(condition, Scope::deciding(wanted));
        let checks = before != (self.findings.targets().len(), self.findings.opaque.len());
        if !checks && condition_is_only_tests(condition) {
            // `while [ $n -lt 30 ]`, `until [ $ready = yes ]`: the body has the check.
            self.list(body, Scope::PLAIN);
        }
        self.loops.pop();
        if shape.unbounded && (wanted == Wanted::Success || checks) {
            self.findings.unbounded_wait = true;
        }
    }

    /// `while true` and its kin: the body has the check.
    fn retry(&mut self, body: &CompoundList, shape: LoopShape, survey: &Survey) {
        self.loops.push(shape);
        self.list(body, Scope::PLAIN);
        self.loops.pop();
        if shape.unbounded {
            if survey.ends {
                self.findings.unbounded_wait = true;
            } else if self.loops.is_empty() {
                self.findings.never_ends = true;
            }
        }
    }

    fn for_loop(&mut self, clause: &ForClauseCommand) {
        let survey = survey(&clause.body.list);
        let words: Vec<String> = match &clause.values {
            Some(values) => {
                values.iter().flat_map(|word| self.variables.expand(&word.value).fields).collect()
            }
            None => self.variables.positional.clone(),
        };
        if words.iter().any(|word| !is_count(word)) && words.iter().all(|word| !marked::has_unknown(word)) {
            // One turn for each host, not one turn after another for the same.
            for word in words.into_iter().take(MAX_ITERATIONS) {
                self.bind(&clause.variable_name, Binding::Text(word));
                self.list(&clause.body.list, Scope::PLAIN);
            }
            return;
        }
        let is_list_of_names = words.iter().any(|word| marked::has_unknown(word) && !word.contains("(…)"));
        self.bind(&clause.variable_name, Binding::Text(marked::unknown(&clause.variable_name)));
        if is_list_of_names {
            self.list(&clause.body.list, Scope::PLAIN);
        } else {
            self.retry(&clause.body.list, LoopShape { unbounded: false, sleep: survey.sleep }, &survey);
        }
    }
}

fn survey(body: &CompoundList) -> Survey {
    let mut survey = Survey::default();
    survey.list(body);
    survey
}

/// What the condition of a branch has to be, by what its branches do.
fn branch_scope(then: Leaves, otherwise: Leaves) -> Scope {
    match (then, otherwise) {
        (Leaves::Done, _) | (Leaves::Not, Leaves::Failed | Leaves::Again) => Scope::deciding(Wanted::Success),
        (Leaves::Failed | Leaves::Again, _) | (Leaves::Not, Leaves::Done) => Scope::deciding(Wanted::Failure),
        (Leaves::Not, Leaves::Not) => Scope { wanted: Wanted::Either, decisive: false },
    }
}

/// `while true`, `while :`, `while sleep 5`, `while [ 1 ]`
fn is_constant(condition: &CompoundList) -> bool {
    let [item] = condition.0.as_slice() else {
        return false;
    };
    if !item.0.additional.is_empty() {
        return false;
    }
    let [command] = item.0.first.seq.as_slice() else {
        return false;
    };
    match command {
        brush_parser::ast::Command::Compound(CompoundCommand::Arithmetic(arithmetic), _) => {
            arithmetic.expr.value.trim().bytes().all(|byte| byte.is_ascii_digit())
        }
        brush_parser::ast::Command::Simple(simple) => match simple_name(command) {
            Some("true" | ":" | "/bin/true" | "false" | "/bin/false" | "sleep") => true,
            // The shell itself, which lives as long as the loop; the kubelet makes `$` of `$$`.
            Some("kill") => {
                let words: Vec<&str> = shape::suffix_words(simple).collect();
                matches!(words.as_slice(), ["-0", "$$" | "$"])
            }
            Some("[" | "test") => {
                let mut words = shape::suffix_words(simple).filter(|word| *word != "]");
                words.next().is_some_and(|word| {
                    !word.contains(['$', '`'])
                        && word.trim_matches(['"', '\'']).chars().all(char::is_alphanumeric)
                }) && words.next().is_none()
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether a condition only compares values, so that the check itself is elsewhere.
fn condition_is_only_tests(condition: &CompoundList) -> bool {
    condition.0.iter().all(|item| {
        let commands = item.0.first.seq.iter().chain(item.0.additional.iter().flat_map(|next| {
            let (brush_parser::ast::AndOr::And(pipeline) | brush_parser::ast::AndOr::Or(pipeline)) = next;
            pipeline.seq.iter()
        }));
        commands.into_iter().all(|command| match command {
            brush_parser::ast::Command::ExtendedTest(..)
            | brush_parser::ast::Command::Compound(CompoundCommand::Arithmetic(_), _) => true,
            _ => matches!(
                simple_name(command),
                Some("[" | "test" | "true" | "false" | ":" | "echo" | "sleep" | "$ready" | "$done")
            ),
        })
    })
}

/// A number, `{1..30}`, or the output of `seq`: the words of a loop that tries again and again.
fn is_count(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
        || (word.starts_with('{') && word.contains("..") && word.ends_with('}'))
}
