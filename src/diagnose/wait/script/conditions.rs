//! `[ … ]`, `test` and `[[ … ]]`.

use brush_parser::ast::{ExtendedTestExpr, UnaryPredicate};

use super::{Scope, Walker, Wanted};
use crate::diagnose::wait::marked;
use crate::diagnose::wait::tools::Found;
use crate::diagnose::wait::types::TargetKind;

impl Walker<'_> {
    /// The raw words between `[` and `]`.
    pub(super) fn test(&mut self, words: &[&str], scope: Scope) {
        for clause in words.split(|word| matches!(*word, "-a" | "-o")) {
            let negations = clause.iter().take_while(|word| matches!(**word, "!" | "(" | "\\(")).count();
            let bangs = clause.iter().take(negations).filter(|word| **word == "!").count();
            let scope = scope.negated(bangs % 2 == 1);
            let operands: Vec<&str> =
                clause.iter().skip(negations).copied().filter(|word| !matches!(*word, ")" | "\\)")).collect();
            match operands.as_slice() {
                [operand] => self.tested_output(operand, scope),
                [operator, operand] => self.unary(operator, operand, scope),
                [left, operator, right] => self.comparison(left, operator, right, scope),
                _ => {}
            }
        }
    }

    pub(super) fn extended_test(&mut self, test: &ExtendedTestExpr, scope: Scope) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.extended_test(left, scope);
                self.extended_test(right, scope);
            }
            ExtendedTestExpr::Not(inner) => self.extended_test(inner, scope.negated(true)),
            ExtendedTestExpr::Parenthesized(inner) => self.extended_test(inner, scope),
            ExtendedTestExpr::UnaryTest(UnaryPredicate::StringHasNonZeroLength, word) => {
                self.tested_output(&word.value, scope);
            }
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                self.unary(&predicate.to_string(), &word.value, scope);
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                self.comparison(&left.value, &predicate.to_string(), &right.value, scope);
            }
        }
    }

    fn unary(&mut self, operator: &str, operand: &str, scope: Scope) {
        match operator {
            "-z" => self.tested_output(operand, scope.negated(true)),
            "-n" => self.tested_output(operand, scope),
            "-f" | "-e" | "-s" | "-d" | "-S" | "-p" | "-r" | "-w" | "-x" | "-L" | "-h" | "-b" | "-c"
                if scope.decisive && scope.wanted == Wanted::Success =>
            {
                let path = marked::to_value(&self.variables.expand(operand).joined());
                let found = Found { kind: TargetKind::File { path }, tool: "test", repeats: None };
                let around = self.repeats();
                self.findings.target(found, &format!("[ {operator} {operand} ]"), around);
            }
            _ => {}
        }
    }

    fn comparison(&mut self, left: &str, operator: &str, right: &str, scope: Scope) {
        // Equal to nothing, or to no success, is what a wait loop wants to leave behind.
        let unwanted = is_nothing(left) || is_nothing(right);
        let negate = match operator {
            "!=" | "-ne" => !unwanted,
            "-lt" | "-le" | "<" => true,
            "=" | "==" | "-eq" => unwanted,
            _ => false,
        };
        self.tested_output(left, scope.negated(negate));
        self.tested_output(right, scope.negated(negate));
    }

    /// A word of a test: the commands whose output it is are the check.
    fn tested_output(&mut self, word: &str, scope: Scope) {
        for script in self.variables.expand(word).commands {
            // The output was compared: the script decides by it.
            let positional = self.variables.positional.clone();
            self.script_in(&script, positional, false, scope);
        }
    }
}

fn is_nothing(word: &str) -> bool {
    let text = word.trim_matches(['"', '\'']).to_ascii_lowercase();
    matches!(
        text.as_str(),
        "" | "0"
            | "000"
            | "x"
            | "false"
            | "null"
            | "none"
            | "<none>"
            | "down"
            | "pending"
            | "loading"
            | "starting"
    ) || (text.len() == 3 && text.starts_with(['4', '5']) && text.bytes().all(|byte| byte.is_ascii_digit()))
}
