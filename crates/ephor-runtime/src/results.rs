//! Results that no scan can know, on their way to the reports.
//!
//! The admission role knows what requests did, the background role what generate and mutate-existing rules did. Neither
//! waits for reports to be written: results stay in a bounded queue for a moment, are joined by object, and are written
//! as `EphemeralReport`s, which the reports role takes over. At the end of the process the rest is written; a process
//! that is killed loses the last seconds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::{Cluster, ClusterError, ErrorKind, ListQuery, WriteOptions, object};
use ephor_expr::{Str, Value};
use ephor_reports::entry::ResultRule;
use ephor_reports::ephemeral::{API_VERSION, Ephemeral, Origin, kind};
use ephor_reports::report::{DISABLED, Scope};
use parking_lot::{Mutex, MutexGuard};

use crate::cancellation::CancellationToken;
use crate::lease::REPORTS_LEASE;
use crate::policies::{PolicyId, Snapshot};
use crate::threads;

/// How often results are written.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is looked how many `EphemeralReport`s there are, and whether the reports role runs.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// For how many seconds after its last renewal the lease says that the reports role runs.
const LEASE_LIFE: i64 = 120;

/// What a queue holds and writes.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// Which role it is.
    pub origin: Origin,
    /// How long results stay in the queue at least, because more of the same request may come.
    pub hold: Duration,
    /// How many requests or objects have results in the queue at most, half of them of one namespace; further ones are
    /// dropped, counted and logged.
    pub capacity: usize,
    /// Nothing is written while there are that many `EphemeralReport`s.
    pub max_ephemeral: usize,
    /// The namespace of the reports role's lease. While that role does not run nothing is written, because nothing
    /// would delete it. `None` if the role runs in the same process.
    pub lease: Option<Str>,
}

/// Results about one object.
#[derive(Debug, Clone)]
pub struct Results {
    /// The object.
    pub scope: Scope,
    /// The name of its kind in URLs; empty where no request names it.
    pub plural: Str,
    /// The policies, each with its version.
    pub policies: BTreeMap<PolicyId, Str>,
    /// The rendered results.
    pub results: Vec<Value>,
}

impl Results {
    /// The bytes of the results, about.
    fn bytes(&self) -> usize {
        self.results.iter().map(Value::memory).sum()
    }

    /// No results about an object yet.
    pub fn about(scope: Scope) -> Self {
        Self { scope, plural: Str::default(), policies: BTreeMap::new(), results: Vec::new() }
    }
}

/// Takes results. Clones share everything.
#[derive(Clone)]
pub struct ResultQueue(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    capacity: usize,
    hold: Duration,
    writer: Mutex<Writer>,
}

#[derive(Default)]
struct Waiting {
    /// By the UID of the request or of the object.
    results: HashMap<Str, Entry>,
    /// The bytes of all results, about.
    bytes: usize,
    dropped: u64,
}

/// Results that wait.
struct Entry {
    since: Instant,
    results: Results,
    /// Their bytes, about.
    bytes: usize,
}

/// How many bytes of results wait at most.
const MOST_BYTES: usize = 32 << 20;
/// How long the results of one `EphemeralReport` get, in bytes of JSON: an API server takes 1.5 MiB.
const MOST_REPORTED: usize = 1 << 20;

impl Waiting {
    /// Whether there is no room for more of `namespace`: it has at most as many as are free for all others, so that
    /// one namespace cannot keep the results of others out.
    fn is_full(&self, namespace: &str, capacity: usize) -> bool {
        let free = capacity.saturating_sub(self.results.len());
        let free_bytes = MOST_BYTES.saturating_sub(self.bytes);
        if namespace.is_empty() || self.results.len() < free && self.bytes < free_bytes {
            return free == 0 || free_bytes == 0;
        }
        let own = self.results.values().filter(|entry| entry.results.scope.namespace == namespace);
        let (count, bytes) = own.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.bytes));
        count >= free || bytes >= free_bytes
    }
}

