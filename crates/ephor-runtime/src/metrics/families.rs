//! The families of counters, gauges and histograms.

use std::sync::Arc;
use std::time::Duration;

use ephor_engine::compile::Program;
use ephor_engine::outcome::Verdict;
use parking_lot::{Mutex, RwLock};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use rustc_hash::FxHashMap;

use super::background::BackgroundFamilies;
use super::exposure::Exposure;
use super::labels::{LabelText, NO_NAMESPACE, OTHER};
use super::{Label, Text};

/// The labels of one series.
type Labels = Vec<(&'static str, LabelText)>;

/// More than so many series in one family, and further ones are not stored.
const MAX_SERIES: usize = 10_000;
/// The same about policies of one namespace: their author takes no series from others.
const MAX_SERIES_OF_NAMESPACE: usize = 500;

/// All families.
pub(super) struct Families {
    pub(super) registry: Registry,
    pub(super) exposure: Exposure,
    pub(super) policy_results: Counters,
    pub(super) policy_duration: Durations,
    pub(super) policy_changes: Counters,
    pub(super) rule_info: Gauges,
    pub(super) admission_requests: Counters,
    pub(super) admission_duration: Durations,
    pub(super) http_requests: Counters,
    pub(super) http_duration: Durations,
    pub(super) client_queries: Counters,
    pub(super) reconcile: Counters,
    pub(super) requeue: Counters,
    pub(super) drop: Counters,
    pub(super) breaker_drops: Counters,
    pub(super) breaker_total: Counters,
    pub(super) update_requests: Gauges,
    pub(super) cleanup_deleted: Counters,
    pub(super) cleanup_errors: Counters,
    pub(super) cleanup_audited: Counters,
    pub(super) deleting_deleted: Counters,
    pub(super) deleting_errors: Counters,
    pub(super) ttl_deleted: Counters,
    pub(super) ttl_errors: Counters,
    pub(super) ttl_info: Gauges,
    pub(super) background: BackgroundFamilies,
    handles: RwLock<Handles>,
}

/// Handles of what requests move, by what they are about.
#[derive(Default)]
struct Handles {
    /// About kinds that policies name.
    named: Groups,
    /// About others, which a client of the port may have made up.
    unnamed: Groups,
}

type Groups = FxHashMap<About, Group>;

/// Handles of the counters about one thing.
pub(super) type Group = Arc<RwLock<ByOutcome>>;

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct About {
    pub(super) kind: Text,
    pub(super) namespace: Text,
    pub(super) operation: &'static str,
}

/// What counts one outcome; what is switched off is not there.
pub(super) type Handle = (Option<Counter>, Option<Histogram>);

/// Handles by program (its address), rule, verdict and whether nothing was kept.
#[derive(Default)]
pub(super) struct ByOutcome {
    pub(super) handles: FxHashMap<(usize, usize, Verdict, bool), Handle>,
    /// What the addresses belong to, so that none is given to another program meanwhile.
    pub(super) programs: Vec<Arc<Program>>,
}

/// Different kinds, namespaces and operations that are told apart, of kinds that policies name.
const MAX_NAMED: usize = 2000;
/// The same of other kinds.
const MAX_UNNAMED: usize = 500;

impl Families {
    /// The families that `exposure` wants.
    pub(super) fn new(exposure: Exposure, events_dropped: Counter) -> Self {
        let mut registry = Registry::default();
        let info = Family::<Labels, Gauge>::default();
        info.get_or_create(&vec![("version", LabelText(env!("CARGO_PKG_VERSION").into()))]).set(1);
        registry.register("kyverno_info", "Which version runs", info);
        registry.register("kyverno_events_dropped", "Events that did not fit the queue", events_dropped);
        let mut with = Registered { registry: &mut registry, exposure: &exposure };
        Self {
            policy_results: with.counters("kyverno_policy_results", "Verdicts of rules"),
            policy_duration: with.durations(
                "kyverno_policy_execution_duration_seconds",
                "A rule's share of the time that the evaluation of its request took",
            ),
            policy_changes: with.counters("kyverno_policy_changes", "Policies created, updated and deleted"),
            rule_info: with.gauges("kyverno_policy_rule_info_total", "The rules there are"),
            admission_requests: with.counters("kyverno_admission_requests", "Admission requests"),
            admission_duration: with
                .durations("kyverno_admission_review_duration_seconds", "Time to answer an admission request"),
            http_requests: with.counters("kyverno_http_requests", "HTTP requests"),
            http_duration: with.durations("kyverno_http_requests_duration_seconds", "Time to answer an HTTP request"),
            client_queries: with.counters("kyverno_client_queries", "Questions to the API server"),
            reconcile: with.counters("kyverno_controller_reconcile", "Things that controllers looked at"),
            requeue: with.counters("kyverno_controller_requeue", "Things that controllers look at again"),
            drop: with.counters("kyverno_controller_drop", "Things that controllers gave up"),
            breaker_drops: with.counters("kyverno_breaker_drops", "Work that was dropped beyond a bound"),
            breaker_total: with.counters("kyverno_breaker", "Work that has a bound"),
            update_requests: with.gauges("kyverno_updaterequest_total", "Update requests there are"),
            cleanup_deleted: with
                .counters("kyverno_cleanup_controller_deletedobjects", "Objects that cleanup policies deleted"),
            cleanup_errors: with
                .counters("kyverno_cleanup_controller_errors", "Objects that cleanup policies could not delete"),
            cleanup_audited: with.counters(
                "ephor_cleanup_audited_objects",
                "Objects that policies would delete if they did not only tell",
            ),
            deleting_deleted: with
                .counters("kyverno_deleting_controller_deletedobjects", "Objects that policies in CEL deleted"),
            deleting_errors: with
                .counters("kyverno_deleting_controller_errors", "Objects that policies in CEL could not delete"),
            ttl_info: with.gauges("kyverno_ttl_controller_info", "Kinds that the label for lifetimes counts for"),
            ttl_deleted: with.counters("kyverno_ttl_controller_deletedobjects", "Objects that lived long enough"),
            ttl_errors: with
                .counters("kyverno_ttl_controller_errors", "Objects that lived long enough and could not be deleted"),
            background: BackgroundFamilies::new(&mut with),
            handles: RwLock::default(),
            registry,
            exposure,
        }
    }

    /// The handles for requests about something that is told apart already.
    pub(super) fn known(&self, about: &About) -> Option<Group> {
        let handles = self.handles.read();
        handles.named.get(about).or_else(|| handles.unnamed.get(about)).map(Arc::clone)
    }

    /// The handles for requests about something new. `about` becomes [`OTHER`] if there are too many; `named` says
    /// whether a policy names the kind.
    pub(super) fn add(&self, about: &mut About, named: bool) -> Group {
        let mut handles = self.handles.write();
        let Handles { named: names, unnamed } = &mut *handles;
        let (groups, most) = if named { (names, MAX_NAMED) } else { (unnamed, MAX_UNNAMED) };
        if groups.len() >= most && !groups.contains_key(about) {
            (about.kind, about.namespace) = (OTHER.into(), OTHER.into());
        }
        Arc::clone(groups.entry(about.clone()).or_default())
    }

    /// Forgets the handles, because programs have changed. Kinds that no policy names still count against their bound,
    /// because their series stay.
    pub(super) fn forget_handles(&self) {
        let mut handles = self.handles.write();
        handles.named.clear();
        handles.unnamed.retain(|_, group| {
            *group = Group::default();
            true
        });
    }
}

/// Registers what the exposure wants.
pub(super) struct Registered<'r> {
    registry: &'r mut Registry,
    exposure: &'r Exposure,
}

