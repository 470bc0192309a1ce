//! The life of a diagnosis, told as a sequence of looks: each look sees something, and what it writes is
//! what the next one finds stored.

mod gone;

use super::*;
use crate::api::v1alpha1::{
    AttemptSource, Confidence, ControllerReference, Resolution, Severity, WorkloadReference,
};
use crate::diagnose::catalogue::cause;
use crate::diagnose::verdict::{Assessment, Urgency, Verdict};
use crate::pod::attempt::{EndedAttempt, LogRole};

const START: &str = "2026-12-01T10:00:00Z";

fn second(second: i64) -> Timestamp {
    START.parse::<Timestamp>().unwrap().checked_add(SignedDuration::from_secs(second)).unwrap()
}

/// A workload with what is stored of it.
struct Story {
    stored: Option<InitDiagnosis>,
    facts: WorkloadFacts,
    writes: usize,
    events: Vec<EventIntent>,
}

impl Story {
    fn deployment(replicas: i32) -> Self {
        let facts = WorkloadFacts {
            workload: WorkloadReference {
                kind: "Deployment".to_owned(),
                group: "apps".to_owned(),
                name: "api".to_owned(),
                uid: Some("d1".to_owned()),
            },
            workload_api_version: "apps/v1".to_owned(),
            namespace: "shop".to_owned(),
            controller: Some(ControllerReference {
                api_version: "apps/v1".to_owned(),
                kind: "ReplicaSet".to_owned(),
                name: "api-1".to_owned(),
                uid: "r1".to_owned(),
            }),
            revision: Some("1".to_owned()),
            desired: Some(replicas),
            active: Some(replicas),
            ready: Some(0),
            ..WorkloadFacts::default()
        };
        Self { stored: None, facts, writes: 0, events: Vec::new() }
    }

    fn look(&mut self, now: i64, pods: Vec<PodObservation>) -> Plan {
        self.look_at(now, pods, Vec::new(), false)
    }

    fn look_at(
        &mut self,
        now: i64,
        pods: Vec<PodObservation>,
        departures: Vec<Departure>,
        first_look: bool,
    ) -> Plan {
        let seen = Observation { facts: self.facts.clone(), pods, departures, first_look };
        let plan = plan(self.stored.as_ref(), &seen, &KeepLimits::default(), second(now));
        if plan.status.is_some() {
            self.writes += 1;
            let stored =
                self.stored.get_or_insert_with(|| InitDiagnosis::new("replicaset.api-1", seen.facts.spec()));
            stored.spec = seen.facts.spec();
            // As the API server stores it: through JSON, times in whole seconds.
            let json = serde_json::to_value(&plan.status).unwrap();
            stored.status = serde_json::from_value(json).unwrap();
        }
        self.events.extend(plan.events.clone());
        plan
    }

    fn status(&self) -> &InitDiagnosisStatus {
        self.stored.as_ref().and_then(|stored| stored.status.as_ref()).expect("nothing was written")
    }

    fn state(&self) -> State {
        self.status().state.unwrap()
    }

    fn reasons(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.reason.as_str()).collect()
    }
}

fn pod(uid: &str, assessment: Assessment) -> PodObservation {
    PodObservation {
        gone: false,
        name: format!("api-1-{uid}"),
        uid: uid.to_owned(),
        node: Some("node-a".to_owned()),
        created_at: Some(second(0)),
        failed: false,
        pod_status: "Init:Error".to_owned(),
        restarts: Some(0),
        stuck_since: Some(second(0)),
        assessment,
        attempts: Vec::new(),
        running: None,
    }
}

fn failing(cause: &'static str, urgency: Urgency) -> Assessment {
    let mut verdict = Verdict::new(cause, format!("migrate (step 1 of 1): {cause}")).urgency(urgency);
    verdict.init_container = Some("migrate".to_owned());
    verdict.step = Some("1/1".to_owned());
    if urgency != Urgency::Now {
        verdict.severity = Severity::Info;
    }
    Assessment::Failing(Box::new(verdict))
}

