//! Stored policies and exceptions, compiled.
//!
//! A [`PolicyStore`] follows the policies of `kyverno.io` and `policies.kyverno.io` in a cluster, and exceptions from
//! them, and keeps an immutable [`Snapshot`] of what they compile to. Readers take the snapshot and keep it for as long
//! as they judge one request; a change makes a new one. Nothing is compiled twice unless it changed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use ephor_cluster::Cluster;
use ephor_engine::compile::{PolicyDescription, Program, compile};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::exceptions::{Exception, ExceptionSet};
pub use ephor_engine::policy::PolicyId;
use ephor_engine::policy::ProgramKind;
use ephor_engine::select::PolicySet;
use ephor_expr::{Str, Value};
use parking_lot::Mutex;

use crate::cancellation::CancellationToken;
use crate::poison::PoisonMutex;
use crate::watcher::{StoreEvent, WatchTarget, Watcher, version_of};

/// The member of the status that says for which generation the rules have acted for existing triggers. It is no
/// condition: what waits for policies expects `Ready` alone where nothing is wrong.
pub const ACTED: &str = "existingTriggersGeneration";
/// The member of the status that names, as `GENERATION//RULE`, the rules that have acted where not all of them are
/// through; for a trigger that a rule still has to act for there is another entry, `GENERATION/UID/RULE`.
pub const ACTED_RULES: &str = "existingTriggersRules";
/// The condition by which the background controller says whether everything the policy wants could be made good. It is
/// there once something failed.
pub const CONVERGED: &str = "BackgroundConverged";

/// The condition of that type in a policy's status.
pub fn condition<'p>(policy: &'p Value, kind: &str) -> Option<&'p Value> {
    let conditions = policy.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(kind))
}

/// What a policy says that fails in the background, in this generation of it.
pub fn background_failure(policy: &Value) -> Option<&str> {
    let condition = condition(policy, CONVERGED).filter(|condition| condition.str_at(&["status"]) == Some("False"))?;
    let current = condition.get("observedGeneration") == policy.at(&["metadata", "generation"]);
    condition.str_at(&["message"]).filter(|_| current)
}

/// A policy of the cluster and what it compiled to.
#[derive(Debug)]
pub struct StoredPolicy {
    /// Which one it is.
    pub key: PolicyId,
    /// The document, without `metadata.managedFields`.
    pub document: Value,
    /// The program: of a refused policy the rules that nothing is wrong with, `None` if there are none.
    pub program: Option<Arc<Program>>,
    /// Errors and warnings.
    pub findings: Vec<Diagnostic>,
    /// What its status says of it, refused or not.
    pub description: Arc<PolicyDescription>,
    /// Since when its spec is as it is (RFC 3339); empty if that is not known.
    pub since: Str,
    /// The version in which it was first seen so: it tells what came before and after within that second.
    pub since_version: Str,
}

impl StoredPolicy {
    /// Compiles a document.
    pub fn new(mut document: Value) -> Self {
        let since = unchanged_since(&document);
        let since_version = Str::new(document.str_at(&["metadata", "resourceVersion"]).unwrap_or_default());
        if let Some(metadata) = document.as_object_mut().and_then(|members| members.get_mut("metadata"))
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.remove("managedFields");
        }
        let compiled = compile(&document);
        Self {
            key: PolicyId::of(&document),
            document,
            program: compiled.program.or(compiled.rest).map(Arc::new),
            findings: compiled.findings,
            description: Arc::new(compiled.description),
            since,
            since_version,
        }
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.document.str_at(&["metadata", "uid"]).unwrap_or_default()
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> &str {
        self.document.str_at(&["metadata", "resourceVersion"]).unwrap_or_default()
    }

    /// `metadata.generation`.
    pub fn generation(&self) -> i64 {
        self.document.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default()
    }
}

/// The time of the last write that was not to the status. Without managed fields only a policy that never changed says.
fn unchanged_since(document: &Value) -> Str {
    let managers = document.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
    let writes = managers.iter().filter(|entry| entry.str_at(&["subresource"]).is_none());
    let last = writes.filter_map(|entry| entry.str_at(&["time"])).max();
    let created = document.str_at(&["metadata", "creationTimestamp"]).unwrap_or_default();
    let generation = document.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(1);
    Str::new(last.unwrap_or(if generation <= 1 { created } else { "" }))
}

