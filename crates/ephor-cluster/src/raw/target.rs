//! What a request is about, for servers that have more to do with it than to answer.

use super::path::{ApiPath, parse};
use super::query::Parameters;
use crate::discovery::Discovery;
use crate::error::ClusterError;
use crate::query::{FieldSelector, WatchQuery};
use crate::resource::Resource;

/// A collection, an object or something below an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub resource: Resource,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path.
    pub name: Option<String>,
    /// The subresource in the path.
    pub subresource: Option<String>,
}

/// What a path (without query) leads to, if it leads to objects of a kind that is served.
pub fn target(discovery: &Discovery, path: &str) -> Option<Target> {
    let ApiPath::Objects(path) = parse(path)? else { return None };
    let resource = discovery
        .find_plural(&path.group, &path.version, &path.plural)
        .filter(|resource| path.namespace.is_none() || resource.namespaced)?
        .clone();
    Some(Target { resource, namespace: path.namespace, name: path.name, subresource: path.subresource })
}

/// The watch that a request asks for, if it asks for one (`watch=true`). A watch of one object selects it by name.
pub fn watch(target: &Target, query: &str) -> Result<Option<WatchQuery>, ClusterError> {
    let parameters = Parameters::parse(query, false)?;
    if !parameters.watch {
        return Ok(None);
    }
    let mut filter = parameters.list(&target.resource, target.namespace.as_deref())?.filter;
    if let Some(name) = &target.name {
        filter.fields = FieldSelector::name(name);
    }
    let resource_version = parameters.resource_version.clone();
    Ok(Some(WatchQuery { filter, resource_version, bookmarks: parameters.bookmarks, metadata_only: false }))
}
