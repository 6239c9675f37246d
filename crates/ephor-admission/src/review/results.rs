//! Writes `EphemeralReport`s for results that a scan cannot produce: policies without background scans, mutate rules.
//!
//! An observer of decisions that puts results into the role's [`ResultQueue`]. A request that is denied in the end
//! leaves none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ephor_engine::compile::Program;
use ephor_engine::outcome::RuleKind;
use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};
use ephor_reports::Entry;
use ephor_reports::ephemeral::Origin;
use ephor_reports::report::{Reported, Scope};
use ephor_runtime::decision::observe::{Decided, Observer};
use ephor_runtime::decision::{AdmissionRequest, Answer, Sender, Webhook};
use ephor_runtime::results::{QueueSettings, ResultQueue, Results, reported_version};

/// How long results of a request stay in the queue: the webhook that validates comes after the one that mutates.
const HOLD: Duration = Duration::from_secs(2);
/// How many requests have results in the queue at most.
const CAPACITY: usize = 2_000;

/// The settings of the queue for results of requests.
pub fn queue_settings(max_ephemeral: usize, lease: Option<Str>) -> QueueSettings {
    QueueSettings { origin: Origin::Admission, hold: HOLD, capacity: CAPACITY, max_ephemeral, lease }
}

/// Takes the results of requests.
#[derive(Debug)]
pub struct RequestResults {
    queue: ResultQueue,
    reported: BTreeSet<Reported>,
}

impl RequestResults {
    /// Puts the results of these sorts of rules into `queue`.
    pub fn new(queue: ResultQueue, reported: BTreeSet<Reported>) -> Self {
        Self { queue, reported }
    }

    fn wants(&self, kind: RuleKind, program: &Program) -> bool {
        match kind {
            // Scans judge the others.
            RuleKind::Validate => self.reported.contains(&Reported::Validate) && !program.background,
            RuleKind::Mutate => {
                let scanned = program.id.kind.is_of_cel() && program.background;
                self.reported.contains(&Reported::Mutate) && !scanned
            }
            // The background role reports what is generated; no request is about a deletion on a schedule.
            RuleKind::Generate | RuleKind::Delete => false,
        }
    }
}

impl Observer for RequestResults {
    fn decided(&self, decided: &Decided<'_>) {
        let request = decided.request;
        // An unproven sender could fill reports with results about any object.
        if request.sender == Sender::Unproven {
            return;
        }
        if decided.blocked {
            self.queue.remove(&request.uid);
            return;
        }
        let of_object = request.sub_resource.is_empty() && request.operation != Operation::Delete;
        if !of_object || request.dry_run || decided.gvk.kind == "Event" || request.operation == Operation::Connect {
            return;
        }
        let wanted = decided.outcomes.iter().filter_map(|outcome| {
            let program = decided.programs.get(outcome.policy)?;
            let version = reported_version(decided.snapshot, &program.id)?;
            self.wants(outcome.kind, program).then_some((program, version, outcome))
        });
        let mut policies = BTreeMap::new();
        let mut results = Vec::new();
        for (program, version, outcome) in wanted {
            policies.insert(program.id.clone(), version);
            results.push(Value::object(Entry::of(program, outcome).members()));
        }
        if results.is_empty() {
            return;
        }
        let mut scope = Scope::of(decided.object);
        scope.api_version = ephor_cluster::resource::join_api_version(&decided.gvk.group, &decided.gvk.version);
        scope.kind = decided.gvk.kind.clone();
        scope.namespace = if decided.gvk.is_namespace() { Str::default() } else { request.namespace.clone() };
        if scope.name.is_empty() {
            scope.name = request.name.clone();
        }
        let first = || Results { plural: request.resource.resource.clone(), ..Results::about(scope.clone()) };
        self.queue.update(&request.uid, first, |known| {
            // Only the webhook that validates knows the name and the UID of a new object.
            if !scope.uid.is_empty() || known.scope.name.is_empty() {
                known.scope = scope.clone();
            }
            known.policies.extend(policies);
            known.results.extend(results);
        });
    }