/// The policies and exceptions at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// All programs, in the order of `programs` of the set: cluster-wide ones by name, then the others.
    pub set: Arc<PolicySet>,
    /// The exceptions that hold.
    pub exceptions: Arc<ExceptionSet>,
    /// All policies by key, also refused ones.
    pub policies: BTreeMap<PolicyId, Arc<StoredPolicy>>,
    /// Grows with every change.
    pub number: u64,
}

/// A kind of objects that a store follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoredKind {
    /// Policies.
    Policy(ProgramKind),
    /// `PolicyException` of `kyverno.io`.
    Exception,
    /// `PolicyException` of `policies.kyverno.io`.
    CelException,
}

const CEL_EXCEPTIONS: (&str, StoredKind) = ("policies.kyverno.io/v1beta1", StoredKind::CelException);

impl StoredKind {
    /// `ClusterPolicy`.
    pub const CLUSTER_POLICY: Self = Self::Policy(ProgramKind::ClusterPolicy);
    /// `Policy`.
    pub const POLICY: Self = Self::Policy(ProgramKind::Policy);

    /// All of them, each with the version in which its objects are read.
    pub fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let policies = ProgramKind::STORED.into_iter().map(|(version, kind)| (version, Self::Policy(kind)));
        policies.chain([("kyverno.io/v2", Self::Exception), CEL_EXCEPTIONS])
    }

    /// What the cleanup role follows: the policies of `policies.kyverno.io` that delete, and exceptions from them.
    pub fn deleting() -> impl Iterator<Item = (&'static str, Self)> {
        let policies = ProgramKind::DELETING.into_iter().map(|(version, kind)| (version, Self::Policy(kind)));
        policies.chain([CEL_EXCEPTIONS])
    }

    /// The kind of a document; `None` if stores do not follow it.
    pub fn of(document: &Value) -> Option<Self> {
        let (group, kind) = (document.str_at(&["apiVersion"])?.split_once('/')?.0, document.str_at(&["kind"])?);
        Self::all()
            .find(|(version, known)| {
                known.as_str() == kind && version.split_once('/').is_some_and(|(known, _)| known == group)
            })
            .map(|(_, kind)| kind)
    }

    /// The kind, as documents spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy(kind) => kind.as_str(),
            Self::Exception | Self::CelException => "PolicyException",
        }
    }

    /// Whether its objects are exceptions.
    pub fn is_exception(self) -> bool {
        matches!(self, Self::Exception | Self::CelException)
    }
}

/// Which exceptions count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExceptionScope {
    /// None (the default, as upstream's).
    #[default]
    Disabled,
    /// Those of this namespace.
    Namespace(Str),
    /// All.
    Everywhere,
}

/// The store. Clones are the same store.
#[derive(Clone)]
pub struct PolicyStore(Arc<Shared>);

type Subscriber = Box<dyn Fn(&Arc<Snapshot>) + Send + Sync>;

struct Shared {
    snapshot: ArcSwap<Snapshot>,
    state: PoisonMutex<State>,
    subscribers: Mutex<Vec<Subscriber>>,
    scope: ExceptionScope,
    /// What is followed.
    kinds: Vec<(&'static str, StoredKind)>,
}

#[derive(Default)]
struct State {
    policies: BTreeMap<PolicyId, Arc<StoredPolicy>>,
    exceptions: BTreeMap<(StoredKind, Str, Str), Value>,
    compiled_exceptions: Arc<ExceptionSet>,
    number: u64,
    /// The version of the last end that was told, by kind.
    ended: BTreeMap<StoredKind, u64>,
}

impl fmt::Debug for PolicyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicyStore({} policies)", self.snapshot().policies.len())
    }
}

/// The watchers behind a store.
#[derive(Debug, Clone)]
pub struct PolicyWatchers(Vec<Watcher>);

impl PolicyWatchers {
    /// Whether all stored policies and exceptions are known.
    pub fn synced(&self) -> bool {
        self.0.iter().all(Watcher::synced)
    }

    /// Waits until all stored policies and exceptions are known, each kind at most as long as `wait`.
    pub fn wait_synced(&self, wait: Duration) -> bool {
        self.0.iter().all(|watcher| watcher.wait_synced(wait))
    }
}

