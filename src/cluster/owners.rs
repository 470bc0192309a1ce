//! Who made a Pod's controller: one look-up by metadata for each ReplicaSet or Job, remembered.

use std::collections::HashMap;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::{ClusterError, read};
use crate::api::v1alpha1::{ControllerReference, WorkloadReference};
use crate::pod::identity::group_of;

/// Controllers whose owner is remembered.
const MAX_OWNERS: usize = 10_000;

/// Owners of ReplicaSets and Jobs, by the UID of the owned. Bounded: 10,000 owned objects.
#[derive(Debug, Default)]
pub struct OwnerCache {
    owners: HashMap<String, Option<OwnerReference>>,
}

impl OwnerCache {
    /// What is known of the owner of `uid`: nothing, that it has none, or which.
    pub fn get(&self, uid: &str) -> Option<Option<&OwnerReference>> {
        self.owners.get(uid).map(Option::as_ref)
    }

    /// Remembers an answer.
    pub fn insert(&mut self, uid: String, owner: Option<OwnerReference>) {
        if self.owners.len() >= MAX_OWNERS {
            // Rare, and cheap to rebuild: one metadata GET for each controller that still has Pods in init.
            self.owners.clear();
        }
        self.owners.insert(uid, owner);
    }
}

/// Asks who controls a ReplicaSet or a Job; of its content nothing but the metadata is sent. Other kinds are made by
/// nobody else as far as initwatch knows.
///
/// # Errors
/// When it could not be read. One that is gone, or another of the same name, has no owner.
pub async fn owner_of(
    client: &Client,
    namespace: &str,
    controller: &ControllerReference,
) -> Result<Option<OwnerReference>, ClusterError> {
    match (group_of(&controller.api_version), controller.kind.as_str()) {
        ("apps", "ReplicaSet") => ask::<ReplicaSet>(client, namespace, controller).await,
        ("batch", "Job") => ask::<Job>(client, namespace, controller).await,
        _ => Ok(None),
    }
}

async fn ask<K>(
    client: &Client,
    namespace: &str,
    controller: &ControllerReference,
) -> Result<Option<OwnerReference>, ClusterError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let ControllerReference { kind, name, uid, .. } = controller;
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let what = format!("get {} {namespace}/{name}", kind.to_lowercase());
    let object = read(what, || api.get_metadata_opt(name)).await?;
    let metadata = object.map(|object| object.metadata).filter(|metadata| metadata.uid.as_ref() == Some(uid));
    let owners = metadata.and_then(|metadata| metadata.owner_references).unwrap_or_default();
    Ok(owners.into_iter().find(|owner| owner.controller == Some(true)))
}

/// The owner as our API names it.
pub fn reference(owner: &OwnerReference) -> WorkloadReference {
    WorkloadReference {
        kind: owner.kind.clone(),
        group: group_of(&owner.api_version).to_owned(),
        name: owner.name.clone(),
        uid: Some(owner.uid.clone()),
    }
}
