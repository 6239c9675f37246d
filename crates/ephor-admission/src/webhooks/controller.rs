//! The leader's thread that applies the webhook configurations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::{Backoff, Cluster, ClusterError, ErrorKind};
use ephor_engine::compile::Program;
use ephor_expr::{Str, Value};
use ephor_runtime::config::ConfigStore;
use ephor_runtime::lease::Term;
use ephor_runtime::metrics::{Metrics, Reconciled};
use ephor_runtime::notify::{Notify, Woken};
use ephor_runtime::policies::{PolicyId, PolicyStore, Snapshot};
use ephor_runtime::watcher::{StoreEvent, WatchTarget, Watcher};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::break_glass;
use super::demand::Demand;
use super::names::Names;
use super::plan::{Configuration, ConfigurationKind, Inputs, Ownership, Plan, plan};
use super::quota::OverQuota;
use super::settings::WebhookSettings;
use super::write::{BreakGlass, PutError, put};
use crate::certs::CertStore;
use crate::generated::GeneratedBoard;
use crate::registration::{Registered, Registration, RegistrationBoard};

/// What the configurations follow.
#[derive(Clone)]
pub struct WebhookSources {
    /// Where they are stored.
    pub cluster: Arc<dyn Cluster>,
    /// The policies.
    pub policies: PolicyStore,
    /// The `ConfigMap`.
    pub config: ConfigStore,
    /// The CA.
    pub certs: CertStore,
}

/// Keeps the configurations as they must be, while it leads.
pub struct WebhookController {
    sources: WebhookSources,
    settings: WebhookSettings,
    board: RegistrationBoard,
    /// What the API server does by itself.
    generated: GeneratedBoard,
    notify: Notify,
}

/// How often everything is looked at without a reason.
const RESYNC_INTERVAL: Duration = Duration::from_mins(1);
/// How often the table of kinds is looked at.
const KINDS_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What is remembered from one look to the next.
#[derive(Default)]
pub(super) struct Memory {
    demands: BTreeMap<PolicyId, (Arc<Program>, Option<Arc<Demand>>)>,
    /// Policies whose webhook the API server does not take, and why.
    refused: BTreeMap<PolicyId, (Arc<Program>, String)>,
}

/// Why the configurations are not as they must be.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    /// There is no CA or no serving key yet. What is registered now would fail each request.
    #[error("there is no CA or no serving key yet")]
    NoCertificate,
    /// Which policies the API server carries out is not known yet. Webhooks for them would mutate a second time.
    #[error("which policies the API server carries out is not known yet")]
    GeneratedUnknown,
    /// A configuration could not be written.
    #[error("{name}: {error}")]
    Put {
        /// Which.
        name: Str,
        /// Why.
        error: PutError,
    },
    /// The cluster does not answer.
    #[error("{0}")]
    Cluster(#[from] ClusterError),
}

impl WebhookController {
    /// A controller that looks again whenever one of its sources changes.
    pub fn new(sources: WebhookSources, settings: WebhookSettings, board: RegistrationBoard) -> Self {
        let notify = Notify::new();
        let ring = || {
            let notify = notify.clone();
            move || notify.notify()
        };
        let (policies, config, certs) = (ring(), ring(), ring());
        // The set is the same one while nothing but statuses is written.
        let seen = Mutex::new(Arc::default());
        sources.policies.subscribe(move |snapshot| {
            let mut seen = seen.lock();
            if !Arc::ptr_eq(&*seen, &snapshot.set) {
                *seen = Arc::clone(&snapshot.set);
                policies();
            }
        });
        sources.config.subscribe(move |_| config());
        sources.certs.subscribe(certs);
        Self { sources, settings, board, generated: GeneratedBoard::default(), notify }
    }

    /// The same without webhooks for policies that the API server takes over.
    #[must_use]
    pub fn without(self, generated: GeneratedBoard) -> Self {
        let notify = self.notify.clone();
        generated.subscribe(move || notify.notify());
        Self { generated, ..self }
    }

