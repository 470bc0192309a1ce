//! The Pod was deleted while an init container ran: no failure that anybody told of, but its log is here.

use jiff::Timestamp;

use super::super::catalogue::cause;
use super::super::facts::PodFacts;
use super::super::verdict::{Assessment, Urgency, Verdict};
use crate::api::v1alpha1::{EvidenceSource, Severity};
use crate::pod::progress::StepState;

/// What is to be said of a Pod that is gone and whose init container ran when it was seen last. Never more than
/// *Observed*: whoever deleted it knows, and a Pod that somebody waits for comes again.
pub fn interrupted(facts: &PodFacts<'_>) -> Option<Assessment> {
    let step = facts.progress.step().filter(|step| matches!(step.state, StepState::Running { .. }))?;
    let pod = facts.pod.name();
    let mut verdict = Verdict::new(
        cause::DELETED_DURING_INIT,
        format!("{} was still running{} when Pod {pod} was deleted", super::named(step), super::since(facts)),
    )
    .at(step)
    .urgency(Urgency::From(Timestamp::MAX))
    .fact(EvidenceSource::Status, format!("Pod {pod}"), "deleted while an init container ran");
    verdict.severity = Severity::Info;
    verdict.remedy = super::filled(&verdict.remedy, facts, Some(&step.container));
    Some(Assessment::Failing(Box::new(verdict.bounded(facts))))
}
