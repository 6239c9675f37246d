//! The leader's thread that keeps the generated objects as their policies want them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ephor_cluster::{
    Backoff, Cluster, ClusterError, DeleteOptions, Discovery, ErrorKind, ListQuery, WriteOptions, object,
};
use ephor_engine::policy::{FailurePolicy, Policy, PolicyException, ProgramKind};
use ephor_expr::value::decode_rest;
use ephor_expr::{Str, Value};
use ephor_runtime::config::ConfigStore;
use ephor_runtime::decision::path;
use ephor_runtime::lease::{LostLease, Term};
use ephor_runtime::metrics::{Metrics, Reconciled};
use ephor_runtime::notify::Notify;
use ephor_runtime::policies::{PolicyId, PolicyStore, Snapshot};
use ephor_runtime::watcher::{StoreEvent, WatchTarget, Watcher};

use super::translate::{API_VERSION, MANAGED_BY, Objects, Skip, Surroundings, is_asked, translate};
use super::translate_cel;
use crate::generated::{Generated, GeneratedBoard};
use crate::webhooks::{FailureMode, RegisteredFrom, WebhookSettings, outside_of};

/// The kinds of the objects: policies before their bindings.
const KINDS: [&str; 4] = [
    "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
];

/// Which admission policies are to be there; of the others those that exist go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratedKinds {
    /// Those that validate.
    pub validating: bool,
    /// Those that mutate.
    pub mutating: bool,
}

impl GeneratedKinds {
    fn has(self, kind: &str) -> bool {
        if kind.starts_with("Mutating") { self.mutating } else { self.validating }
    }
}

/// The objects that a policy asks for, or why there are none.
type Wanted = Result<Objects, Str>;

/// How often everything is compared without a reason.
const RESYNC_INTERVAL: Duration = Duration::from_mins(1);
/// The pause after a first failure. Each further failure doubles it.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// What the objects follow from.
#[derive(Clone)]
pub struct AdmissionPolicySources {
    /// Where the objects are.
    pub cluster: Arc<dyn Cluster>,
    /// Policies and exceptions.
    pub policies: PolicyStore,
    /// The `ConfigMap`: which namespaces nothing judges.
    pub config: ConfigStore,
}

/// Writes the admission policies that policies ask for, while it leads.
pub struct AdmissionPolicyController {
    sources: AdmissionPolicySources,
    settings: WebhookSettings,
    enabled: GeneratedKinds,
    board: GeneratedBoard,
    notify: Notify,
}

