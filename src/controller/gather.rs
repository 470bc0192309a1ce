//! Gathers what a reconcile needs to know: Pods that left, Services, the output of running containers.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use kube::Api;

use super::Context;
use super::capture::Ghost;
use super::policy::{NamespacePolicy, threshold};
use super::rerun;
use super::track::Left;
use crate::api;
use crate::api::v1alpha1::{InitDiagnosisSpec, InitDiagnosisStatus};
use crate::cluster::{read, services};
use crate::diagnose::facts::{LogFacts, Lookup, PodFacts, ServiceFacts, ServiceLookups, ServiceName};
use crate::diagnose::targets::Needs;
use crate::diagnose::verdict::Assessment;
use crate::diagnose::wait::WaitAnalysis;
use crate::diagnose::{assess, cut, interrupted, log, needs};
use crate::plan::{self, CapturedAttempt, Departure, Fate, PodObservation};
use crate::pod::PodView;
use crate::pod::attempt::running_attempt;
use crate::pod::identity::{DiagnosisKey, Identity, group_of};
use crate::pod::progress::InitProgress;
use crate::pod::status::kubectl_status_by;

/// Calls that one reconcile makes at once.
const PARALLEL: usize = 8;
/// Bytes of an excerpt.
const MAX_EXCERPT: usize = 1024;
/// Running containers whose output one reconcile looks at: the others of the workload hang alike.
const MAX_RUNNING_LOOKS: usize = 3;

/// A Pod and what can be said of it without asking anybody.
pub(super) struct Candidate {
    pub(super) pod: Arc<PodView>,
    pub(super) progress: InitProgress,
    pub(super) stuck_since: Option<Timestamp>,
    pub(super) stuck_after: SignedDuration,
    /// It has left, and this is how it was seen last.
    gone: bool,
    /// An attempt of it was recorded whose end nobody told.
    interrupted: bool,
}

impl Candidate {
    pub(super) fn new(
        context: &Context,
        pod: Arc<PodView>,
        policy: &NamespacePolicy,
        stored: Option<&InitDiagnosisStatus>,
    ) -> Self {
        let progress = InitProgress::of(&pod);
        let since = match &progress {
            InitProgress::At(step) => step.since,
            InitProgress::BeforeContainers { since } => *since,
            InitProgress::None | InitProgress::Done => None,
        };
        let container = progress.step().map(|step| step.container.as_str());
        Self {
            stuck_since: earliest(since, stored_since(stored, pod.uid(), container)),
            stuck_after: own_threshold(&pod).unwrap_or_else(|| {
                let default = policy.stuck_after.unwrap_or(context.settings.stuck_after);
                context.histories.threshold(&pod, &progress, default)
            }),
            progress,
            pod,
            gone: false,
            interrupted: false,
        }
    }

    /// A Pod that has left, as it was before: that it was being deleted says nothing of what went wrong.
    pub(super) fn ghost(
        context: &Context,
        ghost: &Ghost,
        policy: &NamespacePolicy,
        stored: Option<&InitDiagnosisStatus>,
    ) -> Self {
        let mut pod = PodView::clone(&ghost.pod);
        pod.metadata.deletion_timestamp = None;
        let held = context.captures.held(pod.uid());
        // What is over is not opened again because a Pod is deleted.
        let may_open = stored.is_none_or(|stored| !plan::is_closed(stored));
        let interrupted = may_open && held.iter().any(|attempt| attempt.interrupted_at.is_some());
        Self { gone: true, interrupted, ..Self::new(context, Arc::new(pod), policy, stored) }
    }

    fn assess(
        &self,
        context: &Context,
        waits: Option<&WaitAnalysis>,
        logs: &[LogFacts],
        services: &ServiceLookups,
        now: Timestamp,
    ) -> Assessment {
        let facts = self.facts(context, waits, logs, services, now);
        let assessment = assess(&facts);
        if self.gone && assessment.verdict().is_none() && self.interrupted {
            return interrupted(&facts).unwrap_or(assessment);
        }
        assessment
    }

    fn facts<'a>(
        &'a self,
        context: &'a Context,
        waits: Option<&'a WaitAnalysis>,
        logs: &'a [LogFacts],
        services: &'a ServiceLookups,
        now: Timestamp,
    ) -> PodFacts<'a> {
        PodFacts {
            pod: &self.pod,
            progress: &self.progress,
            stuck_since: self.stuck_since,
            stuck_after: self.stuck_after,
            waits,
            logs,
            services,
            masker: &context.masker,
            now,
        }
    }
}

