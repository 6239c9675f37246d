//! Requests of the Kubernetes API: from HTTP to calls of the cluster, and back.

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::{Method as Verb, StatusCode, header};
use ephor_api::reply::{Form, Reply, form, shaped};
use ephor_cluster::raw::{self, Method, RawRequest, Target};
use ephor_cluster::schema::wire;
use ephor_cluster::{Cluster as _, ClusterError, ErrorKind, MemoryCluster, PatchKind};
use ephor_expr::{Value, yaml};

use super::columns::DefinedColumns;
use super::{openapi, versions};

/// The second version of the `OpenAPI` document as protocol buffer: without types. kubectl asks for it when it
/// meets a kind that no other document has, and finds out from it that there is none.
fn openapi_protobuf() -> Reply {
    const DOCUMENT: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.34.0";
    Reply {
        status: StatusCode::OK,
        content_type: "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        body: DOCUMENT.to_vec(),
        warnings: Vec::new(),
    }
}

/// Answers a request that is no watch.
pub(super) fn answer(cluster: &MemoryCluster, parts: &Parts, body: &Bytes) -> Reply {
    let reply = respond(cluster, parts, body);
    let mut reply = reply.unwrap_or_else(|error| Reply::error(&error));
    reply.warnings.extend(cluster.take_warnings());
    reply
}

fn respond(cluster: &MemoryCluster, parts: &Parts, body: &Bytes) -> Result<Reply, ClusterError> {
    let path = parts.uri.path();
    let query = parts.uri.query().unwrap_or_default();
    if matches!(path, "/healthz" | "/livez" | "/readyz") || path.starts_with("/readyz/") || path.starts_with("/livez/")
    {
        return Ok(Reply::text("ok"));
    }
    if path == "/openapi/v2"
        && parts.headers.get(header::ACCEPT).is_none_or(|accept| !accept.to_str().unwrap_or_default().contains("json"))
    {
        return Ok(openapi_protobuf());
    }
    let form = form(&parts.headers)?;
    if let Some(rest) = path.strip_prefix("/openapi/") {
        let document = openapi::document(cluster, rest).ok_or_else(ClusterError::no_such_path)?;
        return Ok(Reply::json(StatusCode::OK, &document));
    }
    let discovery = cluster.discovery()?;
    if let Some(core) = [("/api", true), ("/apis", false)].into_iter().find(|(p, _)| *p == path).map(|(_, core)| core)
        && form == Form::Aggregated
    {
        return Ok(Reply::aggregated_discovery(&discovery, core));
    }
    let request =
        RawRequest { method: method(parts)?, path: with_manager(parts), body: decoded(parts, body)?, dry_run: false };
    let target = raw::target(&discovery, path);
    // An apply creates what is not there.
    let creates = match (&request.method, &target) {
        (
            Method::Patch(PatchKind::Apply),
            Some(Target { resource, namespace, name: Some(name), subresource: None }),
        ) => {
            let found = cluster.get(resource, namespace.as_deref(), name);
            found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
        }
        (method, _) => *method == Method::Post,
    };
    let answer = cluster.raw(&request)?;
    let status = if creates { StatusCode::CREATED } else { StatusCode::OK };
    let warning = target.as_ref().and_then(|target| versions::deprecation(cluster, &target.resource));
    let answer = match &target {
        Some(target) => shaped(&DefinedColumns(cluster.clone()), &target.resource, form, query, answer),
        None => answer,
    };
    let mut reply = Reply::json(status, &answer);
    reply.warnings.extend(warning);
    Ok(reply)
}

fn content_type(parts: &Parts) -> &str {
    let given = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim()
}

fn method(parts: &Parts) -> Result<Method, ClusterError> {
    match parts.method {
        Verb::GET | Verb::HEAD => Ok(Method::Get),
        Verb::POST => Ok(Method::Post),
        Verb::PUT => Ok(Method::Put),
        Verb::DELETE => Ok(Method::Delete),
        Verb::PATCH => {
            let kinds = [PatchKind::Json, PatchKind::Merge, PatchKind::Strategic, PatchKind::Apply];
            let given = content_type(parts);
            kinds.into_iter().find(|kind| kind.content_type() == given).map(Method::Patch).ok_or_else(|| {
                let known: Vec<&str> = kinds.iter().map(|kind| kind.content_type()).collect();
                unsupported(&known.join(", "))
            })
        }
        _ => Err(ClusterError::method_not_allowed()),
    }
}

fn unsupported(accepted: &str) -> ClusterError {
    ClusterError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    ))
}

/// What was sent; `None` if nothing was.
fn decoded(parts: &Parts, body: &Bytes) -> Result<Option<Value>, ClusterError> {
    if body.is_empty() {
        return Ok(None);
    }
    if body.starts_with(wire::MAGIC) {
        return wire::decode(body).map(Some).map_err(|error| match error {
            wire::WireError::Malformed => ClusterError::bad_request(error.to_string()),
            wire::WireError::UnknownKind { .. } => unsupported("application/json, application/yaml"),
        });
    }
    let text = std::str::from_utf8(body).map_err(|_| ClusterError::bad_request("the body is not UTF-8"))?;
    let kind = content_type(parts);
    if kind.ends_with("protobuf") {
        return Err(unsupported("application/json, application/yaml"));
    }
    let value = if kind.ends_with("yaml") {
        yaml::parse_value(text).map_err(|error| ClusterError::bad_request(error.to_string()))?
    } else {
        Value::from_json(text).map_err(|error| {
            ClusterError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
        })?
    };
    Ok(Some(value))
}

/// Path and query, with the field manager that the client's name gives where it names none.
fn with_manager(parts: &Parts) -> String {
    let mut path = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let query = parts.uri.query().unwrap_or_default();
    let is_apply = content_type(parts) == PatchKind::Apply.content_type();
    if parts.method == Verb::GET || is_apply || query.split('&').any(|pair| pair.starts_with("fieldManager=")) {
        return path;
    }
    let agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name: String = agent
        .split('/')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .take(128)
        .collect();
    if !name.is_empty() {
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str("fieldManager=");
        path.push_str(&name);
    }
    path
}
