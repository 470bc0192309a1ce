//! Lists in pages, so that no answer is ever large.

use futures::Stream;
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use serde::de::DeserializeOwned;

use super::{ClusterError, call};

/// Objects in a page.
const PAGE: u32 = 200;

/// All objects, a page at a time. A page fails as a whole.
pub fn pages<'a, K>(what: &'a str, api: &'a Api<K>) -> impl Stream<Item = Result<Vec<K>, ClusterError>> + 'a
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    futures::stream::try_unfold(Some(String::new()), move |token| async move {
        let Some(token) = token else { return Ok(None) };
        let page = call(what, api.list(&params(&token))).await?;
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        Ok(Some((page.items, next)))
    })
}

/// The metadata of all objects, a page at a time.
pub fn metadata_pages<'a, K>(
    what: &'a str,
    api: &'a Api<K>,
) -> impl Stream<Item = Result<Vec<PartialObjectMeta<K>>, ClusterError>> + 'a
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    futures::stream::try_unfold(Some(String::new()), move |token| async move {
        let Some(token) = token else { return Ok(None) };
        let page = call(what, api.list_metadata(&params(&token))).await?;
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        Ok(Some((page.items, next)))
    })
}

fn params(token: &str) -> ListParams {
    let params = ListParams::default().limit(PAGE);
    if token.is_empty() { params } else { params.continue_token(token) }
}
