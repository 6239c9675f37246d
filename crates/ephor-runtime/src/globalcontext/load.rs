//! Loads the data of an entry: by a watch, or by a call that is repeated.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ephor_cluster::query::Filter;
use ephor_cluster::raw::RawRequest;
use ephor_cluster::{Backoff, Cluster, ClusterError, ErrorKind, ListQuery, Resource};
use ephor_engine::fetch::{Fact, Fetch, ServiceAnswer};
use ephor_engine::gate::{self, ApiPath, Asker};
use ephor_engine::policy::{GlobalApiCall, GlobalContextSpec, HttpMethod, WatchedResource};
use ephor_engine::redact::secrets_of;
use ephor_expr::scalar::duration;
use ephor_expr::{Map, Str, Value};
use parking_lot::Mutex;

use super::view::{Projections, View};
use super::{Loading, Shared};
use crate::cancellation::CancellationToken;
use crate::facts::Source;
use crate::threads;
use crate::watcher::{StoreEvent, WatchTarget, Watcher, list};

/// The shortest pause between two calls. A shorter `refreshInterval` would keep the called service busy.
const SHORTEST_REFRESH: Duration = Duration::from_secs(1);
/// How often a call is repeated, without a `refreshInterval`.
const REFRESH: Duration = Duration::from_mins(10);
/// How often a failing call is tried, without a `retryLimit`.
const RETRIES: u32 = 3;
/// The pause after the first failure.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause after the last retry, if the next refresh is not nearer.
const LONG_PAUSE: Duration = Duration::from_secs(30);

/// A loaded entry. Its threads end when it is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Str,
    /// The spec as it was written, to know changes by.
    pub(super) spec: Value,
    stop: CancellationToken,
    state: Arc<State>,
    /// What has to be read before the first answer, if it is not watched.
    unread: Mutex<Option<GlobalContextSpec>>,
    /// The kind whose objects were read, if it is not watched.
    about: OnceLock<(Resource, Filter)>,
}

#[derive(Debug)]
struct State {
    projections: Projections,
    /// Whether the data are Secrets.
    secret: bool,
    /// Whether a failing projection fails the whole entry: of calls, not of resources.
    strict: bool,
    data: Mutex<Data>,
    refreshed: Mutex<Option<jiff::Timestamp>>,
}

#[derive(Debug)]
enum Data {
    /// Nothing was read yet.
    Loading,
    /// Objects of a watch, and what was made of them since the last change.
    Objects(BTreeMap<(Str, Str), Value>, Option<Arc<View>>),
    /// The answer to a call, and the Secrets in it.
    Answer(Arc<View>, Option<Value>),
    /// The last error.
    Failed(String),
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Entry {
    /// An entry that cannot be loaded.
    pub(super) fn refused(name: Str, spec: Value, why: String) -> Self {
        let state = State::new(Projections::default(), false, false);
        state.fail(why);
        Self::new(name, spec, CancellationToken::new(), state)
    }

    fn new(name: Str, spec: Value, stop: CancellationToken, state: State) -> Self {
        Self { name, spec, stop, state: Arc::new(state), unread: Mutex::default(), about: OnceLock::new() }
    }

    /// Starts loading an entry.
    pub(super) fn start(shared: &Shared, name: Str, spec: Value, decoded: GlobalContextSpec) -> Self {
        let projections = match Projections::compile(decoded.projections.as_deref().unwrap_or_default()) {
            Ok(projections) => projections,
            Err(why) => return Self::refused(name, spec, why),
        };
        let secret = match (&decoded.kubernetes_resource, &decoded.api_call) {
            (Some(resource), _) => resource.group.is_empty() && resource.resource == "secrets",
            (None, Some(call)) => {
                let path = call.url_path.as_deref().and_then(|path| ApiPath::parse(path).ok());
                path.is_some_and(|path| path.is_about_secrets())
            }
            (None, None) => false,
        };
        let state = State::new(projections, decoded.api_call.is_some(), secret);
        let entry = Self::new(name, spec, shared.stop.child_token(), state);
        match shared.loading {
            Loading::Followed => entry.spawn(shared, decoded),
            Loading::OnDemand => *entry.unread.lock() = Some(decoded),
        }
        entry
    }

    /// Follows what the entry is about.
    fn spawn(&self, shared: &Shared, decoded: GlobalContextSpec) {
        let (entry, state) = (self, Arc::clone(&self.state));
        let (cluster, services, stop) = (Arc::clone(&shared.cluster), shared.services.clone(), entry.stop.clone());
        let name = format!("global {}", self.name);
        threads::spawn(name, threads::SMALL, &entry.stop, move || {
            match (decoded.kubernetes_resource, decoded.api_call) {
                (Some(resource), _) => follow(&cluster, &resource, &state, &stop),
                (None, Some(call)) => poll(&*cluster, services.as_deref(), &call, &state, &stop),
                (None, None) => state.fail("neither a resource nor a call".to_owned()),
            }
        });
    }

    /// The entry, after it was read if that is still to be done.
    pub(super) fn loaded(&self, shared: &Shared) -> &Self {
        let mut unread = self.unread.lock();
        let read = match unread.take().map(|spec| (spec.kubernetes_resource, spec.api_call)) {
            Some((Some(watched), _)) => self.read_objects(&*shared.cluster, &watched),
            Some((None, Some(call))) => {
                ask(&*shared.cluster, shared.services.as_deref(), &call).map(|answer| self.state.answered(answer))
            }
            Some((None, None)) | None => Ok(()),
        };
        if let Err(why) = read {
            self.state.fail(why);
        }
        self
    }

    fn read_objects(&self, cluster: &dyn Cluster, watched: &WatchedResource) -> Result<(), String> {
        let filter = filter_of(watched);
        let resource = readable(cluster, watched, &filter)?;
        let (objects, _) = list(cluster, &resource, &filter).map_err(|error| reason(&error))?;
        self.state.apply(StoreEvent::Reset(objects));
        let _ = self.about.set((resource, filter));
        Ok(())
    }

    /// Takes in a change of an object, if the entry has read its like.
    pub(super) fn tell(&self, group: &str, kind: &str, change: &StoreEvent) {
        let Some((resource, filter)) = self.about.get() else { return };
        let concerns = match change {
            StoreEvent::Apply(object) | StoreEvent::Delete(object) => {
                let namespace = object.str_at(&["metadata", "namespace"]);
                filter.namespace().is_none_or(|only| namespace == Some(only))
            }
            StoreEvent::Reset(_) => false,
        };
        if concerns && resource.group == group && resource.kind == kind {
            self.state.apply(change.clone());
        }
    }

    /// The data, or a projection of it.
    pub(super) fn data(&self, projection: Option<&str>) -> Result<Value, String> {
        let view = self.state.view()?;
        match view.failure() {
            Some(why) if self.state.strict => Err(why.to_owned()),
            _ => view.get(projection),
        }
    }

    /// The data if they are Secrets, or the Secrets in them.
    pub(super) fn secrets(&self) -> Option<Value> {
        if self.state.secret {
            return self.state.view().ok()?.get(None).ok();
        }
        match &*self.state.data.lock() {
            Data::Answer(_, secrets) => secrets.clone(),
            _ => None,
        }
    }

    /// Whether there is data, and since when; an error otherwise.
    pub(super) fn health(&self) -> (Result<(), String>, Option<jiff::Timestamp>) {
        let refreshed = *self.state.refreshed.lock();
        (self.data(None).map(|_| ()), refreshed)
    }
}

impl State {
    fn new(projections: Projections, strict: bool, secret: bool) -> Self {
        Self { projections, strict, secret, data: Mutex::new(Data::Loading), refreshed: Mutex::default() }
    }

