//! The closed sets of values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a diagnosis stands in its life.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum State {
    /// A failure that may still heal by itself: kept, no alert.
    Observed,
    /// It needs somebody.
    Active,
    /// Over: see `resolution`.
    Resolved,
    /// Nothing failed; the logs were kept on request.
    Succeeded,
}

/// How bad it is. The order counts: the worst decides which cause stands on top.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth acting on.
    Warning,
}

/// How sure the cause is. The order counts: from weak to strong.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Confidence {
    /// It fits what was seen.
    Possible,
    /// The log says it.
    Likely,
    /// The API or the kubelet says it.
    Certain,
}

/// How a diagnosis ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum Resolution {
    /// A formerly affected Pod, or its replacement of the same revision, passed init, and none is failing.
    Recovered,
    /// No affected Pod is left and the controller wants none.
    PodsGone,
    /// A newer revision took over.
    Superseded,
    /// A Job that failed for good.
    GaveUp,
}

/// Where a fact comes from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum EvidenceSource {
    /// An object of the cluster.
    Object,
    /// The status of the Pod.
    Status,
    /// The spec of the Pod.
    Spec,
    /// The log of an attempt.
    Log,
    /// A Kubernetes Event.
    Event,
}

/// Where what is known of an attempt's output comes from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum AttemptSource {
    /// The log of the previous instance (`kubectl logs --previous`).
    Previous,
    /// The log of the instance that the status names as current.
    Current,
    /// The log was followed while the attempt ran.
    Followed,
    /// The termination message: no log could be had.
    TerminationMessage,
}

/// Where the text of an [`InitLog`](super::InitLog) comes from.
pub type LogOrigin = AttemptSource;
