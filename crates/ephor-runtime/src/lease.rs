//! One leader at a time, by a `Lease` object.
//!
//! Timing is upstream's: retry every 2 s, lease 12 s, renew deadline 10 s; who waits looks twice as
//! often, because what it sees late it waits for longer. A leader that could not
//! renew for the length of the deadline stops leading at once, before the lease runs out for the others. All work of a
//! leader carries its [`Term`], and [`Term::fence`] refuses every write that would start after the deadline; together
//! with resource versions and UIDs on the writes themselves a late one is refused or changes nothing.
//!
//! The library for this (kube-lease-manager) speaks to kube's client only; this works over the cluster trait, so that
//! loss and contention are tested in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ephor_cluster::{Cluster, ClusterError, ErrorKind, Resource, WriteOptions};
use ephor_expr::{Str, Value};

use crate::cancellation::CancellationToken;

/// The lease of the reports role: other roles write results for it while the lease is held.
pub const REPORTS_LEASE: &str = "kyverno-reports-controller";
/// The lease of the cleanup role.
pub const CLEANUP_LEASE: &str = "kyverno-cleanup-controller";

/// How often a write of the lease is tried when another write comes between.
const TRIES: usize = 3;

/// How a lease is held.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// The namespace of the Lease.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
    /// Who holds it: unique among the replicas.
    pub identity: Str,
    /// The pause between attempts.
    pub retry: Duration,
}

impl LeaseOptions {
    /// How long others must wait after the last renewal.
    fn duration(&self) -> Duration {
        self.retry * 6
    }

    /// How long a leader goes on without a renewal.
    fn deadline(&self) -> Duration {
        self.retry * 5
    }
}

/// A period of leadership.
#[derive(Debug, Clone)]
pub struct Term(Arc<TermState>);

#[derive(Debug)]
struct TermState {
    stop: CancellationToken,
    begun: Instant,
    /// Until when the last renewal holds, in milliseconds since `begun`.
    valid_until: AtomicU64,
    over: AtomicBool,
}

/// A write was refused because its writer does not lead any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("leadership is lost: the write is not started")]
pub struct LostLease;

impl Term {
    fn new(parent: &CancellationToken, valid_for: Duration) -> Self {
        let term = TermState {
            stop: parent.child_token(),
            begun: Instant::now(),
            valid_until: AtomicU64::new(0),
            over: AtomicBool::new(false),
        };
        term.valid_until.store(millis(valid_for), Ordering::Release);
        Self(Arc::new(term))
    }

    /// A term without end, for hosts that are alone (the sandbox, tests).
    pub fn unlimited(stop: &CancellationToken) -> Self {
        Self::new(stop, Duration::from_millis(u64::MAX >> 1))
    }

    /// Whether a write may start now. Ask before each write.
    pub fn fence(&self) -> Result<(), LostLease> {
        let now = millis(self.0.begun.elapsed());
        let over = self.0.over.load(Ordering::Acquire) || self.0.stop.is_cancelled();
        if over || now >= self.0.valid_until.load(Ordering::Acquire) { Err(LostLease) } else { Ok(()) }
    }

    /// The signal that ends with the term: what leaders run must heed it.
    pub fn token(&self) -> &CancellationToken {
        &self.0.stop
    }

    fn renew(&self, from: Instant, valid_for: Duration) {
        let until = from.saturating_duration_since(self.0.begun) + valid_for;
        self.0.valid_until.store(millis(until), Ordering::Release);
    }

