//! Answers: in the form that the client accepts, and as HTTP.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use ephor_cluster::{ClusterError, Discovery, Resource};
use ephor_expr::Value;

use crate::table::{self, TableColumns};

/// What the client would like to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Objects.
    Plain,
    /// A table of them.
    Table,
    /// Their metadata.
    Metadata,
    /// Discovery of all groups in one document.
    Aggregated,
}

/// The first form that the client accepts and that there is. An error if it takes no JSON.
pub fn form(headers: &HeaderMap) -> Result<Form, ClusterError> {
    let message = "only the following media types are accepted: application/json";
    accepted(headers).ok_or_else(|| ClusterError::denied(406, "NotAcceptable", message))
}

fn accepted(headers: &HeaderMap) -> Option<Form> {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<&str> = accepted.flat_map(|list| list.split(',')).map(str::trim).collect();
    if accepted.is_empty() {
        return Some(Form::Plain);
    }
    accepted.iter().find_map(|kind| {
        let mut parts = kind.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if !matches!(media, "application/json" | "*/*" | "application/*") {
            return None;
        }
        let parameters: Vec<&str> = parts.collect();
        let asked = parameters.iter().find_map(|parameter| parameter.strip_prefix("as="));
        match asked {
            None => Some(Form::Plain),
            Some("Table") if parameters.contains(&"v=v1") => Some(Form::Table),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some(Form::Metadata),
            Some("APIGroupDiscoveryList") if parameters.contains(&"v=v2") => Some(Form::Aggregated),
            Some(_) => None,
        }
    })
}

/// An answer, before it goes out.
#[derive(Debug)]
pub struct Reply {
    /// The status code.
    pub status: StatusCode,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// What the client is warned of.
    pub warnings: Vec<String>,
}

impl Reply {
    /// A document.
    pub fn json(status: StatusCode, value: &Value) -> Self {
        let body = value.to_json().into_bytes();
        Self { status, content_type: "application/json", body, warnings: Vec::new() }
    }

    /// The `Status` of an error.
    pub fn error(error: &ClusterError) -> Self {
        let status = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::json(status, &error.status())
    }

    /// Discovery of the core group, or of all others, in one document.
    pub fn aggregated_discovery(discovery: &Discovery, core: bool) -> Self {
        let document = ephor_cluster::discovery::aggregated(discovery, core);
        let content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        Self { content_type, ..Self::json(StatusCode::OK, &document) }
    }

    /// Plain text.
    pub fn text(text: &str) -> Self {
        let body = text.as_bytes().to_vec();
        Self { status: StatusCode::OK, content_type: "text/plain; charset=utf-8", body, warnings: Vec::new() }
    }

    /// The HTTP answer.
    pub fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        for warning in &self.warnings {
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{}\"", escaped(warning))) {
                headers.append(header::WARNING, value);
            }
        }
        response
    }
}

/// A warning as a quoted string of a header: what a header cannot hold is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().take(1024) {
        match c {
            '"' | '\\' => {
                let _ = write!(out, "\\{c}");
            }
            '\n' | '\t' => out.push(' '),
            c if c.is_ascii() && !c.is_ascii_control() => out.push(c),
            // The client undoes percent-encoding nowhere, so that letters outside of ASCII stay as they are.
            c if !c.is_control() => out.push(c),
            _ => {}
        }
    }
    out
}

/// The answer in the form that was asked for.
pub fn shaped(columns: &dyn TableColumns, resource: &Resource, form: Form, query: &str, answer: Value) -> Value {
    let is_status = answer.str_at(&["kind"]) == Some("Status");
    match form {
        Form::Table if !is_status => table::table(&columns.columns(resource), resource, query, &answer),
        Form::Metadata if !is_status => metadata(&answer),
        _ => answer,
    }
}

/// Objects without anything but their metadata.
fn metadata(answer: &Value) -> Value {
    let partial = |object: &Value| {
        Value::from([
            ("apiVersion", Value::from("meta.k8s.io/v1")),
            ("kind", Value::from("PartialObjectMetadata")),
            ("metadata", object.get("metadata").cloned().unwrap_or_default()),
        ])
    };
    match answer.get("items").and_then(Value::as_array) {
        Some(items) => Value::from([
            ("apiVersion", Value::from("meta.k8s.io/v1")),
            ("items", Value::array(items.iter().map(partial).collect())),
            ("kind", Value::from("PartialObjectMetadataList")),
            ("metadata", answer.get("metadata").cloned().unwrap_or_default()),
        ]),
        None => partial(answer),
    }
}
