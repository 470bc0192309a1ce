//! Pods that are gone before they were looked at, and successes that are kept on request.

use super::*;

fn seen_last(pod: PodObservation, attempts: Vec<CapturedAttempt>) -> PodObservation {
    PodObservation { gone: true, attempts, ..pod }
}

#[test]
fn a_pod_that_is_gone_before_it_was_looked_at_is_told_and_then_that_it_left() {
    let mut story = Story::deployment(1);
    let ghost = || seen_last(crashed("a"), vec![attempt("a", 0, Ok("ERROR: no table"))]);
    let first = story.look(10, vec![ghost()]);
    assert_eq!((story.state(), first.logs.len()), (State::Active, 1), "its log is written");
    assert_eq!(story.status().pods.as_deref(), Some("1/1"));
    assert!(story.status().affected[0].left_at.is_none());

    story.look_at(11, Vec::new(), vec![gone("a", 10)], false);
    let status = story.status();
    assert_eq!((status.state, status.pods.as_deref()), (Some(State::Active), Some("0/1")));
    assert!(status.affected[0].left_at.is_some() && status.affected[0].attempts[0].log.is_some());
}

#[test]
fn with_an_open_diagnosis_one_that_is_gone_leaves_its_log_and_is_not_counted() {
    let mut story = Story::deployment(2);
    story.look(10, vec![crashed("a")]);
    let ghost = seen_last(crashed("b"), vec![attempt("b", 0, Ok("ERROR"))]);
    let plan = story.look_at(20, vec![crashed("a"), ghost], vec![gone("b", 19)], false);
    assert_eq!(plan.logs.len(), 1);
    assert_eq!(story.status().pods.as_deref(), Some("1/2"));
    let left: Vec<_> = story.status().affected.iter().map(|entry| entry.left_at.is_some()).collect();
    assert_eq!(left.iter().filter(|left| **left).count(), 1);
}

#[test]
fn an_attempt_whose_end_nobody_told_keeps_its_log_without_an_exit_code() {
    let mut story = Story::deployment(1);
    let interrupted =
        CapturedAttempt { end: None, interrupted_at: Some(second(9)), ..attempt("a", 0, Ok("loading dump")) };
    let verdict = failing(cause::DELETED_DURING_INIT, Urgency::From(Timestamp::MAX));
    let plan = story.look(10, vec![seen_last(pod("a", verdict), vec![interrupted])]);
    assert_eq!(story.state(), State::Observed, "nobody is told");
    assert!(story.events.iter().all(|event| event.type_ == EventType::Normal));
    let (_, log) = &plan.logs[0];
    assert_eq!((log.exit_code, log.finished_at.clone().map(|time| time.0)), (None, Some(second(9))));
}

#[test]
fn a_success_is_kept_for_a_week_and_does_not_hide_an_earlier_failure() {
    let success = |uid: &str| {
        let mut attempt = attempt(uid, 0, Ok("migrated 12 tables"));
        if let Some(end) = &mut attempt.end {
            (end.failed, end.exit_code) = (false, 0);
        }
        seen_last(pod(uid, Assessment::Fine), vec![attempt])
    };
    let mut story = Story::deployment(1);
    let plan = story.look(10, vec![success("a")]);
    assert_eq!((story.state(), plan.logs.len(), plan.events.len()), (State::Succeeded, 1, 0));
    assert!(is_closed(story.status()) && story.status().cause.is_none());
    assert_eq!(expires_at(story.status()), Some(second(10 + 7 * 24 * 3600)));

    // The next run adds its log to the same object.
    assert_eq!(story.look(3600, vec![success("b")]).logs.len(), 1);
    assert_eq!(story.status().affected.len(), 2);

    // A failure takes over, and stays what the diagnosis is about.
    story.look(7200, vec![crashed("c")]);
    assert_eq!(story.state(), State::Active);
    story.look_at(7300, Vec::new(), vec![Departure { fate: Fate::PassedInit, ..gone("c", 7299) }], false);
    assert_eq!(story.state(), State::Resolved);
    story.look(7400, vec![success("d")]);
    assert_eq!((story.state(), story.status().resolution), (State::Resolved, Some(Resolution::Recovered)));
}

#[test]
fn a_log_that_had_to_wait_is_written_when_there_is_room() {
    let mut story = Story::deployment(1);
    let with_log = || PodObservation { attempts: vec![attempt("a", 0, Ok("ERROR"))], ..crashed("a") };
    story.look(10, vec![with_log()]);
    // As the shell does where there is no room yet: the status is written without it.
    let status = story.stored.as_mut().and_then(|stored| stored.status.as_mut()).unwrap();
    (status.affected[0].attempts[0].log, status.affected[0].attempts[0].log_holds) = (None, None);
    let plan = story.look(12, vec![with_log()]);
    assert_eq!(plan.logs.len(), 1);
    assert!(story.status().affected[0].attempts[0].log.is_some());
    assert_eq!(story.status().attempts.map(|attempts| (attempts.seen, attempts.kept)), Some((1, 1)));
}
