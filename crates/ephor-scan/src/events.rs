//! Events about what scans find: violations and errors that reports did not hold before.
//!
//! The form is upstream's: one Event on the policy and one on the object. A result that a stored report holds already
//! causes none, so that neither a restart nor a rescan repeats them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ephor_engine::outcome::{RuleKind, Verdict};
use ephor_expr::Value;
use ephor_reports::Scope;
use ephor_reports::entry::ResultRule;
use ephor_reports::merge::is_same;
use ephor_runtime::events::notes::{Admitted, RuleResult, judged};
use ephor_runtime::events::{Component, Recorder, Reference};
use ephor_runtime::policies::{PolicyId, PolicyStore};

type Observer = dyn Fn(&Scope, &[&Value]) + Send + Sync;

/// Called with the results about an object that its report did not hold before.
#[derive(Clone, Default)]
pub struct NewResults(Option<Arc<Observer>>);

impl fmt::Debug for NewResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewResults")
    }
}

impl NewResults {
    /// Calls `observer`.
    pub fn call(observer: impl Fn(&Scope, &[&Value]) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observer)))
    }

    /// Writes Events about policies of `store`.
    pub fn events(recorder: Recorder, store: PolicyStore) -> Self {
        Self::call(move |scope, results| {
            let object = Reference {
                api_version: scope.api_version.clone(),
                kind: scope.kind.clone(),
                namespace: scope.namespace.clone(),
                name: scope.name.clone(),
                uid: scope.uid.clone(),
            };
            let mut by_policy: BTreeMap<PolicyId, Vec<RuleResult<'_>>> = BTreeMap::new();
            for result in results {
                let text = |key| result.str_at(&[key]).unwrap_or_default();
                let Some(verdict) = Verdict::parse(text("result")) else { continue };
                let Some(policy) = ResultRule::of(result).policy_id() else { continue };
                by_policy.entry(policy).or_default().push(RuleResult {
                    rule: text("rule"),
                    kind: RuleKind::Validate,
                    verdict,
                    message: text("message"),
                    exceptions: &[],
                });
            }
            let snapshot = store.snapshot();
            for (id, results) in by_policy {
                if let Some(policy) = snapshot.policies.get(&id) {
                    let policy = Reference::policy(policy);
                    recorder.record(judged(Component::Scan, &policy, &object, &results, Admitted::Yes));
                }
            }
        })
    }

    /// Tells only while `allowed` says so.
    #[must_use]
    pub fn only_while(self, allowed: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let Some(observer) = self.0 else { return self };
        Self::call(move |scope, results| {
            if allowed() {
                observer(scope, results);
            }
        })
    }

    /// Tells of those `fresh` results that say that something is wrong and that `stored` does not hold.
    pub(crate) fn tell(&self, scope: &Scope, fresh: &[Value], stored: &[Value]) {
        let Some(observer) = &self.0 else { return };
        let is_wrong = |result: &&Value| {
            let verdict = result.str_at(&["result"]).and_then(Verdict::parse);
            matches!(verdict, Some(Verdict::Fail | Verdict::Warn | Verdict::Error))
        };
        let is_new = |result: &&Value| !stored.iter().any(|old| is_same(old, result));
        let new: Vec<&Value> = fresh.iter().filter(is_wrong).filter(is_new).collect();
        if !new.is_empty() {
            observer(scope, &new);
        }
    }
}