fn crashed(uid: &str) -> PodObservation {
    pod(uid, failing(cause::NON_ZERO_EXIT, Urgency::Now))
}

fn waiting(uid: &str) -> PodObservation {
    pod(uid, Assessment::Waiting { until: Some(second(120)) })
}

fn attempt(uid: &str, number: i32, text: Result<&str, &str>) -> CapturedAttempt {
    let container_id = format!("containerd://{uid}{number:07}abc");
    let end = EndedAttempt {
        container: "migrate".to_owned(),
        number,
        container_id: container_id.clone(),
        started_at: Some(second(i64::from(number) * 10)),
        finished_at: Some(second(i64::from(number) * 10 + 1)),
        exit_code: 3,
        failed: true,
        signal: None,
        reason: Some("Error".to_owned()),
        message: None,
        role: LogRole::Current,
    };
    let text = text.map_err(|why| NoText::Lost(why.to_owned())).map(|text| CapturedText {
        text: text.to_owned(),
        excerpt: text.to_owned(),
        telling: 1,
        bytes: text.len() as u64,
        truncated: false,
        partial: false,
        last_at: None,
        masked: 0,
        source: AttemptSource::Current,
    });
    CapturedAttempt {
        interrupted_at: None,
        container: "migrate".to_owned(),
        number,
        container_id,
        started_at: end.started_at,
        end: Some(end),
        image: None,
        text,
    }
}

fn gone(uid: &str, at: i64) -> Departure {
    Departure { uid: uid.to_owned(), fate: Fate::Gone, at: second(at), attempts: Vec::new() }
}

fn passed(uid: &str, at: i64) -> Departure {
    Departure { uid: uid.to_owned(), fate: Fate::PassedInit, at: second(at), attempts: Vec::new() }
}

#[test]
fn a_healthy_start_writes_nothing_and_is_looked_at_when_it_would_be_stuck() {
    let mut story = Story::deployment(2);
    let plan = story.look(1, vec![waiting("a"), waiting("b")]);
    assert_eq!(plan.recheck_at, Some(second(120)));
    assert!(story.stored.is_none() && !plan.ensure && plan.events.is_empty());
}

#[test]
fn a_first_failure_is_observed_without_an_event_and_the_second_makes_it_active() {
    let mut story = Story::deployment(1);
    let observed = failing(cause::NON_ZERO_EXIT, Urgency::From(second(120)));
    let plan = story.look(1, vec![pod("a", observed)]);
    assert_eq!((story.state(), story.status().severity), (State::Observed, Some(Severity::Info)));
    assert!(plan.recheck_at.is_some_and(|at| at <= second(120)), "{plan:?}");
    assert!(story.events.is_empty());

    story.look(12, vec![crashed("a")]);
    assert_eq!((story.state(), story.status().severity), (State::Active, Some(Severity::Warning)));
    assert_eq!(story.reasons(), ["NonZeroExit", "NonZeroExit"], "one on the Deployment, one on the Pod");
    assert!(story.events.iter().all(|event| event.type_ == EventType::Warning));
}

#[test]
fn an_observed_failure_that_heals_is_resolved_in_silence_and_kept_for_an_hour() {
    let mut story = Story::deployment(1);
    story.look(1, vec![pod("a", failing(cause::NON_ZERO_EXIT, Urgency::From(second(120))))]);
    story.look_at(20, vec![], vec![passed("a", 20)], false);
    let status = story.status();
    assert_eq!((status.state, status.resolution), (Some(State::Resolved), Some(Resolution::Recovered)));
    assert!(story.events.is_empty());
    assert_eq!(expires_at(status), Some(second(20 + 3600)));
}