impl std::fmt::Debug for ResultQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResultQueue({} waiting)", self.lock().results.len())
    }
}

impl ResultQueue {
    /// A queue from which nothing is written until [`ResultQueue::flush`].
    pub fn new(cluster: &Arc<dyn Cluster>, settings: QueueSettings) -> Self {
        let (capacity, hold) = (settings.capacity, settings.hold);
        let writer = Mutex::new(Writer { cluster: Arc::clone(cluster), settings, room: None });
        Self(Arc::new(Shared { waiting: Mutex::default(), capacity, hold, writer }))
    }

    /// A queue with a thread that writes until `stop`; it writes what is left then.
    pub fn start(cluster: &Arc<dyn Cluster>, settings: QueueSettings, stop: &CancellationToken) -> Self {
        let queue = Self::new(cluster, settings);
        let (owned, ended) = (queue.clone(), stop.clone());
        threads::spawn("results", threads::SMALL, stop, move || {
            while !ended.wait(FLUSH_INTERVAL) {
                if let Some(before) = Instant::now().checked_sub(owned.0.hold) {
                    owned.flush(before);
                }
            }
            owned.flush(Instant::now());
        });
        queue
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock()
    }

    /// Changes the results that wait under a UID; `first` makes them if there are none. New UIDs are dropped where the
    /// queue has no room for their namespace.
    pub fn update(&self, uid: &Str, first: impl FnOnce() -> Results, change: impl FnOnce(&mut Results)) {
        let mut waiting = self.lock();
        let Waiting { results, bytes, .. } = &mut *waiting;
        if let Some(known) = results.get_mut(uid) {
            change(&mut known.results);
            *bytes -= known.bytes;
            known.bytes = known.results.bytes();
            *bytes += known.bytes;
            return;
        }
        let mut added = first();
        if waiting.is_full(&added.scope.namespace, self.0.capacity) {
            waiting.dropped += 1;
            return;
        }
        change(&mut added);
        let entry = Entry { since: Instant::now(), bytes: added.bytes(), results: added };
        waiting.bytes += entry.bytes;
        waiting.results.insert(uid.clone(), entry);
    }

    /// Forgets the results under a UID.
    pub fn remove(&self, uid: &Str) {
        let mut waiting = self.lock();
        if let Some(gone) = waiting.results.remove(uid) {
            waiting.bytes -= gone.bytes;
        }
    }

    /// Writes the results that have been waiting since `before`.
    pub fn flush(&self, before: Instant) {
        let (due, dropped) = {
            let mut waiting = self.lock();
            let due: Vec<_> = waiting.results.extract_if(|_, entry| entry.since <= before).collect();
            waiting.bytes -= due.iter().map(|(_, entry)| entry.bytes).sum::<usize>();
            (due, std::mem::take(&mut waiting.dropped))
        };
        if dropped > 0 {
            tracing::warn!(dropped, "results are not reported: too many at once");
        }
        let mut writer = self.0.writer.lock();
        for report in joined(due, writer.settings.origin) {
            for part in parts(report) {
                writer.write(&part);
            }
        }
    }
}

/// The version of a policy that reports name; `None` if the policy is gone or a label keeps it out of reports.
pub fn reported_version(snapshot: &Snapshot, key: &PolicyId) -> Option<Str> {
    let policy = snapshot.policies.get(key)?;
    let disabled = policy.document.at(&["metadata", "labels", DISABLED]).is_some();
    (!disabled).then(|| Str::new(policy.resource_version()))
}

/// A report in parts that an API server takes: rules of one author must not keep out the results of others.
fn parts(report: Ephemeral) -> Vec<Ephemeral> {
    let Ephemeral { prefix, origin, scope, plural, policies, results } = report;
    let mut parts: Vec<Vec<Value>> = Vec::new();
    let mut bytes = 0;
    for result in results {
        let own = result.to_json().len();
        bytes += own;
        if let Some(part) = parts.last_mut().filter(|_| bytes <= MOST_REPORTED) {
            part.push(result);
        } else {
            parts.push(vec![result]);
            bytes = own;
        }
    }
    let part = |results| Ephemeral {
        prefix: prefix.clone(),
        origin,
        scope: scope.clone(),
        plural: plural.clone(),
        policies: policies.clone(),
        results,
    };
    parts.into_iter().map(part).collect()
}