    /// Works until the term ends.
    pub fn run(&self, term: &Term, metrics: &Metrics) {
        self.watch(term);
        let mut memory = Memory::default();
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            metrics.reconciled("webhooks", Reconciled::Done);
            let rest = match self.reconcile(term, &mut memory, Timestamp::now()) {
                Ok(rest) => {
                    backoff.reset();
                    rest
                }
                Err(ReconcileError::Put { error: PutError::Lost(_), .. }) => return,
                // The signal comes when there is one.
                Err(ReconcileError::NoCertificate | ReconcileError::GeneratedUnknown) => RESYNC_INTERVAL,
                Err(error) => {
                    let error = self.told(&error.to_string());
                    tracing::error!(error, "webhooks cannot be registered");
                    let pause = backoff.pause();
                    metrics.reconciled("webhooks", Reconciled::Again { failures: backoff.failures() });
                    let before = self.board.get();
                    self.board.publish(Registration { failure: Some(error), ..(*before).clone() });
                    pause
                }
            };
            if !self.rest(rest, term) {
                return;
            }
        }
    }

    /// Sleeps until something rings, kinds come or go, or `rest` is over; whether to go on.
    fn rest(&self, rest: Duration, term: &Term) -> bool {
        let until = Instant::now() + rest;
        let kinds = self.sources.cluster.discovery().ok();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.notify.wait_reason(left.min(KINDS_POLL_INTERVAL), term.token()) {
                Woken::Cancelled => return false,
                Woken::Notified => return true,
                Woken::TimedOut if left <= KINDS_POLL_INTERVAL => return true,
                Woken::TimedOut => {
                    let now = self.sources.cluster.discovery().ok();
                    let same = match (&kinds, &now) {
                        (Some(before), Some(now)) => Arc::ptr_eq(before, now),
                        // Asks again later if the server cannot be reached.
                        _ => true,
                    };
                    if !same {
                        return true;
                    }
                }
            }
        }
    }

    /// Rings when one of our configurations is touched.
    fn watch(&self, term: &Term) {
        let names = Names::of(self.settings.serving);
        for kind in [ConfigurationKind::Validating, ConfigurationKind::Mutating] {
            let notify = self.notify.clone();
            let watched = WatchTarget::all("admissionregistration.k8s.io/v1", kind.as_str());
            let cluster = Arc::clone(&self.sources.cluster);
            Watcher::spawn(cluster, watched, term.token().clone(), move |change| {
                let ours = match &change {
                    StoreEvent::Reset(_) => true,
                    StoreEvent::Apply(object) | StoreEvent::Delete(object) => {
                        object.str_at(&["metadata", "name"]).is_some_and(|name| names.are_of(name))
                    }
                };
                if ours {
                    notify.notify();
                }
            });
        }
    }

    /// Looks at everything once and writes what differs; how long to rest then.
    pub(super) fn reconcile(
        &self,
        term: &Term,
        memory: &mut Memory,
        now: Timestamp,
    ) -> Result<Duration, ReconcileError> {
        let ca_bundle = self.sources.certs.ca_bundle();
        let Some(token) = self.sources.certs.path_tokens().present().filter(|_| !ca_bundle.is_empty()) else {
            return Err(ReconcileError::NoCertificate);
        };
        if !self.generated.is_known() {
            return Err(ReconcileError::GeneratedUnknown);
        }
        let snapshot = self.sources.policies.snapshot();
        let config = self.sources.config.get();
        let discovery = self.sources.cluster.discovery()?;
        let open_until = self.open_until(now)?;
        memory.follow(&snapshot);
        let left_out = loop {
            let mut demands = memory.demands();
            demands.retain(|demand| !self.generated.takes_over(&demand.policy));
            let Plan { configurations, left_out } = plan(&Inputs {
                demands: &demands,
                settings: &self.settings,
                config: &config,
                ca_bundle: &ca_bundle,
                token: &token,
                discovery: &discovery,
            });
            match self.put_all(term, &configurations, BreakGlass { until: open_until, now }) {
                Ok(()) => break left_out,
                Err((configuration, error)) => {
                    if memory.blame(configuration, &error, |why| self.told(why)) == 0 {
                        return Err(ReconcileError::Put { name: configuration.name.clone(), error });
                    }
                }
            }
        };
        self.publish(&snapshot, memory, &left_out, ca_bundle);
        let until_revert = open_until.map(|until| Duration::try_from(until.duration_since(now)).unwrap_or_default());
        Ok(until_revert.map_or(RESYNC_INTERVAL, |left| left.min(RESYNC_INTERVAL)))
    }

    /// What an API server said, as logs and statuses may repeat it: a path in it loses its token.
    pub(super) fn told(&self, text: &str) -> String {
        self.sources.certs.path_tokens().present().map_or_else(|| text.to_owned(), |token| token.hide(text))
    }

    fn put_all<'w>(
        &self,
        term: &Term,
        wanted: &'w [Configuration],
        glass: BreakGlass,
    ) -> Result<(), (&'w Configuration, PutError)> {
        for configuration in wanted {
            put(&*self.sources.cluster, term, configuration, glass).map_err(|error| (configuration, error))?;
        }
        Ok(())
    }

    /// Until when the glass is open: the later deadline of those that the resource configurations carry.
    fn open_until(&self, now: Timestamp) -> Result<Option<Timestamp>, ClusterError> {
        let cluster = &self.sources.cluster;
        let mut latest = None;
        for (kind, name) in break_glass::configurations() {
            let resource = cluster.resolve("admissionregistration.k8s.io/v1", kind.as_str())?;
            match cluster.get(&resource, None, &name) {
                Ok(live) => latest = latest.max(break_glass::deadline(&live, now)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(latest)
    }

    fn publish(
        &self,
        snapshot: &Snapshot,
        memory: &Memory,
        left_out: &BTreeMap<PolicyId, OverQuota>,
        ca_bundle: Arc<[u8]>,
    ) {
        let policies = snapshot.policies.iter().filter_map(|(key, policy)| {
            let program = policy.program.clone()?;
            let refusal = memory.refused.get(key).map(|(_, why)| why.clone());
            let refusal = refusal.or_else(|| left_out.get(key).map(OverQuota::to_string));
            Some((key.clone(), Registered { program, refusal }))
        });
        self.board.publish(Registration { policies: policies.collect(), ca_bundle, failure: None });
    }
}

impl Memory {
    /// Takes over what has not changed, and looks at the rest.
    fn follow(&mut self, snapshot: &Snapshot) {
        let mut before = std::mem::take(&mut self.demands);
        for (key, policy) in &snapshot.policies {
            let Some(program) = &policy.program else { continue };
            let known = before.remove(key).filter(|(known, _)| Arc::ptr_eq(known, program));
            let new = || (Arc::clone(program), Demand::of(policy).map(Arc::new));
            self.demands.insert(key.clone(), known.unwrap_or_else(new));
        }
        let demands = &self.demands;
        self.refused.retain(|key, (program, _)| demands.get(key).is_some_and(|(known, _)| Arc::ptr_eq(known, program)));
    }

    fn demands(&self) -> Vec<Arc<Demand>> {
        let taken = self.demands.iter().filter(|(key, _)| !self.refused.contains_key(*key));
        taken.filter_map(|(_, (_, demand))| demand.clone()).collect()
    }

    /// Finds the policies because of which the API server refused a configuration, and leaves them out from now on, so
    /// that the others hold. How many were found. `told` takes out of a text what users must not see.
    fn blame(&mut self, configuration: &Configuration, error: &PutError, told: impl Fn(&str) -> String) -> usize {
        let PutError::Cluster(error) = error else { return 0 };
        if error.kind() != ErrorKind::Invalid || configuration.ownership != Ownership::Resources {
            return 0;
        }
        let status = error.status();
        let causes = status.at(&["details", "causes"]).and_then(Value::as_array).unwrap_or_default();
        let mut found = 0;
        for cause in causes {
            let field = cause.str_at(&["field"]).unwrap_or_default();
            let index = field.strip_prefix("webhooks[").and_then(|rest| rest.split_once(']'));
            let owner = index.and_then(|(index, _)| configuration.owners.get(index.parse::<usize>().ok()?)?.as_ref());
            if let Some(owner) = owner
                && let Some((program, _)) = self.demands.get(owner)
            {
                let why = told(cause.str_at(&["message"]).unwrap_or_default());
                tracing::error!(policy = %owner, field, why, "the API server refuses the policy's webhook");
                let why = format!("the API server refuses the webhook: {field}: {why}");
                found += usize::from(self.refused.insert(owner.clone(), (Arc::clone(program), why)).is_none());
            }
        }
        found
    }
}