    fn end(&self) {
        self.0.over.store(true, Ordering::Release);
        self.0.stop.cancel();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Takes part in the election until `stop`: whenever this identity becomes the leader, `lead` is called with the term
/// and must return soon (it starts threads that end with [`Term::token`]). When `stop` is cancelled while leading, the
/// lease is released, so that another takes over within one retry.
pub fn run(cluster: &Arc<dyn Cluster>, options: &LeaseOptions, stop: &CancellationToken, mut lead: impl FnMut(&Term)) {
    let mut seen: Option<Observed> = None;
    let mut term: Option<Term> = None;
    loop {
        let attempt = Instant::now();
        match hold(&**cluster, options, &mut seen) {
            Ok(Held::Mine) => match &term {
                Some(term) if term.fence().is_ok() => term.renew(attempt, options.deadline()),
                _ => {
                    // A renewal that came too late begins a new term: what the old one ran has ended.
                    if let Some(old) = term.take() {
                        old.end();
                    }
                    let new = Term::new(stop, options.deadline());
                    new.renew(attempt, options.deadline());
                    tracing::info!(lease = %options.name, identity = %options.identity, "leading");
                    lead(&new);
                    term = Some(new);
                }
            },
            Ok(Held::Theirs) => {
                if let Some(old) = term.take() {
                    tracing::warn!(lease = %options.name, "another replica leads");
                    old.end();
                }
            }
            Err(error) => {
                tracing::warn!(lease = %options.name, %error, "cannot renew the lease");
                if let Some(old) = term.take_if(|term| term.fence().is_err()) {
                    tracing::warn!(lease = %options.name, "leadership is lost");
                    old.end();
                }
            }
        }
        if stop.wait(if term.is_some() { options.retry } else { options.retry / 2 }) {
            break;
        }
    }
    if let Some(term) = term {
        term.end();
        release(&**cluster, options);
    }
}

/// A holder's last sign of life, by our own clock: clocks of machines differ.
#[derive(Debug)]
struct Observed {
    record: (Str, Str),
    at: Instant,
}

enum Held {
    Mine,
    Theirs,
}

fn lease_resource(cluster: &dyn Cluster) -> Result<Resource, ClusterError> {
    cluster.resolve("coordination.k8s.io/v1", "Lease")
}

/// Tries to get or keep the lease.
fn hold(cluster: &dyn Cluster, options: &LeaseOptions, seen: &mut Option<Observed>) -> Result<Held, ClusterError> {
    let mut conflict = None;
    for _ in 0..TRIES {
        match attempt(cluster, options, seen) {
            // The lease was changed in between: by another holder, or only its labels.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists) => {
                conflict = Some(error);
            }
            answer => return answer,
        }
    }
    conflict.map_or(Ok(Held::Theirs), Err)
}

fn attempt(cluster: &dyn Cluster, options: &LeaseOptions, seen: &mut Option<Observed>) -> Result<Held, ClusterError> {
    let resource = lease_resource(cluster)?;
    let found = match cluster.get(&resource, Some(&options.namespace), &options.name) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let lease = written(options, None);
            return cluster.create(&resource, lease, &WriteOptions::default()).map(|_| Held::Mine);
        }
        Err(error) => return Err(error),
    };
    let holder = found.str_at(&["spec", "holderIdentity"]).unwrap_or_default();
    if holder != options.identity && !holder.is_empty() {
        let record = (Str::new(holder), Str::new(found.str_at(&["spec", "renewTime"]).unwrap_or_default()));
        let seconds = found.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_i64).unwrap_or(0);
        let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).max(options.duration());
        match seen {
            Some(observed) if observed.record == record => {
                if observed.at.elapsed() < lasts {
                    return Ok(Held::Theirs);
                }
            }
            _ => {
                *seen = Some(Observed { record, at: Instant::now() });
                return Ok(Held::Theirs);
            }
        }
    }
    // The version in it makes this the write of one replica only.
    cluster.update(&resource, written(options, Some(&found)), &WriteOptions::default()).map(|_| Held::Mine)
}

