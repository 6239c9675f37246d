//! Records Events for admission decisions.

use ephor_engine::outcome::{Outcome, RuleKind, Verdict};
use ephor_expr::Str;

use super::event::{Action, Component, Reason, Reference};
use super::notes::{Admitted, RuleResult, judged};
use super::recorder::Recorder;
use crate::decision::observe::{Decided, Observer};
use crate::decision::path::Webhook;
use crate::decision::{AdmissionRequest, Answer, Sender};

impl Observer for Recorder {
    fn decided(&self, decided: &Decided<'_>) {
        // A review that no API server sent would put Events on any object, in any number.
        if decided.request.sender == Sender::Unproven {
            return;
        }
        if !decided.outcomes.iter().any(|outcome| self.would_tell(outcome)) {
            return;
        }
        let object = subject(decided);
        let admitted = if decided.blocked { Admitted::No } else { Admitted::Yes };
        for (index, program) in decided.programs.iter().enumerate() {
            let outcomes = decided.outcomes.iter().filter(|outcome| outcome.policy == index);
            let results: Vec<RuleResult<'_>> = outcomes.map(result).collect();
            if let (false, Some(policy)) = (results.is_empty(), decided.snapshot.policies.get(&program.id)) {
                self.record(judged(Component::Admission, &Reference::policy(policy), &object, &results, admitted));
            }
        }
    }

    fn answered(&self, _: &AdmissionRequest, _: Webhook, _: &Answer, _: std::time::Duration) {}
}

impl Recorder {
    /// Whether an outcome leads to an Event: most do not, and then nothing is put together.
    fn would_tell(&self, outcome: &Outcome) -> bool {
        match (outcome.verdict, outcome.kind) {
            (Verdict::Pass, RuleKind::Validate) => self.wants(Reason::Applied, Action::Passed),
            (Verdict::Pass, RuleKind::Mutate) => self.wants(Reason::Applied, Action::Mutated),
            (Verdict::Pass, RuleKind::Generate | RuleKind::Delete) => false,
            (Verdict::Skip, _) => outcome.detail.as_ref().is_some_and(|detail| !detail.exceptions.is_empty()),
            (Verdict::Fail | Verdict::Warn | Verdict::Error, _) => true,
        }
    }
}

fn result(outcome: &Outcome) -> RuleResult<'_> {
    RuleResult {
        rule: &outcome.rule,
        kind: outcome.kind,
        verdict: outcome.verdict,
        message: &outcome.message,
        exceptions: outcome.detail.as_ref().map(|detail| detail.exceptions.as_slice()).unwrap_or_default(),
    }
}