/// One report for each object. Of two results of a rule the later counts.
fn joined(mut waiting: Vec<(Str, Entry)>, origin: Origin) -> Vec<Ephemeral> {
    waiting.sort_by_key(|(_, entry)| entry.since);
    let mut reports: BTreeMap<(Str, Str, Str, Str), Ephemeral> = BTreeMap::new();
    for (uid, Entry { results: added, .. }) in waiting {
        let scope = added.scope;
        // Of an object that never got a name nothing is known.
        if scope.name.is_empty() {
            continue;
        }
        let key = (scope.api_version.clone(), scope.kind.clone(), scope.namespace.clone(), scope.name.clone());
        let report = reports.entry(key).or_insert_with(|| Ephemeral {
            prefix: uid,
            origin,
            scope: scope.clone(),
            plural: added.plural,
            policies: Vec::new(),
            results: Vec::new(),
        });
        if !scope.uid.is_empty() {
            report.scope = scope;
        }
        let newer: BTreeSet<ResultRule> = added.results.iter().map(ResultRule::of).collect();
        report.results.retain(|result| !newer.contains(&ResultRule::of(result)));
        report.results.extend(added.results);
        for (policy, version) in added.policies {
            report.policies.retain(|(known, _)| *known != policy);
            report.policies.push((policy, version));
        }
    }
    reports.into_values().collect()
}

