//! Results that no scan can know, on their way to the reports: those of policies without background scans, and what
//! mutate rules did.
//!
//! Replies never wait for this. Results are kept for a moment, in a bounded number, joined by object, and written as
//! `EphemeralReport`s, one for each object however many requests there were. A request that is denied in the end leaves
//! none. At the end of the process what is left is written; a process that is killed loses the last seconds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ephor_cluster::{Cluster, ClusterError, ErrorKind, ListQuery, WriteOptions, object};
use ephor_engine::compile::Program;
use ephor_engine::outcome::RuleKind;
use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};
use ephor_reports::Entry;
use ephor_reports::ephemeral::{API_VERSION, Ephemeral, Origin, kind};
use ephor_reports::report::Scope;

use ephor_runtime::decision::observe::{Decided, Observer};
use ephor_runtime::decision::{AdmissionRequest, Answer, Sender, Webhook};
use ephor_runtime::lease::REPORTS_LEASE;
use ephor_runtime::policies::{PolicyKey, Snapshot};
use ephor_runtime::{CancellationToken, threads};

/// How long results of a request are kept at least: the webhook that validates comes after the one that mutates.
const HOLD: Duration = Duration::from_secs(2);
/// How often results are written.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// How many requests have results waiting at most.
const MAX_WAITING: usize = 2_000;
/// How often it is looked how many `EphemeralReport`s there are, and whether somebody takes them over.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// For how many seconds after its last renewal the lease says that the role runs.
const LEASE_LIFE: i64 = 120;
/// The label that keeps a policy out of reports.
const DISABLED: &str = "reports.kyverno.io/disabled";

/// Which results are reported, and how many `EphemeralReport`s there may be.
#[derive(Debug, Clone)]
pub struct ResultSettings {
    /// Whether results of mutate rules are.
    pub mutate: bool,
    /// Whether results of validate rules are.
    pub validate: bool,
    /// Nothing is written while there are that many.
    pub max_ephemeral: usize,
    /// The namespace of the lease that the reports role holds: without that role nothing is written, for nobody would
    /// take it over. `None` if the role is sure to be there.
    pub lease: Option<Str>,
}

/// Takes results of requests. Clones share everything.
#[derive(Clone)]
pub struct ResultQueue(Arc<Shared>);

struct Shared {
    settings: ResultSettings,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// By the UID of the request.
    requests: HashMap<Str, Request>,
    dropped: u64,
}

/// The results of one request so far.
struct Request {
    since: Instant,
    scope: Scope,
    plural: Str,
    policies: BTreeMap<Str, Str>,
    results: Vec<Value>,
}

impl std::fmt::Debug for ResultQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResultQueue({:?})", self.0.settings)
    }
}

