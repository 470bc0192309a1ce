//! What `kubectl get pods` prints in the columns READY, STATUS and RESTARTS.
//!
//! The rule is not kubectl's: the API server computes the columns (`printPod` in Kubernetes'
//! `pkg/printers/internalversion/printers.go`) and kubectl prints the cells. The rule that applies is thus that
//! of the API server's version, see [`PrinterVersion`]. The steps below follow that function so closely, with
//! all of its oddities, that tests/control_plane asks a real API server for the same cells and allows no
//! difference.
//!
//! Of a cell with several lines (a raw error of the kubelet can be a reason) kubectl prints the first and `...`,
//! and it escapes terminal control characters (`tableprinter.go` in k8s.io/cli-runtime). The text here is the
//! whole cell.

use jiff::Timestamp;

use super::age::human_duration;
use super::view::{ContainerStatus, InitContainer, PodCondition, PodView, Terminated};

/// The cells of one Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubectlStatus {
    /// STATUS, for example `Init:0/2` or `Init:CrashLoopBackOff`.
    pub text: String,
    /// RESTARTS. Those of regular init containers vanish from it once the Pod is initialized.
    pub restarts: i64,
    /// End of the newest run before a restart, among the containers that are counted in `restarts`.
    pub last_restart: Option<Timestamp>,
    /// READY, left of the slash. It can exceed `total`: status entries that are there twice count twice, and
    /// those of app containers that the spec does not have count as well.
    pub ready: usize,
    /// READY, right of the slash: app containers and native sidecars.
    pub total: usize,
}

impl KubectlStatus {
    /// The READY cell, for example `1/2`.
    pub fn ready_cell(&self) -> String {
        format!("{}/{}", self.ready, self.total)
    }

    /// The RESTARTS cell: `3 (75s ago)`, or `3` where the time of the last restart is not known.
    pub fn restarts_cell(&self, now: Timestamp) -> String {
        match self.last_restart {
            Some(last) if self.restarts != 0 => {
                let ago = human_duration(now.duration_since(last));
                format!("{} ({ago} ago)", self.restarts)
            }
            _ => self.restarts.to_string(),
        }
    }
}

/// The version of the rule. Its part about init containers is the same in 1.33 to 1.36.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrinterVersion {
    /// Up to Kubernetes 1.34.
    #[default]
    Until1_34,
    /// From Kubernetes 1.35 on: where the first app container has completed and another one has failed, the
    /// failure's reason is printed instead of `Completed` or `NotReady`.
    From1_35,
}

impl PrinterVersion {
    /// The rule of an API server, by what its `/version` says (`1` and `34`; some vendors write `34+`). An
    /// unreadable version counts as the default.
    pub fn of_server(major: &str, minor: &str) -> Self {
        let number = |text: &str| {
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text.get(..digits)?.parse::<u32>().ok()
        };
        match (number(major), number(minor)) {
            (Some(major), Some(minor)) if (major, minor) >= (1, 35) => Self::From1_35,
            _ => Self::default(),
        }
    }
}

/// What `kubectl get pods` prints for this Pod, by the rule of the default [`PrinterVersion`].
pub fn kubectl_status(pod: &PodView) -> KubectlStatus {
    kubectl_status_by(PrinterVersion::default(), pod)
}

/// What `kubectl get pods` prints for this Pod, by the rule of a given version of the API server (`printPod`).
pub fn kubectl_status_by(version: PrinterVersion, pod: &PodView) -> KubectlStatus {
    let init = InitPart::read(pod);
    let initializing = init.text.is_some();
    let mut status = KubectlStatus {
        text: init.text.unwrap_or_else(|| pod_text(pod)),
        restarts: init.restarts.count,
        last_restart: init.restarts.last,
        ready: init.ready,
        total: total(pod),
    };
    // With Initialized=True the apps are read although an init container fails: after a sandbox change, or
    // beside a sidecar that crashes. The text of the init part stays only if no app has one of its own.
    if !initializing || is_initialized(pod) {
        let mut restarts = init.sidecar_restarts;
        for app in &pod.status.container_statuses {
            restarts.add(app);
        }
        status.restarts = restarts.count;
        status.last_restart = restarts.last;
        let apps = AppPart::read(pod, status.text);
        status.ready += apps.running;
        status.text = apps.text(version, pod);
    }
    if let Some(text) = deletion_text(pod) {
        text.clone_into(&mut status.text);
    }
    status
}

/// What the Pod as a whole says; the containers overwrite it.
fn pod_text(pod: &PodView) -> String {
    // The condition's status is not looked at.
    let gated = |condition: &PodCondition| {
        condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("SchedulingGated")
    };
    if pod.status.conditions.iter().any(gated) {
        return "SchedulingGated".to_owned();
    }
    // A phase that is not set prints as nothing; `PodView::phase` would say Pending.
    not_empty(pod.status.reason.as_deref()).or(pod.status.phase.as_deref()).unwrap_or_default().to_owned()
}

/// A deletion hides everything else, but for Pods that have ended.
fn deletion_text(pod: &PodView) -> Option<&'static str> {
    if !pod.is_terminating() {
        return None;
    }
    if pod.status.reason.as_deref() == Some("NodeLost") {
        return Some("Unknown");
    }
    let ended = matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"));
    (!ended).then_some("Terminating")
}