impl PolicyStore {
    /// A store without policies.
    pub fn new(scope: ExceptionScope) -> Self {
        Self::of(StoredKind::all().collect(), scope)
    }

    /// A store for the policies that delete on a schedule.
    pub fn deleting(scope: ExceptionScope) -> Self {
        Self::of(StoredKind::deleting().collect(), scope)
    }

    fn of(kinds: Vec<(&'static str, StoredKind)>, scope: ExceptionScope) -> Self {
        Self(Arc::new(Shared {
            snapshot: ArcSwap::default(),
            state: PoisonMutex::default(),
            subscribers: Mutex::default(),
            scope,
            kinds,
        }))
    }

    /// Follows the policies and exceptions of a cluster until `stop`.
    pub fn follow(&self, cluster: &Arc<dyn Cluster>, stop: &CancellationToken) -> PolicyWatchers {
        let mut watchers = Vec::new();
        for &(version, kind) in &self.0.kinds {
            if kind.is_exception() && self.0.scope == ExceptionScope::Disabled {
                continue;
            }
            let mut watched = WatchTarget::all(version, kind.as_str());
            if let (ExceptionScope::Namespace(namespace), true) = (&self.0.scope, kind.is_exception()) {
                watched = watched.in_namespace(namespace);
            }
            let store = self.clone();
            watchers.push(Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| {
                store.apply(kind, change);
            }));
        }
        PolicyWatchers(watchers)
    }

    /// The present policies.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.snapshot.load_full()
    }

    /// Calls `subscriber` after each change, in the thread that made it. It must be quick.
    pub fn subscribe(&self, subscriber: impl Fn(&Arc<Snapshot>) + Send + Sync + 'static) {
        self.0.subscribers.lock().push(Box::new(subscriber));
    }

    /// Takes in a change of objects of `kind`.
    pub fn apply(&self, kind: StoredKind, change: StoreEvent) {
        let mut state = self.0.state.lock();
        if state.is_late(kind, &change) || state.changes_nothing(kind, &change) {
            return;
        }
        match kind {
            StoredKind::Policy(kind) => state.apply_policy(kind, change),
            StoredKind::Exception | StoredKind::CelException => state.apply_exception(kind, change, &self.0.scope),
        }
        state.number += 1;
        let snapshot = Arc::new(Snapshot {
            set: state.set_after(&self.0.snapshot.load().set),
            exceptions: Arc::clone(&state.compiled_exceptions),
            policies: state.policies.clone(),
            number: state.number,
        });
        self.0.snapshot.store(Arc::clone(&snapshot));
        // Still under the lock, so that subscribers see changes in their order.
        for subscriber in self.0.subscribers.lock().iter() {
            subscriber(&snapshot);
        }
    }
}

impl State {
    /// The programs as a set: the one before as long as they are the same, as when statuses are written.
    fn set_after(&self, before: &Arc<PolicySet>) -> Arc<PolicySet> {
        let programs: Vec<_> = self.policies.values().filter_map(|policy| policy.program.clone()).collect();
        let known = before.programs();
        if known.len() == programs.len() && known.iter().zip(&programs).all(|(one, other)| Arc::ptr_eq(one, other)) {
            return Arc::clone(before);
        }
        Arc::new(PolicySet::new(programs))
    }

    /// Whether an event says nothing new: it was told before, or something newer was.
    fn is_late(&mut self, kind: StoredKind, change: &StoreEvent) -> bool {
        let (StoreEvent::Apply(document) | StoreEvent::Delete(document)) = change else {
            self.ended.remove(&kind);
            return false;
        };
        let Some(version) = version_of(document) else { return false };
        let known = if kind.is_exception() {
            self.exceptions.get(&exception_key(kind, document))
        } else {
            self.policies.get(&PolicyId::of(document)).map(|policy| &policy.document)
        };
        let known = known.and_then(version_of);
        match change {
            StoreEvent::Delete(_) => {
                let last = self.ended.entry(kind).or_default();
                *last = version.max(*last);
                known.is_some_and(|known| version < known)
            }
            _ => known.or_else(|| self.ended.get(&kind).copied()).is_some_and(|known| version <= known),
        }
    }

