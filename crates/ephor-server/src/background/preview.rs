//! What the controller would do, without doing it: the same work on a cluster whose writes go nowhere.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ephor_cluster::discovery::priority;
use ephor_cluster::query::Filter;
use ephor_cluster::raw::RawRequest;
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, Discovery, ErrorKind, LabelSelector, List, ListQuery, Patch,
    PatchKind, Resource, Watch, WatchQuery, WriteOptions,
};
use ephor_engine::matching::Gvk;
use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};

use super::queue::WorkKey;
use super::reconcile::{Asked, PATIENCE, Pass};
use super::rules::may_match;
use super::state::{State, key_of};
use super::trigger::review_of_existing;
use super::writer::{Env, Note};
use crate::facts::Answers;
use crate::metrics::Metrics;
use crate::plan::claim::{MANAGED_BY, POLICY_NAME};
use crate::plan::content::set_meta;
use crate::plan::{Change, Claim};
use crate::policies::{PolicyKey, Snapshot};
use crate::update_request::{ResourceSpec, RuleContext, UpdateRequest, UpdateRequestSpec};

/// A change that would be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The policy that wants it.
    pub policy: PolicyKey,
    /// The rule that wants it.
    pub rule: Str,
    /// The change.
    pub change: Change,
}

/// What would be done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    /// Changes, in the order in which they would be made.
    pub changes: Vec<Planned>,
    /// What would fail: policy and reason.
    pub failures: Vec<(PolicyKey, String)>,
}

/// What the policies of a snapshot would do about triggers, and about the objects that they made before. Triggers need
/// a UID.
pub fn preview(
    cluster: &Arc<dyn Cluster>,
    answers: &Arc<dyn Answers>,
    snapshot: &Arc<Snapshot>,
    triggers: &[Value],
    now: jiff::Timestamp,
) -> Result<Preview, ClusterError> {
    let found = Arc::new(Mutex::new(Preview::default()));
    let sink = Arc::clone(&found);
    let env = Env {
        cluster: Arc::new(Unwritten { inner: Arc::clone(cluster), snapshot: Arc::clone(snapshot) }),
        answers: Arc::clone(answers),
        fence: Arc::new(|| Ok(())),
        namespace: "kyverno".into(),
        metrics: Metrics::default(),
        observer: Arc::new(move |note| {
            if let Note::Changed { policy, rule, change, .. } = note {
                let planned = Planned { policy: policy.clone(), rule: rule.clone(), change: (**change).clone() };
                let mut found = sink.lock().unwrap_or_else(PoisonError::into_inner);
                let same = |known: &Planned| {
                    known.change.id == planned.change.id && known.change.action == planned.change.action
                };
                if !found.changes.iter().any(same) {
                    found.changes.push(planned);
                }
            }
        }),
    };
    let state = Mutex::new(State::default());
    let moment = u64::try_from(now.as_millisecond()).unwrap_or_default();
    let pass = Pass { env: &env, state: &state, now: moment, clock: now };
    pass.lock().discovery = cluster.discovery()?;
    pass.lock().observe_policies(Arc::clone(snapshot), moment);
    for made in downstreams(&**cluster)? {
        pass.lock().note(&made, moment);
    }
    let mut failures: BTreeSet<(PolicyKey, String)> = BTreeSet::new();
    let mut done: BTreeSet<WorkKey> = BTreeSet::new();
    let infos: Vec<_> = pass.lock().infos.values().cloned().collect();
    for info in &infos {
        for object in triggers {
            let trigger = ResourceSpec::of_object(object);
            let gvk = Gvk::new(&trigger.api_version, &trigger.kind);
            if !info.sees(&trigger.namespace) {
                continue;
            }
            pass.lock().note(object, moment);
            let rules: BTreeSet<Str> = info
                .generate
                .iter()
                .filter(|rule| may_match(rule.kinds.as_deref(), &gvk))
                .map(|rule| rule.name.clone())
                .collect();
            if !rules.is_empty() {
                let contexts = rules.iter().map(|rule| RuleContext {
                    rule: rule.clone(),
                    trigger: trigger.clone(),
                    ..RuleContext::default()
                });
                let spec = UpdateRequestSpec { rule_context: contexts.collect(), ..UpdateRequestSpec::default() };
                let request = Arc::new(UpdateRequest { spec, ..UpdateRequest::default() });
                let asked = Asked { request, admission: None, rules, released: BTreeSet::new(), age: PATIENCE };
                let key = WorkKey { policy: info.key.clone(), trigger: trigger.uid.clone() };
                if let Err(error) = pass.reconcile(&key, Some(&asked)) {
                    failures.insert((info.key.clone(), format!("{} {}: {error}", trigger.kind, trigger.name)));
                }
                done.insert(key);
            }
            for rule in info.mutate.iter().filter(|rule| may_match(rule.kinds.as_deref(), &gvk)) {
                let review = review_of_existing(object, Operation::Create, &info.uid, now);
                if let Err(error) = pass.mutate_for(info, &rule.name, &review) {
                    failures.insert((info.key.clone(), format!("{} {}: {error}", trigger.kind, trigger.name)));
                }
            }
        }
    }
    // What was made before, for triggers that are not among those given.
    let policies = pass.lock().index.policies();
    for (namespace, name) in policies {
        let policy = super::state::policy_key(&namespace, &name);
        let triggers = pass.lock().index.triggers_of(&namespace, &name);
        let keys = triggers.into_iter().map(|trigger| WorkKey { policy: policy.clone(), trigger });
        for key in keys.filter(|key| snapshot.policies.contains_key(&key.policy) && !done.contains(key)) {
            if let Err(error) = pass.reconcile(&key, None) {
                failures.insert((key.policy.clone(), format!("trigger {}: {error}", key.trigger)));
            }
        }
    }
    let mut preview = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    preview.failures = failures.into_iter().collect();
    Ok(preview)
}

