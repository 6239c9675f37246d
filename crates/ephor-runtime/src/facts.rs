//! Answers to the engine's questions, and the one loop around the engine.
//!
//! [`evaluate`] takes a review through a phase, [`clean`] through a cleanup policy; both ask an [`Answers`] for what
//! the policies need. All roles, the sandbox and the command line call them. [`ClusterFacts`] answers from a cluster.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ephor_cluster::raw::RawRequest;
use ephor_cluster::{Cluster, ClusterError, ErrorKind, Resource};
use ephor_engine::cel::Matched;
use ephor_engine::cleanup::{Cleaned, CleanupProgram, CleanupVerdict};
use ephor_engine::compile::Program;
use ephor_engine::evaluation::{Done, Evaluation, Step};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::{Fact, Facts, Fetch, Merger};
use ephor_engine::gate::{AllowedFetch, ApiPath, ObjectsPath};
use ephor_engine::outcome::Phase;
use ephor_engine::policy::HttpMethod;
use ephor_engine::redact::secrets_of;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::scalar::wildcard::has_wildcard;
use ephor_expr::{Map, Str, Value};
use parking_lot::RwLock;

use crate::cancellation::CancellationToken;
use crate::config::ConfigStore;
use crate::policies::Snapshot;
use crate::schemas::Schemas;
use crate::watcher::{StoreEvent, WatchTarget, Watcher, list};

/// Answers the fetches of policies.
pub trait Answers: Send + Sync {
    /// The answer to a question that the engine's gate let through. May block.
    fn answer(&self, fetch: &AllowedFetch) -> Fact;

    /// How many bytes the answers of one evaluation may have together; 0: any number.
    fn context_limit(&self) -> u64;

    /// What merges configurations by the schemas of a cluster; `None` if no schema is known.
    fn merger(&self) -> Option<Arc<dyn Merger>> {
        None
    }

    /// Told of the policies that may ask: what takes a while to know is followed from then on.
    fn prepare(&self, _: &Snapshot) {}

    /// Hears the answer to a question that the asker knew without asking.
    fn overhear(&self, _fetch: &Fetch, _answer: &Value) {}

    /// The Secrets that an answer to a question was made from, if any: one, an array or a list.
    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value>;
}

/// The Secrets that an answer was made from: a source may know them, a question may ask for them, and an answer says
/// by its kinds what it holds.
pub fn secrets_in<'s>(
    mut sources: impl Iterator<Item = &'s dyn Source>,
    fetch: &Fetch,
    answer: &Value,
) -> Option<Value> {
    if let Some(secrets) = sources.find_map(|source| source.secrets(fetch)) {
        return Some(secrets);
    }
    match fetch {
        Fetch::Api { path, .. } if path.is_about_secrets() => Some(answer.clone()),
        Fetch::Object { kind, .. } | Fetch::Objects { kind, .. } | Fetch::Parameters { kind, .. }
            if kind == "Secret" =>
        {
            Some(answer.clone())
        }
        // The source of entries knows; their data may be long lists, which are not searched for every request.
        Fetch::Global { .. } => None,
        _ => secrets_of(answer),
    }
}

/// Takes a review through one phase, asking `answers` for what the policies need.
pub fn evaluate(
    set: &PolicySet,
    exceptions: &ExceptionSet,
    review: Review,
    phase: Phase,
    answers: &(impl Answers + ?Sized),
) -> Done {
    drive(Evaluation::new(set, exceptions, review, phase), answers)
}

/// Takes an evaluation to its end.
pub fn drive(mut evaluation: Evaluation<'_>, answers: &(impl Answers + ?Sized)) -> Done {
    until_done(answers, |facts| match evaluation.step(facts) {
        Step::Done => ControlFlow::Break(()),
        Step::Need(fetches) => ControlFlow::Continue(fetches),
    });
    evaluation.finish()
}

/// How often a cleanup policy may ask for more facts.
const MAX_CLEANUP_ROUNDS: u32 = 64;