    fn fail(&self, why: String) {
        *self.data.lock() = Data::Failed(why);
    }

    fn answered(&self, answer: Value) {
        let secrets = secrets_of(&answer);
        let view = Arc::new(self.projections.view(answer));
        *self.data.lock() = Data::Answer(view, secrets);
        self.set_refreshed();
    }

    fn set_refreshed(&self) {
        *self.refreshed.lock() = Some(jiff::Timestamp::now());
    }

    fn view(&self) -> Result<Arc<View>, String> {
        let mut data = self.data.lock();
        match &mut *data {
            Data::Loading => Err("not loaded yet".to_owned()),
            Data::Failed(why) => Err(why.clone()),
            Data::Answer(view, _) => Ok(Arc::clone(view)),
            Data::Objects(objects, view) => {
                let make = || Arc::new(self.projections.view(Value::array(objects.values().cloned().collect())));
                Ok(Arc::clone(view.get_or_insert_with(make)))
            }
        }
    }

    fn apply(&self, change: StoreEvent) {
        let mut data = self.data.lock();
        match (&mut *data, change) {
            (data, StoreEvent::Reset(objects)) => {
                *data = Data::Objects(objects.into_iter().map(keyed).collect(), None);
            }
            (Data::Objects(objects, view), StoreEvent::Apply(object)) => {
                let (key, object) = keyed(object);
                objects.insert(key, object);
                *view = None;
            }
            (Data::Objects(objects, view), StoreEvent::Delete(object)) => {
                objects.remove(&keyed(object).0);
                *view = None;
            }
            _ => {}
        }
        drop(data);
        self.set_refreshed();
    }
}

/// An object by its place, without what no policy reads.
fn keyed(mut object: Value) -> ((Str, Str), Value) {
    let text = |key| Str::new(object.str_at(&["metadata", key]).unwrap_or_default());
    let key = (text("namespace"), text("name"));
    if object.at(&["metadata", "managedFields"]).is_some()
        && let Some(metadata) = object.as_object_mut().and_then(|members| members.get_mut("metadata"))
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.remove("managedFields");
    }
    (key, object)
}

/// What a failure of the cluster means for a user of the entry.
fn reason(error: &ClusterError) -> String {
    match error.kind() {
        ErrorKind::Forbidden => format!("permission denied: {error}"),
        _ => error.to_string(),
    }
}