/// Why not everything is as it must be.
#[derive(Debug, thiserror::Error)]
pub(super) enum PutError {
    #[error(transparent)]
    Lost(#[from] LostLease),
    #[error("{0}")]
    Cluster(#[from] ClusterError),
    #[error("{kind} {name} exists and is not Ephor's")]
    Foreign { kind: Str, name: String },
}

impl AdmissionPolicyController {
    /// A controller that looks again whenever policies, exceptions or the configuration change.
    pub fn new(
        sources: AdmissionPolicySources,
        settings: WebhookSettings,
        enabled: GeneratedKinds,
        board: GeneratedBoard,
    ) -> Self {
        let notify = Notify::new();
        sources.policies.subscribe({
            let notify = notify.clone();
            move |_| notify.notify()
        });
        sources.config.subscribe({
            let notify = notify.clone();
            move |_| notify.notify()
        });
        Self { sources, settings, enabled, board, notify }
    }

    /// Works until the term ends.
    pub fn run(&self, term: &Term, metrics: &Metrics) {
        let mut watching = false;
        let mut backoff = Backoff::new(RETRY_INTERVAL, RESYNC_INTERVAL);
        loop {
            let rest = match self.reconcile(term) {
                Ok(has_objects) => {
                    backoff.reset();
                    metrics.reconciled("admission policies", Reconciled::Done);
                    // Without objects there is nothing to watch.
                    if has_objects && !std::mem::replace(&mut watching, true) {
                        self.watch(term);
                    }
                    RESYNC_INTERVAL
                }
                Err(PutError::Lost(_)) => return,
                Err(error) => {
                    let pause = backoff.pause();
                    metrics.reconciled("admission policies", Reconciled::Again { failures: backoff.failures() });
                    tracing::warn!(%error, "admission policies of the API server cannot be kept");
                    pause
                }
            };
            if !self.notify.wait(rest, term.token()) {
                return;
            }
        }
    }

    fn watch(&self, term: &Term) {
        let Ok(discovery) = self.sources.cluster.discovery() else { return };
        for kind in KINDS.into_iter().filter(|kind| self.enabled.has(kind)) {
            let Some(version) = version_of(kind, &discovery) else { continue };
            let notify = self.notify.clone();
            let watched = WatchTarget::all(version, kind);
            Watcher::spawn(Arc::clone(&self.sources.cluster), watched, term.token().clone(), move |change| {
                let ours = match &change {
                    StoreEvent::Reset(_) => true,
                    StoreEvent::Apply(object) | StoreEvent::Delete(object) => is_generated(object),
                };
                if ours {
                    notify.notify();
                }
            });
        }
    }

    /// Compares everything once and writes what differs; whether there are objects now.
    pub(super) fn reconcile(&self, term: &Term) -> Result<bool, PutError> {
        let snapshot = self.sources.policies.snapshot();
        let wanted = self.wanted(&snapshot)?;
        let mut generated = BTreeMap::new();
        let mut names: BTreeMap<String, PolicyId> = BTreeMap::new();
        let mut failure = None;
        for (key, wanted) in wanted {
            let state = match wanted {
                Ok(objects) => {
                    names.insert(object::name(&objects.policy).to_owned(), key.clone());
                    match self.put_all(term, &objects) {
                        Ok(()) => Generated::Stored,
                        Err(PutError::Lost(lost)) => return Err(lost.into()),
                        Err(error) => {
                            let text = Str::from(error.to_string());
                            failure = Some(error);
                            Generated::Skipped(text)
                        }
                    }
                }
                Err(skip) => Generated::Skipped(skip),
            };
            generated.insert(key, state);
        }
        // Webhooks take policies back before their objects go.
        self.board.publish(generated);
        self.remove_others(term, &names)?;
        failure.map_or(Ok(!names.is_empty()), Err)
    }

    /// What each policy that asks wants, or why it gets nothing.
    fn wanted(&self, snapshot: &Snapshot) -> Result<Vec<(PolicyId, Wanted)>, ClusterError> {
        let asking_cel: Vec<_> = snapshot
            .policies
            .iter()
            .filter(|(_, stored)| stored.program.as_ref().is_some_and(|program| program.admission))
            .filter_map(|(key, stored)| Some((key, stored, translate_cel::asking(stored)?)))
            .filter(|(.., asking)| self.enabled.has(asking.made()))
            .collect();
        let asking: Vec<_> = snapshot
            .policies
            .iter()
            .filter(|(key, stored)| {
                self.enabled.validating
                    && key.kind == ProgramKind::ClusterPolicy
                    && stored.program.as_ref().is_some_and(|p| p.admission)
            })
            .filter_map(|(key, stored)| {
                let policy = decode_rest::<Policy>(&stored.document).0.filter(is_asked)?;
                Some((key, stored, policy))
            })
            .collect();
        if asking.is_empty() && asking_cel.is_empty() {
            return Ok(Vec::new());
        }
        let discovery = self.sources.cluster.discovery()?;
        let config = self.sources.config.get();
        let namespaces = outside_of(&self.settings.namespace, config.webhooks.namespace_selector.as_ref());
        let exceptions: Vec<&PolicyException> =
            snapshot.exceptions.iter().filter_map(|known| known.declared()).collect();
        let around = Surroundings {
            exceptions: &exceptions,
            discovery: &discovery,
            namespaces: &namespaces,
            config: &config,
            ignore_failures: self.settings.failure_mode == FailureMode::Ignore,
        };
        let translated = asking.into_iter().map(|(key, stored, policy)| {
            let objects = translate(&policy, stored.uid(), &around).map_err(|skip| Str::from(skip.to_string()));
            (key.clone(), objects)
        });
        let translated_cel = asking_cel.into_iter().map(|(key, stored, policy)| {
            let made = policy.made();
            let named = || self.webhooks_name_policies(key.kind, snapshot).then_some(()).ok_or(UNNAMED);
            let objects =
                named().and_then(|()| translate_cel::translate(&policy, stored, &snapshot.exceptions, &around));
            (key.clone(), objects.map_err(|skip| skip.of(made)))
        });
        Ok(translated.chain(translated_cel).collect())
    }

    /// Whether a policy of the kind that leaves the webhooks gets no requests: webhooks name policies, unless there are
    /// too many, or they are for whatever policies may come.
    fn webhooks_name_policies(&self, kind: ProgramKind, snapshot: &Snapshot) -> bool {
        if kind != ProgramKind::MutatingPolicy {
            return true;
        }
        let all: Vec<&PolicyId> = snapshot.policies.keys().filter(|key| key.kind == kind).collect();
        self.settings.registered_from == RegisteredFrom::Policies
            && path::of_policies(FailurePolicy::Ignore, kind, &all) != path::of_kind(FailurePolicy::Ignore, kind)
    }

    fn put_all(&self, term: &Term, objects: &Objects) -> Result<(), PutError> {
        self.put(term, &objects.policy)?;
        self.put(term, &objects.binding)
    }

    fn put(&self, term: &Term, wanted: &Value) -> Result<(), PutError> {
        let cluster = &self.sources.cluster;
        let text = |key| wanted.str_at(&[key]).unwrap_or_default();
        let kind = text("kind");
        let resource = cluster.resolve(text("apiVersion"), kind)?;
        let name = object::name(wanted);
        match cluster.get(&resource, None, name) {
            Ok(live) if !is_generated(&live) => Err(PutError::Foreign { kind: kind.into(), name: name.to_owned() }),
            Ok(live) => {
                let Some(changed) = brought_in_step(&live, wanted) else { return Ok(()) };
                term.fence()?;
                cluster.update(&resource, changed, &WriteOptions::default())?;
                tracing::info!(kind, name, "admission policy written");
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                term.fence()?;
                cluster.create(&resource, wanted.clone(), &WriteOptions::default())?;
                tracing::info!(kind, name, "admission policy written");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the objects of policies that do not ask for them any more. Bindings go first: a binding without a policy
    /// is an error to the API server.
    fn remove_others(&self, term: &Term, names: &BTreeMap<String, PolicyId>) -> Result<(), PutError> {
        let cluster = &self.sources.cluster;
        let discovery = cluster.discovery()?;
        for kind in KINDS.into_iter().rev() {
            // An API server without admission policies has none to delete.
            let Some(version) = version_of(kind, &discovery) else { continue };
            let resource = cluster.resolve(version, kind)?;
            let live = match cluster.list(&resource, &ListQuery::all()) {
                Ok(live) => live.items,
                // What is off takes no rights.
                Err(error) if error.kind() == ErrorKind::Forbidden && !self.enabled.has(kind) => continue,
                Err(error) => return Err(error.into()),
            };
            for live in live.iter().filter(|live| is_generated(live)) {
                let name = object::name(live);
                let is_binding = kind.ends_with("Binding");
                if names.contains_key(name.strip_suffix("-binding").filter(|_| is_binding).unwrap_or(name)) {
                    continue;
                }
                term.fence()?;
                let uid = Str::new(object::text(live, "uid"));
                let options = DeleteOptions { uid, ..DeleteOptions::default() };
                match cluster.delete(&resource, None, name, &options) {
                    Ok(_) => tracing::info!(kind, name, "admission policy deleted"),
                    Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}

/// What the names of objects begin with, and the group and kind of the policies that they are made from.
const ORIGINS: [(&str, &str, &str); 3] = [
    ("cpol-", "kyverno.io/", "ClusterPolicy"),
    ("vpol-", "policies.kyverno.io/", "ValidatingPolicy"),
    ("mpol-", "policies.kyverno.io/", "MutatingPolicy"),
];

const UNNAMED: Skip = Skip("webhooks do not name the policies, and would mutate again.");

/// The version in which an API server has objects of the kind.
fn version_of(kind: &str, discovery: &Discovery) -> Option<&'static str> {
    if kind.starts_with("Mutating") {
        return translate_cel::mutating_version(discovery);
    }
    discovery.find(API_VERSION, kind).map(|_| API_VERSION)
}

/// Whether an admission policy or binding was made from a policy: it has the label and the name, and names the policy
/// as its owner.
pub fn is_generated(live: &Value) -> bool {
    let owners = live.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default();
    let is_of = |(prefix, group, kind): &(&str, &str, &str)| {
        object::name(live).starts_with(prefix)
            && owners.iter().any(|owner| {
                owner.str_at(&["apiVersion"]).is_some_and(|version| version.starts_with(group))
                    && owner.str_at(&["kind"]) == Some(kind)
            })
    };
    live.str_at(&["metadata", "labels", MANAGED_BY.0]) == Some(MANAGED_BY.1) && ORIGINS.iter().any(is_of)
}

/// The stored object with what is wanted; `None` if it says all of that. The API server adds defaults, which stay.
fn brought_in_step(live: &Value, wanted: &Value) -> Option<Value> {
    let spec = |object: &Value| object.get("spec").cloned().unwrap_or_default();
    let owners = |object: &Value| object.at(&["metadata", "ownerReferences"]).cloned().unwrap_or_default();
    if says(&spec(live), &spec(wanted)) && says(&owners(live), &owners(wanted)) {
        return None;
    }
    let mut changed = live.clone();
    let members = changed.as_object_mut()?;
    members.insert("spec", spec(wanted));
    members.get_mut("metadata")?.as_object_mut()?.insert("ownerReferences", owners(wanted));
    Some(changed)
}

/// Members that an API server adds to what it stores, with their defaults.
const DEFAULTS: [(&str, &str); 4] =
    [("matchPolicy", "Equivalent"), ("scope", "*"), ("parameterNotFoundAction", "Deny"), ("failurePolicy", "Fail")];

/// Whether `live` says what `wanted` says, and nothing more than defaults.
fn says(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            let has_all = wanted.iter().all(|(key, value)| live.get(key).is_some_and(|live| says(live, value)));
            let is_default = |key: &Str, value: &Value| {
                let listed = DEFAULTS.iter().any(|(name, text)| key == name && value.as_str() == Some(text));
                listed || value.as_object().is_some_and(ephor_expr::Map::is_empty)
            };
            has_all && live.iter().all(|(key, value)| wanted.contains_key(key) || is_default(key, value))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted.iter()).all(|(live, wanted)| says(live, wanted))
        }
        _ => live == wanted,
    }
}