/// The object of the request. The API server may not have named it yet.
fn subject(decided: &Decided<'_>) -> Reference {
    let request = decided.request;
    let version = &decided.gvk.version;
    let api_version =
        if decided.gvk.group.is_empty() { version.clone() } else { format!("{}/{version}", decided.gvk.group).into() };
    Reference {
        api_version,
        kind: decided.gvk.kind.clone(),
        // A request about a Namespace is made in the Namespace itself.
        namespace: if decided.gvk.is_namespace() { Str::default() } else { request.namespace.clone() },
        name: request.name.clone(),
        uid: Str::new(decided.object.str_at(&["metadata", "uid"]).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use ephor_cluster::{ListQuery, MemoryCluster};
    use ephor_engine::evaluation::{Evaluation, Step};
    use ephor_engine::fetch::Facts;
    use ephor_engine::matching::Gvk;
    use ephor_engine::outcome::Phase;
    use ephor_expr::Value;
    use ephor_expr::yaml::parse_value;

    use super::*;
    use crate::cancellation::CancellationToken;
    use crate::events::{EventSettings, SuccessEvents};
    use crate::metrics::Metrics;
    use crate::policies::{ExceptionScope, PolicyStore, StoredKind};
    use crate::watcher::StoreEvent;

    /// Lets a policy with one deny rule for objects called `bad` judge one that is called `name`.
    fn judge(name: &str, blocked: bool, observers: &[&dyn Observer]) {
        judge_of(Sender::ApiServer, name, blocked, observers);
    }

    /// The same, in a review of that sender.
    fn judge_of(sender: Sender, name: &str, blocked: bool, observers: &[&dyn Observer]) {
        let store = PolicyStore::new(ExceptionScope::Disabled);
        let policy = parse_value(
            "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: \
             [{resources: {kinds: [ConfigMap]}}]}, validate: {failureAction: Enforce, message: never, deny: {conditions: {any: \
             [{key: '{{ request.object.metadata.name }}', operator: Equals, value: bad}]}}}}]}}",
        );
        store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(policy.unwrap()));
        let snapshot = store.snapshot();
        let text = format!(
            "{{operation: CREATE, namespace: default, name: {name}, kind: {{group: '', version: v1, kind: ConfigMap}}, object: \
             {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default}}}}}}"
        );
        let request = AdmissionRequest::of_value(&parse_value(&text).unwrap()).unwrap();
        let request = AdmissionRequest { sender, ..request };
        let gvk = Gvk::new("v1", "ConfigMap");
        let review = request.review(gvk.clone(), request.user.clone(), jiff::Timestamp::UNIX_EPOCH, 0);
        let mut evaluation = Evaluation::new(&snapshot.set, &snapshot.exceptions, review, Phase::Validate);
        assert!(matches!(evaluation.step(&Facts::new()), Step::Done));
        let outcomes = evaluation.finish().outcomes;
        for observer in observers {
            observer.decided(&Decided {
                phase: Phase::Validate,
                request: &request,
                gvk: &gvk,
                object: &request.object,
                snapshot: &snapshot,
                programs: snapshot.set.programs(),
                outcomes: &outcomes,
                explained: &[],
                blocked,
                took: Duration::from_millis(3),
            });
            observer.answered(
                &request,
                Webhook::Validate,
                &Answer { allowed: !blocked, ..Answer::default() },
                Duration::ZERO,
            );
        }
    }

    #[test]
    fn decisions_become_events() {
        let memory = MemoryCluster::default();
        let kind = ephor_cluster::Cluster::resolve(&memory, "events.k8s.io/v1", "Event").unwrap();
        let cluster: Arc<dyn ephor_cluster::Cluster> = Arc::new(memory);
        let stop = CancellationToken::new();
        let recorder = Recorder::start(
            &cluster,
            EventSettings::default(),
            prometheus_client::metrics::counter::Counter::default(),
            &stop,
        );
        judge("good", false, &[&recorder]);
        judge("bad", true, &[&recorder]);
        judge_of(Sender::Unproven, "bad", false, &[&recorder]);
        recorder.set_success_events(SuccessEvents::All);
        judge("good", false, &[&recorder]);
        let mut notes = Vec::new();
        for _ in 0..1000 {
            let events = cluster.list(&kind, &ListQuery::all()).unwrap().items;
            notes = events.iter().map(|e: &Value| e.str_at(&["note"]).unwrap().to_owned()).collect();
            if notes.len() == 2 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        notes.sort();
        assert_eq!(notes, ["ConfigMap default/bad: [r] fail (blocked); never", "ConfigMap default/good: pass"]);
        stop.cancel();
    }

    #[test]
    fn decisions_are_counted() {
        let metrics = Metrics::default();
        judge("good", false, &[&metrics]);
        judge("bad", true, &[&metrics]);
        judge("bad", true, &[&metrics]);
        let text = metrics.text();
        let mut lines: Vec<&str> = text
            .lines()
            .filter(|line| {
                line.contains("_results_total{")
                    || line.contains("_requests_total{")
                    || line.contains("_seconds_count{")
            })
            .collect();
        lines.sort_unstable();
        insta::assert_snapshot!(lines.join("\n"), @r#"
kyverno_admission_requests_total{resource_kind="ConfigMap",resource_namespace="default",resource_request_operation="create",request_allowed="false",request_webhook="ValidatingWebhookConfiguration"} 2
kyverno_admission_requests_total{resource_kind="ConfigMap",resource_namespace="default",resource_request_operation="create",request_allowed="true",request_webhook="ValidatingWebhookConfiguration"} 1
kyverno_admission_review_duration_seconds_count{resource_kind="ConfigMap",resource_namespace="default",resource_request_operation="create",request_allowed="false",request_webhook="ValidatingWebhookConfiguration"} 2
kyverno_admission_review_duration_seconds_count{resource_kind="ConfigMap",resource_namespace="default",resource_request_operation="create",request_allowed="true",request_webhook="ValidatingWebhookConfiguration"} 1
kyverno_policy_execution_duration_seconds_count{policy_validation_mode="enforce",policy_type="cluster",policy_background_mode="true",policy_namespace="-",policy_name="p",resource_kind="ConfigMap",resource_namespace="default",resource_request_operation="create",rule_name="r",rule_result="fail",rule_type="validate",rule_execution_cause="admission_request",dry_run="false"} 2
kyverno_policy_execution_duration_seconds_count{policy_validation_mode="enforce",policy_type="cluster",policy_background_mode="true",policy_namespace="-",policy_name="p",resource_kind="ConfigMap",resource_namespace="default",resource_request_operation="create",rule_name="r",rule_result="pass",rule_type="validate",rule_execution_cause="admission_request",dry_run="false"} 1
kyverno_policy_results_total{policy_validation_mode="enforce",policy_type="cluster",policy_background_mode="true",policy_namespace="-",policy_name="p",resource_kind="ConfigMap",resource_namespace="default",resource_request_operation="create",rule_name="r",rule_result="fail",rule_type="validate",rule_execution_cause="admission_request",dry_run="false"} 2
kyverno_policy_results_total{policy_validation_mode="enforce",policy_type="cluster",policy_background_mode="true",policy_namespace="-",policy_name="p",resource_kind="ConfigMap",resource_namespace="default",resource_request_operation="create",rule_name="r",rule_result="pass",rule_type="validate",rule_execution_cause="admission_request",dry_run="false"} 1
"#);
    }
}
