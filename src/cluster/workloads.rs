//! Whether a Pod's controller still wants it, and how many Pods it counts.
//!
//! These are read anew for each reconcile, because they change with every Pod. Of the objects nothing but the counts
//! is taken: a Pod template with its environment is never held.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::{ApiResource, NamespaceResourceScope, Object};
use kube::{Api, Client, Resource};
use serde::Deserialize;

use super::owners::reference;
use super::{ClusterError, read};
use crate::api::ANNOTATION_IGNORE;
use crate::api::v1alpha1::{ControllerReference, InitDiagnosisSpec};
use crate::plan::{WorkloadEnd, WorkloadFacts};
use crate::pod::identity::{Identity, group_of};

/// What is wanted, by the kinds that have it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wanted {
    replicas: Option<i32>,
    parallelism: Option<i32>,
}

/// What is there, by the kinds that have it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Counted {
    replicas: i32,
    ready_replicas: Option<i32>,
    current_revision: Option<String>,
    update_revision: Option<String>,
    desired_number_scheduled: i32,
    current_number_scheduled: i32,
    number_ready: i32,
    active: Option<i32>,
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

type Workload = Object<Wanted, Counted>;

/// What is known of the workload behind an identity. `owner` controls its direct controller, where that is known. Never an
/// error: gaps are named in `unchecked`.
pub async fn workload_facts(
    client: &Client,
    identity: &Identity,
    owner: Result<Option<OwnerReference>, ClusterError>,
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
    let group = group_of(&controller.api_version);
    let answer = match owner {
        Err(error) => Err(error),
        Ok(owner) => {
            match (owner, stored) {
                (Some(owner), _) => {
                    facts.workload = reference(&owner);
                    facts.workload_api_version = owner.api_version;
                }
                // A ReplicaSet that is gone cannot tell who made it; the diagnosis knows.
                (None, Some(stored)) if stored.workload.kind == "Deployment" => {
                    facts.workload = stored.workload.clone();
                    "apps/v1".clone_into(&mut facts.workload_api_version);
                }
                _ => {}
            }
            match (group, controller.kind.as_str()) {
                ("apps", "ReplicaSet") => replica_set(client, &controller, &mut facts).await,
                ("apps", "StatefulSet") => stateful_set(client, &controller, &mut facts).await,
                ("apps", "DaemonSet") => daemon_set(client, &controller, &mut facts).await,
                ("batch", "Job") => job(client, &controller, &mut facts).await,
                (group, kind) => {
                    let gap =
                        format!("how many Pods {kind}.{group} wants: a kind that initwatch does not know");
                    facts.unchecked.push(gap);
                    Ok(())
                }
            }
        }
    };
    if let Err(error) = answer {
        let kind = controller.kind.to_lowercase();
        facts.unchecked.push(format!("{kind} {}: {}", controller.name, error.brief()));
        // It may well be there: only a clear "not found" proves that it is gone.
        facts.end = WorkloadEnd::Lives;
        // What was known of it stays true.
        if let Some(stored) = stored {
            facts.workload = stored.workload.clone();
        }
    }
    facts
}

async fn get<K>(client: &Client, namespace: &str, name: &str) -> Result<Option<Workload>, ClusterError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let resource = ApiResource::erase::<K>(&());
    let api: Api<Workload> = Api::namespaced_with(client.clone(), namespace, &resource);
    read(format!("get {} {namespace}/{name}", resource.kind.to_lowercase()), || api.get_opt(name)).await
}

/// Whether an object asks to be left alone.
fn is_ignored(object: Option<&Workload>) -> bool {
    let annotations = object.and_then(|object| object.metadata.annotations.as_ref());
    annotations.and_then(|all| all.get(ANNOTATION_IGNORE)).is_some_and(|value| value == "true")
}

/// Only if it is the very object: one of the same name that came later says nothing about these Pods.
fn same(object: Option<Workload>, uid: &str) -> Option<Workload> {
    object.filter(|object| {
        object.metadata.uid.as_deref() == Some(uid) && object.metadata.deletion_timestamp.is_none()
    })
}

async fn replica_set(
    client: &Client,
    controller: &ControllerReference,
    facts: &mut WorkloadFacts,
) -> Result<(), ClusterError> {
    let set = get::<ReplicaSet>(client, &facts.namespace, &controller.name).await?;
    facts.ignored = is_ignored(set.as_ref());
    let set = same(set, &controller.uid);
    let wanted = set.as_ref().and_then(|set| set.spec.replicas).unwrap_or(0);
    let status = set.and_then(|set| set.status).unwrap_or_default();
    facts.desired = Some(wanted).filter(|wanted| *wanted > 0);
    facts.active = Some(status.replicas);
    facts.ready = Some(status.ready_replicas.unwrap_or(0));
    facts.end = if wanted > 0 { WorkloadEnd::Lives } else { WorkloadEnd::WantsNone };

    if facts.workload.kind == "Deployment" && facts.workload.group == "apps" {
        let deployment = get::<Deployment>(client, &facts.namespace, &facts.workload.name).await?;
        facts.ignored |= is_ignored(deployment.as_ref());
        if let Some(deployment) =
            deployment.filter(|deployment| deployment.metadata.deletion_timestamp.is_none())
        {
            let replicas = deployment.spec.replicas.unwrap_or(1);
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
    let set = get::<StatefulSet>(client, &facts.namespace, &controller.name).await?;
    facts.ignored = is_ignored(set.as_ref());
    let Some(set) = same(set, &controller.uid) else {
        return Ok(());
    };
    let wanted = set.spec.replicas.unwrap_or(1);
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
    let set = get::<DaemonSet>(client, &facts.namespace, &controller.name).await?;
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
    let job = get::<Job>(client, &facts.namespace, &controller.name).await?;
    facts.ignored = is_ignored(job.as_ref());
    let Some(job) = same(job, &controller.uid) else {
        return Ok(());
    };
    let status = job.status.unwrap_or_default();
    let has = |type_: &str| {
        status.conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
    };
    facts.desired = job.spec.parallelism.or(Some(1));
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
