//! It waits for a Service: does that exist, has it endpoints, does it serve the port?

use super::super::catalogue::cause;
use super::super::facts::{Endpoints, Lookup, PodFacts, ServiceFacts};
use super::super::targets::{ServiceTarget, service_targets};
use super::super::verdict::Verdict;
use crate::api::v1alpha1::{Advice, Confidence, EvidenceSource, OtherCause};
use crate::pod::progress::Step;

pub(super) fn detect(facts: &PodFacts<'_>) -> Option<Verdict> {
    let step = super::long_running(facts)?;
    // In the order in which they block: the first that is broken is what it waits for.
    targets(facts).iter().find_map(|target| match facts.services.get(&target.service)? {
        Lookup::Missing => Some(missing(facts, &step, target)),
        Lookup::Found(service) => broken(facts, &step, target, service),
        Lookup::Unavailable(_) => None,
    })
}

/// What the look-ups rule out, and what could not be looked up: for a verdict that could not name a target.
pub(super) fn set_aside(facts: &PodFacts<'_>) -> Option<(Vec<OtherCause>, Vec<String>)> {
    let targets = targets(facts);
    let (mut also, mut unchecked) = (Vec::new(), Vec::new());
    for target in &targets {
        match facts.services.get(&target.service) {
            Some(Lookup::Found(service)) => also.push(OtherCause {
                cause: cause::SERVICE_HAS_NO_ENDPOINTS.to_owned(),
                why_not: match service.endpoints {
                    Some(Endpoints { ready, total }) => {
                        format!("Service {}: {ready} of {total} endpoints ready", target.service)
                    }
                    None => format!("Service {} exists", target.service),
                },
            }),
            Some(Lookup::Unavailable(why)) => unchecked.push(format!("service {}: {why}", target.service)),
            Some(Lookup::Missing) | None => {}
        }
    }
    (!targets.is_empty()).then_some((also, unchecked))
}

/// An unbounded wait is unsafe whether or not it is today's cause: it hangs where it could fail and say so.
pub(super) fn advice(facts: &PodFacts<'_>) -> Option<Advice> {
    facts.waits.filter(|waits| waits.unbounded_wait).map(|_| Advice {
        code: "UnboundedWait".to_owned(),
        message: "The wait loop has no bound: give it one (for example 150 tries of 2 s), so that it ends with a message instead of hanging.".to_owned(),
    })
}

fn targets(facts: &PodFacts<'_>) -> Vec<ServiceTarget> {
    facts.waits.map(|waits| service_targets(waits, facts.pod)).unwrap_or_default()
}

/// `wait-for-db (step 1 of 2) has waited for postgres:5432 since …: why`.
fn sentence(facts: &PodFacts<'_>, step: &Step, target: &ServiceTarget, why: &str) -> String {
    let (step, since, shown) = (super::named(step), super::since(facts), &target.shown);
    if target.confidence == Confidence::Possible {
        // Whether it is at that place of its script, nothing tells.
        return format!("{step} has run{since} and may be waiting for {shown}: {why}");
    }
    format!("{step} has waited for {shown}{since}: {why}")
}

fn missing(facts: &PodFacts<'_>, step: &Step, target: &ServiceTarget) -> Verdict {
    let (namespace, name) = (&target.service.namespace, &target.service.name);
    let why = format!("there is no Service {name} in namespace {namespace}");
    Verdict::new(cause::SERVICE_NOT_FOUND, sentence(facts, step, target, &why))
        .at(step)
        .confidence(target.confidence)
        .remedy(format!(
            "Create Service {name} in namespace {namespace}, or correct the name that {} waits for. See what is there: kubectl -n {namespace} get services",
            step.container
        ))
        .fact(EvidenceSource::Object, format!("Service {}", target.service), "not found")
        .fact(EvidenceSource::Spec, format!("init container {}", step.container), format!("waits with: {}", target.command))
}

fn broken(
    facts: &PodFacts<'_>,
    step: &Step,
    target: &ServiceTarget,
    service: &ServiceFacts,
) -> Option<Verdict> {
    if service.type_ == "ExternalName" {
        // Where it leads is outside of what the API shows.
        return None;
    }
    let (namespace, name) = (&target.service.namespace, &target.service.name);
    let subject = format!("Service {}", target.service);
    let spec_fact = format!("waits with: {}", target.command);
    if let Some(port) = target.port.filter(|port| !serves(service, *port)) {
        let served: Vec<_> = service.ports.iter().map(|port| port.port.to_string()).collect();
        let served = served.join(", ");
        let why = format!("Service {} serves port {served}, not {port}", target.service);
        return Some(
            Verdict::new(cause::SERVICE_PORT_MISMATCH, sentence(facts, step, target, &why))
                .at(step)
                .confidence(target.confidence)
                .remedy(format!("Wait for {name}:{served}, or add port {port} to the Service: kubectl -n {namespace} get service {name} -o yaml"))
                .fact(EvidenceSource::Object, subject, format!("serves port {served}"))
                .fact(EvidenceSource::Spec, format!("init container {}", step.container), spec_fact),
        );
    }
    let Endpoints { ready, total } = service.endpoints.filter(|endpoints| endpoints.ready == 0)?;
    let fact = if total == 0 {
        "has no endpoints: no Pod matches its selector".to_owned()
    } else {
        format!("has {ready} of {total} endpoints ready")
    };
    let fact = if total == 0 && !service.has_selector {
        "has no endpoints and no selector: somebody must write its EndpointSlices".to_owned()
    } else {
        fact
    };
    let why = format!("Service {} {fact}", target.service);
    Some(
        Verdict::new(cause::SERVICE_HAS_NO_ENDPOINTS, sentence(facts, step, target, &why))
            .at(step)
            .confidence(target.confidence)
            .remedy(format!(
                "See which Pods it selects and why they are not ready: kubectl -n {namespace} get service {name} -o wide; kubectl -n {namespace} get endpointslices -l kubernetes.io/service-name={name}"
            ))
            .fact(EvidenceSource::Object, subject, fact)
            .fact(EvidenceSource::Spec, format!("init container {}", step.container), spec_fact),
    )
}

/// Whether clients can connect to a port. A headless Service resolves to the Pods themselves: any port may do.
fn serves(service: &ServiceFacts, port: u16) -> bool {
    service.headless
        || service.ports.is_empty()
        || service.ports.iter().any(|served| served.port == i32::from(port))
}