impl ResultQueue {
    /// Begins to take results, and to write them until `stop`; what waits then is written at once.
    pub fn start(cluster: &Arc<dyn Cluster>, settings: ResultSettings, stop: &CancellationToken) -> Self {
        let queue = Self(Arc::new(Shared { settings, waiting: Mutex::default() }));
        let (owned, cluster, ended) = (queue.clone(), Arc::clone(cluster), stop.clone());
        threads::spawn("admission results", threads::SMALL, stop, move || {
            let mut writer = Writer { cluster, settings: owned.0.settings.clone(), room: None };
            while !ended.wait(FLUSH_INTERVAL) {
                owned.flush(&mut writer, Instant::now().checked_sub(HOLD));
            }
            owned.flush(&mut writer, Some(Instant::now()));
        });
        queue
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the results of requests that have been waiting since `before`.
    fn flush(&self, writer: &mut Writer, before: Option<Instant>) {
        let Some(before) = before else { return };
        let (due, dropped) = {
            let mut waiting = self.lock();
            let due: Vec<(Str, Request)> = waiting.requests.extract_if(|_, request| request.since <= before).collect();
            (due, std::mem::take(&mut waiting.dropped))
        };
        if dropped > 0 {
            tracing::warn!(requests = dropped, "results are not reported: too many requests at once");
        }
        for report in joined(due) {
            writer.write(&report);
        }
    }

    fn wants(&self, kind: RuleKind, program: &Program) -> bool {
        match kind {
            // Scans judge these.
            RuleKind::Validate => self.0.settings.validate && !program.background,
            RuleKind::Mutate => self.0.settings.mutate,
            RuleKind::Generate => false,
        }
    }
}

/// One report for each object. Of two results of a rule the later counts.
fn joined(mut requests: Vec<(Str, Request)>) -> Vec<Ephemeral> {
    requests.sort_by_key(|(_, request)| request.since);
    let mut reports: BTreeMap<(Str, Str, Str, Str), Ephemeral> = BTreeMap::new();
    for (uid, request) in requests {
        let scope = request.scope;
        // Of an object that never got a name nothing is known.
        if scope.name.is_empty() {
            continue;
        }
        let key = (scope.api_version.clone(), scope.kind.clone(), scope.namespace.clone(), scope.name.clone());
        let report = reports.entry(key).or_insert_with(|| Ephemeral {
            prefix: uid,
            origin: Origin::Admission,
            scope: scope.clone(),
            plural: request.plural,
            policies: Vec::new(),
            results: Vec::new(),
        });
        if !scope.uid.is_empty() {
            report.scope = scope;
        }
        let rule = |result: &Value| ["policy", "rule"].map(|key| Str::new(result.str_at(&[key]).unwrap_or_default()));
        let newer: BTreeSet<[Str; 2]> = request.results.iter().map(rule).collect();
        report.results.retain(|result| !newer.contains(&rule(result)));
        report.results.extend(request.results);
        for (policy, version) in request.policies {
            report.policies.retain(|(known, _)| *known != policy);
            report.policies.push((policy, version));
        }
    }
    reports.into_values().collect()
}

impl Observer for ResultQueue {
    fn decided(&self, decided: &Decided<'_>) {
        let request = decided.request;
        // Results of what may never have been asked for would be reported of any object, in any number.
        if request.sender == Sender::Unproven {
            return;
        }
        if decided.blocked {
            self.lock().requests.remove(&request.uid);
            return;
        }
        let of_object = request.sub_resource.is_empty() && request.operation != Operation::Delete;
        if !of_object || request.dry_run || decided.gvk.kind == "Event" || request.operation == Operation::Connect {
            return;
        }
        let wanted = decided.outcomes.iter().filter_map(|outcome| {
            let program = decided.programs.get(outcome.policy)?;
            let version = reported(decided.snapshot, program)?;
            self.wants(outcome.kind, program).then_some((program, version, outcome))
        });
        let mut policies = BTreeMap::new();
        let mut results = Vec::new();
        for (program, version, outcome) in wanted {
            policies.insert(program.key.clone(), version);
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
        let mut waiting = self.lock();
        if waiting.requests.len() >= MAX_WAITING && !waiting.requests.contains_key(&request.uid) {
            waiting.dropped += 1;
            return;
        }
        let known = waiting.requests.entry(request.uid.clone()).or_insert_with(|| Request {
            since: Instant::now(),
            scope: scope.clone(),
            plural: request.resource.resource.clone(),
            policies: BTreeMap::new(),
            results: Vec::new(),
        });
        // Only the webhook that validates knows the name and the UID of a new object.
        if !scope.uid.is_empty() || known.scope.name.is_empty() {
            known.scope = scope;
        }
        known.policies.extend(policies);
        known.results.extend(results);
    }

    fn answered(&self, request: &AdmissionRequest, _: Webhook, answer: &Answer, _: Duration) {
        if !answer.allowed && request.sender == Sender::ApiServer {
            self.lock().requests.remove(&request.uid);
        }
    }
}

/// The version of a policy that is reported.
fn reported(snapshot: &Snapshot, program: &Program) -> Option<Str> {
    let key = PolicyKey { namespace: program.namespace.clone(), name: program.name.clone() };
    let policy = snapshot.policies.get(&key)?;
    let disabled = policy.document.at(&["metadata", "labels", DISABLED]).is_some();
    (!disabled).then(|| Str::new(policy.resource_version()))
}

/// Writes `EphemeralReport`s.
struct Writer {
    cluster: Arc<dyn Cluster>,
    settings: ResultSettings,
    /// How many more may be written, and when that was looked at.
    room: Option<(Instant, usize)>,
}

impl Writer {
    fn write(&mut self, report: &Ephemeral) {
        if !self.has_room() {
            tracing::debug!(name = %report.scope.name, "results are not reported: too many wait to be taken over");
            return;
        }
        let object = report.object();
        let created = self
            .cluster
            .resolve(API_VERSION, kind(!object::namespace(&object).is_empty()))
            .and_then(|kind| self.cluster.create(&kind, object, &WriteOptions::default()));
        match created {
            Ok(_) => {}
            // Without its namespace, or without reports, there is nobody to tell.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                tracing::debug!(%error, "results cannot be reported");
            }
            Err(error) => tracing::warn!(%error, name = %report.scope.name, "results cannot be reported"),
        }
    }