#[test]
fn nothing_new_is_not_written_again() {
    let mut story = Story::deployment(1);
    story.look(1, vec![crashed("a")]);
    // The STATUS of a crash loop changes three times with each attempt, its restarts once.
    let mut again = crashed("a");
    again.pod_status = "Init:CrashLoopBackOff".to_owned();
    again.restarts = Some(1);
    let plan = story.look(5, vec![again]);
    assert!(plan.status.is_none() && plan.events.is_empty(), "{plan:?}");
    assert_eq!(story.writes, 1);
}

#[test]
fn a_changed_cause_is_one_event_and_goes_into_the_history() {
    let mut story = Story::deployment(1);
    story.look(1, vec![crashed("a")]);
    story.look(60, vec![pod("a", failing(cause::OOM_KILLED, Urgency::Now))]);
    let status = story.status();
    assert_eq!(status.cause.as_deref(), Some("OomKilled"));
    let history: Vec<_> =
        status.history.iter().map(|past| (past.cause.as_str(), past.from.0, past.to.0)).collect();
    assert_eq!(history, [("NonZeroExit", second(1), second(60))]);
    assert_eq!(story.reasons(), ["NonZeroExit", "NonZeroExit", "OomKilled", "OomKilled"]);
    assert_eq!(story.events.iter().map(|event| event.change).collect::<Vec<_>>(), [1, 1, 2, 2]);
}

#[test]
fn recovery_is_announced_once_and_only_of_what_was_announced_as_broken() {
    let mut story = Story::deployment(1);
    story.look(1, vec![crashed("a")]);
    story.events.clear();
    story.look_at(61, vec![], vec![passed("a", 61)], false);
    let status = story.status();
    assert_eq!(status.resolution, Some(Resolution::Recovered));
    assert_eq!((status.stuck_since.is_none(), status.stuck_for), (true, Some(61)));
    assert_eq!(status.pods.as_deref(), Some("0/1"));
    assert_eq!(story.reasons(), ["InitRecovered"]);
    assert_eq!(story.events.first().unwrap().type_, EventType::Normal);
    assert_eq!(expires_at(status), Some(second(61 + 7 * 24 * 3600)));
    story.look(90, vec![]);
    assert_eq!(story.events.len(), 1);
}

#[test]
fn pods_that_vanish_from_a_workload_that_wants_none_are_gone_after_a_minute_without_an_event() {
    let mut story = Story::deployment(1);
    story.look(1, vec![crashed("a")]);
    story.events.clear();
    story.facts.end = WorkloadEnd::WantsNone;
    let plan = story.look_at(30, vec![], vec![gone("a", 30)], false);
    assert_eq!((story.state(), plan.recheck_at), (State::Active, Some(second(90))));
    story.look(91, vec![]);
    assert_eq!(story.status().resolution, Some(Resolution::PodsGone));
    assert!(story.events.is_empty());
}

#[test]
fn a_deleted_pod_leaves_its_attempts_and_its_replacement_continues_the_clock() {
    let mut story = Story::deployment(1);
    let mut first = crashed("a");
    first.attempts = vec![attempt("a", 0, Ok("ERROR: one")), attempt("a", 1, Ok("ERROR: two"))];
    let plan = story.look(15, vec![first]);
    assert_eq!(plan.logs.len(), 2);

    let mut second_pod = crashed("b");
    second_pod.stuck_since = Some(second(100));
    story.look_at(110, vec![second_pod], vec![gone("a", 100)], false);
    let status = story.status();
    assert_eq!(status.stuck_since.as_ref().unwrap().0, second(0), "merely replaced");
    assert_eq!(status.pods.as_deref(), Some("1/1"));
    let kept = status.affected.iter().find(|entry| entry.uid == "a").unwrap();
    assert_eq!(kept.left_at.as_ref().unwrap().0, second(100));
    assert_eq!(
        kept.attempts.iter().filter_map(|attempt| attempt.excerpt.as_deref()).collect::<Vec<_>>(),
        ["ERROR: one", "ERROR: two"]
    );
}

