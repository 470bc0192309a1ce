//! What an analysis of a command says.

use std::fmt;
use std::time::Duration;

/// The most targets that one analysis reports; the first ones are kept.
pub const MAX_TARGETS: usize = 16;

/// The longest [`WaitTarget::evidence`], in characters.
pub const MAX_EVIDENCE_CHARS: usize = 200;

/// A text that is known only if every variable in it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// The text as the program sees it.
    Known(String),
    /// The text depends on something the Pod alone does not tell: a Secret, a ConfigMap, the image, a command's output.
    Unknown {
        /// The text with each unknown part written as `$NAME`, such as `$RELEASE-db`.
        text: String,
        /// The names of the variables that are unknown, in the order in which they occur; at most 8.
        variables: Vec<String>,
    },
}

impl Value {
    /// The text, if all of it is known.
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(text) | Self::Unknown { text, .. } => formatter.write_str(text),
        }
    }
}

/// A port as a command names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Port {
    /// A number from 1 to 65535.
    Number(u16),
    /// A word where a number was expected, such as the `/etc/services` name `postgresql`.
    Named(String),
    /// The port depends on an unknown variable.
    Unknown {
        /// As in [`Value::Unknown`].
        text: String,
        /// As in [`Value::Unknown`].
        variables: Vec<String>,
    },
}

impl Port {
    /// The number, if it is one.
    pub fn number(&self) -> Option<u16> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Named(_) | Self::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Named(text) | Self::Unknown { text, .. } => formatter.write_str(text),
        }
    }
}

/// How a tool reaches its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// A TCP connection, or a protocol on top of it that is none of the others.
    Tcp,
    /// UDP: an open port cannot be told from a silent one.
    Udp,
    /// An echo request, which a ClusterIP does not answer with most proxies.
    Icmp,
    /// HTTP: more than an open port is asked for.
    Http,
    /// HTTP over TLS.
    Https,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetKind {
    /// A connection, a ping or a request has to succeed.
    Network {
        /// The host as written, without scheme, port and brackets.
        host: Value,
        /// The port as written, or else the default of the tool or scheme; none where there is no such thing (ping).
        port: Option<Port>,
        /// How it is reached.
        protocol: Protocol,
    },
    /// Only the name has to resolve.
    Name {
        /// The name as written.
        host: Value,
    },
    /// An object of the cluster has to exist or to reach a condition.
    KubernetesObject {
        /// Lower case, singular and without abbreviation for the kinds of Kubernetes itself (`deploy` → `deployment`).
        kind: String,
        /// None when it is chosen by `selector`, or when all of the kind are asked for.
        name: Option<Value>,
        /// None: the Pod's own namespace.
        namespace: Option<Value>,
        /// The label selector as written.
        selector: Option<Value>,
        /// `complete`, `condition=Ready`, `delete`, `jsonpath=…`, `exists`, `rollout`, as far as the command says.
        condition: Option<String>,
    },
    /// A file or directory has to appear.
    File {
        /// The path as written.
        path: Value,
    },
}

/// How a check is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopShape {
    /// Nothing in the command ends the loop but success: no counter, no deadline, no `exit`.
    pub unbounded: bool,
    /// The pause between two attempts, if it is a literal.
    pub sleep: Option<Duration>,
}

/// One thing that the container waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitTarget {
    /// What it is.
    pub kind: TargetKind,
    /// The tool that checks it (`nc`, `pg_isready`, `/dev/tcp` …), or `connection URL` and `environment` for a
    /// program that we do not know, whose arguments or variables name a server.
    pub tool: &'static str,
    /// The fragment of the command that says so: variables as written, secrets masked, at most
    /// [`MAX_EVIDENCE_CHARS`] characters.
    pub evidence: String,
    /// How the check is repeated, by the script or by the tool itself; none for a check that is made once.
    pub repeats: Option<LoopShape>,
    /// It stands in a branch (`if`, `case`): whether that is taken, the Pod alone does not tell.
    pub conditional: bool,
}

/// How the command was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// As a shell script, by a parser.
    Shell,
    /// As a program with its arguments.
    Direct,
    /// As a shell script that does not parse (or is too large or too deeply nested): its lines were searched for
    /// known tools, so that loops and negations are guesses.
    Tolerant,
    /// There is nothing to read: the image's own entry point, a script file in the image, an unknown program.
    Nothing,
}

/// What one container waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitAnalysis {
    /// At most [`MAX_TARGETS`], in the order in which they would block, each once.
    pub targets: Vec<WaitTarget>,
    /// A loop, or a tool's own waiting, that nothing ends but success (advice `UnboundedWait`).
    pub unbounded_wait: bool,
    /// A loop without any way out, or `sleep infinity`: the container never ends by itself, so it is a sidecar
    /// among the init containers, not a wait.
    pub never_ends: bool,
    /// How the command was read.
    pub parsed: Parsed,
}
