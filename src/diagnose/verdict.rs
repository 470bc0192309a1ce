//! What the core concludes about a Pod.

use jiff::Timestamp;

use super::catalogue;
use crate::api::v1alpha1::{Advice, Confidence, Evidence, EvidenceSource, OtherCause, RootCause, Severity};

/// What is to be said of a Pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Assessment {
    /// Nothing: no init containers, all past, or asked to be ignored.
    Fine,
    /// It is being deleted: neither a new failure nor a recovery.
    Leaving,
    /// Not past init, nothing wrong so far; look again at that time.
    Waiting {
        /// When it counts as stuck.
        until: Option<Timestamp>,
    },
    /// Something is wrong.
    Failing(Box<Verdict>),
}

impl Assessment {
    /// The verdict, where something is wrong.
    pub fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Failing(verdict) => Some(verdict),
            _ => None,
        }
    }
}

/// When a failure needs somebody (DESIGN D11).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Urgency {
    /// It cannot heal, has failed again, or has lasted too long.
    Now,
    /// It may heal by itself until then.
    From(Timestamp),
}

/// The cause of a Pod's failure, with all that is needed to believe it and to act.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Code of the catalogue.
    pub cause: &'static str,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// One sentence, free of figures that change by themselves (durations): it is compared to decide on writes.
    pub summary: String,
    /// What to do.
    pub remedy: String,
    /// Facts.
    pub evidence: Vec<Evidence>,
    /// What was weighed and set aside.
    pub also: Vec<OtherCause>,
    /// What is unsafe besides.
    pub advice: Vec<Advice>,
    /// What is really broken.
    pub root_cause: Option<RootCause>,
    /// What could not be looked at.
    pub unchecked: Vec<String>,
    /// The init container, where one can be named (DESIGN D2).
    pub init_container: Option<String>,
    /// Its position: `1/2`.
    pub step: Option<String>,
    /// When it needs somebody.
    pub urgency: Urgency,
}

impl Verdict {
    /// A certain verdict with the catalogue's remedy, to be refined by its detector.
    pub fn new(cause: &'static str, summary: impl Into<String>) -> Self {
        Self {
            cause,
            severity: Severity::Warning,
            confidence: Confidence::Certain,
            summary: summary.into(),
            remedy: catalogue::entry(cause).map(|entry| entry.remedy.clone()).unwrap_or_default(),
            evidence: Vec::new(),
            also: Vec::new(),
            advice: Vec::new(),
            root_cause: None,
            unchecked: Vec::new(),
            init_container: None,
            step: None,
            urgency: Urgency::Now,
        }
    }

    /// Category of the cause.
    pub fn category(&self) -> &'static str {
        catalogue::category(self.cause)
    }

    /// Whether it rests on objects beside the Pod, whose changes nobody tells.
    pub fn rests_on_objects(&self) -> bool {
        !self.also.is_empty()
            || !self.unchecked.is_empty()
            || self.evidence.iter().any(|evidence| evidence.source == EvidenceSource::Object)
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(
        mut self,
        source: EvidenceSource,
        subject: impl Into<String>,
        fact: impl Into<String>,
    ) -> Self {
        self.evidence.push(Evidence { source, subject: subject.into(), fact: fact.into() });
        self
    }

    /// Replaces the remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// Sets the confidence.
    #[must_use]
    pub fn confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }

    /// Sets the urgency.
    #[must_use]
    pub fn urgency(mut self, urgency: Urgency) -> Self {
        self.urgency = urgency;
        self
    }
}