#[test]
fn a_failure_after_the_end_reopens_the_same_object_and_is_counted() {
    let mut story = Story::deployment(1);
    story.look(1, vec![crashed("a")]);
    story.look_at(61, vec![], vec![passed("a", 61)], false);
    let mut again = crashed("b");
    again.stuck_since = Some(second(500));
    story.look(510, vec![again]);
    let status = story.status();
    assert_eq!((status.state, status.occurrences), (Some(State::Active), Some(2)));
    assert!(status.resolved_at.is_none() && status.resolution.is_none() && status.stuck_for.is_none());
    assert_eq!(status.stuck_since.as_ref().unwrap().0, second(500), "the old clock is over");
}

#[test]
fn a_newer_revision_ends_the_old_one_without_a_recovery() {
    let mut story = Story::deployment(1);
    story.look(1, vec![crashed("a")]);
    story.events.clear();
    story.facts.end = WorkloadEnd::Superseded;
    story.look_at(30, vec![], vec![gone("a", 30)], false);
    assert_eq!(story.status().resolution, Some(Resolution::Superseded));
    assert!(story.events.is_empty());
}

#[test]
fn a_job_that_fails_for_good_gave_up_and_keeps_its_evidence() {
    let mut story = Story::deployment(1);
    story.facts.workload.kind = "Job".to_owned();
    story.facts.active = Some(0);
    let mut failed = crashed("a");
    failed.failed = true;
    failed.attempts = vec![attempt("a", 0, Ok("FATAL: no"))];
    story.look(5, vec![failed.clone()]);
    assert_eq!(story.state(), State::Active);
    story.facts.end = WorkloadEnd::JobFailed;
    story.events.clear();
    story.look(8, vec![failed.clone()]);
    let status = story.status();
    assert_eq!((status.state, status.resolution), (Some(State::Resolved), Some(Resolution::GaveUp)));
    assert_eq!(status.pods.as_deref(), Some("1/1"));
    assert_eq!(story.reasons(), ["InitGaveUp"]);
    assert!(story.look(20, vec![failed]).status.is_none());
    assert_eq!(story.events.len(), 1);
}

#[test]
fn a_failed_pod_that_its_controller_has_replaced_is_not_affected_but_keeps_its_log() {
    let mut story = Story::deployment(1);
    let (mut first, mut next) = (crashed("a"), waiting("b"));
    first.failed = true;
    first.attempts = vec![attempt("a", 0, Ok("FATAL: the true start"))];
    next.created_at = Some(second(10));
    story.facts.active = Some(0);
    story.look(5, vec![first.clone()]);
    story.look(12, vec![first, next]);
    let status = story.status();
    assert_eq!(status.affected_pods, Some(0));
    assert_eq!(status.state, Some(State::Active), "a Job stays Active between its Pods");
    assert!(status.affected.iter().any(|entry| entry.uid == "a" && entry.left_at.is_some()));
}

#[test]
fn a_restarted_controller_sends_the_last_change_again_within_the_hour_and_nothing_after() {
    let mut story = Story::deployment(1);
    story.look(1, vec![crashed("a")]);
    let sent: Vec<_> = story.events.iter().map(|event| (event.target.clone(), event.change)).collect();
    let again = story.look_at(600, vec![crashed("a")], vec![], true);
    assert!(again.status.is_none());
    // The same targets and numbers: the same names, which the API server answers with "already exists".
    assert_eq!(
        again.events.iter().map(|event| (event.target.clone(), event.change)).collect::<Vec<_>>(),
        sent
    );
    assert!(story.look_at(4000, vec![crashed("a")], vec![], true).events.is_empty());
}

#[test]
fn muted_means_no_events_but_the_row_stays() {
    let mut story = Story::deployment(1);
    story.look(1, vec![pod("a", failing(cause::NON_ZERO_EXIT, Urgency::From(second(120))))]);
    let stored = story.stored.as_mut().unwrap();
    let until = (crate::api::ANNOTATION_MUTED_UNTIL.to_owned(), second(3600).to_string());
    stored.metadata.annotations = Some([until].into());
    story.look(12, vec![crashed("a")]);
    assert_eq!(story.state(), State::Active);
    assert!(story.events.is_empty());
}

