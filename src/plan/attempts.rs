//! Which attempts of a Pod are kept, and what is said of them.

use super::observed::{CapturedAttempt, CapturedText};
use super::time;
use crate::api::v1alpha1::{AffectedPod, Attempt, AttemptSource, InitLogSpec};
use crate::diagnose::cut;
use crate::pod::attempt::short_id;
use crate::pod::identity::object_name;

/// What is kept of a diagnosis' logs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeepLimits {
    /// Pods whose logs are kept as InitLogs; at most 20, as many as are listed.
    pub pods: usize,
    /// Ended attempts that are kept of a Pod: the first, the most telling, and for the rest the last ones; 3 to 6.
    pub attempts: usize,
}

impl Default for KeepLimits {
    /// Five Pods; the first attempt, the most telling one and the last three (DESIGN D6).
    fn default() -> Self {
        Self { pods: 5, attempts: 5 }
    }
}

/// Name of the InitLog of an attempt: the same each time, so that writing it twice is harmless.
pub fn log_name(pod: &str, container: &str, number: i32, container_id: &str) -> String {
    object_name(&[pod, container, &number.to_string(), short_id(container_id)])
}

/// The entry of an attempt in the status. `log` names its InitLog, where one is kept.
pub(super) fn entry(captured: &CapturedAttempt, log: Option<String>) -> Attempt {
    let end = captured.end.as_ref();
    let message = end.and_then(|end| end.message.as_deref());
    let text = captured.text.as_ref().ok();
    Attempt {
        init_container: captured.container.clone(),
        number: captured.number,
        container_id: Some(cut(&captured.container_id, 128)),
        started_at: captured.started_at.map(time),
        finished_at: finished_at(captured).map(time),
        exit_code: end.map(|end| end.exit_code),
        signal: end.and_then(|end| end.signal),
        reason: end.and_then(|end| end.reason.as_deref()).map(|reason| cut(reason, 128)),
        message: message.map(|message| cut(message, 512)),
        source: text.map(|text| text.source),
        excerpt: text.map(|text| cut(&text.excerpt, 1024)),
        log_holds: log.as_ref().and(text).map(holds),
        log,
        telling: text.map(|text| text.telling),
    }
}

fn finished_at(captured: &CapturedAttempt) -> Option<jiff::Timestamp> {
    captured.end.as_ref().and_then(|end| end.finished_at).or(captured.interrupted_at)
}

fn holds(text: &CapturedText) -> String {
    if text.truncated {
        format!("{} of {}", size(text.text.len() as u64), size(text.bytes))
    } else {
        "all".to_owned()
    }
}

/// Bytes for people: `4.0 KiB`.
#[allow(clippy::cast_precision_loss)] // Two digits are printed.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS.iter();
    let mut name = unit.next().unwrap_or(&"");
    while value >= 1024.0 {
        let Some(next) = unit.next() else { break };
        value /= 1024.0;
        name = next;
    }
    format!("{value:.1} {name}")
}

/// The InitLog of an attempt. None where there is no log: a termination message is in the status already.
pub(super) fn log_of(entry: &AffectedPod, captured: &CapturedAttempt) -> Option<(String, InitLogSpec)> {
    let text = captured.text.as_ref().ok().filter(|text| text.source != AttemptSource::TerminationMessage)?;
    if !captured.has_ended() {
        return None;
    }
    let end = captured.end.as_ref();
    let name = log_name(&entry.pod, &captured.container, captured.number, &captured.container_id);
    let spec = InitLogSpec {
        pod: entry.pod.clone(),
        pod_uid: entry.uid.clone(),
        container: captured.container.clone(),
        attempt: captured.number,
        container_id: cut(&captured.container_id, 128),
        node: entry.node.clone(),
        image: captured.image.as_deref().map(|image| cut(image, 512)),
        started_at: captured.started_at.map(time),
        finished_at: finished_at(captured).map(time),
        exit_code: end.map(|end| end.exit_code),
        reason: end.and_then(|end| end.reason.as_deref()).map(|reason| cut(reason, 128)),
        source: text.source,
        bytes: i64::try_from(text.bytes).unwrap_or(i64::MAX),
        truncated: text.truncated,
        partial: text.partial,
        masked: i32::try_from(text.masked).unwrap_or(i32::MAX),
        text: text.text.clone(),
    };
    Some((name, spec))
}

/// Chooses what is kept of a Pod's ended attempts: `limit`, of which the first, the most telling and the last ones. The
/// others are returned as well. Both keep their order, which is that of the attempts.
pub(super) fn choose(mut attempts: Vec<Attempt>, limit: usize) -> (Vec<Attempt>, Vec<Attempt>) {
    attempts.sort_by_key(order);
    let count = attempts.len();
    if count <= limit {
        return (attempts, Vec::new());
    }
    let last = limit.saturating_sub(2);
    // The earliest among equals: the first time an error shows, it is seldom a consequence.
    let telling = (0..count)
        .max_by_key(|index| (attempts.get(*index).and_then(|attempt| attempt.telling), count - index));
    let mut index = 0;
    attempts.into_iter().partition(|_| {
        let kept = index == 0 || Some(index) == telling || index + last >= count;
        index += 1;
        kept
    })
}

fn order(attempt: &Attempt) -> (Option<jiff::Timestamp>, i32) {
    (attempt.finished_at.as_ref().map(|time| time.0), attempt.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: i32, telling: i32) -> Attempt {
        let captured = CapturedAttempt {
            container: "migrate".to_owned(),
            number,
            container_id: format!("containerd://{number:08}"),
            started_at: None,
            end: None,
            interrupted_at: None,
            image: None,
            text: Err(super::super::observed::NoText::Lost("not read".to_owned())),
        };
        Attempt { telling: Some(telling), ..entry(&captured, None) }
    }

    #[test]
    fn the_first_the_most_telling_and_the_last_three_are_kept() {
        let attempts = [1, 2, 9, 2, 9, 2, 2, 2].into_iter().enumerate();
        let attempts = attempts.map(|(number, telling)| attempt(i32::try_from(number).unwrap(), telling));
        let (kept, dropped) = choose(attempts.collect(), 5);
        let numbers =
            |attempts: &[Attempt]| attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>();
        assert_eq!(numbers(&kept), [0, 2, 5, 6, 7]);
        assert_eq!(numbers(&dropped), [1, 3, 4]);
    }

    #[rstest::rstest]
    #[case(0, "0 B")]
    #[case(1023, "1023 B")]
    #[case(4096, "4.0 KiB")]
    #[case(2_202_010, "2.1 MiB")]
    fn sizes_are_for_people(#[case] bytes: u64, #[case] expected: &str) {
        assert_eq!(size(bytes), expected);
    }

    #[test]
    fn a_log_is_named_after_its_attempt() {
        let name = log_name("api-7d9c6b8f5d-x2x4p", "wait-for-db", 3, "containerd://1f0c77aa99887766");
        assert_eq!(name, "api-7d9c6b8f5d-x2x4p.wait-for-db.3.1f0c77aa");
    }
}
