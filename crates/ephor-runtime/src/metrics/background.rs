//! Metrics of the background role.
//!
//! Upstream has no metrics of its queue, so these are Ephor's own; verdicts, requests and changes of
//! policies go by upstream's names.

use std::collections::BTreeMap;
use std::time::Duration;

use ephor_engine::compile::Program;
use ephor_engine::outcome::Outcome;
use ephor_engine::review::Review;

use super::families::{Counters, Durations, Gauges, Registered};
use super::policies::{of_program, rule_type};
use super::{Label, Metrics, Reconciled, labels};
use crate::policies::PolicyId;

/// The controller's name in counters of controllers.
const CONTROLLER: &str = "background-controller";

/// The families of the role.
pub(super) struct BackgroundFamilies {
    leader: Gauges,
    depth: Gauges,
    age: Gauges,
    failing: Gauges,
    lag: Durations,
    retries: Counters,
    changes: Counters,
}

impl BackgroundFamilies {
    /// The families that are exposed.
    pub(super) fn new(with: &mut Registered<'_>) -> Self {
        Self {
            leader: with.gauges("ephor_background_leader", "Whether this replica does the work"),
            depth: with.gauges("ephor_background_queue_depth", "Work that is asked for or under way"),
            age: with.gauges("ephor_background_queue_age_seconds", "How long the oldest work that is due has waited"),
            failing: with.gauges("ephor_background_failing", "What a policy wants and cannot be made good"),
            lag: with.durations(
                "ephor_background_convergence_lag_seconds",
                "Time from the moment when work was asked for until it was done, failed tries included",
            ),
            retries: with.counters("ephor_background_retries", "Work that failed and is put off"),
            changes: with.counters("ephor_background_changes", "Changes made for policies"),
        }
    }
}

/// Work of one sort, all of it together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How much there is.
    pub depth: usize,
    /// How long the oldest that is due has waited.
    pub age: Duration,
}

/// How things stand with a leader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackgroundHealth {
    /// Work, by sort; every sort is named.
    pub backlog: BTreeMap<&'static str, Backlog>,
    /// How much cannot be made good, by policy.
    pub failing: BTreeMap<PolicyId, usize>,
    /// How many `UpdateRequest`s there are.
    pub requests: usize,
}

