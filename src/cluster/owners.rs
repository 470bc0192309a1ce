//! Who made a Pod, who made that, and whether they still want it.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Api, Client, Resource};

use super::{ClusterError, read};
use crate::api::ANNOTATION_IGNORE;
use crate::api::v1alpha1::{ControllerReference, InitDiagnosisSpec, WorkloadReference};
use crate::plan::{WorkloadEnd, WorkloadFacts};
use crate::pod::identity::{Identity, group_of};

/// The CronJob that made a Job, if one did.
///
/// # Errors
/// When the Job could not be read; a Job that is gone has no owner.
pub async fn job_owner(
    client: &Client,
    namespace: &str,
    job: &str,
) -> Result<Option<WorkloadReference>, ClusterError> {
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let metadata = read(format!("get job {namespace}/{job}"), || jobs.get_metadata_opt(job)).await?;
    let owner = metadata.as_ref().and_then(|job| controller_of(&job.metadata));
    Ok(owner.filter(|owner| owner.kind == "CronJob").map(reference))
}

/// What is known of the workload behind an identity. Never an error: gaps are named in `unchecked`.
pub async fn workload_facts(
    client: &Client,
    identity: &Identity,
    stored: Option<&InitDiagnosisSpec>,
) -> WorkloadFacts {
    let mut facts = WorkloadFacts {
        workload: identity.workload.clone(),
        workload_api_version: identity
            .controller
            .as_ref()
            .map_or_else(|| "v1".to_owned(), |controller| controller.api_version.clone()),
        namespace: identity.key.namespace.clone(),
        controller: identity.controller.clone(),
        revision: identity.revision.clone(),
        // Where nobody can be asked, Pods that are gone are gone.
        end: WorkloadEnd::WantsNone,
        ..WorkloadFacts::default()
    };
    let Some(controller) = identity.controller.clone() else {
        facts.desired = Some(1);
        return facts;
    };
    let answer = match (group_of(&controller.api_version), controller.kind.as_str()) {
        ("apps", "ReplicaSet") => replica_set(client, &controller, stored, &mut facts).await,
        ("apps", "StatefulSet") => stateful_set(client, &controller, &mut facts).await,
        ("apps", "DaemonSet") => daemon_set(client, &controller, &mut facts).await,
        ("batch", "Job") => job(client, &controller, &mut facts).await,
        (group, kind) => {
            facts
                .unchecked
                .push(format!("how many Pods {kind}.{group} wants: a kind that initwatch does not know"));
            Ok(())
        }
    };
    if let Err(error) = answer {
        facts.unchecked.push(format!(
            "{} {}: {}",
            controller.kind.to_lowercase(),
            controller.name,
            error.brief()
        ));
        // It may well be there: only a clear "not found" proves that it is gone.
        facts.end = WorkloadEnd::Lives;
        // What was known of it stays true.
        if let Some(stored) = stored {
            facts.workload = stored.workload.clone();
        }
    }
    facts
}

async fn get<K>(client: &Client, namespace: &str, name: &str) -> Result<Option<K>, ClusterError>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    read(format!("get {} {namespace}/{name}", K::kind(&()).to_lowercase()), || api.get_opt(name)).await
}

/// Whether an object asks to be left alone.
fn is_ignored<K: Resource>(object: Option<&K>) -> bool {
    let annotations = object.and_then(|object| object.meta().annotations.as_ref());
    annotations.and_then(|all| all.get(ANNOTATION_IGNORE)).is_some_and(|value| value == "true")
}

/// Only if it is the very object: one of the same name that came later says nothing about these Pods.
fn same<K: Resource>(object: Option<K>, uid: &str) -> Option<K> {
    object.filter(|object| {
        object.meta().uid.as_deref() == Some(uid) && object.meta().deletion_timestamp.is_none()
    })
}

