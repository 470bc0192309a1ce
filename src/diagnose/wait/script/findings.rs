//! What a walk has found so far.

use crate::diagnose::wait::evidence;
use crate::diagnose::wait::tools::Found;
use crate::diagnose::wait::types::{LoopShape, MAX_TARGETS, TargetKind, WaitTarget};

/// A program that we know nothing about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::diagnose::wait) struct OpaqueProgram {
    /// Its words, marked.
    pub(in crate::diagnose::wait) words: Vec<String>,
    /// The loop it stands in.
    pub(in crate::diagnose::wait) repeats: Option<LoopShape>,
}

/// Unknown programs beyond this many are not kept.
const MAX_OPAQUE: usize = 16;

/// What a walk has found.
#[derive(Debug, Default)]
pub(in crate::diagnose::wait) struct Findings {
    targets: Vec<WaitTarget>,
    pub(in crate::diagnose::wait) opaque: Vec<OpaqueProgram>,
    pub(in crate::diagnose::wait) unbounded_wait: bool,
    pub(in crate::diagnose::wait) never_ends: bool,
    /// Branches around the command that is walked now.
    pub(in crate::diagnose::wait) branches: usize,
}

impl Findings {
    /// Adds a target, unless it is known or follows a wait loop without being one: what comes after the wait is the
    /// container's work, not what it waits for.
    pub(in crate::diagnose::wait) fn target(&mut self, found: Found, raw: &str, around: Option<LoopShape>) {
        let repeats = match (around, found.repeats) {
            (Some(outer), Some(inner)) => Some(LoopShape {
                unbounded: outer.unbounded || inner.unbounded,
                sleep: outer.sleep.or(inner.sleep),
            }),
            (one, None) | (None, one) => one,
        };
        let waited = self.targets.iter().any(|target| target.repeats.is_some());
        let known = self.targets.iter().any(|target| target.kind == found.kind);
        if known || (waited && repeats.is_none()) || is_empty(&found.kind) {
            return;
        }
        self.unbounded_wait |= repeats.is_some_and(|shape| shape.unbounded);
        if self.targets.len() < MAX_TARGETS {
            self.targets.push(WaitTarget {
                kind: found.kind,
                tool: found.tool,
                evidence: evidence::fragment(raw),
                repeats,
                conditional: self.branches > 0,
            });
        }
    }

    /// Adds a program whose purpose is not known.
    pub(in crate::diagnose::wait) fn opaque(&mut self, words: Vec<String>, repeats: Option<LoopShape>) {
        if self.opaque.len() < MAX_OPAQUE {
            self.opaque.push(OpaqueProgram { words, repeats });
        }
    }

    /// The targets so far.
    pub(in crate::diagnose::wait) fn targets(&self) -> &[WaitTarget] {
        &self.targets
    }

    /// Gives up the targets.
    pub(in crate::diagnose::wait) fn into_targets(self) -> Vec<WaitTarget> {
        self.targets
    }
}

/// A target that names nothing at all.
fn is_empty(kind: &TargetKind) -> bool {
    match kind {
        TargetKind::Network { host, .. } | TargetKind::Name { host } => host.known() == Some(""),
        TargetKind::File { path } => path.known() == Some(""),
        TargetKind::KubernetesObject { kind, .. } => kind.is_empty(),
    }
}