/// The lease as this identity holds it.
fn written(options: &LeaseOptions, before: Option<&Value>) -> Value {
    let now = micro_time();
    let text = |keys: &[&str]| before.and_then(|lease| lease.str_at(keys)).unwrap_or_default();
    let same = text(&["spec", "holderIdentity"]) == options.identity;
    let transitions = before.and_then(|b| b.at(&["spec", "leaseTransitions"])).and_then(Value::as_i64).unwrap_or(0);
    let acquired = if same { Value::from(text(&["spec", "acquireTime"])) } else { Value::from(now.as_str()) };
    let seconds = i64::try_from(options.duration().as_secs().max(1)).unwrap_or(i64::MAX);
    let spec = Value::from([
        ("holderIdentity", Value::from(options.identity.clone())),
        ("leaseDurationSeconds", Value::from(seconds)),
        ("acquireTime", acquired),
        ("renewTime", Value::from(now.as_str())),
        ("leaseTransitions", Value::from(if same { transitions } else { transitions + i64::from(before.is_some()) })),
    ]);
    let mut lease = before.cloned().unwrap_or_else(|| {
        Value::from([
            ("apiVersion", Value::from("coordination.k8s.io/v1")),
            ("kind", Value::from("Lease")),
            (
                "metadata",
                Value::from([
                    ("name", Value::from(options.name.clone())),
                    ("namespace", Value::from(options.namespace.clone())),
                ]),
            ),
        ])
    });
    if let Some(members) = lease.as_object_mut() {
        members.insert("spec", spec);
    }
    lease
}