/// Takes a review through a cleanup policy, asking `answers` for what the policy needs.
pub fn clean(program: &CleanupProgram, review: &Review, answers: &(impl Answers + ?Sized)) -> CleanupVerdict {
    let mut rounds = 0;
    until_done(answers, |facts| {
        rounds += 1;
        match program.evaluate(review, facts) {
            Cleaned::Done(verdict) => ControlFlow::Break(verdict),
            Cleaned::Need(_) if rounds == MAX_CLEANUP_ROUNDS => {
                ControlFlow::Break(CleanupVerdict::Error("the policy asks for data without end".into(), None))
            }
            Cleaned::Need(fetches) => ControlFlow::Continue(fetches),
        }
    })
}

/// How many checks of access match conditions may make one after the other.
const MAX_CHECKS: u32 = 64;

/// Whether a request meets the match conditions of a policy's webhook.
pub fn meets_conditions(program: &Program, review: &Review, answers: &(impl Answers + ?Sized)) -> Matched {
    let mut rounds = 0;
    until_done(answers, |facts| {
        rounds += 1;
        match ephor_engine::evaluation::meets_conditions(program, review, facts) {
            Ok(matched) => ControlFlow::Break(matched),
            Err(_) if rounds == MAX_CHECKS => {
                ControlFlow::Break(Matched::Failed("the conditions ask for data without end".to_owned()))
            }
            Err(fetches) => ControlFlow::Continue(fetches),
        }
    })
}

/// The one loop around the engine: asks for what each step needs, until a step needs nothing more.
pub fn until_done<T>(
    answers: &(impl Answers + ?Sized),
    mut step: impl FnMut(&Facts) -> ControlFlow<T, Vec<AllowedFetch>>,
) -> T {
    let mut facts = Facts::merging(answers.merger());
    let (limit, mut taken) = (answers.context_limit(), 0);
    loop {
        let fetches = match step(&facts) {
            ControlFlow::Break(done) => return done,
            ControlFlow::Continue(fetches) => fetches,
        };
        for fetch in fetches {
            let mut fact = answers.answer(&fetch);
            if let (Fact::Found(value), 1..) = (&fact, limit) {
                taken += value.to_json().len() as u64;
                if taken > limit {
                    fact = Fact::Unavailable(format!("context data exceed {limit} bytes (maxContextSize)"));
                }
            }
            facts.insert(fetch.into_fetch(), fact);
        }
    }
}

/// Answers fetches of one family, such as service calls; returns `None` for all others.
pub trait Source: Send + Sync {
    /// The answer. May block.
    fn answer(&self, fetch: &Fetch) -> Option<Fact>;

    /// The Secrets that an answer of this source was made from.
    fn secrets(&self, _fetch: &Fetch) -> Option<Value> {
        None
    }
}

/// Answers from a cluster, and from further sources for what no API server knows.
pub struct ClusterFacts {
    cluster: Arc<dyn Cluster>,
    namespaces: Option<NamespaceLabels>,
    sources: Vec<Arc<dyn Source>>,
    config: Option<ConfigStore>,
    merger: Option<Arc<dyn Merger>>,
    schemas: Option<Schemas>,
}

impl std::fmt::Debug for ClusterFacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClusterFacts({} sources)", self.sources.len())
    }
}

impl ClusterFacts {
    /// Answers from a cluster, asking it each time.
    pub fn new(cluster: Arc<dyn Cluster>) -> Self {
        Self { cluster, namespaces: None, sources: Vec::new(), config: None, merger: None, schemas: None }
    }

    /// With the labels of namespaces from a mirror.
    #[must_use]
    pub fn with_namespaces(mut self, namespaces: NamespaceLabels) -> Self {
        self.namespaces = Some(namespaces);
        self
    }

    /// Within the `maxContextSize` of the settings.
    #[must_use]
    pub fn within(mut self, config: ConfigStore) -> Self {
        self.config = Some(config);
        self
    }

    /// With the schemas of the cluster.
    #[must_use]
    pub fn with_merger(mut self, merger: Arc<dyn Merger>) -> Self {
        self.merger = Some(merger);
        self
    }

    /// With the schemas that are followed in the cluster.
    #[must_use]
    pub fn with_schemas(mut self, schemas: Schemas) -> Self {
        self.schemas = Some(schemas);
        self
    }

