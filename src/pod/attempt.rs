//! The attempts (runs of an init container) that a Pod's status shows.
//!
//! A status is a sample, never a log of transitions: it names at most two attempts of each container. An
//! attempt is known by the ID of its runtime container; numbers can repeat (a new sandbox) or jump.

use jiff::Timestamp;

use super::view::{ContainerStatus, PodView, Terminated};

/// Which request to the API returns the log of an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogRole {
    /// `previous=false`: the instance that the kubelet regards as current.
    Current,
    /// `previous=true`: the instance before the one that runs now.
    Previous,
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedAttempt {
    /// Name of the init container.
    pub container: String,
    /// Number from 0, as the kubelet counts restarts.
    pub number: i32,
    /// ID of the runtime container, with the runtime's scheme.
    pub container_id: String,
    /// Start, in whole seconds; absent where the container never started.
    pub started_at: Option<Timestamp>,
    /// End, in whole seconds.
    pub finished_at: Option<Timestamp>,
    /// Exit code.
    pub exit_code: i32,
    /// It ended badly: with another code than 0, or at all where it was meant to stay (a native sidecar).
    pub failed: bool,
    /// Signal, as far as the code implies one.
    pub signal: Option<i32>,
    /// Reason that the kubelet or the runtime gave.
    pub reason: Option<String>,
    /// Termination message, or the runtime's error.
    pub message: Option<String>,
    /// How its log is asked for at the moment of this status.
    pub role: LogRole,
}

impl EndedAttempt {
    /// Whether it was over at once: within two seconds.
    pub fn was_short(&self) -> bool {
        let took = self.started_at.zip(self.finished_at).map(|(start, end)| end.duration_since(start));
        took.is_none_or(|took| took.as_secs() <= 2)
    }
}

/// An attempt that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningAttempt {
    /// Name of the init container.
    pub container: String,
    /// Number from 0.
    pub number: i32,
    /// ID of the runtime container.
    pub container_id: String,
    /// Start, in whole seconds.
    pub started_at: Option<Timestamp>,
}

/// The attempts of init containers that have ended, oldest first by container.
pub fn ended_attempts(pod: &PodView) -> Vec<EndedAttempt> {
    let mut attempts = Vec::new();
    for status in &pod.status.init_container_statuses {
        let Some(spec) = pod.init_container(&status.name) else {
            continue;
        };
        let stays = spec.is_sidecar();
        // `lastState` is the older of the two (kubelet, convertToAPIContainerStatuses).
        if let Some(ended) = &status.last_state.terminated {
            attempts.extend(ended_attempt(status, ended, stays, previous_of(status)));
        }
        if let Some(ended) = &status.state.terminated {
            attempts.extend(ended_attempt(
                status,
                ended,
                stays,
                (status.restart_count.max(0), LogRole::Current),
            ));
        }
    }
    attempts
}

/// The attempt of an init container that runs now, if one does.
pub fn running_attempt(status: &ContainerStatus) -> Option<RunningAttempt> {
    let running = status.state.running.as_ref()?;
    Some(RunningAttempt {
        container: status.name.clone(),
        number: status.restart_count.max(0),
        container_id: status.container_id.clone().filter(|id| !id.is_empty())?,
        started_at: running.started_at.as_ref().map(|time| time.0),
    })
}

/// Number and role of the attempt in `lastState`.
///
/// While the next attempt runs, it is the one before (`previous=true`). While the container waits for its
/// next start, the kubelet has moved the newest attempt into `lastState`, and both requests return it.
fn previous_of(status: &ContainerStatus) -> (i32, LogRole) {
    if status.state.running.is_some() || status.state.terminated.is_some() {
        (status.restart_count.saturating_sub(1).max(0), LogRole::Previous)
    } else {
        (status.restart_count.max(0), LogRole::Current)
    }
}

fn ended_attempt(
    status: &ContainerStatus,
    ended: &Terminated,
    stays: bool,
    (number, role): (i32, LogRole),
) -> Option<EndedAttempt> {
    // Without an ID (`ContainerStatusUnknown`) there is neither a log nor a name for the attempt.
    let container_id = ended.container_id.clone().filter(|id| !id.is_empty())?;
    Some(EndedAttempt {
        container: status.name.clone(),
        number,
        container_id,
        started_at: known_time(ended.started_at.as_ref()),
        finished_at: known_time(ended.finished_at.as_ref()),
        exit_code: ended.exit_code,
        failed: ended.exit_code != 0 || stays,
        signal: ended.effective_signal(),
        reason: ended.reason.clone().filter(|reason| !reason.is_empty()),
        message: ended.message.clone().filter(|message| !message.is_empty()),
        role,
    })
}

/// A time that means something: containerd writes the epoch where a container never started.
fn known_time(time: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>) -> Option<Timestamp> {
    time.map(|time| time.0).filter(|time| time.as_second() > 0)
}

/// The part of a container ID that tells attempts apart at a glance: its first eight characters after the
/// runtime's scheme (`containerd://1f0c77aa…` gives `1f0c77aa`).
pub fn short_id(container_id: &str) -> &str {
    let id = container_id.rsplit_once("://").map_or(container_id, |(_, id)| id);
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests;
