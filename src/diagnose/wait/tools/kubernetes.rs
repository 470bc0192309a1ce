//! kubectl, and images made to wait for objects of the cluster.

use std::time::Duration;

use super::arguments::{Arguments, Grammar};
use super::{Found, Lookup};
use crate::diagnose::wait::marked;
use crate::diagnose::wait::script::duration;
use crate::diagnose::wait::types::{LoopShape, TargetKind};

/// Options with a value of the kubectl commands we read.
const KUBECTL: Grammar = Grammar {
    short: "nlofLcs",
    attached: "",
    long: &[
        "namespace",
        "selector",
        "output",
        "filename",
        "for",
        "timeout",
        "context",
        "kubeconfig",
        "field-selector",
        "server",
        "token",
        "as",
        "request-timeout",
        "sort-by",
        "template",
        "cluster",
        "user",
    ],
    one_dash: false,
};

/// Short and plural names (`kubectl api-resources`), and the singular.
const KINDS: [(&str, &[&str]); 17] = [
    ("pod", &["po", "pods"]),
    ("service", &["svc", "services"]),
    ("endpoints", &["ep", "endpoint"]),
    ("endpointslice", &["endpointslices"]),
    ("deployment", &["deploy", "deployments"]),
    ("statefulset", &["sts", "statefulsets"]),
    ("daemonset", &["ds", "daemonsets"]),
    ("replicaset", &["rs", "replicasets"]),
    ("job", &["jobs"]),
    ("cronjob", &["cj", "cronjobs"]),
    ("configmap", &["cm", "configmaps"]),
    ("secret", &["secrets"]),
    ("persistentvolumeclaim", &["pvc", "persistentvolumeclaims"]),
    ("namespace", &["ns", "namespaces"]),
    ("node", &["no", "nodes"]),
    ("customresourcedefinition", &["crd", "crds", "customresourcedefinitions"]),
    ("ingress", &["ing", "ingresses"]),
];

/// What kubectl or k8s-wait-for asks for; none if `name` is neither.
pub(super) fn find(name: &str, words: &[String], lookup: &Lookup<'_>) -> Option<Vec<Found>> {
    match name {
        "kubectl" | "oc" | "k" => Some(kubectl(words)),
        "k8s-wait-for" | "wait_for.sh" => Some(wait_for(words, lookup)),
        _ => None,
    }
}

fn kind_of(text: &str) -> String {
    let plain = text.split('.').next().unwrap_or("").to_ascii_lowercase();
    KINDS
        .iter()
        .find(|(singular, others)| *singular == plain || others.contains(&plain.as_str()))
        .map_or_else(|| text.to_ascii_lowercase(), |(singular, _)| (*singular).to_owned())
}

fn kubectl(words: &[String]) -> Vec<Found> {
    let arguments = Arguments::parse(words, KUBECTL);
    let mut operands = arguments.operands.iter().map(String::as_str);
    let timeout = arguments.value(&["timeout"]);
    let (condition, repeats) = match operands.next() {
        Some("wait") => {
            let condition = arguments.value(&["for"]).unwrap_or("condition=Ready");
            // A negative time-out is a week; without one it is 30 s (kubectl wait --help).
            let unbounded = timeout.is_some_and(|timeout| timeout.starts_with('-'));
            (condition.to_owned(), Some(LoopShape { unbounded, sleep: None }))
        }
        Some("rollout") if operands.next() == Some("status") => {
            // Zero, the default, waits for ever.
            let limited = timeout.and_then(duration).is_some_and(|timeout| !timeout.is_zero());
            ("rollout".to_owned(), Some(LoopShape { unbounded: !limited, sleep: None }))
        }
        Some("get" | "describe") => ("exists".to_owned(), None),
        _ => return Vec::new(),
    };
    let condition = condition.strip_prefix("condition=").map_or_else(
        || condition.clone(),
        |name| {
            if name.eq_ignore_ascii_case("complete") { "complete".to_owned() } else { condition.clone() }
        },
    );
    let namespace = arguments.value(&["n", "namespace"]).map(marked::to_value);
    let selector = arguments.value(&["l", "selector"]).map(marked::to_value);
    objects(operands)
        .into_iter()
        .map(|(kind, name)| Found {
            kind: TargetKind::KubernetesObject {
                kind,
                name: name.map(marked::to_value),
                namespace: namespace.clone(),
                selector: selector.clone(),
                condition: Some(condition.clone()),
            },
            tool: "kubectl",
            repeats,
        })
        .collect()
}

/// `kind/name …`, `kind name …`, `kind,kind`
fn objects<'a>(operands: impl Iterator<Item = &'a str>) -> Vec<(String, Option<&'a str>)> {
    let operands: Vec<&str> = operands.take(17).collect();
    let (slashed, plain): (Vec<&str>, Vec<&str>) = operands.into_iter().partition(|word| word.contains('/'));
    if !slashed.is_empty() {
        return slashed
            .into_iter()
            .filter_map(|word| word.split_once('/'))
            .map(|(kind, name)| (kind_of(kind), Some(name).filter(|name| !name.is_empty())))
            .collect();
    }
    let Some((kinds, names)) = plain.split_first() else {
        return Vec::new();
    };
    let kinds: Vec<String> = kinds.split(',').map(kind_of).collect();
    if names.is_empty() {
        return kinds.into_iter().map(|kind| (kind, None)).collect();
    }
    names.iter().filter_map(|name| kinds.first().map(|kind| (kind.clone(), Some(*name)))).collect()
}

/// The first words of k8s-wait-for, with the object's kind and what has to be true of it (its `wait_for.sh`).
const WAIT_FOR: [(&str, &str, &str); 8] = [
    ("pod", "pod", "ready"),
    ("pod-we", "pod", "ready"),
    ("pod-wr", "pod", "ready"),
    ("service", "service", "ready"),
    ("service-wr", "service", "ready"),
    ("job", "job", "complete"),
    ("job-we", "job", "complete"),
    ("job-wr", "job", "complete"),
];

/// Whether the arguments have the form of k8s-wait-for's: a kind, then a name or a selector.
pub(super) fn looks_like_wait_for(args: &[String]) -> bool {
    let mut words = args.iter();
    let kind = words.next().is_some_and(|first| WAIT_FOR.iter().any(|(word, _, _)| word == first));
    kind && words.next().is_some_and(|second| {
        second.starts_with("-l")
            || second
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "-.$()_{}".contains(character))
    }) && words.all(|word| word.starts_with('-') || !word.contains(' '))
}

/// groundnuty/k8s-wait-for: `KIND NAME|-lSELECTOR [-n NAMESPACE]`; for ever, every `WAIT_TIME` (2) seconds.
fn wait_for(words: &[String], lookup: &Lookup<'_>) -> Vec<Found> {
    let arguments = Arguments::parse(words, KUBECTL);
    let Some(first) = arguments.operand(0) else {
        return Vec::new();
    };
    let Some((_, kind, condition)) = WAIT_FOR.iter().find(|(word, _, _)| *word == first) else {
        return Vec::new();
    };
    let sleep = lookup("WAIT_TIME").map_or(Some(Duration::from_secs(2)), |time| duration(&time));
    vec![Found {
        kind: TargetKind::KubernetesObject {
            kind: (*kind).to_owned(),
            name: arguments.operand(1).map(marked::to_value),
            namespace: arguments.value(&["n", "namespace"]).map(marked::to_value),
            selector: arguments.value(&["l", "selector"]).map(marked::to_value),
            condition: Some((*condition).to_owned()),
        },
        tool: "k8s-wait-for",
        repeats: Some(LoopShape { unbounded: true, sleep }),
    }]
}