/// Writes `EphemeralReport`s.
struct Writer {
    cluster: Arc<dyn Cluster>,
    settings: QueueSettings,
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
            // The namespace or the report definitions do not exist.
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
            tracing::debug!("results are not reported: the reports role does not run");
            return 0;
        }
        // That the number cannot be found out keeps nothing from being written.
        let limit = self.settings.max_ephemeral;
        let count = count(&*self.cluster, limit).unwrap_or_default();
        if count >= limit {
            tracing::warn!(count, "results are not reported: too many EphemeralReports wait");
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
    use ephor_expr::yaml::parse_value;

    use super::*;

    fn queue(settings: impl FnOnce(&mut QueueSettings)) -> (Arc<dyn Cluster>, ResultQueue) {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let mut with = QueueSettings {
            origin: Origin::Background,
            hold: Duration::ZERO,
            capacity: 10,
            max_ephemeral: 10,
            lease: None,
        };
        settings(&mut with);
        let queue = ResultQueue::new(&cluster, with);
        (cluster, queue)
    }

    fn add(queue: &ResultQueue, uid: &str, name: &str, rule: &str, result: &str) {
        let scope = Scope {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: "default".into(),
            name: name.into(),
            uid: format!("u-{name}").into(),
        };
        let text = |text: &str| Value::from(text);
        let result = Value::from([("policy", text("p")), ("rule", text(rule)), ("result", text(result))]);
        queue.update(&uid.into(), || Results::about(scope), |results| results.results.push(result));
    }

    /// `name: rule=result …` of what is written.
    fn written(cluster: &Arc<dyn Cluster>, queue: &ResultQueue) -> Vec<String> {
        queue.flush(Instant::now());
        let resource = cluster.resolve(API_VERSION, "EphemeralReport").unwrap();
        let word = |report: &Value| {
            let results = report.at(&["spec", "results"]).and_then(Value::as_array).unwrap();
            let text = |result: &Value, key| result.str_at(&[key]).unwrap().to_owned();
            let results = results.iter().map(|result| format!(" {}={}", text(result, "rule"), text(result, "result")));
            let name = report.str_at(&["metadata", "annotations", "audit.kyverno.io/resource.name"]).unwrap();
            format!("{name}:{}", results.collect::<String>())
        };
        let mut words: Vec<String> =
            cluster.list(&resource, &ListQuery::all()).unwrap().items.iter().map(word).collect();
        words.sort();
        words
    }

    #[test]
    fn results_of_one_object_come_together_and_the_later_of_a_rule_counts() {
        let (cluster, queue) = queue(|_| {});
        add(&queue, "1", "one", "r", "fail");
        add(&queue, "2", "one", "r", "pass");
        add(&queue, "2", "one", "q", "skip");
        add(&queue, "3", "two", "r", "fail");
        add(&queue, "4", "", "r", "fail");
        add(&queue, "5", "three", "r", "fail");
        queue.remove(&"5".into());
        assert_eq!(written(&cluster, &queue), ["one: r=pass q=skip", "two: r=fail"]);
    }

    #[test]
    fn a_full_queue_drops_new_objects_and_keeps_known_ones() {
        let (cluster, queue) = queue(|settings| settings.capacity = 1);
        add(&queue, "1", "one", "r", "fail");
        add(&queue, "2", "two", "r", "fail");
        add(&queue, "1", "one", "q", "fail");
        assert_eq!(written(&cluster, &queue), ["one: r=fail q=fail"]);
    }

    #[test]
    fn a_namespace_leaves_room_for_others() {
        let (_, queue) = queue(|_| {});
        let mut kept = Vec::new();
        for (namespace, count) in [("a", 20), ("b", 20), ("c", 1), ("", 20)] {
            for number in 0..count {
                let mut scope = Scope::of(&Value::Null);
                scope.namespace = namespace.into();
                queue.update(&format!("{namespace}-{number}").into(), || Results::about(scope), |_| {});
            }
            kept.push((namespace, queue.lock().results.len()));
        }
        assert_eq!(kept, [("a", 5), ("b", 8), ("c", 9), ("", 10)]);
    }

    #[test]
    fn very_many_results_of_one_object_are_written_in_parts() {
        let (cluster, queue) = queue(|_| {});
        for rule in 0..300 {
            add(&queue, "1", "one", &format!("{rule}{}", "x".repeat(5_000)), "fail");
        }
        let written = written(&cluster, &queue);
        assert_eq!(written.len(), 2);
        assert_eq!(written.iter().map(|report| report.matches("=fail").count()).sum::<usize>(), 300);
        assert_eq!(queue.lock().bytes, 0);
    }

    #[test]
    fn few_large_results_leave_room_for_those_of_others() {
        let (_, queue) = queue(|settings| settings.capacity = 1_000);
        let mut kept = Vec::new();
        for (namespace, count) in [("a", 50), ("b", 50)] {
            for number in 0..count {
                let mut scope = Scope::of(&Value::Null);
                scope.namespace = namespace.into();
                let first = || Results { results: vec![Value::from("x".repeat(1 << 20))], ..Results::about(scope) };
                queue.update(&format!("{namespace}-{number}").into(), first, |_| {});
            }
            kept.push(queue.lock().results.len());
        }
        assert_eq!(kept, [16, 24]);
    }

    #[test]
    fn no_more_reports_are_written_than_may_wait() {
        let (cluster, queue) = queue(|settings| settings.max_ephemeral = 1);
        for (uid, name) in [("1", "one"), ("2", "two")] {
            add(&queue, uid, name, "r", "fail");
        }
        assert_eq!(written(&cluster, &queue).len(), 1);
    }

    #[test]
    fn without_the_reports_role_nothing_is_written() {
        let (cluster, queue) = queue(|settings| settings.lease = Some("kyverno".into()));
        add(&queue, "1", "one", "r", "fail");
        assert_eq!(written(&cluster, &queue), [""; 0]);
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
            let kind = cluster.resolve(&version, wanted.str_at(&["kind"]).unwrap()).unwrap();
            cluster.create(&kind, wanted, &WriteOptions::default()).unwrap();
        }
        queue.0.writer.lock().room = None;
        add(&queue, "2", "one", "r", "pass");
        assert_eq!(written(&cluster, &queue), ["one: r=pass"]);
    }
}