fn of_key(key: &PolicyId) -> [Label<'_>; 2] {
    let namespace = labels::namespace(key.namespace.as_deref().unwrap_or_default());
    [("policy_namespace", namespace), ("policy_name", &key.name)]
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Metrics {
    /// How things stand now; `None` for a replica that does not lead, which has no work.
    pub fn set_background_health(&self, namespace: &str, health: Option<&BackgroundHealth>) {
        let families = self.families();
        let own = &families.background;
        own.leader.set(&[], i64::from(health.is_some()));
        for family in [&own.depth, &own.age, &own.failing] {
            family.clear();
        }
        let Some(health) = health else {
            families.update_requests.clear();
            return;
        };
        for (task, backlog) in &health.backlog {
            let labels = [("task", *task)];
            own.depth.set(&labels, number(backlog.depth));
            own.age.set(&labels, i64::try_from(backlog.age.as_secs()).unwrap_or(i64::MAX));
        }
        for (policy, count) in &health.failing {
            own.failing.set(&of_key(policy), number(*count));
        }
        self.update_requests(namespace, health.requests);
    }

    /// Work for a policy (or for none) came to an end, `lag` after it was asked for.
    pub fn background_done(&self, policy: Option<&PolicyId>, lag: Duration) {
        self.reconciled(CONTROLLER, Reconciled::Done);
        if let Some(policy) = policy {
            self.families().background.lag.observe(&of_key(policy), lag);
        }
    }

    /// Work for a policy (or for none) failed and is put off, for the `times`th time.
    pub fn background_retried(&self, policy: Option<&PolicyId>, times: u32) {
        self.reconciled(CONTROLLER, Reconciled::Again { failures: times });
        if let Some(policy) = policy {
            self.families().background.retries.inc(&of_key(policy));
        }
    }

    /// An `UpdateRequest` of a policy was given up.
    pub fn background_given_up(&self) {
        self.reconciled(CONTROLLER, Reconciled::Dropped);
    }

    /// A change was made for a rule: created, changed, deleted or mutated.
    pub fn background_changed(&self, policy: &PolicyId, rule: &str, change: &'static str) {
        let [namespace, name] = of_key(policy);
        let labels = [namespace, name, ("rule_name", rule), ("change", change)];
        self.families().background.changes.inc(&labels);
    }

    /// Rules of a policy evaluated an object without a request.
    pub fn background_judged(&self, program: &Program, review: &Review, outcomes: &[Outcome], took: Duration) {
        let families = self.families();
        if outcomes.is_empty() || !families.exposure.counts(&review.namespace) {
            return;
        }
        // The bound on kinds and namespaces that are told apart is the one of admission.
        let mut about = super::families::About {
            kind: review.gvk.kind.clone(),
            namespace: labels::namespace_of(&review.gvk.group, &review.gvk.kind, &review.namespace).into(),
            operation: operation(review),
        };
        self.told_apart(&families, &mut about);
        let share = took / u32::try_from(outcomes.len()).unwrap_or(u32::MAX);
        for outcome in outcomes {
            let mut labels = of_program(program).to_vec();
            labels.extend([
                ("resource_kind", about.kind.as_str()),
                ("resource_namespace", about.namespace.as_str()),
                ("resource_request_operation", about.operation),
                ("rule_name", outcome.rule.as_str()),
                ("rule_result", outcome.verdict.as_str()),
                ("rule_type", rule_type(outcome.kind)),
                ("rule_execution_cause", "background_scan"),
                ("dry_run", "false"),
            ]);
            families.policy_results.inc(&labels);
            families.policy_duration.observe(&labels, share);
        }
    }
}

fn operation(review: &Review) -> &'static str {
    super::observe::operation_word(review.operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: Option<&str>) -> PolicyId {
        PolicyId::kyverno(namespace.unwrap_or_default(), "p")
    }

    fn lines(metrics: &Metrics) -> String {
        let text = metrics.text();
        let own = |line: &&str| {
            (line.starts_with("ephor_")
                || line.starts_with("kyverno_updater")
                || line.starts_with("kyverno_controller"))
                && !line.contains("_bucket{")
        };
        let mut lines: Vec<&str> = text.lines().filter(own).collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    #[test]
    fn a_leader_tells_of_its_work_and_others_have_none() {
        let metrics = Metrics::default();
        let health = BackgroundHealth {
            backlog: BTreeMap::from([
                ("reconcile", Backlog { depth: 3, age: Duration::from_millis(2500) }),
                ("request", Backlog::default()),
            ]),
            failing: BTreeMap::from([(key(Some("ns")), 2)]),
            requests: 7,
        };
        metrics.set_background_health("kyverno", Some(&health));
        metrics.background_done(Some(&key(None)), Duration::from_millis(40));
        metrics.background_retried(Some(&key(None)), 2);
        metrics.background_changed(&key(None), "r", "create");
        insta::assert_snapshot!(lines(&metrics), @r#"
        ephor_background_changes_total{policy_namespace="-",policy_name="p",rule_name="r",change="create"} 1
        ephor_background_convergence_lag_seconds_count{policy_namespace="-",policy_name="p"} 1
        ephor_background_convergence_lag_seconds_sum{policy_namespace="-",policy_name="p"} 0.04
        ephor_background_failing{policy_namespace="ns",policy_name="p"} 2
        ephor_background_leader{} 1
        ephor_background_queue_age_seconds{task="reconcile"} 2
        ephor_background_queue_age_seconds{task="request"} 0
        ephor_background_queue_depth{task="reconcile"} 3
        ephor_background_queue_depth{task="request"} 0
        ephor_background_retries_total{policy_namespace="-",policy_name="p"} 1
        kyverno_controller_reconcile_total{controller_name="background-controller"} 1
        kyverno_controller_requeue_total{controller_name="background-controller",num_requeues="2"} 1
        kyverno_updaterequest_total{resource_namespace="kyverno"} 7
        "#);
        metrics.set_background_health("kyverno", None);
        let text = lines(&metrics);
        assert!(text.contains("ephor_background_leader{} 0"), "{text}");
        assert!(
            !text.contains("queue_depth") && !text.contains("failing") && !text.contains("updaterequest"),
            "{text}"
        );
    }
}
