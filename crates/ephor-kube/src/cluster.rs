//! The trait, on a server.

use std::fmt;
use std::sync::Arc;

use ephor_cluster::query::Filter;
use ephor_cluster::raw::{Method, RawRequest};
use ephor_cluster::write::{FieldValidation, Part, Propagation};
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, Discovery, List, ListQuery, Patch, PatchKind, Resource, Watch,
    WatchQuery, WriteOptions, object,
};
use ephor_expr::{Map, Str, Value};

use crate::connect::{self, ConnectError};
use crate::definitions::Follower;
use crate::exchange::Exchange;
use crate::options::{ConnectOptions, Definitions, Limits, ManagedFields};
use crate::request::{Repeat, Request, Target};
use crate::runtime::Background;
use crate::served::Served;
use crate::watch::{KubeWatch, PAGE, begins_anew, list_page, shape};

/// A [`Cluster`] behind an API server. Clones are the same cluster.
#[derive(Clone)]
pub struct KubeCluster {
    shared: Arc<Shared>,
}

struct Shared {
    exchange: Arc<Exchange>,
    served: Arc<Served>,
    _follower: Option<Follower>,
    managed_fields: ManagedFields,
    limits_of_paths: Limits,
    client_name: String,
    server: String,
    default_namespace: String,
}

impl fmt::Debug for KubeCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeCluster").field("server", &self.shared.server).finish_non_exhaustive()
    }
}

impl KubeCluster {
    /// Connects. Nothing is sent yet: whether the server is there, the first call tells.
    pub fn connect(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let background = Background::start()?;
        let asked = options.clone();
        let (client, server) = background
            .wait(async move {
                let config = connect::config(&asked).await?;
                let server = config.cluster_url.to_string();
                Ok::<_, ConnectError>((connect::client(config)?, server))
            })
            .unwrap_or_else(|| Err(std::io::Error::other("connecting broke down").into()))?;
        let default_namespace = client.default_namespace().to_owned();
        let exchange = Arc::new(Exchange::new(background, client, options));
        let served = Arc::new(Served::new(options.definitions));
        let follower = match options.definitions {
            Definitions::Followed => Some(Follower::start(&served, &exchange)?),
            Definitions::AskedFor => None,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                exchange,
                served,
                _follower: follower,
                managed_fields: options.managed_fields,
                limits_of_paths: options.limits_of_paths,
                client_name: options.client_name.clone(),
                server,
                default_namespace,
            }),
        })
    }

    /// The URL of the server.
    pub fn server(&self) -> &str {
        &self.shared.server
    }

    /// The namespace that kubectl would use: that of the context or of the Pod, else `default`.
    pub fn default_namespace(&self) -> &str {
        &self.shared.default_namespace
    }

    /// An object as the server stored it.
    fn send(&self, resource: &Resource, request: &Request) -> Result<Value, ClusterError> {
        let mut object = self.shared.exchange.value(request)?;
        shape(&mut object, resource, self.shared.managed_fields);
        Ok(object)
    }

    fn written(&self, target: Target, options: &WriteOptions) -> Target {
        let target = match options.part {
            Part::Object => target,
            Part::Status => target.below("status"),
        };
        let manager = options.field_manager.as_str();
        let target = target.with("fieldManager", if manager.is_empty() { &self.shared.client_name } else { manager });
        let target = match options.field_validation {
            FieldValidation::Warn => target,
            FieldValidation::Ignore => target.with("fieldValidation", "Ignore"),
            FieldValidation::Strict => target.with("fieldValidation", "Strict"),
        };
        if options.dry_run { target.with("dryRun", "All") } else { target }
    }

    /// What is sent: the object with what the path says about it.
    fn sent(resource: &Resource, mut object: Value) -> Result<Value, ClusterError> {
        let members = object
            .as_object_mut()
            .ok_or_else(|| ClusterError::bad_request(format!("a {} must be an object", resource.kind)))?;
        for (key, value) in [("apiVersion", resource.api_version()), ("kind", resource.kind.clone())] {
            if members.get(key).is_none_or(Value::is_null) {
                members.insert(key, value);
            }
        }
        Ok(object)
    }
}

