//! Existing objects, read page by page, and the policies that judge them, for commands that judge a cluster once.

use std::collections::{BTreeMap, BTreeSet};

use ephor_cluster::query::OnUnreadable;
use ephor_cluster::{Cluster, ClusterError, Discovery, ErrorKind, ListQuery, object};
use ephor_engine::outcome::Phase;
use ephor_engine::policy::Operation;
use ephor_expr::{Map, Str, Value};
use ephor_reports::report::Reported;
use ephor_runtime::facts::Answers;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::{ExceptionScope, PolicyId, PolicyStore, StoredKind};
use ephor_runtime::watcher::StoreEvent;

use crate::judge::judge;
use crate::reportable::Reportable;

/// Policies and exceptions, by document.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    /// Cluster-wide and namespaced policies.
    pub policies: Vec<Value>,
    /// Exceptions.
    pub exceptions: Vec<Value>,
}

/// What cannot be judged.
#[derive(Debug, Clone, Default)]
pub struct Unjudged {
    /// What cannot be read, and why.
    pub unseen: BTreeSet<String>,
    /// Policies with validate rules that no scan judges: what they say depends on a request.
    pub of_requests: BTreeSet<PolicyId>,
    /// Rules, with their policies, that judge no existing object, because these count as created: they match other
    /// operations, or their preconditions ask for one and held for no object.
    pub of_operations: BTreeSet<(PolicyId, Str)>,
    /// How many objects no policy sees (`resourceFilters`).
    pub hidden: usize,
}

/// Judges each object of a cluster, or of one namespace, and gives it with its results to `take`.
///
/// # Errors
///
/// If the cluster does not say which kinds it serves. What cannot be listed is told of in the result.
pub fn judge_all(
    cluster: &dyn Cluster,
    documents: &Documents,
    namespace: Option<&str>,
    answers: &dyn Answers,
    now: jiff::Timestamp,
    mut take: impl FnMut(&Value, Vec<Value>),
) -> Result<Unjudged, ClusterError> {
    let mut unjudged = Unjudged::default();
    let policies = reportable(documents, &*cluster.discovery()?, &mut unjudged);
    let labels = namespaces(cluster, &mut unjudged.unseen);
    let metrics = Metrics::default();
    for (kind, api_version) in &policies.kinds {
        let listed = each(cluster, api_version, &kind.kind, namespace, &mut |object| {
            let place = object::namespace(object);
            if namespace.is_none_or(|only| only == place) {
                let judged = judge(&policies, object, labels.get(place).cloned(), answers, &metrics, now);
                take(object, judged.results);
            }
        });
        unjudged.unseen.extend(listed.err().map(|why| format!("{}: {why}", kind.kind)));
    }
    Ok(unjudged)
}

/// The policies whose rules scans evaluate. `unjudged` gets the policies and rules that validate requests only.
pub(crate) fn reportable(documents: &Documents, discovery: &Discovery, unjudged: &mut Unjudged) -> Reportable {
    let store = PolicyStore::new(ExceptionScope::Everywhere);
    for (_, kind) in StoredKind::all() {
        let documents = documents.policies.iter().chain(&documents.exceptions);
        let of_kind = documents.filter(|document| StoredKind::of(document) == Some(kind));
        store.apply(kind, StoreEvent::Reset(of_kind.cloned().collect()));
    }
    let snapshot = store.snapshot();
    for (key, policy) in &snapshot.policies {
        let Some(program) = &policy.program else { continue };
        let mut rules = program.rules.iter().filter(|rule| rule.phase() == Phase::Validate).peekable();
        if rules.peek().is_some() && !program.background {
            unjudged.of_requests.insert(key.clone());
        } else {
            let of_others = rules.filter(|rule| rule.matches.never_for(Operation::Create));
            unjudged.of_operations.extend(of_others.map(|rule| (key.clone(), rule.declared.clone())));
        }
    }
    Reportable::of(&snapshot, discovery, &[Reported::Validate].into())
}

/// The labels of namespaces.
pub(crate) fn namespaces(cluster: &dyn Cluster, unseen: &mut BTreeSet<String>) -> BTreeMap<Str, Value> {
    let mut labels = BTreeMap::new();
    let listed = each(cluster, "v1", "Namespace", None, &mut |namespace| {
        let own = namespace.at(&["metadata", "labels"]).cloned().unwrap_or_else(|| Value::object(Map::new()));
        labels.insert(Str::new(object::name(namespace)), own);
    });
    if let Err(why) = listed {
        unseen.insert(format!("labels of namespaces: {why}"));
    }
    labels
}

/// Calls `take` for each object of a kind, page by page.
pub(crate) fn each(
    cluster: &dyn Cluster,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    take: &mut dyn FnMut(&Value),
) -> Result<(), String> {
    let failed = |error: ClusterError| error.to_string();
    let resource = cluster.resolve(api_version, kind).map_err(failed)?;
    let wanted = match namespace.filter(|_| resource.namespaced) {
        Some(namespace) => ListQuery::in_namespace(namespace),
        None => ListQuery::default(),
    };
    let mut query = ListQuery { limit: PAGE, on_unreadable: OnUnreadable::Report, ..wanted };
    let mut unreadable = 0;
    loop {
        let page = match cluster.list(&resource, &query) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            page => page.map_err(failed)?,
        };
        page.items.iter().for_each(&mut *take);
        unreadable += page.unreadable.len();
        match page.continue_token {
            Some(next) => query.continue_token = Some(next),
            None if unreadable == 0 => return Ok(()),
            None => return Err(format!("{unreadable} objects cannot be read")),
        }
    }
}

/// How many objects are listed at once.
const PAGE: usize = 500;