/// The clock is ours: what was written for this Pod at this step holds, whatever the kubelet's times say now.
fn stored_since(
    stored: Option<&InitDiagnosisStatus>,
    uid: &str,
    container: Option<&str>,
) -> Option<Timestamp> {
    let entry = stored?.affected.iter().find(|entry| entry.uid == uid && entry.left_at.is_none())?;
    (entry.init_container.as_deref() == container).then_some(())?;
    entry.stuck_since.as_ref().map(|since| since.0)
}

/// The threshold that somebody has set for this very Pod; no history makes it longer. A value that makes no sense is as
/// good as none, and complained about elsewhere.
fn own_threshold(pod: &PodView) -> Option<SignedDuration> {
    pod.annotation(api::ANNOTATION_STUCK_AFTER).and_then(|text| threshold(text).ok())
}

/// Whether a Pod fails as far as it can be told without asking anybody.
pub(super) fn looks_bad(context: &Context, candidate: &Candidate, now: Timestamp) -> Assessment {
    candidate.assess(context, None, &[], &ServiceLookups::new(), now)
}

/// Observes the Pods: looks up what they wait for and what they print, and assesses them.
pub(super) async fn observe(
    context: &Context,
    key: &DiagnosisKey,
    candidates: Vec<Candidate>,
    stored: Option<&InitDiagnosisStatus>,
    now: Timestamp,
) -> Vec<PodObservation> {
    // Scripts are parsed for those that fail, not for every Pod that starts.
    let needs: Vec<Option<Needs>> = candidates
        .iter()
        .map(|candidate| {
            let bad = looks_bad(context, candidate, now).verdict().is_some();
            bad.then(|| needs(&candidate.pod, &candidate.progress))
        })
        .collect();
    let failing =
        || candidates.iter().zip(&needs).filter(|(_, needs)| needs.is_some()).map(|(candidate, _)| candidate);

    // Replicas wait for the same: each Service is looked up once.
    let mut names: Vec<_> = needs.iter().flatten().flat_map(|needs| needs.services.clone()).collect();
    names.sort();
    names.dedup();
    let questions = names.into_iter().map(|name| look_up(context, name)).collect();
    let lookups: ServiceLookups = in_parallel(questions).await.into_iter().collect();

    let present = failing().filter(|candidate| !candidate.gone);
    let looks = present.take(MAX_RUNNING_LOOKS).map(|candidate| look(context, key, candidate, now)).collect();
    let running: BTreeMap<String, CapturedAttempt> = in_parallel(looks).await.into_iter().flatten().collect();

    candidates
        .into_iter()
        .zip(&needs)
        .map(|(candidate, needs)| {
            let waits = needs.as_ref().and_then(|needs| needs.waits.as_ref());
            let attempts = context.captures.held(candidate.pod.uid());
            let running = running.get(candidate.pod.uid()).cloned();
            // What an earlier attempt said stays known when its text has been written and let go.
            let written = stored_logs(stored, candidate.pod.uid());
            let fresh = attempts.iter().chain(&running).filter_map(captured_log);
            let logs: Vec<_> = written.chain(fresh).collect();
            let assessment = candidate.assess(context, waits, &logs, &lookups, now);
            let pod = &candidate.pod;
            PodObservation {
                name: pod.name().to_owned(),
                uid: pod.uid().to_owned(),
                node: pod.spec.node_name.clone(),
                created_at: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
                failed: pod.phase() == "Failed",
                gone: candidate.gone,
                pod_status: kubectl_status_by(context.printer, pod).text,
                restarts: candidate.progress.step().map(|step| step.restarts),
                stuck_since: candidate.stuck_since,
                assessment,
                attempts,
                running,
            }
        })
        .collect()
}

async fn look_up(context: &Context, name: ServiceName) -> (ServiceName, Lookup<ServiceFacts>) {
    let answer = services::look_up(&context.client, &name).await;
    (name, answer)
}

