//! The client and what must hold before any work begins.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::version::Info;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, Config, Resource};

use super::error::chain;
use super::{ClusterError, call};
use crate::api::{InitDiagnosis, InitLog};

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Neither a kubeconfig nor a service account.
    #[error("no cluster configuration: {0} (set KUBECONFIG, or run in a Pod with a service account)")]
    Configuration(String),
    /// The configuration does not make a client.
    #[error("the cluster configuration is unusable: {0}")]
    Client(String),
}

/// Makes a client from the kubeconfig (`KUBECONFIG`, `~/.kube/config`) or the Pod's service account, and names
/// the server's address for messages.
///
/// # Errors
/// When there is no configuration, or one that makes no client.
pub async fn connect() -> Result<(Client, String), ConnectError> {
    let mut config = Config::infer().await.map_err(|error| ConnectError::Configuration(chain(&error)))?;
    config.connect_timeout = Some(Duration::from_secs(5));
    // Must outlast quiet watches (290 s); hung connections are found by it.
    config.read_timeout = Some(Duration::from_secs(300));
    config.reset_reader_on_write = true;
    config.write_timeout = Some(Duration::from_secs(30));
    // The client's own policy retries one call for minutes inside a reconcile; ours is per key.
    config.default_retry = false;
    let server = config.cluster_url.to_string();
    let client = Client::try_from(config).map_err(|error| ConnectError::Client(chain(&error)))?;
    Ok((client, server))
}

/// What keeps the controller from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// The API server does not answer.
    #[error("the API server does not answer: {0}")]
    Unreachable(String),
    /// The credentials are refused.
    #[error("the API server refuses the credentials: {0}")]
    Unauthorized(String),
    /// A definition is missing.
    #[error("{kind} is not installed in the cluster (install the definitions: kubectl apply -k crds)")]
    DefinitionMissing {
        /// Kind.
        kind: String,
    },
    /// A permission without which nothing works is missing.
    #[error("missing permission to {what}: {message} (see deploy/base/rbac.yaml)")]
    Forbidden {
        /// Verb and resource.
        what: String,
        /// The server's words.
        message: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(#[from] ClusterError),
}

/// Checks that the API answers and returns its version, that both definitions are there, and that they and the Pods may be read.
/// `namespaces` is empty for the whole cluster.
///
/// # Errors
/// What is missing, in words that say what to do.
pub async fn check(client: &Client, namespaces: &[String]) -> Result<Info, NotReady> {
    let version = match call("version of the API server", client.apiserver_version()).await {
        Ok(version) => version,
        Err(error) if error.code() == Some(401) => return Err(NotReady::Unauthorized(error.brief())),
        // An answer is an answer, even if this path is not for everybody.
        Err(error) if error.code().is_some() => Info::default(),
        Err(error) => return Err(NotReady::Unreachable(error.brief())),
    };
    let scopes: Vec<Option<&str>> = if namespaces.is_empty() {
        vec![None]
    } else {
        namespaces.iter().map(|name| Some(name.as_str())).collect()
    };
    for namespace in scopes {
        can_list::<InitDiagnosis>(client, namespace).await?;
        can_list::<InitLog>(client, namespace).await?;
        can_list::<k8s_openapi::api::core::v1::Pod>(client, namespace).await?;
    }
    Ok(version)
}

/// Whether a server streams lists: switched on from 1.34 on (it was in 1.32, and not in 1.33).
pub fn streams_lists(version: &Info) -> bool {
    // Some providers write `34+`.
    let minor = version.minor.trim_end_matches('+').parse::<u32>();
    version.major == "1" && minor.is_ok_and(|minor| minor >= 34)
}

async fn can_list<K>(client: &Client, namespace: Option<&str>) -> Result<(), NotReady>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = scoped(client, namespace);
    let plural = K::plural(&());
    let place =
        namespace.map_or_else(|| "in all namespaces".to_owned(), |name| format!("in namespace {name}"));
    match call(format!("list {plural} {place}"), api.list_metadata(&ListParams::default().limit(1))).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => {
            Err(NotReady::DefinitionMissing { kind: K::kind(&()).into_owned() })
        }
        Err(error) if error.is_forbidden() => Err(NotReady::Forbidden {
            what: format!("list {plural} {place}"),
            message: error_message(&error),
        }),
        Err(error) => Err(error.into()),
    }
}

fn error_message(error: &ClusterError) -> String {
    match error {
        ClusterError::Api { source, .. } => super::error::summary(source),
        ClusterError::Timeout { .. } => error.to_string(),
    }
}

/// An API for one namespace, or for all of them.
pub fn scoped<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// As [`scoped`], for objects whose content need not be what their type says.
pub fn untyped<K>(client: &Client, namespace: Option<&str>) -> Api<DynamicObject>
where
    K: Resource<DynamicType = ()>,
{
    let resource = ApiResource::erase::<K>(&());
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}
