//! Simple commands: assignments, redirections, function calls, wrappers and tools.

use std::rc::Rc;

use brush_parser::ast::{
    Assignment, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem, IoFileRedirectTarget, IoRedirect,
    SimpleCommand,
};

use super::words::Binding;
use super::{Scope, Walker};
use crate::diagnose::wait::command::{self, Unwrapped};
use crate::diagnose::wait::marked;
use crate::diagnose::wait::tools::{self, Found, Recognised};
use crate::diagnose::wait::types::{LoopShape, Protocol, TargetKind};

/// More words of one command than this are not looked at.
const MAX_WORDS: usize = 256;

/// More variables than this are not remembered.
const MAX_VARIABLES: usize = 512;

impl Walker<'_> {
    pub(super) fn simple(&mut self, simple: &SimpleCommand, scope: Scope) {
        let prefix = simple.prefix.iter().flat_map(|prefix| prefix.0.iter());
        let suffix = simple.suffix.iter().flat_map(|suffix| suffix.0.iter());
        for item in prefix.chain(suffix.clone()) {
            match item {
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, scope),
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                    self.assignment(assignment, scope, simple.word_or_name.is_none());
                }
                CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                    self.list(&subshell.list, scope);
                }
                CommandPrefixOrSuffixItem::Word(_) => {}
            }
        }
        let Some(name) = &simple.word_or_name else { return };
        let mut raw = vec![name.value.as_str()];
        raw.extend(suffix.filter_map(|item| match item {
            CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                Some(word.value.as_str())
            }
            _ => None,
        }));
        if matches!(name.value.as_str(), "[" | "test") {
            let mut operands = raw.get(1..).unwrap_or_default();
            if let Some((&"]", before)) = operands.split_last() {
                operands = before;
            }
            self.test(operands, scope);
            return;
        }
        let mut fields: Vec<String> = Vec::new();
        for word in raw.iter().take(MAX_WORDS) {
            let expansion = self.variables.expand(word);
            fields.extend(expansion.fields);
            for (name, text) in expansion.assigned {
                self.bind(&name, Binding::Text(text));
            }
        }
        self.words(fields, &raw.join(" "), scope);
    }

    /// A command by its words, marked; `raw` is how the Pod writes it.
    pub(in crate::diagnose::wait) fn program(&mut self, words: Vec<String>, raw: &str, deadline: bool) {
        self.deadlines += usize::from(deadline);
        self.words(words, raw, Scope::PLAIN);
        self.deadlines -= usize::from(deadline);
    }

    fn words(&mut self, fields: Vec<String>, raw: &str, scope: Scope) {
        let Some(name) = fields.first() else { return };
        if let Some(function) = self.functions.get(name).cloned() {
            let names = fields.clone();
            self.call(&function, fields, scope);
            self.functions_by_name(&names, scope);
            return;
        }
        if name == "eval" {
            let script = fields.get(1..).unwrap_or_default().join(" ");
            let positional = self.variables.positional.clone();
            self.script_in(&script, positional, false, scope);
            return;
        }
        let (unwrapped, deadline) = command::unwrap(fields);
        match unwrapped {
            Unwrapped::Script { text, positional } => {
                if !self.script_in(&text, positional, deadline, scope) {
                    crate::diagnose::wait::tolerant::scan(
                        &text,
                        &|name| self.variables.named(name),
                        &mut self.findings,
                    );
                }
            }
            Unwrapped::ScriptFile(words) => {
                if scope.counts() {
                    let around = self.repeats();
                    self.findings.opaque(words, around);
                }
            }
            Unwrapped::Program(words) => {
                self.deadlines += usize::from(deadline);
                self.tool(words, raw, scope);
                self.deadlines -= usize::from(deadline);
            }
        }
    }

    fn tool(&mut self, words: Vec<String>, raw: &str, scope: Scope) {
        if words.first().is_some_and(|name| name.ends_with("sleep"))
            && words.get(1).is_some_and(|time| matches!(time.as_str(), "infinity" | "inf"))
        {
            self.findings.never_ends = true;
        }
        if self.loops.is_empty() && is_long_sleep(&words) {
            // What comes after it is not reached for a while.
            self.findings.branches += 1;
        }
        let recognised = tools::recognise(&words, &|name| self.variables.named(name));
        if !scope.counts() {
            return;
        }
        let around = self.repeats();
        match recognised {
            Recognised::Local => {}
            Recognised::Targets(found) => {
                for mut one in found {
                    if self.deadlines > 0
                        && let Some(own) = &mut one.repeats
                    {
                        own.unbounded = false;
                    }
                    self.findings.target(one, raw, around);
                }
            }
            Recognised::Unknown => {
                self.functions_by_name(&words, scope);
                for found in tools::connection_urls(&words) {
                    self.findings.target(found, raw, around);
                }
                self.findings.opaque(words, around);
            }
        }
    }

    /// `retry_while check_database 12 5`: a function of the script that another one calls by its name, as often as
    /// that one sees fit (Bitnami's `libos.sh`).
    fn functions_by_name(&mut self, words: &[String], scope: Scope) {
        for word in words.iter().skip(1) {
            if let Some(function) = self.functions.get(word).cloned() {
                self.loops.push(LoopShape { unbounded: false, sleep: None });
                self.call(&function, vec![word.clone()], scope);
                self.loops.pop();
            }
        }
    }

    fn call(
        &mut self,
        function: &Rc<brush_parser::ast::CompoundCommand>,
        mut fields: Vec<String>,
        scope: Scope,
    ) {
        if self.depth >= super::MAX_DEPTH / 2 {
            return;
        }
        fields.remove(0);
        let outer = std::mem::replace(&mut self.variables.positional, fields);
        self.depth += 1;
        self.compound(function, scope);
        self.depth -= 1;
        self.variables.positional = outer;
    }

    fn assignment(&mut self, assignment: &Assignment, scope: Scope, alone: bool) {
        let AssignmentName::VariableName(name) = &assignment.name else {
            return;
        };
        match &assignment.value {
            AssignmentValue::Scalar(word) => {
                let expansion = self.variables.expand(&word.value);
                let text = expansion.joined();
                let binding = match expansion.commands.first() {
                    Some(script) if marked::has_unknown(&text) => Binding::Output(script.clone()),
                    _ if assignment.append => {
                        let before = self.variables.named(name).unwrap_or_default();
                        Binding::Text(marked::bound(format!("{before}{text}")))
                    }
                    _ => Binding::Text(text),
                };
                // `if DATA=$(wget …)`: the status is that of the command.
                if alone {
                    for script in expansion.commands {
                        let positional = self.variables.positional.clone();
                        self.script_in(&script, positional, false, scope);
                    }
                }
                self.bind(name, binding);
            }
            AssignmentValue::Array(words) => {
                let text = words
                    .iter()
                    .take(64)
                    .map(|(_, word)| self.variables.expand(&word.value).joined())
                    .collect::<Vec<_>>()
                    .join(" ");
                self.bind(name, Binding::Text(marked::bound(text)));
            }
        }
    }

    pub(super) fn bind(&mut self, name: &str, binding: Binding) {
        if self.variables.script.len() < MAX_VARIABLES || self.variables.script.contains_key(name) {
            self.variables.script.insert(name.to_owned(), binding);
        }
    }

    /// `> /dev/tcp/HOST/PORT` opens a connection in bash.
    pub(super) fn redirect(&mut self, redirect: &IoRedirect, scope: Scope) {
        let IoRedirect::File(_, kind, IoFileRedirectTarget::Filename(word)) = redirect else {
            return;
        };
        let path = self.variables.expand(&word.value).joined();
        let Some((protocol, address)) = path.strip_prefix("/dev/").and_then(|rest| rest.split_once('/'))
        else {
            return;
        };
        let protocol = match protocol {
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            _ => return,
        };
        if !scope.counts() {
            return;
        }
        let (host, port) = address.split_once('/').unwrap_or((address, ""));
        let kind_of_target =
            TargetKind::Network { host: marked::to_value(host), port: marked::to_port(port), protocol };
        let around = self.repeats();
        self.findings.target(
            Found { kind: kind_of_target, tool: "/dev/tcp", repeats: None },
            &format!("{kind} {}", word.value),
            around,
        );
    }
}

/// A `sleep` of a minute or more.
fn is_long_sleep(words: &[String]) -> bool {
    let [name, times @ ..] = words else { return false };
    let seconds = |time: &String| {
        let (number, unit) = time.split_at(time.trim_end_matches(['s', 'm', 'h', 'd']).len());
        let factor = match unit {
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => 1.0,
        };
        number.parse::<f64>().ok().map(|number| number * factor)
    };
    name.ends_with("sleep") && times.iter().filter_map(seconds).sum::<f64>() >= 60.0
}