impl Registered<'_> {
    /// A family of counters.
    pub(super) fn counters(&mut self, name: &'static str, help: &'static str) -> Counters {
        let said = self.exposure.of(name);
        let family = said.enabled.then(Family::<Labels, Counter>::default);
        if let Some(family) = &family {
            self.registry.register(name, help, family.clone());
        }
        Series { family, hidden: said.disabled_labels, made: Mutex::default() }
    }

    /// A family of gauges.
    pub(super) fn gauges(&mut self, name: &'static str, help: &'static str) -> Gauges {
        let said = self.exposure.of(name);
        let family = said.enabled.then(Family::<Labels, Gauge>::default);
        if let Some(family) = &family {
            self.registry.register(name, help, family.clone());
        }
        Series { family, hidden: said.disabled_labels, made: Mutex::default() }
    }

    /// A family of histograms over seconds.
    pub(super) fn durations(&mut self, name: &'static str, help: &'static str) -> Durations {
        let said = self.exposure.of(name);
        let family = said.enabled.then(|| Family::new_with_constructor(Buckets(said.buckets.into())));
        if let Some(family) = &family {
            self.registry.register(name, help, family.clone());
        }
        Series { family, hidden: said.disabled_labels, made: Mutex::default() }
    }
}

/// Makes histograms with given bounds.
#[derive(Debug, Clone)]
pub(super) struct Buckets(Arc<[f64]>);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// A family that may be switched off, without some of its labels.
pub(super) struct Series<M, C = fn() -> M> {
    family: Option<Family<Labels, M, C>>,
    hidden: Vec<Text>,
    made: Mutex<Made>,
}

