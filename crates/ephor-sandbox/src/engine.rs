//! Ephor in the sandbox: the handlers and controllers of production, over the cluster in memory.

use std::sync::Arc;
use std::time::Duration;

use ephor_admission::admission_policies::{AdmissionPolicyController, AdmissionPolicySources, GeneratedKinds};
use ephor_admission::generated::GeneratedBoard;
use ephor_admission::policy_admission::{Accounts, PolicyAdmission};
use ephor_admission::registration::RegistrationBoard;
use ephor_admission::review::results::{RequestResults, queue_settings};
use ephor_admission::review::roles::Roles;
use ephor_admission::review::{HandlerOptions, Handlers, Parts};
use ephor_admission::status::StatusController;
use ephor_admission::webhooks::{RegisteredFrom, WebhookSettings};
use ephor_background::health::Readiness;
use ephor_background::results::WorkResults;
use ephor_background::serve::{Background, lead};
use ephor_cleanup::CleanupOptions;
use ephor_cleanup::serve::Cleanup;
use ephor_cluster::admission::User;
use ephor_cluster::{Cluster, MemoryCluster};
use ephor_reports::report::Reported;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::decision::observe::Observer;
use ephor_runtime::events::{EventSettings, Recorder};
use ephor_runtime::facts::{Answers, ClusterFacts, NamespaceLabels};
use ephor_runtime::globalcontext::GlobalContext;
use ephor_runtime::lease::Term;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::{ExceptionScope, PolicyStore};
use ephor_runtime::results::ResultQueue;
use ephor_runtime::threads;
use ephor_runtime::watcher::Watcher;
use ephor_scan::controller::ReportOptions;
use ephor_scan::serve::Reports;

use super::admission_policies::BySchema;
use super::admit::InProcess;
use super::namespaces;
use super::observe::ShownDecisions;
use crate::live::Live;

/// Where Ephor's own objects are.
pub(super) const NAMESPACE: &str = "kyverno";
/// The `ConfigMap` that is followed.
const CONFIG: &str = "kyverno";
/// How long the start waits for what must be known first. In memory all of it is there at once.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);
/// Changes that come so soon after each other are swept up together.
const SWEEP_INTERVAL: Duration = Duration::from_millis(20);
/// How many results of requests may wait to be taken over.
const MAX_EPHEMERAL: usize = 10_000;
/// How often it is looked which kinds there are.
const KINDS_INTERVAL: Duration = Duration::from_secs(5);
/// Threads of the background controllers.
const BACKGROUND_WORKERS: usize = 2;

