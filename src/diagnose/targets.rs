//! From what a command waits for to the objects that it means.

use super::facts::ServiceName;
use super::wait::{self, ContainerCommand, EnvValue, EnvVariable, HostKind, TargetKind, WaitAnalysis};
use crate::api::v1alpha1::Confidence;
use crate::pod::progress::InitProgress;
use crate::pod::view::PodView;

/// A Service that an init container waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceTarget {
    /// The Service.
    pub service: ServiceName,
    /// The port that it connects to, where it is a number.
    pub port: Option<u16>,
    /// As a person would write it: `postgres:5432`.
    pub shown: String,
    /// The part of the command that waits.
    pub command: String,
    /// How sure it is that a missing Service is what it waits for.
    pub confidence: Confidence,
}

/// What must be gathered before a Pod can be assessed.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// What the blocking init container waits for, by its command.
    pub waits: Option<WaitAnalysis>,
    /// Services to look up.
    pub services: Vec<ServiceName>,
}

/// What to look up for a Pod. Asked before every assessment; cheap.
pub fn needs(pod: &PodView, progress: &InitProgress) -> Needs {
    let Some(container) = progress.step().and_then(|step| pod.init_container(&step.container)) else {
        return Needs::default();
    };
    let env: Vec<_> = container
        .env
        .iter()
        .map(|variable| EnvVariable {
            name: variable.name.clone(),
            value: match (&variable.value, &variable.value_from) {
                (_, Some(_)) => EnvValue::Reference,
                (value, None) => EnvValue::Literal(value.clone().unwrap_or_default()),
            },
        })
        .collect();
    let waits = wait::analyse(&ContainerCommand {
        image: container.image.as_deref(),
        command: &container.command,
        args: &container.args,
        env: &env,
        has_env_from: !container.env_from.is_empty(),
    });
    let mut services: Vec<_> =
        service_targets(&waits, pod).into_iter().map(|target| target.service).collect();
    services.dedup();
    Needs { waits: Some(waits), services }
}

/// The Services among the targets of a wait, in the order in which they block. Where the Pod resolves names otherwise
/// (`dnsPolicy`, `hostAliases`), they mean no Service.
pub fn service_targets(waits: &WaitAnalysis, pod: &PodView) -> Vec<ServiceTarget> {
    if !pod.has_cluster_dns() {
        return Vec::new();
    }
    let searches = pod.spec.dns_config.as_ref().is_some_and(|config| !config.searches.is_empty());
    waits
        .targets
        .iter()
        .filter_map(|target| {
            let (host, port) = match &target.kind {
                TargetKind::Network { host, port, .. } => (host.known()?, port.as_ref()),
                TargetKind::Name { host } => (host.known()?, None),
                _ => return None,
            };
            if pod.has_host_alias(host) {
                return None;
            }
            // `a.b` is a Service only if namespace b exists, which is not known here: a 404 would prove nothing.
            let HostKind::Service { name, namespace, ambiguous: false, .. } =
                wait::classify_host(host, pod.namespace())
            else {
                return None;
            };
            let number = port.and_then(wait::Port::number);
            let shown = number.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
            Some(ServiceTarget {
                service: ServiceName { namespace, name },
                port: number,
                shown,
                command: target.evidence.clone(),
                confidence: match (target.conditional, target.repeats) {
                    // The branch may not have been taken, and what came before may not be over.
                    (true, _) => Confidence::Possible,
                    // It gives up some time, and may have.
                    (false, Some(shape)) if !shape.unbounded => Confidence::Possible,
                    // A search domain of the Pod's own may have the name.
                    _ if searches && !host.contains('.') => Confidence::Likely,
                    (false, Some(_)) => Confidence::Certain,
                    // A single request that takes so long.
                    (false, None) => Confidence::Likely,
                },
            })
        })
        .collect()
}