/// The series there are.
#[derive(Default)]
struct Made {
    count: usize,
    /// By the namespace and the name of the policy that they are about.
    of_policies: FxHashMap<(Text, Text), Vec<Labels>>,
    /// How many are about policies of a namespace.
    of_namespaces: FxHashMap<Text, usize>,
}

pub(super) type Counters = Series<Counter>;
pub(super) type Gauges = Series<Gauge>;
pub(super) type Durations = Series<Histogram, Buckets>;

impl<M: Clone, C: MetricConstructor<M>> Series<M, C> {
    /// The metric of these labels; `None` if it is switched off or there are too many.
    pub(super) fn handle(&self, given: &[Label<'_>]) -> Option<M> {
        let family = self.family.as_ref()?;
        let shown = given.iter().filter(|(key, _)| !self.hidden.iter().any(|hidden| hidden == key));
        let labels: Labels = shown.map(|(key, value)| (*key, LabelText((*value).into()))).collect();
        if let Some(known) = family.get(&labels) {
            return Some(known.clone());
        }
        let value = |wanted: &str| given.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
        let mut made = self.made.lock();
        if made.count >= MAX_SERIES {
            return None;
        }
        if let (Some(namespace), Some(name)) = (value("policy_namespace"), value("policy_name")) {
            if namespace != NO_NAMESPACE && !namespace.is_empty() {
                let own = made.of_namespaces.entry(namespace.into()).or_default();
                if *own >= MAX_SERIES_OF_NAMESPACE {
                    return None;
                }
                *own += 1;
            }
            made.of_policies.entry((namespace.into(), name.into())).or_default().push(labels.clone());
        }
        made.count += 1;
        Some(family.get_or_create_owned(&labels))
    }

    /// Forgets the series about a policy that is gone.
    pub(super) fn forget(&self, namespace: &str, name: &str) {
        let mut made = self.made.lock();
        let Some(gone) = made.of_policies.remove(&(namespace.into(), name.into())) else { return };
        made.count -= gone.len();
        if let Some(own) = made.of_namespaces.get_mut(namespace) {
            *own -= gone.len();
        }
        for labels in gone {
            self.family.as_ref().map(|family| family.remove(&labels));
        }
    }

    /// Forgets all series.
    pub(super) fn clear(&self) {
        if let Some(family) = &self.family {
            family.clear();
            *self.made.lock() = Made::default();
        }
    }
}

impl Counters {
    /// Counts one.
    pub(super) fn inc(&self, labels: &[Label<'_>]) {
        if let Some(counter) = self.handle(labels) {
            counter.inc();
        }
    }
}

impl Gauges {
    /// Sets a value.
    pub(super) fn set(&self, labels: &[Label<'_>], value: i64) {
        if let Some(gauge) = self.handle(labels) {
            gauge.set(value);
        }
    }
}

impl Durations {
    /// Takes in how long something took.
    pub(super) fn observe(&self, labels: &[Label<'_>], took: Duration) {
        if let Some(histogram) = self.handle(labels) {
            histogram.observe(took.as_secs_f64());
        }
    }
}