impl Cluster for KubeCluster {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        self.shared.served.table(&self.shared.exchange)
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.shared.served.resolve(&self.shared.exchange, api_version, kind)
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        self.send(resource, &Request::get(Target::object(resource, namespace, name)?.into_text()))
    }

    /// All objects are read in pages, so that no answer is larger than one; a list that changes under the pages
    /// until they are forgotten is begun anew once.
    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        let page = |query: &ListQuery| list_page(&self.shared.exchange, resource, query, self.shared.managed_fields);
        if query.limit > 0 || query.continue_token.is_some() {
            return page(query);
        }
        let all = || {
            let mut next = ListQuery { limit: PAGE, ..query.clone() };
            let mut list = page(&next)?;
            while let Some(token) = list.continue_token.take() {
                next.continue_token = Some(token);
                let more = page(&next)?;
                list.items.extend(more.items);
                list.unreadable.extend(more.unreadable);
                list.continue_token = more.continue_token;
            }
            list.remaining = None;
            Ok(list)
        };
        match all() {
            Err(error) if begins_anew(&error) => page(query),
            done => done,
        }
    }

    fn create(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        let object = Self::sent(resource, object)?;
        let namespace = object::namespace(&object);
        if resource.namespaced && namespace.is_empty() {
            return Err(ClusterError::bad_request("an empty namespace may not be set during creation"));
        }
        if !resource.namespaced && !namespace.is_empty() {
            return Err(ClusterError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let target = self.written(Target::collection(resource, Some(namespace))?, options);
        let mut request = Request::write(http::Method::POST, target.into_text(), &object);
        if options.dry_run || !resource.stored {
            request.repeat = Repeat::Safe;
        }
        self.send(resource, &request)
    }

    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        let object = Self::sent(resource, object)?;
        let namespace = Some(object::namespace(&object)).filter(|n| !n.is_empty());
        let target = Target::object(resource, namespace, object::name(&object))?;
        let target = self.written(target, options);
        let mut request = Request::write(http::Method::PUT, target.into_text(), &object);
        if options.dry_run {
            request.repeat = Repeat::Safe;
        }
        self.send(resource, &request)
    }

    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        let mut target = self.written(Target::object(resource, namespace, name)?, options);
        if patch.kind == PatchKind::Apply && options.force {
            target = target.with("force", "true");
        }
        let mut request = Request::write(http::Method::PATCH, target.into_text(), &patch.document);
        request.content_type = patch.kind.content_type();
        if options.dry_run || patch.kind == PatchKind::Apply {
            request.repeat = Repeat::Safe;
        }
        self.send(resource, &request)
    }

    /// Most servers do not show what they deleted; [`Deletion::Done`] then has name, namespace and UID only.
    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        let target = Target::object(resource, namespace, name)?;
        let request = Request::write(http::Method::DELETE, target.into_text(), &delete_options(options));
        let answer = self.send(resource, &request)?;
        Ok(deletion(resource, namespace, name, answer))
    }

    /// One request; the server says what it deleted.
    fn delete_collection(
        &self,
        resource: &Resource,
        filter: &Filter,
        options: &DeleteOptions,
    ) -> Result<usize, ClusterError> {
        let target = Target::collection(resource, filter.namespace())?.filtered(filter);
        let request = Request::write(http::Method::DELETE, target.into_text(), &delete_options(options));
        let answer = self.shared.exchange.value(&request)?;
        Ok(answer.get("items").and_then(Value::as_array).map_or(0, <[Value]>::len))
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        let exchange = self.shared.exchange.clone();
        Ok(Box::new(KubeWatch::start(exchange, resource.clone(), query.clone(), self.shared.managed_fields)?))
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        if !request.path.starts_with('/') {
            return Err(ClusterError::no_such_path());
        }
        let mut path = request.path.clone();
        let parameters = path.split_once('?').map_or("", |(_, query)| query).split('&');
        if parameters.into_iter().any(|p| matches!(p, "watch" | "watch=1" | "watch=true")) {
            // A stream, for which there is `watch`.
            return Err(ClusterError::method_not_allowed());
        }
        if request.dry_run && request.method != Method::Get {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str("dryRun=All");
        }
        let mut sent = Request::get(path);
        sent.body = request.body.as_ref().map(Value::to_json);
        sent.repeat = if request.dry_run || request.method == Method::Get { Repeat::Safe } else { Repeat::Unsafe };
        sent.method = match request.method {
            Method::Get => http::Method::GET,
            Method::Post => http::Method::POST,
            Method::Put => http::Method::PUT,
            Method::Delete => http::Method::DELETE,
            Method::Patch(kind) => {
                sent.content_type = kind.content_type();
                http::Method::PATCH
            }
        };
        self.shared.exchange.document_or_text(&sent, self.shared.limits_of_paths)
    }
}

fn delete_options(options: &DeleteOptions) -> Value {
    let mut document =
        Map::from_iter([(Str::new("apiVersion"), Value::from("v1")), (Str::new("kind"), Value::from("DeleteOptions"))]);
    let conditions = [("uid", &options.uid), ("resourceVersion", &options.resource_version)];
    let conditions: Map = conditions
        .into_iter()
        .filter(|(_, wanted)| !wanted.is_empty())
        .map(|(key, wanted)| (Str::new(key), Value::from(wanted.clone())))
        .collect();
    if !conditions.is_empty() {
        document.insert("preconditions", Value::object(conditions));
    }
    if options.dry_run {
        document.insert("dryRun", vec!["All"]);
    }
    if let Some(propagation) = options.propagation {
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        document.insert("propagationPolicy", policy);
    }
    Value::object(document)
}

/// How far a deletion got, from what the server answered: a `Status` when the object is gone, or the object.
fn deletion(resource: &Resource, namespace: Option<&str>, name: &str, answer: Value) -> Deletion {
    if answer.str_at(&["kind"]) == Some("Status") && resource.kind != "Status" {
        let mut metadata = Map::from_iter([(Str::new("name"), Value::from(name))]);
        if let Some(namespace) = namespace.filter(|n| !n.is_empty()) {
            metadata.insert("namespace", namespace);
        }
        if let Some(uid) = answer.str_at(&["details", "uid"]) {
            metadata.insert("uid", uid);
        }
        return Deletion::Done(Value::from([
            ("apiVersion", Value::from(resource.api_version())),
            ("kind", Value::from(resource.kind.clone())),
            ("metadata", Value::object(metadata)),
        ]));
    }
    // A namespace is held by what it contains, a Pod by the time that its containers get.
    let contains = answer.at(&["spec", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    let grace = answer.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or_default();
    let held = object::has_finalizers(&answer) || (resource.kind == "Namespace" && contains) || grace > 0;
    if object::is_deleting(&answer) && held { Deletion::Pending(answer) } else { Deletion::Done(answer) }
}