/// What the container that runs in a Pod has printed so far, by the Pod's UID.
async fn look(
    context: &Context,
    key: &DiagnosisKey,
    candidate: &Candidate,
    now: Timestamp,
) -> Option<(String, CapturedAttempt)> {
    let step = candidate.progress.step()?;
    let statuses = &candidate.pod.status.init_container_statuses;
    let attempt = statuses.iter().find(|status| status.name == step.container).and_then(running_attempt)?;
    let looked = context.captures.look_at_running(&candidate.pod, key, &attempt, now).await;
    Some((candidate.pod.uid().to_owned(), looked))
}

/// Runs calls a few at a time.
async fn in_parallel<F: Future>(calls: Vec<F>) -> Vec<F::Output> {
    futures::stream::iter(calls).buffer_unordered(PARALLEL).collect().await
}

fn stored_logs<'a>(
    stored: Option<&'a InitDiagnosisStatus>,
    uid: &str,
) -> impl Iterator<Item = LogFacts> + use<'a> {
    let entry = stored.and_then(|stored| stored.affected.iter().find(|entry| entry.uid == uid));
    let attempts = entry.into_iter().flat_map(|entry| &entry.attempts);
    // What a running attempt printed is looked at anew.
    attempts.filter(|attempt| attempt.has_ended()).filter_map(|attempt| {
        Some(log_facts(&attempt.init_container, attempt.number, attempt.excerpt.as_deref()?))
    })
}

fn captured_log(captured: &CapturedAttempt) -> Option<LogFacts> {
    let text = captured.text.as_ref().ok()?;
    Some(LogFacts { last_at: text.last_at, ..log_facts(&captured.container, captured.number, &text.excerpt) })
}

/// The telling lines are taken from the excerpt in both cases, so that a summary reads the same before and
/// after the log is written.
fn log_facts(container: &str, number: i32, excerpt: &str) -> LogFacts {
    let lines = log::excerpt(excerpt, MAX_EXCERPT);
    LogFacts {
        container: container.to_owned(),
        number,
        decisive_line: lines.decisive_line.map(|line| cut(&line, 400)),
        last_line: lines.last_line.map(|line| cut(&line, 400)),
        repeats: log::ends_in_repetition(excerpt),
        last_at: None,
    }
}

/// What became of Pods that are no longer in sight: "left the selection" is deleted or recovered, a GET tells.
pub(super) async fn departures(context: &Arc<Context>, key: &DiagnosisKey, left: &[Left]) -> Vec<Departure> {
    let pods: Api<PodView> = Api::namespaced(context.client.clone(), &key.namespace);
    let questions = left.iter().map(|left| departure(context, &pods, &key.namespace, left)).collect();
    in_parallel(questions).await.into_iter().flatten().collect()
}

async fn departure(
    context: &Arc<Context>,
    pods: &Api<PodView>,
    namespace: &str,
    left: &Left,
) -> Option<Departure> {
    let pod = read(format!("get pod {namespace}/{}", left.name), || pods.get_opt(&left.name)).await;
    let fate = match pod {
        Ok(Some(pod)) if pod.uid() == left.uid => match InitProgress::of(&pod) {
            InitProgress::Done | InitProgress::None => Fate::PassedInit,
            // Still in init, only out of the watch's sight: an init container runs again in a running Pod.
            _ => {
                let scope = context.scope_of(namespace);
                rerun::take(context, &scope, pod);
                return None;
            }
        },
        Ok(_) => Fate::Gone,
        Err(error) => {
            tracing::debug!(%error, "what became of a Pod is not known");
            return None;
        }
    };
    let attempts = context.captures.held(&left.uid);
    Some(Departure { uid: left.uid.clone(), fate, at: left.at, attempts })
}

/// The identity of a diagnosis that has no Pod in sight, from what is stored.
pub(super) fn stored_identity(key: &DiagnosisKey, spec: &InitDiagnosisSpec) -> Identity {
    Identity {
        key: key.clone(),
        controller: spec.controller.clone(),
        workload: spec.workload.clone(),
        revision: spec.revision.clone(),
    }
}

/// Whether Pods are made by a template's name alone (`generateName`), and its prefix: such bare Pods are
/// bounded, since each is a diagnosis of its own.
pub(super) fn generated_prefix(pod: &PodView) -> Option<String> {
    let bare =
        pod.controller().is_none_or(|owner| owner.kind == "Node" && group_of(&owner.api_version).is_empty());
    let prefix = pod.metadata.generate_name.as_deref().filter(|_| bare)?;
    Some(format!("pod.{prefix}"))
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
