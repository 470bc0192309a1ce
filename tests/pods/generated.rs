//! Generated Pods: every state and oddity that the API accepts, the likely ones more often.

use jiff::{SignedDuration, Timestamp};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use super::notation::container;

/// A status entry without its name.
type Entry = BoxedStrategy<Map<String, Value>>;

/// The containers of a Pod, by name; names that start with `s` are native sidecars.
#[derive(Clone, Debug)]
pub struct Shape {
    pub init: Vec<String>,
    pub apps: Vec<String>,
}

impl Shape {
    /// `spec.initContainers` and `spec.containers`.
    pub fn spec(&self) -> Value {
        let containers = |names: &[String]| names.iter().map(|name| container(name)).collect::<Vec<_>>();
        json!({"initContainers": containers(&self.init), "containers": containers(&self.apps)})
    }
}

/// Up to five init containers, up to three apps.
pub fn shape() -> impl Strategy<Value = Shape> {
    (prop::collection::vec(any::<bool>(), 0..=5), 1..=3_usize).prop_map(|(sidecars, apps)| {
        let init = sidecars.iter().enumerate();
        Shape {
            init: init
                .map(|(index, sidecar)| format!("{}{index}", if *sidecar { 's' } else { 'a' }))
                .collect(),
            apps: (0..apps).map(|index| format!("m{index}")).collect(),
        }
    })
}

/// A whole Pod.
pub fn pod(now: Timestamp) -> impl Strategy<Value = Value> {
    (shape(), prop::bool::weighted(0.2)).prop_flat_map(move |(shape, deleting)| {
        let spec = shape.spec();
        status(&shape, now).prop_map(move |status| {
            let deleted = deleting.then(|| now.to_string());
            json!({"metadata": {"name": "pod", "deletionTimestamp": deleted}, "spec": spec, "status": status})
        })
    })
}

/// A status for a Pod of this shape.
pub fn status(shape: &Shape, now: Timestamp) -> impl Strategy<Value = Value> + use<> {
    let phase = prop_oneof![
        4 => Just("Pending"), 4 => Just("Running"), 1 => Just("Succeeded"), 2 => Just("Failed"),
        1 => Just("Unknown"), 1 => Just(""),
    ];
    let reason = prop_oneof![
        6 => Just(""),
        2 => Just("NodeLost"),
        2 => select(vec!["Evicted", "DeadlineExceeded", "NodeAffinity", "OutOfcpu", "Completed"]),
    ];
    let init = entries(shape.init.clone(), past_init(now), now);
    let apps = entries(shape.apps.clone(), ready_app(now), now);
    (phase, reason, conditions(), init, apps).prop_map(|(phase, reason, conditions, init, apps)| {
        let mut status = Map::new();
        set_text(&mut status, "phase", Some(phase));
        set_text(&mut status, "reason", Some(reason));
        status.insert("conditions".to_owned(), json!(conditions));
        status.insert("initContainerStatuses".to_owned(), json!(init));
        status.insert("containerStatuses".to_owned(), json!(apps));
        Value::Object(status)
    })
}

/// Conditions in any order and number; the API accepts several of a type.
fn conditions() -> impl Strategy<Value = Vec<Value>> {
    let status = || select(vec!["True", "True", "False", "Unknown"]);
    let one = |type_: &'static str| status().prop_map(move |status| json!({"type": type_, "status": status}));
    let gated = (status(), select(vec!["SchedulingGated", "Unschedulable"]))
        .prop_map(|(status, reason)| json!({"type": "PodScheduled", "status": status, "reason": reason}));
    let other = status()
        .prop_map(|status| json!({"type": "example.com/Own", "status": status, "reason": "SchedulingGated"}));
    let any = prop_oneof![4 => one("Initialized"), 4 => one("Ready"), 1 => gated, 1 => other];
    prop::collection::vec(any, 0..=4)
}

/// Status entries for these names. Usually some of them are past (`past`) and the others anything; sometimes
/// entries are missing, in another order, strangers, or twice there.
fn entries(names: Vec<String>, past: Entry, now: Timestamp) -> impl Strategy<Value = Vec<Value>> {
    let count = names.len();
    let with_stranger = (0..=count).prop_map({
        let names = names.clone();
        move |at| {
            let mut names = names.clone();
            names.insert(at, "ghost".to_owned());
            names
        }
    });
    let twice: Vec<String> = names.iter().chain(&names).cloned().collect();
    let order = prop_oneof![
        12 => Just(names.clone()),
        1 => subsequence(names.clone(), 0..=count),
        1 => Just(names).prop_shuffle(),
        1 => with_stranger,
        1 => Just(twice),
    ];
    order.prop_flat_map(move |names| {
        let past = past.clone();
        (0..=names.len()).prop_flat_map(move |reached| {
            let entry = |(index, name): (usize, &String)| {
                let body = if index < reached { past.clone() } else { any_entry(now) };
                let name = name.clone();
                body.prop_map(move |mut entry| {
                    entry.insert("name".to_owned(), json!(name));
                    Value::Object(entry)
                })
            };
            names.iter().enumerate().map(entry).collect::<Vec<_>>()
        })
    })
}