async fn replica_set(
    client: &Client,
    controller: &ControllerReference,
    stored: Option<&InitDiagnosisSpec>,
    facts: &mut WorkloadFacts,
) -> Result<(), ClusterError> {
    let set: Option<ReplicaSet> = get(client, &facts.namespace, &controller.name).await?;
    let owner = set.as_ref().and_then(|set| controller_of(&set.metadata)).cloned();
    match (&owner, stored) {
        (Some(owner), _) => {
            facts.workload = reference(owner);
            facts.workload_api_version.clone_from(&owner.api_version);
        }
        // A ReplicaSet that is gone cannot tell who made it; the diagnosis knows.
        (None, Some(stored)) if set.is_none() && stored.workload.kind == "Deployment" => {
            facts.workload = stored.workload.clone();
            "apps/v1".clone_into(&mut facts.workload_api_version);
        }
        _ => {}
    }
    facts.ignored = is_ignored(set.as_ref());
    let set = same(set, &controller.uid);
    let wanted = set.as_ref().and_then(|set| set.spec.as_ref()?.replicas).unwrap_or(0);
    let status = set.as_ref().and_then(|set| set.status.clone()).unwrap_or_default();
    facts.desired = Some(wanted).filter(|wanted| *wanted > 0);
    facts.active = Some(status.replicas);
    facts.ready = Some(status.ready_replicas.unwrap_or(0));
    facts.end = if wanted > 0 { WorkloadEnd::Lives } else { WorkloadEnd::WantsNone };

    if facts.workload.kind == "Deployment" && facts.workload.group == "apps" {
        let deployment: Option<Deployment> = get(client, &facts.namespace, &facts.workload.name).await?;
        facts.ignored |= is_ignored(deployment.as_ref());
        if let Some(deployment) =
            deployment.filter(|deployment| deployment.metadata.deletion_timestamp.is_none())
        {
            let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
            if wanted == 0 && replicas > 0 {
                facts.end = WorkloadEnd::Superseded;
            }
            if wanted > 0 {
                facts.desired = Some(replicas);
            }
            let ready = deployment.status.and_then(|status| status.ready_replicas).unwrap_or(0);
            facts.others_serve = Some((ready - facts.ready.unwrap_or(0)).max(0));
        }
    }
    Ok(())
}

async fn stateful_set(
    client: &Client,
    controller: &ControllerReference,
    facts: &mut WorkloadFacts,
) -> Result<(), ClusterError> {
    let set: Option<StatefulSet> = get(client, &facts.namespace, &controller.name).await?;
    facts.ignored = is_ignored(set.as_ref());
    let Some(set) = same(set, &controller.uid) else {
        return Ok(());
    };
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let status = set.status.unwrap_or_default();
    let is_ours = |revision: &Option<String>| match (revision, &facts.revision) {
        (Some(theirs), Some(ours)) => theirs.strip_prefix(&format!("{}-", controller.name)) == Some(ours),
        _ => true,
    };
    let known = is_ours(&status.update_revision) || is_ours(&status.current_revision);
    facts.end = match (wanted, known) {
        (0, _) => WorkloadEnd::WantsNone,
        (_, false) => WorkloadEnd::Superseded,
        _ => WorkloadEnd::Lives,
    };
    facts.desired = Some(wanted);
    facts.active = Some(status.replicas);
    // The count is over all revisions: it speaks for this one only when every Pod is ready.
    facts.ready = status.ready_replicas.filter(|ready| *ready == wanted && is_ours(&status.update_revision));
    Ok(())
}

async fn daemon_set(
    client: &Client,
    controller: &ControllerReference,
    facts: &mut WorkloadFacts,
) -> Result<(), ClusterError> {
    let set: Option<DaemonSet> = get(client, &facts.namespace, &controller.name).await?;
    facts.ignored = is_ignored(set.as_ref());
    let Some(set) = same(set, &controller.uid) else {
        return Ok(());
    };
    let status = set.status.unwrap_or_default();
    facts.desired = Some(status.desired_number_scheduled);
    facts.active = Some(status.current_number_scheduled);
    facts.ready = Some(status.number_ready).filter(|ready| *ready == status.desired_number_scheduled);
    facts.end = if status.desired_number_scheduled > 0 { WorkloadEnd::Lives } else { WorkloadEnd::WantsNone };
    Ok(())
}

async fn job(
    client: &Client,
    controller: &ControllerReference,
    facts: &mut WorkloadFacts,
) -> Result<(), ClusterError> {
    let job: Option<Job> = get(client, &facts.namespace, &controller.name).await?;
    let owner = job.as_ref().and_then(|job| controller_of(&job.metadata));
    if let Some(owner) = owner.filter(|owner| owner.kind == "CronJob") {
        facts.workload = reference(owner);
        facts.workload_api_version.clone_from(&owner.api_version);
    }
    facts.ignored = is_ignored(job.as_ref());
    let Some(job) = same(job, &controller.uid) else {
        return Ok(());
    };
    let status = job.status.unwrap_or_default();
    let has = |type_: &str| {
        status
            .conditions
            .iter()
            .flatten()
            .any(|condition| condition.type_ == type_ && condition.status == "True")
    };
    facts.desired = job.spec.as_ref().and_then(|spec| spec.parallelism).or(Some(1));
    facts.active = Some(status.active.unwrap_or(0));
    facts.end = if has("Failed") {
        WorkloadEnd::JobFailed
    } else if has("Complete") {
        WorkloadEnd::JobComplete
    } else {
        WorkloadEnd::Lives
    };
    Ok(())
}

fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.as_ref()?.iter().find(|owner| owner.controller == Some(true))
}

fn reference(owner: &OwnerReference) -> WorkloadReference {
    WorkloadReference {
        kind: owner.kind.clone(),
        group: group_of(&owner.api_version).to_owned(),
        name: owner.name.clone(),
        uid: Some(owner.uid.clone()),
    }
}