    /// With a further source, asked before the cluster.
    #[must_use]
    pub fn with(mut self, source: Arc<dyn Source>) -> Self {
        self.sources.push(source);
        self
    }

    /// The cluster.
    pub fn cluster(&self) -> &Arc<dyn Cluster> {
        &self.cluster
    }

    fn ask_cluster(&self, fetch: &Fetch) -> Fact {
        // The mirror may be behind: a namespace made a moment ago is asked for.
        if let (Fetch::NamespaceLabels { name }, Some(mirror)) = (fetch, &self.namespaces)
            && let Some(labels) = mirror.get(name)
        {
            return Fact::Found(labels);
        }
        ask(&*self.cluster, fetch, false).unwrap_or_else(|| {
            Fact::Unavailable(match fetch {
                Fetch::Global { name } => format!("global context entry `{name}` is not loaded"),
                Fetch::Service { url, .. } => format!("services are not called here (`{url}`)"),
                Fetch::Image { reference, .. } => format!("image registries are not used here (`{reference}`)"),
                Fetch::Host { name } => format!("names are not looked up here (`{name}`)"),
                other => format!("no source answers {other:?}"),
            })
        })
    }
}

/// What a cluster answers by itself; `None` for questions that no API server can answer. Calls of the API store
/// nothing in a `dry_run`.
pub fn ask(cluster: &dyn Cluster, fetch: &Fetch, dry_run: bool) -> Option<Fact> {
    Some(match fetch {
        Fetch::NamespaceLabels { name } => {
            fact(get(cluster, "v1", "Namespace", "", name).map(|namespace| labels_of(&namespace)))
        }
        Fetch::Namespace { name } => fact(get(cluster, "v1", "Namespace", "", name)),
        Fetch::ConfigMap { namespace, name } => fact(get(cluster, "v1", "ConfigMap", namespace, name)),
        Fetch::Parameters { api_version, kind, namespace, home, name } => {
            match parameters(cluster, (api_version, kind), (namespace.as_deref(), home), name.as_deref()) {
                Ok(found) => Fact::Found(Value::array(found)),
                Err(error) => Fact::Failed(error.to_string()),
            }
        }
        Fetch::Object { api_version, kind, namespace, name } => match kind.split_once('/') {
            None => fact(get(cluster, api_version, kind, namespace, name)),
            Some((kind, subresource)) => below(cluster, api_version, kind, subresource, (namespace, name)),
        },
        Fetch::Objects { api_version, kind, namespace } => fact(objects(cluster, api_version, kind, namespace)),
        Fetch::Api { method, path, body } => api(cluster, *method, path, body.as_deref(), dry_run),
        Fetch::Global { .. } | Fetch::Service { .. } | Fetch::Image { .. } | Fetch::Host { .. } => return None,
    })
}

impl Answers for ClusterFacts {
    fn answer(&self, fetch: &AllowedFetch) -> Fact {
        let fetch = fetch.fetch();
        self.sources.iter().find_map(|source| source.answer(fetch)).unwrap_or_else(|| self.ask_cluster(fetch))
    }

    fn merger(&self) -> Option<Arc<dyn Merger>> {
        let schemas = || self.schemas.clone().map(|schemas| Arc::new(schemas) as Arc<dyn Merger>);
        self.merger.clone().or_else(schemas)
    }

    fn prepare(&self, policies: &Snapshot) {
        if let Some(schemas) = &self.schemas {
            schemas.prepare(policies);
        }
    }

    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value> {
        secrets_in(self.sources.iter().map(|source| &**source), fetch, answer)
    }

    fn context_limit(&self) -> u64 {
        self.config.as_ref().map_or(0, |config| config.get().max_context_size)
    }
}

/// The fact in a cluster's answer: what is not there is missing, everything else that fails is a failure.
pub fn fact(answer: Result<Value, ClusterError>) -> Fact {
    match answer {
        Ok(value) => Fact::Found(value),
        Err(error) if error.kind() == ErrorKind::NotFound => Fact::Missing,
        Err(error) => Fact::Failed(error.to_string()),
    }
}