/// Starts everything; it ends with `stop`. When this returns, every write is judged by the policies given back.
pub(super) fn start(cluster: &MemoryCluster, live: &Live, certificate: &str, stop: &CancellationToken) -> PolicyStore {
    let account = |name: &str| -> Arc<dyn Cluster> {
        Arc::new(cluster.acting_as(User::service_account(NAMESPACE, &format!("kyverno-{name}-controller"))))
    };
    let admission = account("admission");
    let exceptions = ExceptionScope::Everywhere;
    let policies = PolicyStore::new(exceptions.clone());
    let config = ConfigStore::new(NAMESPACE, CONFIG);
    let policy_watchers = policies.follow(&admission, stop);
    let (namespaces, namespace_watcher) = NamespaceLabels::follow(&admission, stop);
    let (roles, role_watchers) = Roles::follow(&admission, stop);
    let (global, global_watcher) = GlobalContext::follow(&admission, None, stop);
    let mut watchers = vec![config.follow(&admission, stop), namespace_watcher, global_watcher];
    watchers.extend(role_watchers);
    let facts = ClusterFacts::new(Arc::clone(&admission))
        .with_namespaces(namespaces.clone())
        .within(config.clone())
        .with_merger(Arc::new(BySchema(cluster.clone())));
    let answers: Arc<dyn Answers> = Arc::new(facts.with(Arc::new(global)));
    let events = Recorder::start(
        &admission,
        EventSettings::default(),
        prometheus_client::metrics::counter::Counter::default(),
        stop,
    );
    events.follow(&config);
    let shown = Arc::new(ShownDecisions::new(live.clone(), events.clone()));
    let results = ResultQueue::start(&admission, queue_settings(MAX_EPHEMERAL, None), stop);
    let results = RequestResults::new(results, Reported::ALL.into());
    let handlers = Handlers::new(
        Parts {
            cluster: Arc::clone(&admission),
            policies: policies.clone(),
            config: config.clone(),
            answers: Arc::clone(&answers),
            namespaces,
            roles,
            observer: Arc::new(vec![Arc::clone(&shown) as Arc<dyn Observer>, Arc::new(results)]),
        },
        HandlerOptions { explained: true, ..HandlerOptions::in_process(NAMESPACE) },
    );
    policy_watchers.wait_synced(SYNC_TIMEOUT);
    for watcher in &watchers {
        Watcher::wait_synced(watcher, SYNC_TIMEOUT);
    }
    let own = PolicyAdmission::new(Arc::clone(&admission), Accounts::default(), exceptions.clone());
    cluster.set_admission(Arc::new(InProcess::new(cluster.clone(), handlers, own, Arc::clone(&shown))));

    let term = Term::unlimited(stop);
    // There are no webhooks to wait for: a policy that compiles is ready.
    let settings = WebhookSettings { registered_from: RegisteredFrom::Static, ..WebhookSettings::default() };
    let generated = GeneratedBoard::default();
    let sources =
        AdmissionPolicySources { cluster: Arc::clone(&admission), policies: policies.clone(), config: config.clone() };
    // Handlers see all policies here, so that one that mutates would do it again.
    let kinds = GeneratedKinds { validating: true, mutating: false };
    let admission_policies = AdmissionPolicyController::new(sources, settings.clone(), kinds, generated.clone());
    threads::spawn("admission policies", threads::LARGE, stop, {
        let term = term.clone();
        move || admission_policies.run(&term, &Metrics::default())
    });
    let board = RegistrationBoard::default();
    let scans = Some(format!("system:serviceaccount:{NAMESPACE}:kyverno-reports-controller").into());
    let statuses = StatusController::new(Arc::clone(&admission), policies.clone(), board, generated, settings, scans);
    threads::spawn("statuses", threads::LARGE, stop, {
        let term = term.clone();
        move || statuses.run(&term, &Metrics::default())
    });
    let cluster_of_background = account("background");
    let worked = ephor_background::results::queue_settings(MAX_EPHEMERAL, None);
    let worked = ResultQueue::start(&cluster_of_background, worked, stop);
    let background = Background {
        cluster: cluster_of_background,
        answers,
        config,
        namespace: NAMESPACE.into(),
        identity: "sandbox".into(),
        leader_retry: Duration::from_secs(2),
        workers: BACKGROUND_WORKERS,
        resync: Duration::from_hours(1),
        exceptions,
        events,
        metrics: Metrics::default(),
        readiness: Readiness::default(),
        listener: Some(Arc::new(move |note| shown.worked(note))),
        results: Some(WorkResults::new(worked, Reported::ALL.into())),
    };
    let reports = Reports {
        cluster: account("reports"),
        answers: Arc::clone(&background.answers),
        namespace: NAMESPACE.into(),
        identity: "sandbox".into(),
        leader_retry: Duration::from_secs(2),
        workers: BACKGROUND_WORKERS,
        scan_interval: Duration::from_hours(1),
        config: background.config.clone(),
        skip_filters: true,
        exceptions: background.exceptions.clone(),
        options: ReportOptions::default(),
        events: background.events.clone(),
        metrics: Metrics::default(),
    };
    threads::spawn("reports", threads::LARGE, stop, {
        let term = term.clone();
        move || ephor_scan::serve::lead(&reports, &term)
    });
    let cleanup = Cleanup {
        cluster: account("cleanup"),
        answers: Arc::clone(&background.answers),
        namespace: NAMESPACE.into(),
        identity: "sandbox".into(),
        leader_retry: Duration::from_secs(2),
        ttl_interval: KINDS_INTERVAL,
        config: background.config.clone(),
        exceptions: background.exceptions.clone(),
        options: CleanupOptions::default(),
        events: background.events.clone(),
        metrics: Metrics::default(),
    };
    threads::spawn("cleanup", threads::LARGE, stop, {
        let term = term.clone();
        move || ephor_cleanup::serve::lead(&cleanup, &term)
    });
    threads::spawn("background", threads::LARGE, stop, move || lead(&background, &term));
    threads::spawn("cluster controllers", threads::LARGE, stop, {
        let (cluster, certificate, stop) = (cluster.clone(), certificate.to_owned(), stop.clone());
        move || sweep(&cluster, &certificate, &stop)
    });
    super::lists::show(cluster, live, &policies, stop);
    policies
}

/// Kubernetes' own controllers: whenever something changed, what it leaves to do.
fn sweep(cluster: &MemoryCluster, certificate: &str, stop: &CancellationToken) {
    let mut seen = 0;
    while !stop.is_cancelled() {
        let revision = cluster.wait_for_change(seen, Duration::from_millis(250));
        if revision != seen {
            stop.wait(SWEEP_INTERVAL);
            cluster.reconcile();
            namespaces::create_namespace_defaults(cluster, certificate);
            seen = revision;
        }
    }
}
