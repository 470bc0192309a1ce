//! How far a Pod has come in its init phase: which init container blocks it, since when, and in what state.

use jiff::Timestamp;

use super::view::{ContainerStatus, InitContainer, PodView, Terminated};

/// Where a Pod stands.
#[derive(Clone, Debug, PartialEq)]
pub enum InitProgress {
    /// It has no init containers.
    None,
    /// Every init container is past (ended with 0, or a sidecar that started), or the app runs.
    Done,
    /// No container has been made yet: scheduling, volumes, network or sandbox.
    BeforeContainers {
        /// Since when: scheduled, or created where it is not scheduled yet.
        since: Option<Timestamp>,
    },
    /// An init container blocks.
    At(Step),
}

/// The init container that blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Position in `spec.initContainers`, from 0.
    pub index: usize,
    /// Number of init containers, sidecars counted.
    pub total: usize,
    /// Name.
    pub container: String,
    /// A native sidecar.
    pub sidecar: bool,
    /// What it does.
    pub state: StepState,
    /// Restarts, as the kubelet counts them.
    pub restarts: i32,
    /// Since when *this step* blocks: the end of the step before it, else when the sandbox was ready. It does not
    /// move with retries, whose timestamps the kubelet overwrites.
    pub since: Option<Timestamp>,
    /// It had succeeded in this Pod before (the app's containers have a past): a new sandbox.
    pub rerun: bool,
}

/// What the blocking init container does.
#[derive(Clone, Debug, PartialEq)]
pub enum StepState {
    /// Not made yet, without a reason that says more.
    Pending,
    /// The kubelet cannot start it: image, configuration, runtime.
    Refused {
        /// The kubelet's reason.
        reason: String,
        /// The kubelet's message.
        message: Option<String>,
    },
    /// It runs.
    Running {
        /// Start of this attempt.
        started_at: Option<Timestamp>,
        /// For a sidecar: whether it counts as started.
        started: bool,
    },
    /// It ended, badly or (a sidecar) too early.
    Ended {
        /// Exit code.
        exit_code: i32,
        /// Signal, as far as the code implies one.
        signal: Option<i32>,
        /// Reason that the kubelet or the runtime gave.
        reason: Option<String>,
        /// Termination message, or the runtime's error.
        message: Option<String>,
        /// Whether the kubelet will run it again.
        retried: bool,
    },
}

impl InitProgress {
    /// Reads the progress of a Pod from its spec and status.
    pub fn of(pod: &PodView) -> Self {
        let containers = &pod.spec.init_containers;
        if containers.is_empty() {
            return Self::None;
        }
        // Once an app container runs, init is over (kubelet, HasAnyRegularContainerStarted), whatever a sidecar
        // does. An app container that has *ended* proves nothing: after a new sandbox it shows its old end.
        if pod.phase() == "Succeeded"
            || pod.status.container_statuses.iter().any(|status| status.state.running.is_some())
        {
            return Self::Done;
        }
        let statuses = |container: &InitContainer| {
            pod.status.init_container_statuses.iter().find(|status| status.name == container.name)
        };
        let blocking = containers
            .iter()
            .enumerate()
            .find(|(_, container)| !statuses(container).is_some_and(|status| is_past(container, status)));
        let Some((index, container)) = blocking else {
            return Self::Done;
        };

        let status = statuses(container);
        let state = status.map_or(StepState::Pending, |status| step_state(pod, container, status));
        if index == 0 && state == StepState::Pending && !sandbox_is_ready(pod) {
            return Self::BeforeContainers { since: before_since(pod) };
        }
        let before = index.checked_sub(1).and_then(|index| containers.get(index)).and_then(statuses);
        Self::At(Step {
            index,
            total: containers.len(),
            container: container.name.clone(),
            sidecar: container.is_sidecar(),
            state,
            restarts: status.map_or(0, |status| status.restart_count.max(0)),
            since: before.and_then(end_of).or_else(|| sandbox_since(pod)).or_else(|| before_since(pod)),
            rerun: pod
                .status
                .container_statuses
                .iter()
                .any(|status| status.state.terminated.is_some() || status.last_state.terminated.is_some()),
        })
    }

    /// The step that blocks, if a container can be named.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Self::At(step) => Some(step),
            _ => None,
        }
    }
}

