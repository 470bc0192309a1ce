//! Services and their endpoints.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client};

use super::read;
use crate::diagnose::facts::{Endpoints, Lookup, ServiceFacts, ServiceName, ServicePort};

/// Slices of one Service that are read: 1,000 endpoints each, more than enough to know whether one is ready.
const MAX_SLICES: u32 = 50;

/// Looks a Service up. Never an error: what could not be looked at is part of the answer.
pub async fn look_up(client: &Client, name: &ServiceName) -> Lookup<ServiceFacts> {
    let services: Api<Service> = Api::namespaced(client.clone(), &name.namespace);
    let service = match read(format!("get service {name}"), || services.get_opt(&name.name)).await {
        Ok(Some(service)) => service,
        Ok(None) => return Lookup::Missing,
        Err(error) => return Lookup::Unavailable(error.brief()),
    };
    let spec = service.spec.unwrap_or_default();
    let ports = spec.ports.unwrap_or_default().into_iter().map(|port| ServicePort {
        name: port.name.unwrap_or_default(),
        port: port.port,
        protocol: port.protocol.unwrap_or_else(|| "TCP".to_owned()),
    });
    Lookup::Found(ServiceFacts {
        type_: spec.type_.unwrap_or_else(|| "ClusterIP".to_owned()),
        headless: spec.cluster_ip.as_deref() == Some("None"),
        has_selector: spec.selector.is_some_and(|selector| !selector.is_empty()),
        ports: ports.collect(),
        endpoints: endpoints(client, name).await,
    })
}

async fn endpoints(client: &Client, name: &ServiceName) -> Option<Endpoints> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), &name.namespace);
    let params =
        ListParams::default().labels(&format!("kubernetes.io/service-name={}", name.name)).limit(MAX_SLICES);
    let slices = read(format!("list endpointslices of {name}"), || slices.list(&params)).await;
    let slices = slices.inspect_err(|error| tracing::debug!(%error, "endpoints not known")).ok()?;
    let mut count = Endpoints::default();
    for endpoint in slices.items.iter().flat_map(|slice| &slice.endpoints) {
        count.total += 1;
        // A missing `ready` counts as ready (api/discovery/v1/types.go).
        if endpoint.conditions.as_ref().is_none_or(|conditions| conditions.ready != Some(false)) {
            count.ready += 1;
        }
    }
    Some(count)
}
