//! Errors of calls to the API server.

use std::future::Future;
use std::time::Duration;

/// How long a plain call may take. The API server itself gives up after 60 s; a reconcile must not wait for that.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// Pauses before a reading call is tried again.
const READ_AGAIN_AFTER: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(800), Duration::from_secs(2)];

/// A call that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// No answer in time.
    #[error("{what}: no answer within {} s", CALL_TIMEOUT.as_secs())]
    Timeout {
        /// What was asked.
        what: String,
    },
    /// The answer was an error.
    #[error("{what}: {}", summary(source))]
    Api {
        /// What was asked.
        what: String,
        /// The error.
        source: Box<kube::Error>,
    },
}

impl ClusterError {
    /// HTTP status, where the server answered with one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Timeout { .. } => None,
        }
    }

    /// The object, or the kind itself, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// The answer came, and is not what the type says.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Api { source, .. } if matches!(source.as_ref(), kube::Error::SerdeError(_)))
    }

    /// A permission is missing.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Somebody else wrote in between, or the object exists already.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the same question may be answered in a moment. A time-out is not: it has cost enough.
    fn is_transient(&self) -> bool {
        match self.code() {
            Some(code) => code == 429 || code >= 500,
            None => matches!(self, Self::Api { .. }),
        }
    }

    /// For `unchecked`: why something could not be looked at, in a few words.
    pub fn brief(&self) -> String {
        match (self, self.code()) {
            // What a quota refuses is a 403 as well; nobody should look for a Role then.
            (Self::Api { source, .. }, Some(403)) if summary(source).contains("exceeded quota") => {
                "exceeded quota".to_owned()
            }
            (_, Some(403)) => "forbidden".to_owned(),
            (Self::Timeout { .. }, _) => "no answer in time".to_owned(),
            (Self::Api { source, .. }, _) => summary(source),
        }
    }
}

/// Runs a call with a timeout and says what it was for.
///
/// # Errors
/// The call's own, or that no answer came in time.
pub async fn call<T>(
    what: impl Into<String>,
    future: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ClusterError> {
    match tokio::time::timeout(CALL_TIMEOUT, future).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(ClusterError::Api { what: what.into(), source: Box::new(source) }),
        Err(_) => Err(ClusterError::Timeout { what: what.into() }),
    }
}

/// Reads, and tries again in a moment where the server was busy or broken: a cause must not change because one of
/// many look-ups was refused.
///
/// # Errors
/// That of the last try.
pub async fn read<T, F>(what: impl Into<String>, ask: impl Fn() -> F) -> Result<T, ClusterError>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let what = what.into();
    let mut result = call(what.clone(), ask()).await;
    for pause in READ_AGAIN_AFTER {
        match &result {
            Err(error) if error.is_transient() => tokio::time::sleep(pause).await,
            _ => break,
        }
        result = call(what.clone(), ask()).await;
    }
    result
}

/// One line of an error: the server's message where there is one, else the whole chain of causes.
pub(super) fn summary(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        let message = status.message.trim();
        return if message.is_empty() { format!("HTTP {}", status.code) } else { message.to_owned() };
    }
    chain(error)
}

/// An error with its causes, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many errors repeat their cause in their own text.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    // A parser shows the place of an error in a picture of several lines.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
