//! The controller on a cluster in memory, whose watchers tell it what happens when the test says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ephor_cluster::query::WatchQuery;
use ephor_cluster::{
    Cluster, DeleteOptions, ErrorKind, ListQuery, MemoryCluster, Watch, WatchEvent, WriteOptions, object,
};
use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::gate::AllowedFetch;
use ephor_expr::{Value, yaml};
use ephor_reports::Dialect;
use ephor_reports::report::{Reported, content, is_ours};
use ephor_reports::served::{Limits, ServedReports};
use ephor_runtime::CancellationToken;
use ephor_runtime::facts::{Answers, ClusterFacts};
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::{ExceptionScope, PolicyStore, StoredKind};
use ephor_runtime::queue::Moment;
use ephor_runtime::watcher::{StoreEvent, WatcherEvent};
use jiff::Timestamp;

use crate::controller::{Controller, Env, ReportOptions, Step};
use crate::events::NewResults;
use crate::in_memory::InMemoryReports;
use crate::judge::judge;
use crate::reportable::Reportable;

/// A kind that is followed: where its watch stands.
struct Followed {
    watch: Box<dyn Watch>,
}

/// The new results that were told of.
type Told = Arc<Mutex<Vec<String>>>;

/// Where reports are.
#[derive(Clone, Copy)]
pub(super) enum Storage {
    Stored,
    /// A process that dies loses them.
    Memory,
}

impl Storage {
    fn of(self, inner: Arc<MemoryCluster>) -> Arc<dyn Cluster> {
        match self {
            Self::Stored => inner,
            Self::Memory => {
                let reports = ServedReports::new(&[Dialect::WgPolicy], Limits::default(), Timestamp::UNIX_EPOCH);
                Arc::new(InMemoryReports::new(inner, reports))
            }
        }
    }
}

pub(super) struct Harness {
    inner: Arc<MemoryCluster>,
    pub(super) cluster: Arc<dyn Cluster>,
    storage: Storage,
    pub(super) now: Moment,
    controller: Controller,
    options: ReportOptions,
    told: Told,
    store: PolicyStore,
    followed: BTreeMap<(String, String), Followed>,
}

impl Harness {
    pub(super) fn new() -> Self {
        Self::with(ReportOptions::default())
    }