    /// Whether there were no objects of the kind, and still are none: a kind that is not served is asked for again and
    /// again.
    fn changes_nothing(&self, kind: StoredKind, change: &StoreEvent) -> bool {
        let StoreEvent::Reset(documents) = change else { return false };
        documents.is_empty()
            && match kind {
                StoredKind::Policy(kind) => self.policies.keys().all(|id| id.kind != kind),
                _ => self.exceptions.keys().all(|(of, ..)| *of != kind),
            }
    }

    fn apply_policy(&mut self, kind: ProgramKind, change: StoreEvent) {
        match change {
            StoreEvent::Reset(documents) => {
                let mut old = std::mem::take(&mut self.policies);
                self.policies = old.extract_if(.., |id, _| id.kind != kind).collect();
                for document in documents {
                    // What is unchanged since the watcher was interrupted need not be compiled again.
                    let kept = old.remove(&PolicyId::of(&document)).filter(|policy| same_version(policy, &document));
                    let policy = kept.unwrap_or_else(|| Arc::new(StoredPolicy::new(document)));
                    self.policies.insert(policy.key.clone(), policy);
                }
            }
            StoreEvent::Apply(document) => self.set(document),
            StoreEvent::Delete(document) => {
                self.policies.remove(&PolicyId::of(&document));
            }
        }
    }

    fn set(&mut self, document: Value) {
        let key = PolicyId::of(&document);
        let policy = match self.policies.get(&key) {
            // A write of the status only: what was compiled still holds.
            Some(old) if same_rules(&old.document, &document) => Arc::new(StoredPolicy {
                key: key.clone(),
                program: old.program.clone(),
                findings: old.findings.clone(),
                description: Arc::clone(&old.description),
                since: old.since.clone(),
                since_version: old.since_version.clone(),
                document,
            }),
            _ => Arc::new(StoredPolicy::new(document)),
        };
        self.policies.insert(key, policy);
    }

    fn apply_exception(&mut self, kind: StoredKind, change: StoreEvent, scope: &ExceptionScope) {
        match change {
            StoreEvent::Reset(documents) => {
                self.exceptions.retain(|(of, ..), _| *of != kind);
                let documents = documents.into_iter();
                self.exceptions.extend(documents.map(|document| (exception_key(kind, &document), document)));
            }
            StoreEvent::Apply(document) => {
                self.exceptions.insert(exception_key(kind, &document), document);
            }
            StoreEvent::Delete(document) => {
                self.exceptions.remove(&exception_key(kind, &document));
            }
        }
        let counts = |namespace: &Str| match scope {
            ExceptionScope::Disabled => false,
            ExceptionScope::Namespace(own) => own == namespace,
            ExceptionScope::Everywhere => true,
        };
        let compiled = self.exceptions.iter().filter(|((_, namespace, _), _)| counts(namespace)).filter_map(
            |((_, namespace, name), document)| match Exception::compile(document) {
                // Where every namespace may have exceptions, its owner must not let anything off the Policies of
                // others.
                Ok(exception) if *scope == ExceptionScope::Everywhere => Some(exception.within(namespace)),
                Ok(exception) => Some(exception),
                Err(findings) => {
                    let why: Vec<String> = findings.iter().map(ToString::to_string).collect();
                    tracing::warn!(%namespace, %name, why = why.join("; "), "a policy exception is ignored");
                    None
                }
            },
        );
        self.compiled_exceptions = Arc::new(ExceptionSet::new(compiled.collect()));
    }
}

fn exception_key(kind: StoredKind, document: &Value) -> (StoredKind, Str, Str) {
    let text = |name| Str::new(document.str_at(&["metadata", name]).unwrap_or_default());
    (kind, text("namespace"), text("name"))
}

fn same_version(policy: &StoredPolicy, document: &Value) -> bool {
    let version = document.str_at(&["metadata", "resourceVersion"]).unwrap_or_default();
    !version.is_empty()
        && version == policy.resource_version()
        && document.str_at(&["metadata", "uid"]) == Some(policy.uid())
}

/// Whether two documents of one policy compile to the same: annotations count, the rest of the metadata does not.
fn same_rules(old: &Value, new: &Value) -> bool {
    old.get("spec") == new.get("spec")
        && old.get("apiVersion") == new.get("apiVersion")
        && old.at(&["metadata", "annotations"]) == new.at(&["metadata", "annotations"])
}

#[cfg(test)]
mod tests;
