//! Reports in memory: every replica computes all of them, and none waits for another.
//!
//! One replica leads. It alone writes Events about new violations, and deletes old `EphemeralReport`s
//! ([`crate::prune`]). What a start finds is not new: Events begin after the first scan.

use std::fmt;
use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_reports::served::ServedReports;
use ephor_runtime::CancellationToken;
use ephor_runtime::lease::{self, LeaseOptions, REPORTS_LEASE, Term};
use ephor_runtime::threads;
use parking_lot::Mutex;

use crate::controller::Storage;
use crate::in_memory::InMemoryReports;
use crate::prune;
use crate::serve::{Completion, Reports, keep};

/// The term of this replica, if it leads. Clones are the same.
#[derive(Debug, Clone, Default)]
struct Leadership(Arc<Mutex<Option<Term>>>);

impl Leadership {
    fn begin(&self, term: &Term) {
        *self.0.lock() = Some(term.clone());
    }

    fn holds(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|term| term.fence().is_ok())
    }
}

/// One replica of the role.
pub struct Aggregated {
    reports: Reports,
    cluster: Arc<dyn Cluster>,
    completion: Completion,
}

impl fmt::Debug for Aggregated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aggregated({:?}, {:?})", self.reports, self.completion)
    }
}

impl Aggregated {
    /// A replica that keeps the reports of `reports.cluster` in `served`. `completion` says when the first scan is
    /// over.
    pub fn new(mut reports: Reports, served: ServedReports, completion: &Completion) -> Self {
        let cluster = Arc::clone(&reports.cluster);
        reports.cluster = Arc::new(InMemoryReports::new(Arc::clone(&cluster), served));
        reports.options.storage = Storage::Memory;
        // No API server limits what is in memory, and a report there is not cut.
        reports.options.max_bytes = usize::MAX;
        Self { reports, cluster, completion: completion.clone() }
    }

    /// Computes reports and takes part in the election, in threads that end with `stop`. `lead` is called at the
    /// beginning of each term and starts what else the leader does.
    pub fn start(&self, stop: &CancellationToken, mut lead: impl FnMut(&Term) + Send + 'static) {
        let leadership = Leadership::default();
        let (reports, completion, leading) = (self.reports.clone(), self.completion.clone(), leadership.clone());
        let term = Term::unlimited(stop);
        threads::spawn("reports", threads::LARGE, stop, move || {
            let complete = completion.clone();
            keep(&reports, &term, &completion, |events| {
                events.only_while(move || complete.is_complete() && leading.holds())
            });
        });
        let options = LeaseOptions {
            namespace: self.reports.namespace.clone(),
            name: REPORTS_LEASE.into(),
            identity: self.reports.identity.clone(),
            retry: self.reports.leader_retry,
        };
        let (cluster, owned) = (Arc::clone(&self.cluster), stop.clone());
        threads::spawn("election", threads::LARGE, stop, move || {
            lease::run(&cluster, &options, &owned, |term| {
                leadership.begin(term);
                let (cluster, pruning) = (Arc::clone(&cluster), term.clone());
                threads::spawn("prune", threads::LARGE, term.token(), move || prune::run(&*cluster, &pruning));
                lead(term);
            });
        });
    }
}