/// Now, as Leases write it.
fn micro_time() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Gives the lease up, if it is ours.
fn release(cluster: &dyn Cluster, options: &LeaseOptions) {
    let released = (|| {
        let resource = lease_resource(cluster)?;
        let mut lease = cluster.get(&resource, Some(&options.namespace), &options.name)?;
        if lease.str_at(&["spec", "holderIdentity"]) != Some(&*options.identity) {
            return Ok(());
        }
        if let Some(spec) = lease.as_object_mut().and_then(|l| l.get_mut("spec")).and_then(Value::as_object_mut) {
            spec.insert("holderIdentity", "");
            spec.insert("leaseDurationSeconds", 1_i64);
        }
        cluster.update(&resource, lease, &WriteOptions::default()).map(|_| ())
    })();
    if let Err(error) = released {
        let error: ClusterError = error;
        tracing::warn!(lease = %options.name, %error, "the lease could not be released; others wait until it runs out");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ephor_cluster::{DeleteOptions, MemoryCluster};
    use ephor_faults::FaultyCluster;

    use super::*;

    fn options(identity: &str) -> LeaseOptions {
        LeaseOptions {
            namespace: "default".into(),
            name: "kyverno".into(),
            identity: identity.into(),
            retry: Duration::from_millis(50),
        }
    }

    /// A candidate in a thread, and the terms it had.
    struct Candidate {
        stop: CancellationToken,
        terms: Arc<Mutex<Vec<Term>>>,
        thread: std::thread::JoinHandle<()>,
    }

    impl Candidate {
        fn start(cluster: &Arc<dyn Cluster>, identity: &str) -> Self {
            let (stop, terms) = (CancellationToken::new(), Arc::new(Mutex::new(Vec::new())));
            let (cluster, options) = (Arc::clone(cluster), options(identity));
            let thread = std::thread::spawn({
                let (stop, terms) = (stop.clone(), Arc::clone(&terms));
                move || run(&cluster, &options, &stop, |term| terms.lock().unwrap().push(term.clone()))
            });
            Self { stop, terms, thread }
        }

        fn leads(&self) -> bool {
            self.terms.lock().unwrap().last().is_some_and(|term| term.fence().is_ok())
        }
    }

    fn eventually(what: impl Fn() -> bool) {
        for _ in 0..2000 {
            if what() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it never came");
    }

    #[test]
    fn one_leads_and_the_other_follows_after_it() {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let first = Candidate::start(&cluster, "first");
        eventually(|| first.leads());
        let second = Candidate::start(&cluster, "second");
        std::thread::sleep(Duration::from_millis(500));
        assert!(first.leads() && !second.leads());
        first.stop.cancel();
        first.thread.join().unwrap();
        eventually(|| second.leads());
        second.stop.cancel();
        second.thread.join().unwrap();
    }

    #[test]
    fn a_stolen_lease_ends_the_term() {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let first = Candidate::start(&cluster, "first");
        eventually(|| first.leads());
        let term = first.terms.lock().unwrap()[0].clone();
        let resource = lease_resource(&*cluster).unwrap();
        // Without the version: the thief does not play by the rules.
        loop {
            let mut lease = cluster.get(&resource, Some("default"), "kyverno").unwrap();
            let spec = lease.as_object_mut().unwrap().get_mut("spec").unwrap().as_object_mut().unwrap();
            spec.insert("holderIdentity", "thief");
            if cluster.update(&resource, lease, &WriteOptions::default()).is_ok() {
                break;
            }
        }
        eventually(|| term.fence() == Err(LostLease));
        assert!(term.token().is_cancelled());
        first.stop.cancel();
        first.thread.join().unwrap();
    }

    #[test]
    fn a_deleted_lease_is_taken_again() {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let first = Candidate::start(&cluster, "first");
        eventually(|| first.leads());
        let resource = lease_resource(&*cluster).unwrap();
        cluster.delete(&resource, Some("default"), "kyverno", &DeleteOptions::default()).unwrap();
        eventually(|| cluster.get(&resource, Some("default"), "kyverno").is_ok());
        eventually(|| first.leads());
        first.stop.cancel();
        first.thread.join().unwrap();
    }

    /// A leader whose renewals hang, one of which succeeds in the end: nothing that it started may write meanwhile.
    #[test]
    fn a_leader_that_cannot_renew_writes_nothing_from_the_deadline_on() {
        let stalls = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stalls);
        let view = FaultyCluster::new(Arc::new(MemoryCluster::default())).before_calls(move || {
            while seen.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(5));
            }
            None
        });
        let cluster: Arc<dyn Cluster> = Arc::new(view);
        let leader = Candidate::start(&cluster, "first");
        eventually(|| leader.leads());
        let term = leader.terms.lock().unwrap()[0].clone();
        stalls.store(true, Ordering::Release);
        // The term ends by its own clock: the thread that renews it is still blocked.
        eventually(|| term.fence().is_err());
        stalls.store(false, Ordering::Release);
        eventually(|| leader.leads());
        assert_eq!(term.fence(), Err(LostLease), "a renewal that comes too late begins another term");
        assert!(leader.terms.lock().unwrap().len() > 1);
        leader.stop.cancel();
        leader.thread.join().unwrap();
    }

    #[test]
    fn a_write_of_somebody_else_between_reading_and_renewing_ends_no_term() {
        let memory = MemoryCluster::default();
        let mut seen = None;
        let held = hold(&memory, &options("first"), &mut seen);
        assert!(matches!(held, Ok(Held::Mine)), "the lease is new");
        let labelled = memory.clone();
        let mut left = 1;
        let view = FaultyCluster::new(Arc::new(memory.clone())).before_writes(move |_| {
            if left > 0 {
                left -= 1;
                let resource = lease_resource(&labelled).unwrap();
                let patch =
                    ephor_cluster::Patch::merge(Value::from_json(r#"{"metadata":{"labels":{"a":"b"}}}"#).unwrap());
                labelled.patch(&resource, Some("default"), "kyverno", &patch, &WriteOptions::default()).unwrap();
            }
            None
        });
        assert!(matches!(hold(&view, &options("first"), &mut seen), Ok(Held::Mine)));
        assert!(matches!(hold(&view, &options("second"), &mut seen), Ok(Held::Theirs)));
    }

    #[test]
    fn a_renewal_holds_from_when_it_was_sent() {
        let term = Term::new(&CancellationToken::new(), Duration::from_secs(1));
        std::thread::sleep(Duration::from_millis(30));
        // The answer took 30 ms; the others count from the request.
        term.renew(term.0.begun, Duration::from_millis(20));
        assert_eq!(term.fence(), Err(LostLease));
    }

    #[test]
    fn a_term_that_was_not_renewed_writes_nothing() {
        let term = Term::new(&CancellationToken::new(), Duration::ZERO);
        assert_eq!(term.fence(), Err(LostLease));
        assert_eq!(Term::unlimited(&CancellationToken::new()).fence(), Ok(()));
    }
}
