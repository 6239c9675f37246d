//! The leader's thread that writes the status of policies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ephor_cluster::{Cluster, ClusterError, ErrorKind, WriteOptions};
use ephor_engine::compile::PolicyDescription;
use ephor_expr::{Str, Value};
use ephor_runtime::lease::Term;
use ephor_runtime::metrics::{Metrics, Reconciled};
use ephor_runtime::notify::Notify;
use ephor_runtime::policies::{PolicyId, PolicyStore, StoredPolicy};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::cel;
use super::document::{Description, describe};
use super::readiness::readiness;
use super::reporting::Permissions;
use crate::generated::GeneratedBoard;
use crate::registration::RegistrationBoard;
use crate::webhooks::WebhookSettings;

/// Writes the statuses of policies while it leads.
pub struct StatusController {
    cluster: Arc<dyn Cluster>,
    policies: PolicyStore,
    board: RegistrationBoard,
    generated: GeneratedBoard,
    settings: WebhookSettings,
    permissions: Permissions,
    notify: Notify,
}

/// How many statuses are written at a time.
const WRITERS: usize = 8;
/// How often everything is result at without a reason.
const RESYNC_INTERVAL: Duration = Duration::from_mins(1);
/// The pause after a write that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// What is remembered from one look to the next.
#[derive(Default)]
pub(super) struct Memory {
    /// Descriptions with what they were made of.
    descriptions: BTreeMap<PolicyId, (Arc<PolicyDescription>, Arc<Description>)>,
    /// The versions over which a status was written: what the store shows is older than that write.
    written: BTreeMap<PolicyId, Str>,
}

/// A status to write.
struct Work {
    policy: Arc<StoredPolicy>,
    status: Value,
}

/// The result of one reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoundResult {
    pub(super) written: usize,
    pub(super) failed: usize,
}

impl StatusController {
    /// A controller that looks again whenever policies or their registration change. `reports_account` is the user name
    /// of the role that scans, if it is known.
    pub fn new(
        cluster: Arc<dyn Cluster>,
        policies: PolicyStore,
        board: RegistrationBoard,
        generated: GeneratedBoard,
        settings: WebhookSettings,
        reports_account: Option<Str>,
    ) -> Self {
        let notify = Notify::new();
        policies.subscribe({
            let notify = notify.clone();
            move |_| notify.notify()
        });
        board.subscribe({
            let notify = notify.clone();
            move || notify.notify()
        });
        generated.subscribe({
            let notify = notify.clone();
            move || notify.notify()
        });
        let permissions = Permissions::new(reports_account);
        Self { cluster, policies, board, generated, settings, permissions, notify }
    }

    /// Works until the term ends.
    pub fn run(&self, term: &Term, metrics: &Metrics) {
        let mut memory = Memory::default();
        let mut failures = 0;
        loop {
            let result = self.look(term, &mut memory, Timestamp::now());
            metrics.reconciled("statuses", Reconciled::Done);
            failures = if result.failed > 0 { failures + 1 } else { 0 };
            if failures > 0 {
                metrics.reconciled("statuses", Reconciled::Again { failures });
            }
            if !self.notify.wait(if result.failed > 0 { RETRY_INTERVAL } else { RESYNC_INTERVAL }, term.token()) {
                return;
            }
        }
    }

    /// Looks at all policies once and writes what differs.
    pub(super) fn look(&self, term: &Term, memory: &mut Memory, now: Timestamp) -> RoundResult {
        let work = self.work(memory, now);
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        let failed = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..WRITERS.min(work.len()) {
                scope.spawn(|| {
                    while let Some(work) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                        match self.write(term, work) {
                            Ok(()) => done.lock().push(&work.policy),
                            Err(error) => {
                                failed.fetch_add(1, Ordering::Relaxed);
                                tracing::warn!(policy = %work.policy.key, error, "a status could not be written");
                            }
                        }
                    }
                });
            }
        });
        let done = done.into_inner();
        let result = RoundResult { written: done.len(), failed: failed.into_inner() };
        for policy in done {
            memory.written.insert(policy.key.clone(), policy.resource_version().into());
        }
        result
    }

    fn work(&self, memory: &mut Memory, now: Timestamp) -> Vec<Work> {
        let snapshot = self.policies.snapshot();
        let (registration, generated) = (self.board.get(), self.generated.get());
        memory.descriptions.retain(|key, _| snapshot.policies.contains_key(key));
        memory.written.retain(|key, version| {
            snapshot.policies.get(key).is_some_and(|policy| policy.resource_version() == version)
        });
        let mut work = Vec::new();
        for (key, policy) in &snapshot.policies {
            if memory.written.contains_key(key) {
                continue;
            }
            let before = policy.document.get("status").filter(|status| !status.is_null());
            let readiness = readiness(policy, &registration, &self.settings);
            let status = if key.kind.is_of_cel() {
                let reporting =
                    match policy.program.as_ref().map(|p| self.permissions.of(p, &*self.cluster)).transpose() {
                        Ok(reporting) => reporting.flatten(),
                        Err(error) => {
                            tracing::warn!(policy = %key, %error, "cannot tell what scans may read");
                            continue;
                        }
                    };
                cel::describe(policy, &readiness, reporting.as_ref(), generated.get(key), before, now)
            } else {
                let description = memory.description(key, policy);
                describe(&description, &readiness, generated.get(key), before, now)
            };
            if let Some(status) = status
                && before != Some(&status)
            {
                work.push(Work { policy: Arc::clone(policy), status });
            }
        }
        work
    }

    /// Writes one status over exactly the version that it was made of.
    fn write(&self, term: &Term, work: &Work) -> Result<(), String> {
        term.fence().map_err(|error| error.to_string())?;
        let mut document = work.policy.document.clone();
        if let Some(members) = document.as_object_mut() {
            members.insert("status", work.status.clone());
        }
        let text = |key| document.str_at(&[key]).unwrap_or_default();
        let written = self
            .cluster
            .resolve(text("apiVersion"), text("kind"))
            .and_then(|resource| self.cluster.update_status(&resource, document, &WriteOptions::default()));
        match written {
            Ok(_) => Ok(()),
            // It changed or went away meanwhile: the store will tell.
            Err(error) if is_passed_by(&error) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn is_passed_by(error: &ClusterError) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound)
}

impl Memory {
    fn description(&mut self, key: &PolicyId, policy: &Arc<StoredPolicy>) -> Arc<Description> {
        // The store keeps the one that it has until the policy compiles to something else.
        if let Some((known, description)) = self.descriptions.get(key)
            && Arc::ptr_eq(known, &policy.description)
        {
            return Arc::clone(description);
        }
        let description = Arc::new(Description::of(policy));
        self.descriptions.insert(key.clone(), (Arc::clone(&policy.description), Arc::clone(&description)));
        description
    }
}