    fn answered(&self, request: &AdmissionRequest, _: Webhook, answer: &Answer, _: Duration) {
        if !answer.allowed && request.sender == Sender::ApiServer {
            self.queue.remove(&request.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use ephor_cluster::{Cluster, ListQuery, MemoryCluster};
    use ephor_engine::evaluation::{Evaluation, Step};
    use ephor_engine::fetch::Facts;
    use ephor_engine::matching::Gvk;
    use ephor_engine::outcome::Phase;
    use ephor_expr::yaml::parse_value;

    use ephor_reports::ephemeral::API_VERSION;
    use ephor_runtime::policies::{ExceptionScope, PolicyStore, StoredKind};
    use ephor_runtime::watcher::StoreEvent;

    use super::*;

    struct Harness {
        cluster: Arc<dyn Cluster>,
        store: PolicyStore,
        queue: ResultQueue,
        observer: RequestResults,
    }

    impl Harness {
        fn new() -> Self {
            let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
            let store = PolicyStore::new(ExceptionScope::Disabled);
            for background in [true, false] {
                let policy = format!(
                    "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p-{background}}}, spec: {{background: \
                     {background}, rules: [{{name: r, match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, validate: {{message: \
                     never, pattern: {{data: {{v: good}}}}}}}}]}}}}"
                );
                store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(parse_value(&policy).unwrap()));
            }
            let queue = ResultQueue::new(&cluster, queue_settings(10, None));
            let observer = RequestResults::new(queue.clone(), [Reported::Validate, Reported::Mutate].into());
            Self { cluster, store, queue, observer }
        }

        fn decide(&self, uid: &str, name: &str, value: &str, blocked: bool, dry_run: bool) {
            self.decide_for(Sender::ApiServer, (uid, name, value), blocked, dry_run);
        }

        fn decide_for(&self, sender: Sender, (uid, name, value): (&str, &str, &str), blocked: bool, dry_run: bool) {
            let text = format!(
                "{{uid: '{uid}', operation: CREATE, namespace: default, name: {name}, dryRun: {dry_run}, kind: {{group: '', version: \
                 v1, kind: ConfigMap}}, resource: {{group: '', version: v1, resource: configmaps}}, object: {{apiVersion: v1, \
                 kind: ConfigMap, metadata: {{name: {name}, namespace: default, uid: u-{name}}}, data: {{v: {value}}}}}}}"
            );
            let request = AdmissionRequest::of_value(&parse_value(&text).unwrap()).unwrap();
            let request = AdmissionRequest { sender, ..request };
            let (snapshot, gvk) = (self.store.snapshot(), Gvk::new("v1", "ConfigMap"));
            let review = request.review(gvk.clone(), request.user.clone(), jiff::Timestamp::UNIX_EPOCH, 0);
            let mut evaluation = Evaluation::new(&snapshot.set, &snapshot.exceptions, review, Phase::Validate);
            assert!(matches!(evaluation.step(&Facts::new()), Step::Done));
            self.observer.decided(&Decided {
                phase: Phase::Validate,
                request: &request,
                gvk: &gvk,
                object: &request.object,
                snapshot: &snapshot,
                programs: snapshot.set.programs(),
                outcomes: &evaluation.finish().outcomes,
                explained: &[],
                blocked,
                took: Duration::ZERO,
            });
        }

        /// `name: policy=result …` of what was written.
        fn written(&self) -> Vec<String> {
            self.queue.flush(Instant::now());
            let resource = self.cluster.resolve(API_VERSION, "EphemeralReport").unwrap();
            let word = |report: &Value| {
                let results = report.at(&["spec", "results"]).and_then(Value::as_array).unwrap();
                let results = results.iter().map(|result| {
                    format!(" {}={}", result.str_at(&["policy"]).unwrap(), result.str_at(&["result"]).unwrap())
                });
                let name = report.str_at(&["metadata", "annotations", "audit.kyverno.io/resource.name"]).unwrap();
                format!("{name}:{}", results.collect::<String>())
            };
            let mut words: Vec<String> =
                self.cluster.list(&resource, &ListQuery::all()).unwrap().items.iter().map(word).collect();
            words.sort();
            words
        }
    }

    #[test]
    fn only_what_no_scan_knows_is_left_and_once_for_each_object() {
        let harness = Harness::new();
        harness.decide("1", "one", "bad", false, false);
        harness.decide("2", "one", "good", false, false);
        harness.decide("3", "two", "bad", false, false);
        assert_eq!(harness.written(), ["one: p-false=pass", "two: p-false=fail"]);
    }

    #[test]
    fn requests_that_change_nothing_leave_nothing() {
        let harness = Harness::new();
        harness.decide("1", "one", "bad", true, false);
        harness.decide("2", "two", "bad", false, true);
        harness.decide("3", "three", "bad", false, false);
        let request = AdmissionRequest::of_value(&parse_value("{uid: '3', operation: CREATE}").unwrap()).unwrap();
        harness.observer.answered(&request, Webhook::Validate, &Answer::deny("by another webhook"), Duration::ZERO);
        assert_eq!(harness.written(), [""; 0]);
    }

    #[test]
    fn a_review_of_an_unproven_sender_leaves_nothing_and_takes_nothing_away() {
        let harness = Harness::new();
        harness.decide_for(Sender::Unproven, ("1", "one", "bad"), false, false);
        harness.decide("2", "two", "bad", false, false);
        harness.decide_for(Sender::Unproven, ("2", "two", "bad"), true, false);
        let request = AdmissionRequest::of_value(&parse_value("{uid: '2', operation: CREATE}").unwrap()).unwrap();
        let request = AdmissionRequest { sender: Sender::Unproven, ..request };
        harness.observer.answered(&request, Webhook::Validate, &Answer::deny("forged"), Duration::ZERO);
        assert_eq!(harness.written(), ["two: p-false=fail"]);
    }
}