/// All objects that say they were made by a policy.
fn downstreams(cluster: &dyn Cluster) -> Result<Vec<Value>, ClusterError> {
    let labels = LabelSelector::parse(&format!("{MANAGED_BY}=kyverno,{POLICY_NAME}"))?;
    let discovery = cluster.discovery()?;
    let mut found = Vec::new();
    for resource in discovery.iter().filter(|resource| resource.stored) {
        let better = |other: &Resource| {
            other.kind == resource.kind
                && other.group == resource.group
                && priority(&other.version) > priority(&resource.version)
        };
        if discovery.iter().any(better) {
            continue;
        }
        let filter = Filter { labels: labels.clone(), ..Filter::default() };
        match crate::feed::list(cluster, resource, &filter) {
            Ok((objects, _)) => found.extend(objects.into_iter().filter(|object| Claim::of(object).is_some())),
            // What may not be looked at is not planned for either.
            Err(error)
                if matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::NotFound | ErrorKind::Unsupported) => {}
            Err(error) => return Err(error),
        }
    }
    found.sort_by_cached_key(|object| Claim::of(object).map(|claim| key_of(&claim.owner)));
    Ok(found)
}

/// A cluster whose writes are answered as if they had been made.
struct Unwritten {
    inner: Arc<dyn Cluster>,
    snapshot: Arc<Snapshot>,
}

impl Cluster for Unwritten {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        self.inner.discovery()
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.inner.resolve(api_version, kind)
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        // The policies that are planned for, not those that are stored.
        if resource.group == "kyverno.io" && matches!(resource.kind.as_str(), "ClusterPolicy" | "Policy") {
            let namespace = namespace.filter(|_| resource.kind == "Policy").map(Str::new);
            let key = PolicyKey { namespace, name: name.into() };
            let found = self.snapshot.policies.get(&key).map(|policy| policy.document.clone());
            return found.ok_or_else(|| ClusterError::not_found(resource, name));
        }
        self.inner.get(resource, namespace, name)
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        self.inner.list(resource, query)
    }

    fn create(&self, resource: &Resource, mut object: Value, _options: &WriteOptions) -> Result<Value, ClusterError> {
        let text = |key: &str| object.str_at(&["metadata", key]).map(Str::new);
        let (namespace, name) = (text("namespace"), text("name").unwrap_or_default());
        match self.inner.get(resource, namespace.as_deref(), &name) {
            Ok(_) => return Err(ClusterError::already_exists(resource, &name)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        set_meta(&mut object, "uid", Some(format!("planned/{}/{name}", namespace.unwrap_or_default()).into()));
        set_meta(&mut object, "resourceVersion", Some("1".into()));
        Ok(object)
    }

    fn update(&self, _resource: &Resource, object: Value, _options: &WriteOptions) -> Result<Value, ClusterError> {
        Ok(object)
    }

    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        if patch.kind == PatchKind::Apply {
            return match self.inner.get(resource, namespace, name) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.create(resource, patch.document.clone(), options)
                }
                answer => answer,
            };
        }
        self.inner.get(resource, namespace, name)
    }

    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        _options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        self.inner.get(resource, namespace, name).map(Deletion::Done)
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        self.inner.watch(resource, query)
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        self.inner.raw(request)
    }
}