/// What the init containers' statuses say.
#[derive(Default)]
struct InitPart {
    /// Set if one of them is not past.
    text: Option<String>,
    restarts: Restarts,
    sidecar_restarts: Restarts,
    /// Sidecars that are ready.
    ready: usize,
}

impl InitPart {
    /// Reads the statuses in their own order, which need not be that of the spec, up to the first one that is
    /// not past. The later ones are not read at all: their restarts and readiness do not count.
    fn read(pod: &PodView) -> Self {
        let mut part = Self::default();
        for (index, status) in pod.status.init_container_statuses.iter().enumerate() {
            let sidecar = is_sidecar(pod, &status.name);
            part.restarts.add(status);
            if sidecar {
                part.sidecar_restarts.add(status);
            }
            // A sidecar that ended with 0 counts as past as well, though it will be started again.
            if status.state.terminated.as_ref().is_some_and(|end| end.exit_code == 0) {
                continue;
            }
            // Only a sidecar is past when it has started: a running regular init container says so too.
            if sidecar && status.started == Some(true) {
                part.ready += usize::from(status.ready);
                continue;
            }
            part.text = Some(format!("Init:{}", Self::word(pod, index, status)));
            break;
        }
        part
    }

    /// The word after `Init:`.
    fn word(pod: &PodView, index: usize, status: &ContainerStatus) -> String {
        if let Some(end) = &status.state.terminated {
            return end_text(end);
        }
        match waiting_reason(status) {
            Some(reason) if reason != "PodInitializing" => reason.to_owned(),
            // The index in the *status* list over the length of the *spec* list.
            _ => format!("{index}/{}", pod.spec.init_containers.len()),
        }
    }
}

/// What the app containers' statuses say.
struct AppPart {
    text: String,
    /// Containers that run and are ready.
    running: usize,
    /// The end of the first container in the list that failed.
    failure: Option<String>,
}

impl AppPart {
    /// Reads the statuses from the last to the first, so that the first container with something to say wins.
    fn read(pod: &PodView, text: String) -> Self {
        let mut part = Self { text, running: 0, failure: None };
        for status in pod.status.container_statuses.iter().rev() {
            if let Some(reason) = waiting_reason(status) {
                reason.clone_into(&mut part.text);
            } else if let Some(end) = &status.state.terminated {
                part.text = end_text(end);
                if end.exit_code != 0 {
                    part.failure = Some(part.text.clone());
                }
            } else if status.ready && status.state.running.is_some() {
                part.running += 1;
            }
        }
        part
    }

    /// The text, with "Completed" replaced where another container tells more.
    fn text(self, version: PrinterVersion, pod: &PodView) -> String {
        if self.text != "Completed" {
            return self.text;
        }
        let running = self.running > 0;
        let failure = self.failure.filter(|_| version == PrinterVersion::From1_35);
        if running && is_ready(pod) {
            "Running".to_owned()
        } else if let Some(failure) = failure {
            failure
        } else if running {
            "NotReady".to_owned()
        } else {
            self.text
        }
    }
}

/// Sum of the restarts, and the time of the newest.
#[derive(Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &ContainerStatus) {
        self.count += i64::from(status.restart_count);
        let end = status.last_state.terminated.as_ref();
        let finished = end.and_then(|end| end.finished_at.as_ref()).map(|time| time.0);
        self.last = self.last.max(finished);
    }
}

/// How a container ended. Unlike [`Terminated::effective_signal`], only a signal that the API names counts.
fn end_text(end: &Terminated) -> String {
    if let Some(reason) = not_empty(end.reason.as_deref()) {
        return reason.to_owned();
    }
    match end.signal {
        Some(signal) if signal != 0 => format!("Signal:{signal}"),
        _ => format!("ExitCode:{}", end.exit_code),
    }
}

/// Why a container waits; `None` as well where it waits without saying why.
fn waiting_reason(status: &ContainerStatus) -> Option<&str> {
    not_empty(status.state.waiting.as_ref()?.reason.as_deref())
}

/// `isPodInitializedConditionTrue`: the first condition of that type decides.
fn is_initialized(pod: &PodView) -> bool {
    pod.condition("Initialized").is_some_and(|condition| condition.status == "True")
}

/// `hasPodReadyCondition`: any condition of that type that is true decides.
fn is_ready(pod: &PodView) -> bool {
    let ready = |condition: &PodCondition| condition.type_ == "Ready" && condition.status == "True";
    pod.status.conditions.iter().any(ready)
}

/// Whether a status entry belongs to a native sidecar; an entry that the spec does not have does not.
fn is_sidecar(pod: &PodView, name: &str) -> bool {
    pod.init_container(name).is_some_and(InitContainer::is_sidecar)
}

/// READY's denominator.
fn total(pod: &PodView) -> usize {
    let sidecars = pod.spec.init_containers.iter().filter(|init| init.is_sidecar());
    pod.spec.containers.len() + sidecars.count()
}

/// Go does not tell an absent text from an empty one.
fn not_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
