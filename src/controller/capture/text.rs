//! From what was read to what is kept: masked, and told in a few lines.

use crate::api;
use crate::api::v1alpha1::AttemptSource;
use crate::cluster::logs::LogError;
use crate::diagnose::log::{CollectedLog, Masker, excerpt, telling_score};
use crate::diagnose::secret_literals;
use crate::plan::{CapturedText, NoText};
use crate::pod::PodView;
use crate::pod::decode::keeps_text;

/// The masked text of a log; else the termination message; else why there is none.
pub(super) fn text(
    masker: &Masker,
    pod: &PodView,
    log: Result<&CollectedLog, &LogError>,
    source: AttemptSource,
    message: Option<&str>,
) -> Result<CapturedText, NoText> {
    if !keeps_text(pod) {
        let value = pod.annotation(api::ANNOTATION_KEEP_LOGS).unwrap_or_default();
        return Err(NoText::NotKept(format!("annotation {} is {value:?}", api::ANNOTATION_KEEP_LOGS)));
    }
    let literals = secret_literals(pod);
    match (log, message) {
        (Ok(log), _) => {
            let text = log.text();
            let safe = masker.mask(&text, &literals);
            Ok(captured_text(safe.text.into_owned(), safe.count, Some(log), source))
        }
        (Err(_), Some(message)) => {
            let safe = masker.mask(message, &literals);
            let (text, count) = (safe.text.into_owned(), safe.count);
            Ok(captured_text(text, count, None, AttemptSource::TerminationMessage))
        }
        (Err(error), None) => Err(NoText::Lost(error.to_string())),
    }
}

/// Whether logs are kept of attempts that succeeded, too.
pub(super) fn keeps_successes(pod: &PodView) -> bool {
    pod.annotation(api::ANNOTATION_KEEP_LOGS) == Some("always")
}

fn captured_text(
    text: String,
    masked: usize,
    log: Option<&CollectedLog>,
    source: AttemptSource,
) -> CapturedText {
    let lifted = excerpt(&text, 1024);
    CapturedText {
        excerpt: lifted.text,
        telling: i32::try_from(telling_score(&text)).unwrap_or(i32::MAX),

        bytes: log.map_or(text.len() as u64, |log| log.bytes_seen),
        truncated: log.is_some_and(|log| log.truncated),
        partial: log.is_some_and(|log| log.partial),
        last_at: log.and_then(|log| log.last_at),
        masked,
        source,
        text,
    }
}
