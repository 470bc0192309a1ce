//! The detectors: small pure functions from facts to a verdict, asked in the order of DESIGN D5.
//!
//! What objects and the kubelet say comes first, what a log says second, what merely fits last. The first
//! detector that answers decides.

mod before;
mod ended;
mod hanging;
mod interrupted;
mod pod_level;
mod refused;
mod sidecar;
mod waits;

use super::facts::PodFacts;
use super::verdict::{Assessment, Urgency, Verdict};
use crate::api;
use crate::api::v1alpha1::Severity;
use crate::pod::progress::{InitProgress, Step, StepState};

pub use interrupted::interrupted;

/// A detector with the name by which `explain` shows it.
struct Detector {
    name: &'static str,
    detect: fn(&PodFacts<'_>) -> Option<Verdict>,
}

/// The chain. It reads as the order in which an experienced person asks.
const CHAIN: &[Detector] = &[
    // Did the cluster end the Pod: evicted, over its deadline, rejected by the node?
    Detector { name: "pod-level", detect: pod_level::detect },
    // Does it wait before any container: no node, no sandbox?
    Detector { name: "before-containers", detect: before::detect },
    // Can the kubelet not start the init container: image, configuration, runtime?
    Detector { name: "refused", detect: refused::detect },
    // Is it a native sidecar that does not come up?
    Detector { name: "sidecar", detect: sidecar::detect },
    // Did it end badly?
    Detector { name: "ended", detect: ended::detect },
    // Does it wait for something, and what is wrong with that?
    Detector { name: "waits", detect: waits::detect },
    // It runs too long, and nothing says why.
    Detector { name: "hanging", detect: hanging::detect },
];

/// Assesses one Pod.
pub fn assess(facts: &PodFacts<'_>) -> Assessment {
    let pod = facts.pod;
    let ignored = pod.annotation(api::ANNOTATION_IGNORE) == Some("true");
    if ignored || matches!(facts.progress, InitProgress::None | InitProgress::Done) {
        return Assessment::Fine;
    }
    if pod.is_terminating() {
        // An end after the request to delete is the deletion's doing (137, 143), not a failure.
        return Assessment::Leaving;
    }
    let Some((detector, mut verdict)) =
        CHAIN.iter().find_map(|detector| Some((detector.name, (detector.detect)(facts)?)))
    else {
        return Assessment::Waiting { until: threshold(facts) };
    };
    tracing::trace!(pod = pod.name(), detector, cause = verdict.cause, "decided");
    verdict.remedy = filled(&verdict.remedy, facts, verdict.init_container.as_deref());
    verdict.advice.extend(waits::advice(facts));
    if let Urgency::From(at) = verdict.urgency {
        if at <= facts.now {
            verdict.urgency = Urgency::Now;
        } else {
            // It may heal: kept, but no alert.
            verdict.severity = Severity::Info;
        }
    }
    Assessment::Failing(Box::new(verdict.bounded(facts)))
}

/// A remedy with the names of this Pod in the places that its template leaves.
fn filled(template: &str, facts: &PodFacts<'_>, container: Option<&str>) -> String {
    let pod = facts.pod;
    let image = container.and_then(|name| pod.init_container(name)).and_then(|spec| spec.image.as_deref());
    template
        .replace("{namespace}", pod.namespace())
        .replace("{pod}", pod.name())
        .replace("{container}", container.unwrap_or("the init container"))
        .replace("{image}", image.unwrap_or("the image"))
        .replace("{node}", pod.spec.node_name.as_deref().unwrap_or("(none)"))
}

/// When the present step counts as stuck.
fn threshold(facts: &PodFacts<'_>) -> Option<jiff::Timestamp> {
    facts.stuck_since?.checked_add(facts.stuck_after).ok()
}

/// Whether the present step has lasted too long.
fn is_stuck(facts: &PodFacts<'_>) -> bool {
    threshold(facts).is_some_and(|at| at <= facts.now)
}

/// Urgency of a failure that may heal until the step counts as stuck.
fn until_stuck(facts: &PodFacts<'_>) -> Urgency {
    threshold(facts).map_or(Urgency::Now, Urgency::From)
}

/// `wait-for-db (step 1 of 2)`.
fn named(step: &Step) -> String {
    let kind = if step.sidecar { "sidecar " } else { "" };
    format!("{kind}{} (step {} of {})", step.container, step.index + 1, step.total)
}

/// ` since 2026-12-01 12:04:05 UTC`, or nothing where that is not known. A time, not a duration: a stored
/// sentence must stay true.
fn since(facts: &PodFacts<'_>) -> String {
    facts
        .stuck_since
        .map_or_else(String::new, |at| format!(" since {}", at.strftime("%Y-%m-%d %H:%M:%S UTC")))
}

/// The step, when its state is that of a running regular init container in its first attempt or one that has
/// run too long to be called a crash loop.
fn long_running(facts: &PodFacts<'_>) -> Option<Step> {
    let step = facts.progress.step()?;
    let StepState::Running { started_at, .. } = step.state else {
        return None;
    };
    let long_enough = if step.restarts == 0 {
        is_stuck(facts)
    } else {
        // After failures, the present attempt alone must have lasted the threshold.
        let end = started_at.and_then(|at| at.checked_add(facts.stuck_after).ok());
        end.is_some_and(|at| at <= facts.now)
    };
    (long_enough && !step.sidecar).then(|| step.clone())
}

impl Verdict {
    /// Names the init container and its position.
    #[must_use]
    fn at(mut self, step: &Step) -> Self {
        self.init_container = Some(step.container.clone());
        self.step = Some(step.position());
        self
    }

    /// Masks secrets and cuts every text to what the schema allows: texts of the cluster are anybody's.
    fn bounded(mut self, facts: &PodFacts<'_>) -> Self {
        let clean = |text: &str, max: usize| {
            let literals = super::secret_literals(facts.pod);
            super::cut(&facts.masker.mask(text, &literals).text, max)
        };
        self.summary = clean(&self.summary, 1024);
        self.remedy = clean(&self.remedy, 2048);
        self.evidence.truncate(16);
        for evidence in &mut self.evidence {
            evidence.subject = clean(&evidence.subject, 320);
            evidence.fact = clean(&evidence.fact, 512);
        }
        self.also.truncate(5);
        for other in &mut self.also {
            other.why_not = clean(&other.why_not, 256);
        }
        self.advice.truncate(8);
        for advice in &mut self.advice {
            advice.message = clean(&advice.message, 512);
        }
        self.unchecked.truncate(10);
        for unchecked in &mut self.unchecked {
            *unchecked = clean(unchecked, 256);
        }
        self
    }
}

#[cfg(test)]
mod tests;
