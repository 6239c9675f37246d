//! Admission as an API server asks it: in the way of every write, by the handlers of production.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ephor_admission::review::roles::Roles;
use ephor_admission::review::{HandlerOptions, Handlers, Parts};
use ephor_cluster::admission::{Admission, Attributes, Mutated, Operation};
use ephor_cluster::{Cluster, ClusterError, MemoryCluster};
use ephor_engine::policy::{FailurePolicy, ProgramKind};
use ephor_engine::rules::mutate::JsonPatch;
use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::decision::observe::Unobserved;
use ephor_runtime::decision::path::WebhookScope;
use ephor_runtime::decision::{AdmissionRequest, Sender};
use ephor_runtime::facts::{ClusterFacts, NamespaceLabels};
use ephor_runtime::policies::{ExceptionScope, PolicyStore, StoredKind};
use ephor_runtime::watcher::StoreEvent;

type Between = Box<dyn FnMut() + Send>;

/// The admission of the in-memory cluster: every write goes through it. Clones share one state.
#[derive(Clone)]
pub(super) struct AdmissionStub(Arc<Inner>);

struct Inner {
    handlers: Handlers,
    policies: PolicyStore,
    config: ConfigStore,
    asked: AtomicU64,
    closed: AtomicBool,
    refusing: AtomicBool,
    between: Mutex<Option<Between>>,
}

impl std::fmt::Debug for AdmissionStub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdmissionStub")
    }
}

impl AdmissionStub {
    /// Installs it as the admission of a cluster.
    pub(super) fn before(cluster: &MemoryCluster) -> Self {
        let policies = PolicyStore::new(ExceptionScope::Everywhere);
        let config = ConfigStore::new("kyverno", "kyverno");
        let shared: Arc<dyn Cluster> = Arc::new(cluster.clone());
        let parts = Parts {
            cluster: Arc::clone(&shared),
            policies: policies.clone(),
            config: config.clone(),
            answers: Arc::new(ClusterFacts::new(shared)),
            namespaces: NamespaceLabels::default(),
            roles: Roles::default(),
            observer: Arc::new(Unobserved),
        };
        let admission = Self(Arc::new(Inner {
            handlers: Handlers::new(parts, HandlerOptions::in_process("kyverno")),
            policies,
            config,
            asked: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            between: Mutex::default(),
        }));
        assert!(cluster.set_admission(Arc::new(admission.clone())));
        admission
    }

    /// Whether the validating webhook is down: everything passes it unseen.
    pub(super) fn close(&self, closed: bool) {
        self.0.closed.store(closed, Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Relaxed)
    }

    /// Whether something behind this admission refuses whatever it lets pass.
    pub(super) fn refuse(&self, refusing: bool) {
        self.0.refusing.store(refusing, Ordering::Relaxed);
    }

    /// What happens between the next answer and the write that it is about.
    pub(super) fn between(&self, act: impl FnMut() + Send + 'static) {
        *self.0.between.lock().unwrap() = Some(Box::new(act));
    }

    /// Tells admission of a policy.
    pub(super) fn policy(&self, kind: StoredKind, change: StoreEvent) {
        self.0.policies.apply(kind, change);
    }

    /// The settings that admission goes by.
    pub(super) fn config(&self) -> &ConfigStore {
        &self.0.config
    }

    fn request(&self, attributes: &Attributes) -> AdmissionRequest {
        let number = self.0.asked.fetch_add(1, Ordering::Relaxed);
        AdmissionRequest::of_value(&attributes.request(&format!("request-{number}"))).unwrap()
    }

    /// Asks about a request that no cluster in memory can be sent, such as opening a shell.
    pub(super) fn ask(&self, request: &Value) {
        self.ask_as(Sender::ApiServer, request);
    }

    /// The same, sent by that sender.
    pub(super) fn ask_as(&self, sender: Sender, request: &Value) {
        let request = AdmissionRequest { sender, ..AdmissionRequest::of_value(request).unwrap() };
        let answer = self.0.handlers.validate(&request, &WebhookScope::All);
        assert!(answer.allowed, "{:?}", answer.message);
    }
}

/// What this admission is not about.
fn passes(attributes: &Attributes) -> bool {
    matches!(&*attributes.resource.group, "kyverno.io" | "policies.kyverno.io") || attributes.dry_run
}

impl Admission for AdmissionStub {
    fn mutate(&self, attributes: &Attributes) -> Result<Mutated, ClusterError> {
        let mut mutated = Mutated::default();
        if passes(attributes) || attributes.operation == Operation::Delete {
            return Ok(mutated);
        }
        let answer = self.0.handlers.mutate(&self.request(attributes), &WebhookScope::All);
        assert!(answer.allowed, "{:?}", answer.message);
        mutated.object = answer.patch.map(|patch: Value| {
            let patch = JsonPatch::from_value(&patch).unwrap();
            patch.apply(&attributes.object, &Budget::default()).unwrap()
        });
        Ok(mutated)
    }

    fn validate(&self, attributes: &Attributes) -> Result<Vec<String>, ClusterError> {
        if self.is_closed() || passes(attributes) {
            return Ok(Vec::new());
        }
        let request = self.request(attributes);
        let answer = self.0.handlers.validate(&request, &WebhookScope::All);
        assert!(answer.allowed, "{:?}", answer.message);
        for kind in [ProgramKind::GeneratingPolicy, ProgramKind::NamespacedGeneratingPolicy] {
            let answer = self.0.handlers.validate(&request, &WebhookScope::OfKind(FailurePolicy::Ignore, kind));
            assert!(answer.allowed, "{:?}", answer.message);
        }
        if self.0.refusing.load(Ordering::Relaxed) {
            return Err(ClusterError::denied(403, "Forbidden", "refused by somebody else"));
        }
        let between = self.0.between.lock().unwrap().take();
        if let Some(mut act) = between {
            act();
        }
        Ok(answer.warnings)
    }
}