#[test]
fn three_hundred_replicas_are_one_object_with_ten_events_and_twenty_rows() {
    let mut story = Story::deployment(300);
    let pods: Vec<_> = (0..300).map(|number| crashed(&format!("p{number:03}"))).collect();
    story.look(1, pods.clone());
    let status = story.status();
    assert_eq!(status.pods.as_deref(), Some("300/300"));
    assert_eq!(status.affected.len(), 20);
    let omitted: i32 = status.affected_omitted.iter().map(|row| row.count).sum();
    assert_eq!(omitted, 280);
    assert_eq!(story.events.len(), 10);
    story.look(2, pods);
    assert_eq!((story.writes, story.events.len()), (1, 10));
}

#[test]
fn the_cause_on_top_is_the_most_severe_then_that_of_most_pods() {
    let mut story = Story::deployment(3);
    let info = failing(cause::IMAGE_PULL_FAILED, Urgency::From(second(120)));
    story.look(
        1,
        vec![pod("a", info.clone()), pod("b", info), pod("c", failing(cause::OOM_KILLED, Urgency::Now))],
    );
    assert_eq!(story.status().cause.as_deref(), Some("OomKilled"));
    let of_pods: Vec<_> = story.status().affected.iter().map(|entry| entry.cause.as_str()).collect();
    assert_eq!(of_pods, ["ImagePullFailed", "ImagePullFailed", "OomKilled"]);
}

#[test]
fn attempts_are_counted_once_and_a_lost_log_is_said() {
    let mut story = Story::deployment(1);
    let mut first = crashed("a");
    first.attempts = vec![attempt("a", 0, Err("the Pod is gone"))];
    story.look(1, vec![first.clone()]);
    first.attempts.push(attempt("a", 1, Ok("ERROR")));
    story.look(12, vec![first.clone()]);
    story.look(13, vec![first]);
    let status = story.status();
    let totals = status.attempts.unwrap();
    assert_eq!((totals.seen, totals.kept, totals.dropped, totals.lost), (2, 1, 0, 1));
    assert_eq!(
        status.conditions.iter().find(|condition| condition.type_ == "LogsPreserved").unwrap().status,
        "False"
    );
}

#[test]
fn what_could_not_be_read_is_unchecked() {
    let mut story = Story::deployment(1);
    let mut first = crashed("a");
    first.attempts = vec![attempt("a", 0, Err("pods/log: forbidden"))];
    story.facts.unchecked = vec!["replicaset api-1: forbidden".to_owned()];
    story.look(1, vec![first]);
    assert_eq!(
        story.status().unchecked,
        ["replicaset api-1: forbidden", "log of attempt 0 of migrate: pods/log: forbidden"]
    );
}

#[test]
fn logs_of_at_most_five_pods_are_kept_the_first_among_them() {
    let mut story = Story::deployment(8);
    for number in 0..8 {
        let uid = format!("p{number}");
        let mut pods: Vec<_> = (0..=number).map(|number| crashed(&format!("p{number}"))).collect();
        pods.last_mut().unwrap().attempts = vec![attempt(&uid, i32::try_from(number).unwrap(), Ok("ERROR"))];
        story.look(number, pods);
    }
    let logged =
        story.status().affected.iter().filter(|entry| entry.attempts.iter().any(|a| a.log.is_some()));
    let logged: Vec<_> = logged.map(|entry| entry.uid.clone()).collect();
    assert_eq!(logged.len(), KeepLimits::default().pods);
    assert!(logged.contains(&"p0".to_owned()));
}