    /// Takes room for another one, if there is some.
    fn has_room(&mut self) -> bool {
        let now = Instant::now();
        let (at, room) = match self.room {
            Some((at, room)) if at.elapsed() < LOOK_INTERVAL => (at, room),
            _ => (now, self.look()),
        };
        self.room = Some((at, room.saturating_sub(1)));
        room > 0
    }

    /// How many may be written now.
    fn look(&self) -> usize {
        if let Some(namespace) = &self.settings.lease
            && !is_held(&*self.cluster, namespace)
        {
            tracing::debug!("results of requests are not reported: the reports role does not run");
            return 0;
        }
        // That the number cannot be found out keeps nothing from being written.
        let limit = self.settings.max_ephemeral;
        let count = count(&*self.cluster, limit).unwrap_or_default();
        if count >= limit {
            tracing::warn!(count, "results of requests are not reported: too many EphemeralReports wait");
        }
        limit.saturating_sub(count)
    }
}

/// Whether the reports role has a leader.
fn is_held(cluster: &dyn Cluster, namespace: &str) -> bool {
    let lease = cluster
        .resolve("coordination.k8s.io/v1", "Lease")
        .and_then(|kind| cluster.get(&kind, Some(namespace), REPORTS_LEASE));
    let renewed = lease.ok().and_then(|lease| {
        lease.str_at(&["spec", "holderIdentity"]).filter(|holder| !holder.is_empty())?;
        lease.str_at(&["spec", "renewTime"])?.parse::<jiff::Timestamp>().ok()
    });
    renewed.is_some_and(|at| jiff::Timestamp::now().as_second() - at.as_second() < LEASE_LIFE)
}

/// How many there are; counting ends at `limit`.
fn count(cluster: &dyn Cluster, limit: usize) -> Result<usize, ClusterError> {
    let resource = cluster.resolve(API_VERSION, kind(true))?;
    let mut query = ListQuery::all().metadata_only().limit(500);
    let mut count = 0;
    loop {
        let page = cluster.list(&resource, &query)?;
        count += page.items.len();
        match page.continue_token.filter(|token| !token.is_empty()) {
            Some(token) if count < limit => query.continue_token = Some(token),
            _ => return Ok(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_cluster::MemoryCluster;
    use ephor_engine::evaluation::{Evaluation, Step};
    use ephor_engine::fetch::Facts;
    use ephor_engine::matching::Gvk;
    use ephor_engine::outcome::Phase;
    use ephor_expr::yaml::parse_value;

    use super::*;
    use ephor_runtime::policies::{ExceptionScope, PolicyStore};
    use ephor_runtime::watcher::StoreEvent;

    struct Bench {
        cluster: Arc<dyn Cluster>,
        store: PolicyStore,
        queue: ResultQueue,
        writer: Writer,
    }

    impl Bench {
        fn new(max_ephemeral: usize) -> Self {
            let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
            let store = PolicyStore::new(ExceptionScope::Disabled);
            for background in [true, false] {
                let policy = format!(
                    "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p-{background}}}, spec: {{background: \
                     {background}, rules: [{{name: r, match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, validate: {{message: \
                     never, pattern: {{data: {{v: good}}}}}}}}]}}}}"
                );
                store.apply("ClusterPolicy", StoreEvent::Apply(parse_value(&policy).unwrap()));
            }
            let settings = ResultSettings { mutate: true, validate: true, max_ephemeral, lease: None };
            let writer = Writer { cluster: Arc::clone(&cluster), settings: settings.clone(), room: None };
            let queue = ResultQueue(Arc::new(Shared { settings, waiting: Mutex::default() }));
            Self { cluster, store, queue, writer }
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
            self.queue.decided(&Decided {
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
        fn written(&mut self) -> Vec<String> {
            self.queue.flush(&mut self.writer, Some(Instant::now()));
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
        let mut bench = Bench::new(10);
        bench.decide("1", "one", "bad", false, false);
        bench.decide("2", "one", "good", false, false);
        bench.decide("3", "two", "bad", false, false);
        assert_eq!(bench.written(), ["one: p-false=pass", "two: p-false=fail"]);
    }

    #[test]
    fn requests_that_change_nothing_leave_nothing() {
        let mut bench = Bench::new(10);
        bench.decide("1", "one", "bad", true, false);
        bench.decide("2", "two", "bad", false, true);
        bench.decide("3", "three", "bad", false, false);
        let request = AdmissionRequest::of_value(&parse_value("{uid: '3', operation: CREATE}").unwrap()).unwrap();
        bench.queue.answered(&request, Webhook::Validate, &Answer::deny("by another webhook"), Duration::ZERO);
        assert_eq!(bench.written(), [""; 0]);
    }

    #[test]
    fn a_review_of_an_unproven_sender_leaves_nothing_and_takes_nothing_away() {
        let mut bench = Bench::new(10);
        bench.decide_for(Sender::Unproven, ("1", "one", "bad"), false, false);
        bench.decide("2", "two", "bad", false, false);
        bench.decide_for(Sender::Unproven, ("2", "two", "bad"), true, false);
        let request = AdmissionRequest::of_value(&parse_value("{uid: '2', operation: CREATE}").unwrap()).unwrap();
        let request = AdmissionRequest { sender: Sender::Unproven, ..request };
        bench.queue.answered(&request, Webhook::Validate, &Answer::deny("forged"), Duration::ZERO);
        assert_eq!(bench.written(), ["two: p-false=fail"]);
    }

    #[test]
    fn nothing_is_written_while_nobody_takes_it_over() {
        let mut bench = Bench::new(1);
        for (uid, name) in [("1", "one"), ("2", "two")] {
            bench.decide(uid, name, "bad", false, false);
        }
        assert_eq!(bench.written().len(), 1);
    }

    #[test]
    fn without_the_reports_role_nothing_is_written() {
        let mut bench = Bench::new(10);
        bench.writer.settings.lease = Some("kyverno".into());
        bench.decide("1", "one", "bad", false, false);
        assert_eq!(bench.written(), [""; 0]);
        for text in [
            "{apiVersion: v1, kind: Namespace, metadata: {name: kyverno}}".to_owned(),
            format!(
                "{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: {REPORTS_LEASE}, namespace: kyverno}}, spec: \
                 {{holderIdentity: me, renewTime: '{}'}}}}",
                jiff::Timestamp::now()
            ),
        ] {
            let wanted = parse_value(&text).unwrap();
            let version = wanted.str_at(&["apiVersion"]).unwrap().to_owned();
            let kind = bench.cluster.resolve(&version, wanted.str_at(&["kind"]).unwrap()).unwrap();
            bench.cluster.create(&kind, wanted, &WriteOptions::default()).unwrap();
        }
        bench.writer.room = None;
        bench.decide("2", "one", "bad", false, false);
        assert_eq!(bench.written(), ["one: p-false=fail"]);
    }
}