/// The resource of a kind; without a version, or with a pattern of one, the first that it means.
pub fn resolve(cluster: &dyn Cluster, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
    if (api_version.is_empty() || has_wildcard(api_version))
        && let Some(resource) = cluster.discovery()?.matching(api_version, kind).next()
    {
        return Ok(resource.clone());
    }
    cluster.resolve(api_version, kind)
}

/// One object of a cluster.
pub fn get(
    cluster: &dyn Cluster,
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Value, ClusterError> {
    let resource = resolve(cluster, api_version, kind)?;
    in_scope(&resource, namespace)?;
    cluster.get(&resource, resource.namespaced.then_some(namespace), name)
}

/// Whether objects of a kind can lie in a namespace (empty: none is asked for). A policy that is bound to its namespace
/// asks within it, and must not be shown objects that are in none.
fn in_scope(resource: &Resource, namespace: &str) -> Result<(), ClusterError> {
    if resource.namespaced || namespace.is_empty() {
        return Ok(());
    }
    let kind = resource.qualified_plural();
    Err(ClusterError::bad_request(format!("{kind} are cluster-scoped, so none is in namespace {namespace}")))
}

/// What a subresource of an object shows.
fn below(
    cluster: &dyn Cluster,
    api_version: &str,
    kind: &str,
    subresource: &str,
    (namespace, name): (&str, &str),
) -> Fact {
    match resolve(cluster, api_version, kind) {
        Ok(resource) if resource.subresource(subresource).is_some() => {
            if let Err(error) = in_scope(&resource, namespace) {
                return Fact::Failed(error.to_string());
            }
            let object = ObjectsPath {
                group: resource.group.clone(),
                version: resource.version.clone(),
                namespace: resource.namespaced.then(|| Str::new(namespace)),
                resource: resource.plural.clone(),
                name: Some(Str::new(name)),
                below: vec![Str::new(subresource)],
            };
            match ApiPath::of_object(object) {
                Some(path) => fact(cluster.raw(&RawRequest::get(path.to_string()))),
                None => Fact::Failed(format!("`{namespace}/{name}` is no namespace and name of an object")),
            }
        }
        // Missing would mean that such an object is not there.
        Ok(resource) => Fact::Failed(format!("{} have no subresource `{subresource}`", resource.qualified_plural())),
        Err(error) => Fact::Failed(error.to_string()),
    }
}

/// All objects of a kind in a namespace (empty: in all), as an array; those of all groups that a pattern of a version
/// means, of which a namespace leaves the namespaced ones.
pub fn objects(cluster: &dyn Cluster, api_version: &str, kind: &str, namespace: &str) -> Result<Value, ClusterError> {
    let within = Some(Str::new(namespace)).filter(|namespace| !namespace.is_empty());
    let filter = ephor_cluster::query::Filter { namespace: within, ..Default::default() };
    let discovery = cluster.discovery()?;
    let resources: Vec<Resource> =
        if has_wildcard(api_version) { discovery.matching(api_version, kind).cloned().collect() } else { Vec::new() };
    if resources.is_empty() {
        let resource = resolve(cluster, api_version, kind)?;
        in_scope(&resource, namespace)?;
        return Ok(Value::array(list(cluster, &resource, &filter)?.0));
    }
    let mut found = Vec::new();
    for resource in resources.iter().filter(|resource| in_scope(resource, namespace).is_ok()) {
        found.extend(list(cluster, resource, &filter)?.0);
    }
    Ok(Value::array(found))
}

/// The parameter objects that a policy names: of a kind in the namespace that it names, else in that of the object
/// which it judges. With a name it is the one of that name.
fn parameters(
    cluster: &dyn Cluster,
    (api_version, kind): (&str, &str),
    (namespace, home): (Option<&str>, &str),
    name: Option<&str>,
) -> Result<Vec<Value>, ClusterError> {
    let resource = cluster.resolve(api_version, kind)?;
    let within = match (resource.namespaced, namespace) {
        (false, None) => None,
        (false, Some(_)) => {
            let message = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(ClusterError::bad_request(message));
        }
        (true, None) if home.is_empty() => {
            let message = "can't use namespaced paramRef to match cluster-scoped resources";
            return Err(ClusterError::bad_request(message));
        }
        (true, named) => Some(named.unwrap_or(home)),
    };
    let Some(name) = name else {
        let filter = ephor_cluster::query::Filter { namespace: within.map(Str::new), ..Default::default() };
        return Ok(list(cluster, &resource, &filter)?.0);
    };
    match cluster.get(&resource, within, name) {
        Ok(object) => Ok(vec![object]),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// A call of the API.
pub fn api(cluster: &dyn Cluster, method: HttpMethod, path: &ApiPath, body: Option<&str>, dry_run: bool) -> Fact {
    let path = path.to_string();
    let request = match method {
        HttpMethod::Get => RawRequest::get(path),
        HttpMethod::Post => {
            let body = body.and_then(|body| Value::from_json(body).ok()).unwrap_or_default();
            RawRequest::post(path, body)
        }
    };
    match cluster.raw(&RawRequest { dry_run, ..request }) {
        Ok(value) => Fact::Found(value),
        // Here "not found" is what the API says to the call, and mostly the rule's error.
        Err(error) if error.kind() == ErrorKind::NotFound => Fact::NotFound(error.to_string()),
        Err(error) => Fact::Failed(error.to_string()),
    }
}

/// The labels of a Namespace object, its own name among them, as every API server sets it.
pub fn labels_of(namespace: &Value) -> Value {
    let name = namespace.str_at(&["metadata", "name"]).unwrap_or_default();
    let mut labels: Map = namespace.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    if !labels.contains_key("kubernetes.io/metadata.name") {
        labels.insert(Str::new_static("kubernetes.io/metadata.name"), Str::new(name));
    }
    Value::object(labels)
}

/// A mirror of the labels of all namespaces.
#[derive(Debug, Clone, Default)]
pub struct NamespaceLabels(Arc<RwLock<HashMap<Str, Value>>>);

impl NamespaceLabels {
    /// Follows the namespaces of a cluster until `stop`.
    pub fn follow(cluster: &Arc<dyn Cluster>, stop: &CancellationToken) -> (Self, Watcher) {
        let mirror = Self::default();
        let sink = mirror.clone();
        let watched = WatchTarget::all("v1", "Namespace").metadata_only();
        let watcher = Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| sink.apply(change));
        (mirror, watcher)
    }

    /// The labels of a namespace, if it is known.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.0.read().get(name).cloned()
    }

    /// Whether a namespace is known.
    pub fn contains(&self, name: &str) -> bool {
        self.0.read().contains_key(name)
    }

    pub(crate) fn apply(&self, change: StoreEvent) {
        let name = |object: &Value| Str::new(object.str_at(&["metadata", "name"]).unwrap_or_default());
        let mut known = self.0.write();
        match change {
            StoreEvent::Reset(objects) => {
                *known = objects.iter().map(|object| (name(object), labels_of(object))).collect();
            }
            StoreEvent::Apply(object) => {
                known.insert(name(&object), labels_of(&object));
            }
            StoreEvent::Delete(object) => {
                known.remove(&name(&object));
            }
        }
    }
}

/// How long a start waits for mirrors to be filled before it says what is missing.
pub const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use ephor_cluster::{MemoryCluster, raw};
    use ephor_expr::yaml;

    use super::*;

    fn asked(fetch: &Fetch) -> Fact {
        let cluster = MemoryCluster::default();
        let objects = "{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}\n---\n\
                       {apiVersion: v1, kind: Node, metadata: {name: worker}}\n---\n\
                       {apiVersion: v1, kind: ConfigMap, metadata: {name: colours, namespace: team-a}}";
        assert!(cluster.load(yaml::parse_values(objects, &yaml::Limits::default()).unwrap()).is_empty());
        ask(&cluster, fetch, true).unwrap()
    }

    fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Fetch {
        let (api_version, kind) = (api_version.into(), kind.into());
        Fetch::Object { api_version, kind, namespace: namespace.into(), name: name.into() }
    }

    fn objects(api_version: &str, kind: &str, namespace: &str) -> Fetch {
        Fetch::Objects { api_version: api_version.into(), kind: kind.into(), namespace: namespace.into() }
    }

    #[test]
    fn cleanup_policies_share_the_loop_and_its_limit() {
        struct Labels(u64);
        impl Answers for Labels {
            fn answer(&self, _: &AllowedFetch) -> Fact {
                Fact::Found(Value::from([("team", Value::from("a"))]))
            }
            fn context_limit(&self) -> u64 {
                self.0
            }
            fn secrets(&self, _: &Fetch, _: &Value) -> Option<Value> {
                None
            }
        }
        let policy = "{apiVersion: kyverno.io/v2, kind: ClusterCleanupPolicy, metadata: {name: c}, spec: {schedule: \
                      '* * * * *', match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {team: a}}}}]}}}";
        let program = CleanupProgram::compile(&yaml::parse_value(policy).unwrap()).unwrap();
        let pod = yaml::parse_value("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a}}").unwrap();
        let review = Review::of_object(pod, jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(clean(&program, &review, &Labels(0)), CleanupVerdict::Delete);
        let beyond = clean(&program, &review, &Labels(5));
        assert!(matches!(&beyond, CleanupVerdict::Error(text, _) if text.contains("maxContextSize")), "{beyond:?}");
    }

    #[test]
    fn parameters_of_a_policy_with_a_namespace_are_of_no_cluster_scoped_kind() {
        let parameters = |name: Option<&str>| Fetch::Parameters {
            api_version: "v1".into(),
            kind: "Node".into(),
            namespace: Some("team-a".into()),
            home: "team-a".into(),
            name: name.map(Str::new),
        };
        let answers = [Some("worker"), Some("none-of-this-name"), None].map(|name| asked(&parameters(name)));
        assert!(matches!(&answers[0], Fact::Failed(why) if !why.contains("worker")), "{answers:?}");
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    }

    #[test]
    fn a_question_within_a_namespace_shows_nothing_of_cluster_scoped_kinds() {
        for fetch in [
            object("v1", "Namespace", "team-a", "team-a"),
            object("*", "Node", "team-a", "worker"),
            object("v1", "Namespace/status", "team-a", "team-a"),
            objects("v1", "Namespace", "team-a"),
        ] {
            assert!(matches!(asked(&fetch), Fact::Failed(_)), "{fetch:?}: {:?}", asked(&fetch));
        }
        assert_eq!(asked(&objects("*", "Node", "team-a")), Fact::Found(Value::array(Vec::new())));
        assert!(matches!(asked(&object("v1", "ConfigMap", "team-a", "colours")), Fact::Found(_)));
        assert!(matches!(asked(&object("*", "Node", "", "worker")), Fact::Found(_)));
    }

    #[test]
    fn a_cluster_takes_a_path_for_what_the_gate_takes_it_for() {
        let discovery = MemoryCluster::default().discovery().unwrap();
        for text in [
            "/api/v1/pods",
            "/api/v1/namespaces",
            "/api/v1/namespaces/a",
            "/api/v1/namespaces/a/status",
            "/api/v1/namespaces/a/finalize",
            "/api/v1/namespaces/a/pods/b/log",
            "/api/v1/%6eamespaces/a/%73ecrets/b",
            "/api/v1/nodes/n/proxy/namespaces/own/x",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin",
            "/apis/apps/v1/namespaces/a/deployments/b%20c/scale",
        ] {
            let path = ApiPath::parse(text).unwrap();
            let objects = path.objects().unwrap();
            for spelling in [text, &path.to_string()] {
                let target = raw::target(&discovery, spelling).unwrap();
                assert_eq!((&target.resource.group, &target.resource.plural), (&objects.group, &objects.resource));
                assert_eq!(target.namespace.as_deref(), objects.namespace.as_deref(), "{spelling}");
                assert_eq!(target.name.as_deref(), objects.name.as_deref(), "{spelling}");
                assert_eq!(target.subresource.unwrap_or_default(), objects.below.join("/"), "{spelling}");
            }
        }
    }
}
