//! What is below an object: its scale, its eviction, tokens, shells that nothing runs.

use ephor_expr::{Map, Str, Value};

use super::cluster::MemoryCluster;
use super::create::shaped;
use super::update::Change;
use super::view::View;
use crate::admission::Operation;
use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::object;
use crate::raw::path::{ApiPath, ObjectPath, decode, parse};
use crate::raw::query::Parameters;
use crate::raw::{Method, RawRequest};
use crate::resource::Resource;
use crate::write::{Part, Patch, WriteOptions};

/// A request to a subresource other than `status`.
struct Below<'r> {
    request: &'r RawRequest,
    resource: Resource,
    path: ObjectPath,
    subresource: String,
    name: String,
    parameters: Parameters,
}

impl Below<'_> {
    /// The kind of what is sent.
    fn kind(&self) -> Resource {
        let first = self.subresource.split('/').next().unwrap_or_default();
        match self.resource.subresource(first) {
            Some(declared) => Resource::guess(&declared.api_version, &declared.kind),
            None => self.resource.clone(),
        }
    }
}

impl MemoryCluster {
    /// Answers a request about a subresource; `None` if it is about something else.
    pub(super) fn below_object(&self, request: &RawRequest) -> Option<Result<Value, ClusterError>> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let Some(ApiPath::Objects(path)) = parse(path) else { return None };
        let subresource = path.subresource.clone().filter(|s| s != "status")?;
        let name = path.name.clone()?;
        let found = self.read(|state| {
            state.discovery.find_plural(&path.group, &path.version, &path.plural).cloned().filter(|resource| {
                resource.namespaced == path.namespace.is_some()
                    && subresource.split('/').next().is_some_and(|first| resource.subresource(first).is_some())
            })
        });
        let resource = found?;
        Some(Parameters::parse(query, request.dry_run).and_then(|parameters| {
            self.answer_below(&Below { request, resource, path, subresource, name, parameters }, query)
        }))
    }

    fn answer_below(&self, below: &Below<'_>, query: &str) -> Result<Value, ClusterError> {
        let options = below.parameters.write(Part::Object);
        let key = self.read(|state| state.key(&below.resource, below.path.namespace.as_deref(), &below.name))?;
        if let Some(view) = View::of_subresource(&below.resource, &below.subresource) {
            let body = below.request.body.clone();
            return match below.request.method {
                Method::Get => view.show(&below.resource, &self.read(|state| state.get(&below.resource, &key))?),
                Method::Put => {
                    let body = body.ok_or_else(|| ClusterError::bad_request("a body is required"))?;
                    self.change_object(&below.resource, &key, &view, Change::Replace(&body), &options)
                }
                Method::Patch(kind) => {
                    let document = body.ok_or_else(|| ClusterError::bad_request("a body is required"))?;
                    let patch = Patch { kind, document };
                    self.change_object(&below.resource, &key, &view, Change::Patch(&patch), &options)
                }
                Method::Post | Method::Delete => Err(ClusterError::method_not_allowed()),
            };
        }
        let object = self.read(|state| state.get(&below.resource, &key))?;
        match (below.subresource.as_str(), below.request.method) {
            ("eviction", Method::Post) => self.evict(below, &object, &options),
            ("token", Method::Post) => self.token(below, &object, &options),
            ("binding", Method::Post) => self.bind(below, &object, &options),
            ("log", Method::Get) => Err(ClusterError::not_implemented("nothing runs here: there are no logs")),
            (_, Method::Get | Method::Post) => self.connect(below, &object, query),
            _ => Err(ClusterError::method_not_allowed()),
        }
    }

    /// What was sent, admitted.
    fn admitted(&self, below: &Below<'_>, object: &Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        let kind = below.kind();
        let mut sent = shaped(&kind, below.request.body.clone().unwrap_or_else(|| Value::object(Map::new())))?;
        for field in ["name", "namespace"] {
            object::copy(&mut sent, object, field);
        }
        let mut attributes = self.attributes(&below.resource, Operation::Create, &below.subresource, object);
        attributes.kind = (kind.api_version(), kind.kind);
        attributes.object = sent;
        attributes.dry_run = options.dry_run;
        let sent = self.mutated(&mut attributes)?;
        self.validated(&attributes)?;
        Ok(sent)
    }

    fn evict(&self, below: &Below<'_>, pod: &Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        let eviction = self.admitted(below, pod, options)?;
        let mut deletion = below.parameters.delete(eviction.get("deleteOptions"))?;
        deletion.dry_run |= options.dry_run;
        self.delete(&below.resource, below.path.namespace.as_deref(), &below.name, &deletion)?;
        Ok(success())
    }

    /// A token that grants no access: nothing in this cluster checks tokens.
    fn token(&self, below: &Below<'_>, account: &Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        let mut request = self.admitted(below, account, options)?;
        let token = format!("sandbox.{}.{}", object::text(account, "uid"), self.revision());
        let status =
            Value::from([("expirationTimestamp", Value::from("2099-01-01T00:00:00Z")), ("token", Value::from(token))]);
        if let Some(members) = request.as_object_mut() {
            members.insert("status", status);
        }
        Ok(request)
    }

    fn bind(&self, below: &Below<'_>, pod: &Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        let binding = self.admitted(below, pod, options)?;
        let node = binding.str_at(&["target", "name"]).unwrap_or_default();
        let patch = Patch::merge(Value::from([("spec", Value::from([("nodeName", Value::from(node))]))]));
        self.patch(&below.resource, below.path.namespace.as_deref(), &below.name, &patch, options)?;
        Ok(success())
    }

    /// Asks admission whether a connection would be allowed, and says that there is nothing to connect to.
    fn connect(&self, below: &Below<'_>, object: &Value, query: &str) -> Result<Value, ClusterError> {
        let kind = below.kind();
        let mut attributes = self.attributes(&below.resource, Operation::Connect, &below.subresource, object);
        attributes.kind = (kind.api_version(), kind.kind.clone());
        attributes.object = connect_options(&kind, query);
        self.mutated(&mut attributes)?;
        self.validated(&attributes)?;
        let what = &below.subresource;
        Err(ClusterError::not_implemented(format!("nothing runs here: {what} of {:?} leads nowhere", below.name)))
    }
}

/// `PodExecOptions` and the like, from the parameters of the URL.
fn connect_options(kind: &Resource, query: &str) -> Value {
    let mut members = Map::from_iter([
        (Str::new_static("apiVersion"), Value::from(kind.api_version())),
        (Str::new_static("kind"), Value::from(kind.kind.clone())),
    ]);
    let mut command: Vec<Value> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (decode(key, true), decode(value, true)) else { continue };
        match (key.as_str(), value.as_str()) {
            ("command", _) => command.push(value.into()),
            ("stdin" | "stdout" | "stderr" | "tty", flag) => {
                members.insert(key, matches!(flag, "true" | "1"));
            }
            _ => {
                members.insert(key, value);
            }
        }
    }
    if !command.is_empty() {
        members.insert("command", command);
    }
    Value::object(members)
}

fn success() -> Value {
    Value::from([
        ("apiVersion", Value::from("v1")),
        ("code", Value::Int(201)),
        ("kind", Value::from("Status")),
        ("metadata", Value::object(Map::new())),
        ("status", Value::from("Success")),
    ])
}
