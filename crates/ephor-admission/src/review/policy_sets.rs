//! The policies of each webhook, indexed once for each snapshot of the policy store.
//!
//! Policies that may block are judged before the reply, the others after it. Sets are made by the first request that
//! finds the store changed, so that a thousand policies applied in a row are not indexed a thousand times.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use ephor_engine::compile::{Body, Program};
use ephor_engine::policy::FailurePolicy;
use ephor_engine::select::PolicySet;
use ephor_runtime::decision::path::{self, WebhookScope};
use ephor_runtime::policies::{PolicyStore, Snapshot};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The policies of one webhook.
#[derive(Debug, Default)]
pub(super) struct WebhookPolicies {
    /// Every policy: for mutation, and for work in the background.
    pub(super) all: PolicySet,
    /// Those judged before the reply.
    pub(super) urgent: PolicySet,
    /// Those judged after it.
    pub(super) deferred: PolicySet,
    /// Whether any policy has work for the background.
    pub(super) has_background_work: bool,
}

impl WebhookPolicies {
    fn new(programs: Vec<Arc<Program>>) -> Self {
        let validates = |program: &Arc<Program>| program.rules.iter().any(|r| matches!(r.body, Body::Validate(_)));
        let (urgent, deferred) = programs.iter().filter(|p| validates(p)).cloned().partition(|p| is_urgent(p));
        let has_background_work = programs.iter().flat_map(|program| &program.rules).any(|rule| match &rule.body {
            Body::Generate(_) => true,
            Body::Mutate(body) => body.targets.is_some(),
            Body::Validate(_) | Body::Admission(_) | Body::Policy(_) | Body::Delete(_) => false,
        });
        Self {
            all: PolicySet::new(programs),
            urgent: PolicySet::new(urgent),
            deferred: PolicySet::new(deferred),
            has_background_work,
        }
    }
}

/// Whether the reply waits for a policy: one of its rules may block, or its results are warnings.
fn is_urgent(program: &Program) -> bool {
    program.emit_warning
        || program.rules.iter().any(|rule| matches!(&rule.body, Body::Validate(body) if body.actions.may_enforce()))
}

/// The policies of all webhooks for one snapshot of the store.
#[derive(Debug)]
pub(super) struct WebhookPolicySets {
    pub(super) snapshot: Arc<Snapshot>,
    force_ignore: bool,
    all: OnceLock<Arc<WebhookPolicies>>,
    fail: OnceLock<Arc<WebhookPolicies>>,
    ignore: OnceLock<Arc<WebhookPolicies>>,
    named: Mutex<FxHashMap<WebhookScope, Arc<WebhookPolicies>>>,
}

/// How many scopes that name kinds or policies are kept: a stranger may ask for any names.
const MAX_NAMED: usize = 1_024;

impl WebhookPolicySets {
    fn new(snapshot: Arc<Snapshot>, force_ignore: bool) -> Self {
        Self {
            snapshot,
            force_ignore,
            all: OnceLock::new(),
            fail: OnceLock::new(),
            ignore: OnceLock::new(),
            named: Mutex::default(),
        }
    }

    fn programs(&self, wanted: impl Fn(&Program) -> bool) -> Arc<WebhookPolicies> {
        let programs = self.snapshot.set.programs().iter();
        Arc::new(WebhookPolicies::new(programs.filter(|p| p.admission && wanted(p)).cloned().collect()))
    }

    /// The policies of a webhook; `None` if it is for policies of which none is there (any more).
    pub(super) fn of(&self, scope: &WebhookScope) -> Option<Arc<WebhookPolicies>> {
        let shared = |program: &Program| !program.webhook.own && !program.id.kind.is_of_cel();
        let of = |wanted| {
            move |program: &Program| shared(program) && path::failure_policy(program, self.force_ignore) == wanted
        };
        let found = match scope {
            WebhookScope::All => self.all.get_or_init(|| self.programs(shared)),
            WebhookScope::ByFailurePolicy(FailurePolicy::Fail) => {
                self.fail.get_or_init(|| self.programs(of(FailurePolicy::Fail)))
            }
            WebhookScope::ByFailurePolicy(FailurePolicy::Ignore) => {
                self.ignore.get_or_init(|| self.programs(of(FailurePolicy::Ignore)))
            }
            WebhookScope::OfKind(failure, kind) => {
                return Some(self.named(scope, || {
                    self.programs(|program| {
                        program.id.kind == *kind && path::failure_policy(program, self.force_ignore) == *failure
                    })
                }));
            }
            WebhookScope::Policies(_, policies) => {
                let program = |id| self.snapshot.policies.get(id)?.program.clone();
                let mut programs: Vec<Arc<Program>> = policies.iter().filter_map(program).collect();
                if programs.is_empty() {
                    return None;
                }
                return Some(self.named(scope, || {
                    programs.retain(|program| program.admission);
                    Arc::new(WebhookPolicies::new(programs))
                }));
            }
        };
        Some(Arc::clone(found))
    }

    /// The policies of a scope that names some, made once.
    fn named(&self, scope: &WebhookScope, make: impl FnOnce() -> Arc<WebhookPolicies>) -> Arc<WebhookPolicies> {
        let mut named = self.named.lock();
        if let Some(known) = named.get(scope) {
            return Arc::clone(known);
        }
        if named.len() >= MAX_NAMED {
            named.clear();
        }
        let made = make();
        named.insert(scope.clone(), Arc::clone(&made));
        made
    }
}

/// Returns the policy sets of the current snapshot and builds them when the snapshot has changed.
#[derive(Debug)]
pub(super) struct WebhookPolicyStore {
    policies: PolicyStore,
    force_ignore: bool,
    present: ArcSwapOption<WebhookPolicySets>,
    making: Mutex<()>,
}

impl WebhookPolicyStore {
    pub(super) fn new(policies: PolicyStore, force_ignore: bool) -> Self {
        Self { policies, force_ignore, present: ArcSwapOption::empty(), making: Mutex::new(()) }
    }

    pub(super) fn get(&self) -> Arc<WebhookPolicySets> {
        let snapshot = self.policies.snapshot();
        let fresh = |sets: &Arc<WebhookPolicySets>| Arc::ptr_eq(&sets.snapshot, &snapshot);
        if let Some(sets) = self.present.load_full().filter(fresh) {
            return sets;
        }
        let _making = self.making.lock();
        if let Some(sets) = self.present.load_full().filter(fresh) {
            return sets;
        }
        let sets = Arc::new(WebhookPolicySets::new(snapshot, self.force_ignore));
        self.present.store(Some(Arc::clone(&sets)));
        sets
    }
}