#[test]
fn a_diagnosis_stays_below_32_kib_whatever_it_is_fed() {
    // Quotes and backslashes double in JSON, and the text is longer than any bound.
    let hostile = "\\\"".repeat(20_000);
    let mut story = Story::deployment(300);
    for round in 0..6 {
        let pods = (0..300).map(|number| {
            let uid = format!("p{number:03}");
            let mut verdict = Verdict::new(cause::NON_ZERO_EXIT, crate::diagnose::cut(&hostile, 1024));
            verdict.remedy = crate::diagnose::cut(&hostile, 2048);
            verdict.confidence = Confidence::Certain;
            verdict.init_container = Some("migrate".to_owned());
            for _ in 0..16 {
                verdict.evidence.push(crate::api::v1alpha1::Evidence {
                    source: crate::api::v1alpha1::EvidenceSource::Log,
                    subject: crate::diagnose::cut(&hostile, 320),
                    fact: crate::diagnose::cut(&hostile, 512),
                });
            }
            let mut pod = pod(&uid, Assessment::Failing(Box::new(verdict)));
            let mut captured = attempt(&uid, round, Ok(&crate::diagnose::cut(&hostile, 1024)));
            captured.end.as_mut().unwrap().message = Some(hostile.clone());
            pod.attempts = vec![captured];
            pod
        });
        story.look(i64::from(round) * 20, pods.collect());
    }
    let bytes = serde_json::to_vec(&story.stored).unwrap().len();
    assert!(bytes <= 32 * 1024, "{bytes} bytes");
    // What is cut last is what a reader needs first.
    assert!(story.status().affected.iter().any(|entry| entry.attempts.iter().any(|a| a.log.is_some())));
}

#[test]
fn a_log_that_comes_home_after_its_pod_has_gone_is_kept() {
    let mut story = Story::deployment(1);
    story.look(1, vec![crashed("a")]);
    let late = Departure { attempts: vec![attempt("a", 1, Ok("ERROR: the last words"))], ..gone("a", 20) };
    let plan = story.look_at(21, vec![], vec![late], false);
    assert_eq!(plan.logs.len(), 1);
    let attempts = &story.status().affected.first().unwrap().attempts;
    assert_eq!(attempts.last().unwrap().excerpt.as_deref(), Some("ERROR: the last words"));
}

#[test]
fn a_log_that_was_not_to_be_kept_is_dropped_and_not_lost() {
    let mut story = Story::deployment(1);
    let mut pod = crashed("a");
    let mut captured = attempt("a", 0, Ok(""));
    captured.text = Err(NoText::NotKept("not wanted".to_owned()));
    pod.attempts = vec![captured];
    story.look(1, vec![pod]);
    let totals = story.status().attempts.unwrap();
    assert_eq!((totals.seen, totals.kept, totals.dropped, totals.lost), (1, 0, 1, 0));
}

#[test]
fn a_job_that_gave_up_long_ago_is_recorded_without_an_event() {
    let mut story = Story::deployment(1);
    story.facts.workload.kind = "Job".to_owned();
    story.facts.end = WorkloadEnd::JobFailed;
    story.facts.active = Some(0);
    let mut failed = crashed("a");
    failed.failed = true;
    failed.attempts = vec![attempt("a", 0, Ok("FATAL: no"))];
    story.look(2 * 3600, vec![failed]);
    assert_eq!(story.status().resolution, Some(Resolution::GaveUp));
    assert!(story.events.is_empty());
}

#[test]
fn a_workload_that_asks_to_be_left_alone_is_and_what_stands_open_ends_in_silence() {
    let mut story = Story::deployment(1);
    story.facts.ignored = true;
    story.look(1, vec![crashed("a")]);
    assert!(story.stored.is_none());
    story.facts.ignored = false;
    story.look(2, vec![crashed("a")]);
    story.events.clear();
    story.facts.ignored = true;
    story.look(3, vec![crashed("a")]);
    assert_eq!(story.status().resolution, Some(Resolution::PodsGone));
    story.look(4, vec![crashed("a")]);
    assert_eq!((story.writes, story.events.len()), (2, 0));
}