/// An init container that is past: ended with 0, or a sidecar that has started.
fn past_init(now: Timestamp) -> Entry {
    let ended = select(vec!["Completed", ""])
        .prop_map(|reason| json!({"terminated": {"exitCode": 0, "reason": reason}}));
    entry(prop_oneof![ended, running()].boxed(), Just(Some(true)).boxed(), now)
}

/// An app container of a Pod that does well: it runs or has completed.
fn ready_app(now: Timestamp) -> Entry {
    let completed = Just(json!({"terminated": {"exitCode": 0, "reason": "Completed"}}));
    entry(prop_oneof![completed, running()].boxed(), Just(Some(true)).boxed(), now)
}

fn any_entry(now: Timestamp) -> Entry {
    let odd = (waiting(), terminated(), running()).prop_flat_map(|(waiting, terminated, running)| {
        let all: Vec<Value> = vec![waiting, terminated, running];
        subsequence(all, 2..=3).prop_map(|states| {
            let states = states.into_iter().filter_map(|state| match state {
                Value::Object(state) => Some(state),
                _ => None,
            });
            Value::Object(states.flatten().collect())
        })
    });
    let state = prop_oneof![
        1 => Just(json!({})), 4 => waiting(), 3 => running(), 5 => terminated(), 1 => odd,
    ];
    entry(state.boxed(), any::<Option<bool>>().boxed(), now)
}

fn waiting() -> impl Strategy<Value = Value> {
    let reason = select(vec![
        None,
        Some(""),
        Some("PodInitializing"),
        Some("ContainerCreating"),
        Some("CrashLoopBackOff"),
        Some("ImagePullBackOff"),
        Some("CreateContainerConfigError"),
        Some("Completed"),
        Some("rpc error: code = Unknown desc = \"a text\"\nwith a second line, and ümlauts"),
    ]);
    reason.prop_map(|reason| json!({"waiting": {"reason": reason}}))
}

fn running() -> impl Strategy<Value = Value> {
    Just(json!({"running": {}}))
}

fn terminated() -> impl Strategy<Value = Value> {
    let code = prop_oneof![2 => Just(0), 2 => Just(1), 1 => Just(137), 1 => any::<i32>()];
    let reason =
        select(vec![None, Some(""), Some("Completed"), Some("Error"), Some("OOMKilled"), Some("StartError")]);
    let signal = select(vec![None, None, Some(0), Some(9), Some(15), Some(-1)]);
    (code, reason, signal).prop_map(|(code, reason, signal)| {
        json!({"terminated": {"exitCode": code, "reason": reason, "signal": signal}})
    })
}

fn entry(state: BoxedStrategy<Value>, started: BoxedStrategy<Option<bool>>, now: Timestamp) -> Entry {
    let restarts = prop_oneof![3 => Just(0), 4 => 1..20_i32, 1 => any::<i32>()];
    let parts = (state, started, any::<bool>(), restarts, option::of(last_end(now)));
    parts
        .prop_map(|(state, started, ready, restarts, last)| {
            let mut entry = Map::new();
            for (name, value) in [
                ("state", state),
                ("started", json!(started)),
                ("ready", json!(ready)),
                ("restartCount", json!(restarts)),
                ("lastState", json!({"terminated": last})),
                ("image", json!("none")),
                ("imageID", json!("")),
            ] {
                entry.insert(name.to_owned(), value);
            }
            entry
        })
        .boxed()
}

/// The run before: of any age that a column can print, in the future, or without a time.
fn last_end(now: Timestamp) -> impl Strategy<Value = Value> {
    let age = prop_oneof![
        -5..=0_i64,
        1..200_i64,
        200..40_000_i64,
        40_000..1_000_000_i64,
        1_000_000..400_000_000_i64
    ];
    let finished = prop_oneof![
        8 => age.prop_map(move |age| Some(now - SignedDuration::from_secs(age))),
        1 => Just(Some(Timestamp::UNIX_EPOCH)),
        1 => Just(None),
    ];
    finished.prop_map(|finished| {
        // Whole seconds, as the API keeps them.
        let finished = finished.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        json!({"exitCode": 1, "finishedAt": finished})
    })
}

fn set_text(object: &mut Map<String, Value>, name: &str, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        object.insert(name.to_owned(), json!(text));
    }
}