/// Follows the objects of a resource, as soon as it is defined and may be read.
fn follow(cluster: &Arc<dyn Cluster>, watched: &WatchedResource, state: &Arc<State>, stop: &CancellationToken) {
    let filter = filter_of(watched);
    let mut backoff = Backoff::new(PAUSE, LONG_PAUSE);
    let resource = loop {
        match readable(&**cluster, watched, &filter) {
            Ok(resource) => break resource,
            Err(why) => state.fail(why),
        }
        if stop.wait(backoff.pause()) {
            return;
        }
    };
    let watched =
        WatchTarget { api_version: resource.api_version(), kind: resource.kind.clone(), filter, metadata_only: false };
    let sink = Arc::clone(state);
    Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| sink.apply(change));
}

fn filter_of(watched: &WatchedResource) -> Filter {
    Filter { namespace: watched.namespace.clone().filter(|ns| !ns.is_empty()), ..Filter::default() }
}

/// The resource, if it is defined and its objects can be listed.
fn readable(cluster: &dyn Cluster, watched: &WatchedResource, filter: &Filter) -> Result<Resource, String> {
    let WatchedResource { group, version, resource: plural, .. } = watched;
    let discovery = cluster.discovery().map_err(|error| reason(&error))?;
    let resource = discovery
        .find_plural(group, version, plural)
        .ok_or_else(|| format!("there is no resource `{plural}` in group `{group}`, version `{version}`"))?;
    let first = ListQuery { filter: filter.clone(), limit: 1, ..ListQuery::default() };
    cluster.list(resource, &first).map_err(|error| reason(&error))?;
    Ok(resource.clone())
}

/// How long an answer counts before the call is repeated.
pub(super) fn refresh_interval(call: &GlobalApiCall) -> Duration {
    let asked = call.refresh_interval.as_ref().and_then(|text| duration::Duration::parse(text).ok());
    let seconds = asked.map(duration::Duration::as_secs_f64);
    seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()).map_or(REFRESH, |asked| asked.max(SHORTEST_REFRESH))
}

/// Repeats a call.
fn poll(
    cluster: &dyn Cluster,
    services: Option<&dyn Source>,
    call: &GlobalApiCall,
    state: &State,
    stop: &CancellationToken,
) {
    let interval = refresh_interval(call);
    let retries = call.retry_limit.map_or(RETRIES, |limit| u32::try_from(limit.clamp(1, 100)).unwrap_or(RETRIES));
    let mut backoff = Backoff::new(PAUSE, LONG_PAUSE);
    loop {
        let wait = match ask(cluster, services, call) {
            Ok(answer) => {
                state.answered(answer);
                backoff.reset();
                interval
            }
            Err(why) => {
                state.fail(why);
                let pause = backoff.pause();
                let wait = if backoff.failures() <= retries { pause } else { LONG_PAUSE };
                wait.min(interval)
            }
        };
        if stop.wait(wait) {
            return;
        }
    }
}

fn ask(cluster: &dyn Cluster, services: Option<&dyn Source>, call: &GlobalApiCall) -> Result<Value, String> {
    let method = call.method.unwrap_or(HttpMethod::Get);
    let entries = call.data.iter().flatten();
    let body: Map = entries.map(|entry| (entry.key.clone(), entry.value.clone())).collect();
    let body = (method == HttpMethod::Post).then(|| Value::object(body));
    let fetch = match (&call.service, &call.url_path) {
        (Some(service), _) => {
            let headers =
                service.headers.iter().flatten().flat_map(|pair| match (pair.get("key"), pair.get("value")) {
                    (Some(key), Some(value)) => vec![(key.clone(), value.clone())],
                    _ => pair.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
                });
            let mut headers: Vec<(Str, Str)> = headers.collect();
            headers.sort();
            Fetch::Service {
                method,
                url: service.url.clone(),
                headers,
                body: body.as_ref().map(|body| body.to_json().into()),
                ca_bundle: service.ca_bundle.clone(),
                answer: ServiceAnswer::Document,
            }
        }
        (None, path) => {
            let path = ApiPath::parse(path.as_deref().unwrap_or_default()).map_err(|invalid| invalid.to_string())?;
            Fetch::Api { method, path, body: None }
        }
    };
    let fetch = gate::allow(fetch, Asker::default()).map_err(|refused| refused.to_string())?;
    match fetch.fetch() {
        Fetch::Api { path, .. } => {
            let request = match body {
                Some(body) => RawRequest::post(path.to_string(), body),
                None => RawRequest::get(path.to_string()),
            };
            cluster.raw(&request).map_err(|error| reason(&error))
        }
        service => match services.and_then(|services| services.answer(service)) {
            Some(Fact::Found(value)) => Ok(value),
            Some(Fact::Missing) => Err("the service has no answer".to_owned()),
            Some(Fact::NotFound(why) | Fact::Failed(why) | Fact::Unavailable(why)) => Err(why),
            None => Err("services are not called here".to_owned()),
        },
    }
}