    /// The new results that were told of since the last call.
    pub(super) fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }

    /// A harness whose reports are in memory.
    pub(super) fn in_memory() -> Self {
        let options = ReportOptions {
            max_bytes: usize::MAX,
            storage: crate::controller::Storage::Memory,
            ..ReportOptions::default()
        };
        Self::start(options, Storage::Memory)
    }

    pub(super) fn with(options: ReportOptions) -> Self {
        Self::start(options, Storage::Stored)
    }

    fn start(options: ReportOptions, storage: Storage) -> Self {
        let inner = Arc::new(MemoryCluster::default());
        let cluster = storage.of(Arc::clone(&inner));
        let store = PolicyStore::new(ExceptionScope::Everywhere);
        let told = Told::default();
        let controller = controller(&cluster, &options, &told);
        let mut harness = Self {
            inner,
            cluster,
            storage,
            now: 1_000_000,
            controller,
            options,
            told,
            store,
            followed: BTreeMap::new(),
        };
        for namespace in ["a", "b"] {
            harness.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}"));
        }
        harness.begin();
        harness
    }

    fn begin(&mut self) {
        self.observe_policies();
        self.pump();
        self.controller.begin(self.now);
    }

    /// The process dies and another one takes over.
    pub(super) fn crash(&mut self) {
        self.cluster = self.storage.of(Arc::clone(&self.inner));
        self.controller = controller(&self.cluster, &self.options, &self.told);
        self.followed.clear();
        self.begin();
    }

    /// Watches break: everything is listed again.
    pub(super) fn lose_watches(&mut self) {
        self.followed.clear();
    }

    /// Creates an object, or makes it what `text` says.
    pub(super) fn apply(&mut self, text: &str) -> Value {
        let mut wanted = yaml::parse_value(text).unwrap();
        let kind =
            self.cluster.resolve(wanted.str_at(&["apiVersion"]).unwrap(), wanted.str_at(&["kind"]).unwrap()).unwrap();
        let namespace = Some(object::namespace(&wanted).to_owned()).filter(|namespace| !namespace.is_empty());
        let before = self.cluster.get(&kind, namespace.as_deref(), object::name(&wanted));
        let written = match before {
            Ok(before) => {
                object::copy(&mut wanted, &before, "resourceVersion");
                self.cluster.update(&kind, wanted, &WriteOptions::default()).unwrap()
            }
            Err(_) => self.cluster.create(&kind, wanted, &WriteOptions::default()).unwrap(),
        };
        self.changed(&written);
        written
    }

    /// Deletes an object, if it is there.
    pub(super) fn delete(&mut self, api_version: &str, kind: &str, namespace: &str, name: &str) {
        let resource = self.cluster.resolve(api_version, kind).unwrap();
        let within = Some(namespace).filter(|namespace| !namespace.is_empty());
        match self.cluster.delete(&resource, within, name, &DeleteOptions::default()) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => panic!("{error}"),
        }
        if is_policy(kind) {
            self.observe_policies();
        }
    }

    fn changed(&mut self, written: &Value) {
        if written.str_at(&["kind"]).is_some_and(is_policy) {
            self.observe_policies();
        }
    }

    fn observe_policies(&mut self) {
        for (version, kind) in StoredKind::all() {
            self.store.apply(kind, StoreEvent::Reset(self.list(version, kind.as_str())));
        }
        self.controller.observe_policies(&self.store.snapshot(), &self.cluster.discovery().unwrap(), self.now);
    }

    pub(super) fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let resource = self.cluster.resolve(api_version, kind).unwrap();
        self.cluster.list(&resource, &ListQuery::all()).unwrap().items
    }

    /// Tells the controller what has happened.
    pub(super) fn pump(&mut self) {
        let controller = self.controller.clone();
        let now = self.now;
        self.follow("v1", "Namespace", |event| controller.observe_namespaces(event, now));
        for namespaced in [true, false] {
            let dialect = self.options.dialect;
            self.follow(dialect.api_version(), dialect.kind(namespaced), |event| {
                controller.observe_reports(namespaced, event, now);
            });
        }
        for (kind, version) in controller.kinds() {
            self.follow(&version, &kind.kind.clone(), |event| {
                controller.observe_objects(&GroupKind::new(&version, &kind.kind), event, now);
            });
        }
        for kind in ["EphemeralReport", "ClusterEphemeralReport"] {
            self.follow(ephor_reports::ephemeral::API_VERSION, kind, |event| {
                controller.observe_ephemerals(kind == "EphemeralReport", event, now);
            });
        }
    }

    fn follow(&mut self, api_version: &str, kind: &str, mut observe: impl FnMut(WatcherEvent)) {
        let key = (api_version.to_owned(), kind.to_owned());
        if !self.followed.contains_key(&key) {
            let resource = self.cluster.resolve(api_version, kind).unwrap();
            let list = self.cluster.list(&resource, &ListQuery::all()).unwrap();
            let query = WatchQuery { resource_version: list.resource_version.clone(), ..WatchQuery::default() };
            observe(WatcherEvent::Init);
            observe(WatcherEvent::InitPage(list.items));
            observe(WatcherEvent::InitDone);
            let watch = self.cluster.watch(&resource, &query).unwrap();
            self.followed.insert(key, Followed { watch });
            return;
        }
        let followed = self.followed.get_mut(&key).unwrap();
        while let Some(event) = followed.watch.next(Duration::ZERO).unwrap() {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => observe(WatcherEvent::Apply(object)),
                WatchEvent::Deleted(object) => observe(WatcherEvent::Delete(object)),
                WatchEvent::Bookmark(_) => {}
            }
        }
    }

    /// Does one piece of work, if one is due.
    pub(super) fn step(&mut self) -> bool {
        self.controller.step(self.now) == Step::Worked
    }

    /// Lets time pass until nothing is left to do but what is done again and again.
    pub(super) fn settle(&mut self) {
        for _ in 0..20 {
            loop {
                self.pump();
                if !self.step() {
                    break;
                }
            }
            self.now += 31_000;
        }
        self.pump();
    }

    pub(super) fn resync(&mut self) {
        self.controller.resync(self.now);
        self.settle();
    }

    /// Our reports, by the name of their object.
    pub(super) fn reports(&self) -> Vec<Value> {
        let dialect = self.options.dialect;
        let all =
            [true, false].into_iter().flat_map(|namespaced| self.list(dialect.api_version(), dialect.kind(namespaced)));
        let mut ours: Vec<Value> = all.filter(is_ours).collect();
        ours.sort_by_key(|report| report.str_at(&["scope", "name"]).unwrap_or_default().to_owned());
        ours
    }

    /// `name: policy/rule=result, …` of each report.
    pub(super) fn words(&self) -> Vec<String> {
        let word = |report: &Value| {
            let results = ephor_reports::report::results(report).iter().map(|result| {
                let text = |key| result.str_at(&[key]).unwrap_or_default();
                format!("{}/{}={}", text("policy"), text("rule"), text("result"))
            });
            let scope = report.str_at(&["scope", "name"]).unwrap_or_default();
            format!("{scope}: {}", results.collect::<Vec<_>>().join(", "))
        };
        self.reports().iter().map(word).collect()
    }

    /// What the reports should be: everything judged from nothing. By UID of the object, without timestamps.
    pub(super) fn expected(&self) -> BTreeMap<String, String> {
        let policies =
            Reportable::of(&self.store.snapshot(), &self.cluster.discovery().unwrap(), &Reported::ALL.into());
        let answers = ClusterFacts::new(Arc::clone(&self.cluster));
        let mut expected = BTreeMap::new();
        for (kind, version) in &policies.kinds {
            for found in self.list(version, &kind.kind) {
                let judged = judge(&policies, &found, None, &answers, &Metrics::default(), jiff::Timestamp::UNIX_EPOCH);
                let results = ephor_reports::merge::merge(&[], &judged.results, jiff::Timestamp::UNIX_EPOCH, |_| {
                    ephor_reports::merge::Stored::Gone
                });
                let scope = ephor_reports::Scope::of(&found);
                for report in
                    ephor_reports::report::reports(self.options.dialect, &scope, results, self.options.max_bytes)
                {
                    expected.insert(object::name(&report).to_owned(), content(&report));
                }
            }
        }
        expected
    }

    /// What the reports are, likewise.
    pub(super) fn stored(&self) -> BTreeMap<String, String> {
        self.reports().iter().map(|report| (object::name(report).to_owned(), content(report))).collect()
    }

    /// Somebody takes the results out of a report.
    pub(super) fn edit_report(&mut self, mut report: Value) {
        let kind = self.cluster.resolve("wgpolicyk8s.io/v1alpha2", "PolicyReport").unwrap();
        report.as_object_mut().unwrap().insert("results", Value::array(Vec::new()));
        self.cluster.update(&kind, report, &WriteOptions::default()).unwrap();
    }

    /// The versions of all reports: they grow with every write.
    pub(super) fn versions(&self) -> Vec<String> {
        self.reports().iter().map(|report| object::text(report, "resourceVersion").to_owned()).collect()
    }
}

