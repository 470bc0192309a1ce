//! What was seen of one workload revision at one moment.

use jiff::Timestamp;

use crate::api::v1alpha1::{AttemptSource, ControllerReference, InitDiagnosisSpec, WorkloadReference};
use crate::diagnose::verdict::Assessment;
use crate::pod::attempt::EndedAttempt;

/// One workload revision.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The workload and its controller.
    pub facts: WorkloadFacts,
    /// Its Pods that are in init, or failed in it.
    pub pods: Vec<PodObservation>,
    /// Pods that left since they were last seen.
    pub departures: Vec<Departure>,
    /// The first look at this diagnosis since this process started.
    pub first_look: bool,
}

/// The workload and its controller.
#[derive(Clone, Debug, Default)]
pub struct WorkloadFacts {
    /// What people know it by.
    pub workload: WorkloadReference,
    /// API version of the workload, for references to it.
    pub workload_api_version: String,
    /// Namespace.
    pub namespace: String,
    /// Direct controller.
    pub controller: Option<ControllerReference>,
    /// Revision.
    pub revision: Option<String>,
    /// How many Pods the workload wants; none where it can't be read.
    pub desired: Option<i32>,
    /// How many unfinished Pods the direct controller has.
    pub active: Option<i32>,
    /// How many Pods of this revision are ready, and so are past init.
    pub ready: Option<i32>,
    /// How many Pods of other revisions serve.
    pub others_serve: Option<i32>,
    /// Whether the controller still wants Pods.
    pub end: WorkloadEnd,
    /// The workload asks to be left alone.
    pub ignored: bool,
    /// What could not be looked at.
    pub unchecked: Vec<String>,
}

/// Whether a controller still wants Pods.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WorkloadEnd {
    /// It does.
    #[default]
    Lives,
    /// It is gone, or scaled to zero.
    WantsNone,
    /// A newer revision took over, and this one is scaled away.
    Superseded,
    /// A Job that failed for good.
    JobFailed,
    /// A Job that is complete.
    JobComplete,
}

impl WorkloadFacts {
    /// The spec of the diagnosis.
    pub fn spec(&self) -> InitDiagnosisSpec {
        InitDiagnosisSpec {
            workload: self.workload.clone(),
            controller: self.controller.clone(),
            revision: self.revision.clone(),
        }
    }
}

/// One Pod.
#[derive(Clone, Debug)]
pub struct PodObservation {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Node.
    pub node: Option<String>,
    /// Creation.
    pub created_at: Option<Timestamp>,
    /// Phase Failed: it will never run again.
    pub failed: bool,
    /// It has left (deleted, or past init), and this is how it was seen last.
    pub gone: bool,
    /// STATUS as kubectl prints it.
    pub pod_status: String,
    /// Restarts of the init container that blocks.
    pub restarts: Option<i32>,
    /// Since when it stands at its step, by our own clock.
    pub stuck_since: Option<Timestamp>,
    /// What is to be said of it.
    pub assessment: Assessment,
    /// Attempts whose end was seen, and what could be had of their logs; those known before may be among them.
    pub attempts: Vec<CapturedAttempt>,
    /// The attempt that runs now, where its output was looked at.
    pub running: Option<CapturedAttempt>,
}

impl CapturedAttempt {
    /// Whether it is over.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some() || self.interrupted_at.is_some()
    }
}

impl PodObservation {
    /// Whether it is gone and leaves logs of attempts that succeeded, which are kept on request.
    pub(super) fn leaves_successes(&self) -> bool {
        let succeeded = |attempt: &CapturedAttempt| attempt.end.as_ref().is_some_and(|end| !end.failed);
        self.gone && self.attempts.iter().any(|attempt| attempt.text.is_ok() && succeeded(attempt))
    }

    /// When a Pod that is not failing would count as stuck.
    pub(super) fn waits_until(&self) -> Option<Timestamp> {
        match self.assessment {
            Assessment::Waiting { until } => until,
            _ => None,
        }
    }
}

/// An attempt and what could be had of its log.
#[derive(Clone, Debug)]
pub struct CapturedAttempt {
    /// Name of the init container.
    pub container: String,
    /// Number from 0.
    pub number: i32,
    /// ID of the runtime container.
    pub container_id: String,
    /// Start.
    pub started_at: Option<Timestamp>,
    /// The end; none for an attempt that runs, or whose end nobody told.
    pub end: Option<EndedAttempt>,
    /// When an attempt was over whose end nobody told: its Pod was deleted by force, say.
    pub interrupted_at: Option<Timestamp>,
    /// Image of the container.
    pub image: Option<String>,
    /// Its output, or why there is none.
    pub text: Result<CapturedText, NoText>,
}

/// Why there is no output of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum NoText {
    /// It could not be read.
    Lost(String),
    /// It was not to be kept.
    NotKept(String),
}

/// Output of an attempt, secrets masked.
#[derive(Clone, Debug, PartialEq)]
pub struct CapturedText {
    /// The text.
    pub text: String,
    /// Decisive lines and last lines, at most 1 KiB.
    pub excerpt: String,
    /// How telling it is.
    pub telling: i32,

    /// Bytes of the whole log, as far as they were seen.
    pub bytes: u64,
    /// The middle is left out.
    pub truncated: bool,
    /// The log broke off while it was read.
    pub partial: bool,
    /// Time of the newest line, where it is known.
    pub last_at: Option<Timestamp>,
    /// Secrets masked.
    pub masked: usize,
    /// Where it comes from.
    pub source: AttemptSource,
}

/// A Pod that left.
#[derive(Clone, Debug)]
pub struct Departure {
    /// UID.
    pub uid: String,
    /// What became of it.
    pub fate: Fate,
    /// When that was seen.
    pub at: Timestamp,
    /// Attempts whose logs came home when it was gone already.
    pub attempts: Vec<CapturedAttempt>,
}

/// What became of a Pod that left the selection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// It runs or has run: init is over.
    PassedInit,
    /// It does not exist any more.
    Gone,
}