impl Step {
    /// `1/2`: the first of two.
    pub fn position(&self) -> String {
        format!("{}/{}", self.index + 1, self.total)
    }

    /// How often it has failed: ends that are visible now, and the restarts before them.
    pub fn failures(&self) -> i32 {
        match &self.state {
            StepState::Ended { .. } => self.restarts.saturating_add(1),
            _ => self.restarts,
        }
    }
}

/// Whether an init container no longer blocks.
///
/// For a sidecar `started` is enough, readiness is not needed; one that exited 0 is *not* past (the kubelet
/// starts it again), although kubectl counts it so.
fn is_past(container: &InitContainer, status: &ContainerStatus) -> bool {
    if container.is_sidecar() {
        return status.state.running.is_some() && status.started == Some(true);
    }
    status.state.terminated.as_ref().is_some_and(|ended| ended.exit_code == 0)
}

fn step_state(pod: &PodView, container: &InitContainer, status: &ContainerStatus) -> StepState {
    if let Some(running) = &status.state.running {
        return StepState::Running {
            started_at: running.started_at.as_ref().map(|time| time.0),
            started: status.started == Some(true),
        };
    }
    if let Some(ended) = &status.state.terminated {
        return ended_state(pod, container, ended);
    }
    let waiting = status.state.waiting.clone().unwrap_or_default();
    match waiting.reason.as_deref().unwrap_or_default() {
        // The back-off after an end is the same state as the end itself: which of the two a status shows is
        // chance, and from Kubernetes 1.35 on mostly the end (semantics of doBackOff).
        "CrashLoopBackOff" => match &status.last_state.terminated {
            Some(ended) => ended_state(pod, container, ended),
            None => StepState::Pending,
        },
        "" | "PodInitializing" | "ContainerCreating" => StepState::Pending,
        reason => StepState::Refused { reason: reason.to_owned(), message: waiting.message },
    }
}

fn ended_state(pod: &PodView, container: &InitContainer, ended: &Terminated) -> StepState {
    StepState::Ended {
        exit_code: ended.exit_code,
        signal: ended.effective_signal(),
        reason: ended.reason.clone().filter(|reason| !reason.is_empty()),
        message: ended.message.clone().filter(|message| !message.is_empty()),
        retried: will_be_retried(pod, container, ended.exit_code),
    }
}

/// Whether the kubelet runs an ended init container again: its own rules first, then its own policy, then the
/// Pod's (`ContainerShouldRestart` in pkg/api/v1/pod/util.go).
fn will_be_retried(pod: &PodView, container: &InitContainer, exit_code: i32) -> bool {
    if pod.phase() == "Failed" {
        return false;
    }
    if container.is_sidecar() {
        return true;
    }
    let by_rule = container.restart_policy_rules.iter().any(|rule| {
        rule.exit_codes.as_ref().is_some_and(|codes| {
            codes.values.contains(&exit_code) == (codes.operator.as_deref() == Some("In"))
        })
    });
    let policy = container.restart_policy.as_deref().or(pod.spec.restart_policy.as_deref());
    by_rule || policy != Some("Never")
}

fn sandbox_is_ready(pod: &PodView) -> bool {
    // An older kubelet does not write the condition; a container that exists proves the same.
    pod.condition("PodReadyToStartContainers").is_some_and(|condition| condition.status == "True")
        || pod.status.init_container_statuses.iter().any(|status| status.container_id.is_some())
}

fn sandbox_since(pod: &PodView) -> Option<Timestamp> {
    let condition = pod.condition("PodReadyToStartContainers")?;
    (condition.status == "True").then_some(())?;
    condition.last_transition_time.as_ref().map(|time| time.0)
}

fn before_since(pod: &PodView) -> Option<Timestamp> {
    let scheduled = pod.condition("PodScheduled").filter(|condition| condition.status == "True");
    scheduled
        .and_then(|condition| condition.last_transition_time.as_ref())
        .or(pod.status.start_time.as_ref())
        .or(pod.metadata.creation_timestamp.as_ref())
        .map(|time| time.0)
}

/// When a step that is past ended: its exit, or (a sidecar) its start.
pub(super) fn end_of(status: &ContainerStatus) -> Option<Timestamp> {
    if let Some(ended) = &status.state.terminated {
        return ended.finished_at.as_ref().map(|time| time.0);
    }
    status.state.running.as_ref()?.started_at.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests;