/// The answers of the cluster, but for the `ConfigMap` `panics`.
struct Panicking(ClusterFacts);

impl Answers for Panicking {
    fn answer(&self, fetch: &AllowedFetch) -> Fact {
        assert!(!matches!(fetch.fetch(), Fetch::ConfigMap { name, .. } if name == "panics"), "as asked");
        self.0.answer(fetch)
    }

    fn context_limit(&self) -> u64 {
        self.0.context_limit()
    }

    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value> {
        self.0.secrets(fetch, answer)
    }
}

fn controller(cluster: &Arc<dyn Cluster>, options: &ReportOptions, told: &Told) -> Controller {
    Controller::new(Env {
        answers: Arc::new(Panicking(ClusterFacts::new(Arc::clone(cluster)))),
        cluster: Arc::clone(cluster),
        fence: Arc::new(|| Ok(())),
        options: options.clone(),
        filters: None,
        new_results: NewResults::call({
            let told = Arc::clone(told);
            move |scope, results| {
                let text = |result: &Value, key| result.str_at(&[key]).unwrap_or_default().to_owned();
                let line =
                    |result: &&Value| format!("{}: {}={}", scope.name, text(result, "policy"), text(result, "result"));
                told.lock().unwrap().extend(results.iter().map(line));
            }
        }),
        metrics: Metrics::default(),
        stop: CancellationToken::new(),
    })
}

/// A `ConfigMap` with one datum.
pub(super) fn config_map(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}}}, data: {{v: '{value}'}}}}"
    )
}

/// A policy called `name` whose rule wants the datum of every `ConfigMap` to be `value`.
pub(super) fn wants(kind: &str, name: &str, value: &str, background: bool) -> String {
    let namespace = if kind == "Policy" { ", namespace: a" } else { "" };
    format!(
        "{{apiVersion: kyverno.io/v1, kind: {kind}, metadata: {{name: {name}{namespace}}}, spec: {{background: {background}, \
         rules: [{{name: r, match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, validate: {{message: 'no {value}', pattern: \
         {{data: {{v: '{value}'}}}}}}}}]}}}}"
    )
}

/// Whether stores follow objects of a kind.
fn is_policy(kind: &str) -> bool {
    StoredKind::all().any(|(_, known)| known.as_str() == kind)
}
