//! Requests to calls, results to documents.

use ephor_expr::Value;

use super::path::{self, ApiPath, ObjectPath};
use super::query::Parameters;
use super::{Method, RawRequest};
use crate::cluster::Cluster;
use crate::discovery::{self, KUBERNETES_VERSION};
use crate::error::{ClusterError, ErrorKind};
use crate::object;
use crate::resource::Resource;
use crate::write::{Deletion, Part, Patch};

/// Answers a request from the calls of a cluster, in the documents of an API server.
///
/// Errors have the kind, code and message of the `Status` that the server would answer.
pub fn answer<C: Cluster + ?Sized>(cluster: &C, request: &RawRequest) -> Result<Value, ClusterError> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let document = match path::parse(path).ok_or_else(ClusterError::no_such_path)? {
        ApiPath::Objects(path) => {
            let discovery = cluster.discovery()?;
            let resource = discovery
                .find_plural(&path.group, &path.version, &path.plural)
                .filter(|r| path.namespace.is_none() || r.namespaced)
                .ok_or_else(ClusterError::no_such_path)?;
            let parameters = Parameters::parse(query, request.dry_run)?;
            return objects(cluster, request, resource, &path, &parameters);
        }
        ApiPath::Version => version(),
        ApiPath::Health => Value::from("ok"),
        ApiPath::Core => discovery::versions(),
        ApiPath::Groups => discovery::groups(&*cluster.discovery()?),
        ApiPath::Group(name) => {
            discovery::group(&*cluster.discovery()?, &name).ok_or_else(ClusterError::no_such_path)?
        }
        ApiPath::Resources { group, version } => {
            discovery::resources(&*cluster.discovery()?, &group, &version).ok_or_else(ClusterError::no_such_path)?
        }
    };
    if request.method == Method::Get { Ok(document) } else { Err(ClusterError::method_not_allowed()) }
}

fn objects<C: Cluster + ?Sized>(
    cluster: &C,
    request: &RawRequest,
    resource: &Resource,
    path: &ObjectPath,
    parameters: &Parameters,
) -> Result<Value, ClusterError> {
    let namespace = path.namespace.as_deref();
    let part = match path.subresource.as_deref() {
        None => Part::Object,
        Some("status") if resource.has_status() => Part::Status,
        Some(below) => {
            let declared = below.split('/').next().is_some_and(|name| resource.subresource(name).is_some());
            return Err(if declared { ClusterError::method_not_allowed() } else { ClusterError::no_such_path() });
        }
    };
    let Some(name) = path.name.as_deref() else {
        return match request.method {
            Method::Get if parameters.watch => Err(ClusterError::method_not_supported(resource, "watch")),
            Method::Get => Ok(cluster.list(resource, &parameters.list(resource, namespace)?)?.into_document(resource)),
            Method::Post => {
                let object = body(request, resource, namespace)?;
                cluster.create(resource, object, &parameters.write(part))
            }
            Method::Delete => delete_all(cluster, request, resource, namespace, parameters),
            _ => Err(ClusterError::method_not_allowed()),
        };
    };
    if resource.namespaced && namespace.is_none() {
        return Err(ClusterError::no_such_path());
    }
    match request.method {
        Method::Get => cluster.get(resource, namespace, name),
        Method::Post => Err(ClusterError::method_not_allowed()),
        Method::Put => {
            let object = body(request, resource, namespace)?;
            match object::name(&object) {
                given if given == name => cluster.update(resource, object, &parameters.write(part)),
                given => Err(ClusterError::bad_request(format!(
                    "the name of the object ({given}) does not match the name on the URL ({name})"
                ))),
            }
        }
        Method::Patch(kind) => {
            let document = request.body.clone().ok_or_else(no_body)?;
            cluster.patch(resource, namespace, name, &Patch { kind, document }, &parameters.write(part))
        }
        Method::Delete if part == Part::Status => Err(ClusterError::method_not_allowed()),
        Method::Delete => {
            let options = parameters.delete(request.body.as_ref())?;
            Ok(match cluster.delete(resource, namespace, name, &options)? {
                Deletion::Pending(object) => object,
                Deletion::Done(object) => success(resource, &object),
            })
        }
    }
}

/// Deletes what the parameters select; gives back what was there.
fn delete_all<C: Cluster + ?Sized>(
    cluster: &C,
    request: &RawRequest,
    resource: &Resource,
    namespace: Option<&str>,
    parameters: &Parameters,
) -> Result<Value, ClusterError> {
    if resource.namespaced && namespace.is_none() {
        return Err(ClusterError::method_not_allowed());
    }
    let options = parameters.delete(request.body.as_ref())?;
    let list = cluster.list(resource, &parameters.list(resource, namespace)?)?;
    for object in &list.items {
        match cluster.delete(resource, namespace, object::name(object), &options) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(list.into_document(resource))
}

fn no_body() -> ClusterError {
    ClusterError::bad_request("a body is required")
}

/// The object that was sent, with the namespace of the path.
fn body(request: &RawRequest, resource: &Resource, namespace: Option<&str>) -> Result<Value, ClusterError> {
    let mut sent = request.body.clone().ok_or_else(no_body)?;
    if let Some(namespace) = namespace {
        match object::namespace(&sent) {
            "" => object::set(&mut sent, "namespace", namespace),
            given if given == namespace => {}
            _ => {
                return Err(ClusterError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
        }
    } else if resource.namespaced {
        return Err(ClusterError::method_not_allowed());
    } else if let Some(metadata) = sent.as_object_mut().and_then(|members| members.get_mut("metadata")) {
        // An API server stores an object of the cluster without the namespace that it was sent with.
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("namespace");
        }
    }
    Ok(sent)
}

/// The answer to a deletion that is over.
fn success(resource: &Resource, object: &Value) -> Value {
    let mut details = ephor_expr::Map::from_iter([
        ("kind".into(), Value::from(resource.plural.clone())),
        ("name".into(), Value::from(object::name(object))),
        ("uid".into(), Value::from(object::text(object, "uid"))),
    ]);
    if !resource.group.is_empty() {
        details.insert("group", resource.group.clone());
    }
    Value::from([
        ("apiVersion", Value::from("v1")),
        ("details", Value::object(details)),
        ("kind", Value::from("Status")),
        ("metadata", Value::object(ephor_expr::Map::new())),
        ("status", Value::from("Success")),
    ])
}

fn version() -> Value {
    let mut numbers = KUBERNETES_VERSION.trim_start_matches('v').split('.');
    let mut number = || Value::from(numbers.next().unwrap_or_default());
    Value::from([
        ("gitVersion", Value::from(KUBERNETES_VERSION)),
        ("major", number()),
        ("minor", number()),
        ("platform", Value::from("linux/amd64")),
    ])
}
