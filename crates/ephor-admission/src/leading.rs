//! The controllers of the admission role's leader: certificates, webhook configurations, statuses.

use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::globalcontext::{self, GlobalContext};
use ephor_runtime::lease::Term;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::PolicyStore;
use ephor_runtime::settings::AdmissionSettings;
use ephor_runtime::threads;

use crate::admission_policies::{AdmissionPolicyController, AdmissionPolicySources, GeneratedKinds};
use crate::certs::{CertKeeper, CertSettings, CertStore};
use crate::generated::GeneratedBoard;
use crate::registration::RegistrationBoard;
use crate::status::StatusController;
use crate::webhooks::{WebhookController, WebhookSettings, WebhookSources};

/// The leader's controllers, ready to work. Made once; each term starts them anew.
pub struct Leading {
    keeper: Arc<CertKeeper>,
    webhooks: Arc<WebhookController>,
    statuses: Arc<StatusController>,
    admission_policies: Arc<AdmissionPolicyController>,
    generated: GeneratedBoard,
    global: Option<(Arc<dyn Cluster>, GlobalContext)>,
    writes_statuses: bool,
    metrics: Metrics,
}

impl Leading {
    /// Controllers over what the replica follows anyway.
    pub fn new(
        cluster: &Arc<dyn Cluster>,
        settings: &AdmissionSettings,
        policies: &PolicyStore,
        config: &ConfigStore,
        certs: &CertStore,
    ) -> Self {
        let board = RegistrationBoard::default();
        let webhook_settings = WebhookSettings::of(settings);
        let sources = WebhookSources {
            cluster: Arc::clone(cluster),
            policies: policies.clone(),
            config: config.clone(),
            certs: certs.clone(),
        };
        let keeper = CertKeeper::new(Arc::clone(cluster), CertSettings::of(settings), certs, board.clone());
        let generated = GeneratedBoard::default();
        let enabled = GeneratedKinds {
            validating: settings.generate_validating_admission_policy,
            mutating: settings.generate_mutating_admission_policy,
        };
        let of_admission_policies =
            AdmissionPolicySources { cluster: Arc::clone(cluster), policies: policies.clone(), config: config.clone() };
        let admission_policies =
            AdmissionPolicyController::new(of_admission_policies, webhook_settings.clone(), enabled, generated.clone());
        let webhooks =
            WebhookController::new(sources, webhook_settings.clone(), board.clone()).without(generated.clone());
        let scans = Some(settings.reports_account.clone()).filter(|account| !account.is_empty());
        let statuses = StatusController::new(
            Arc::clone(cluster),
            policies.clone(),
            board,
            generated.clone(),
            webhook_settings,
            scans,
        );
        Self {
            generated,
            keeper: Arc::new(keeper),
            webhooks: Arc::new(webhooks),
            statuses: Arc::new(statuses),
            admission_policies: Arc::new(admission_policies),
            global: None,
            // In shadow the policies belong to the engine that decides.
            writes_statuses: !settings.shadow,
            metrics: Metrics::default(),
        }
    }

    /// Counts what the controllers do.
    #[must_use]
    pub fn counted_by(mut self, metrics: &Metrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Also keeps the statuses of global context entries.
    #[must_use]
    pub fn with_global_context(mut self, cluster: &Arc<dyn Cluster>, global: &GlobalContext) -> Self {
        self.global = Some((Arc::clone(cluster), global.clone()));
        self
    }

    /// Starts the controllers, each in a thread that ends with the term. Call it when a term begins, after policies and
    /// configuration are known: what is registered follows from them.
    pub fn start(&self, term: &Term) {
        if self.writes_statuses {
            self.generated.forget();
        }
        let (keeper, webhooks) = (Arc::clone(&self.keeper), Arc::clone(&self.webhooks));
        spawn("certificates", term, {
            let metrics = self.metrics.clone();
            move |term| keeper.run(term, &metrics)
        });
        spawn("webhooks", term, {
            let metrics = self.metrics.clone();
            move |term| webhooks.run(term, &metrics)
        });
        if self.writes_statuses {
            let (statuses, admission_policies) = (Arc::clone(&self.statuses), Arc::clone(&self.admission_policies));
            spawn("statuses", term, {
                let metrics = self.metrics.clone();
                move |term| statuses.run(term, &metrics)
            });
            spawn("admission policies", term, {
                let metrics = self.metrics.clone();
                move |term| admission_policies.run(term, &metrics)
            });
            if let Some((cluster, global)) = self.global.clone() {
                spawn("global context", term, move |term| globalcontext::write_statuses(&*cluster, &global, term));
            }
        }
    }
}

fn spawn(name: &str, term: &Term, run: impl FnOnce(&Term) + Send + 'static) {
    let owned = term.clone();
    threads::spawn(name, threads::LARGE, term.token(), move || run(&owned));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use ephor_cluster::{ListQuery, MemoryCluster, WriteOptions};
    use ephor_expr::Value;
    use ephor_expr::yaml::parse_value;
    use ephor_faults::FaultyCluster;
    use ephor_runtime::cancellation::CancellationToken;
    use ephor_runtime::lease::{self, LeaseOptions};
    use ephor_runtime::policies::ExceptionScope;
    use jiff::Timestamp;

    use super::*;

    const RETRY: Duration = Duration::from_millis(50);

    /// One replica of the admission role, without its webhooks.
    struct Replica {
        view: Arc<FaultyCluster>,
        policies: PolicyStore,
        certs: CertStore,
        stop: CancellationToken,
        election: Option<std::thread::JoinHandle<()>>,
    }

    impl Replica {
        fn start(cluster: &Arc<dyn Cluster>, identity: &'static str) -> Self {
            let view = Arc::new(FaultyCluster::new(Arc::clone(cluster)));
            let own: Arc<dyn Cluster> = Arc::clone(&view) as Arc<dyn Cluster>;
            let stop = CancellationToken::new();
            let arguments = ["--tlsKeyAlgorithm=ECDSA".to_owned()];
            let mut settings = AdmissionSettings::parse(&arguments, &BTreeMap::new()).unwrap();
            settings.common.namespace = "default".into();
            let policies = PolicyStore::new(ExceptionScope::Disabled);
            let config = ConfigStore::new("default", "kyverno");
            let certs = CertStore::new(CertSettings::of(&settings));
            assert!(policies.follow(&own, &stop).wait_synced(Duration::from_secs(30)));
            assert!(certs.follow(&own, &stop).wait_synced(Duration::from_secs(30)));
            let leading = Leading::new(&own, &settings, &policies, &config, &certs);
            let options = LeaseOptions {
                namespace: "default".into(),
                name: "kyverno".into(),
                identity: identity.into(),
                retry: RETRY,
            };
            let election = std::thread::spawn({
                let stop = stop.clone();
                move || lease::run(&own, &options, &stop, |term| leading.start(term))
            });
            Self { view, policies, certs, stop, election: Some(election) }
        }

        /// Writes to anything but the lease.
        fn writes(&self) -> usize {
            self.view.writes().iter().filter(|write| write.kind != "Lease").count()
        }
    }

    impl Drop for Replica {
        fn drop(&mut self) {
            self.stop.cancel();
            if let Some(election) = self.election.take() {
                let _ = election.join();
            }
        }
    }

    fn cluster() -> Arc<dyn Cluster> {
        Arc::new(MemoryCluster::default())
    }

    fn create_policy(cluster: &Arc<dyn Cluster>, name: &str) {
        let text = format!(
            "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{rules: [{{name: r, \
             match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}, validate: {{message: m, deny: {{}}}}}}]}}}}"
        );
        let kind = cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
        cluster.create(&kind, parse_value(&text).unwrap(), &WriteOptions::default()).unwrap();
    }

    fn ready(cluster: &Arc<dyn Cluster>, name: &str) -> bool {
        let kind = cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
        let stored = cluster.get(&kind, None, name).unwrap();
        let conditions = stored.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        conditions.first().and_then(|condition| condition.str_at(&["status"])) == Some("True")
    }

    fn eventually(what: impl Fn() -> bool) {
        for _ in 0..4000 {
            if what() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it never came");
    }

    fn holder(cluster: &Arc<dyn Cluster>, to: Option<&str>) -> String {
        let leases = cluster.resolve("coordination.k8s.io/v1", "Lease").unwrap();
        loop {
            let mut lease = cluster.get(&leases, Some("default"), "kyverno").unwrap();
            let before = lease.str_at(&["spec", "holderIdentity"]).unwrap_or_default().to_owned();
            let Some(to) = to else { return before };
            let spec = lease.as_object_mut().unwrap().get_mut("spec").and_then(Value::as_object_mut).unwrap();
            spec.insert("holderIdentity", to);
            // The holder renews all the time.
            if cluster.update(&leases, lease, &WriteOptions::default()).is_ok() {
                return before;
            }
        }
    }

    #[test]
    fn a_lease_taken_away_ends_the_leaders_writes_and_another_goes_on() {
        let cluster = cluster();
        create_policy(&cluster, "first");
        let replicas = [Replica::start(&cluster, "a"), Replica::start(&cluster, "b")];
        eventually(|| ready(&cluster, "first") && replicas.iter().all(|r| r.certs.ready(Timestamp::now()).is_ok()));

        // Somebody writes another holder into the lease, who never shows up.
        let before = holder(&cluster, Some("foo"));
        let leader = usize::from(before == "b");
        assert_eq!(before, ["a", "b"][leader]);
        // The leader notices with its next renewal; from then on until the lease of `foo` runs out nobody writes.
        std::thread::sleep(RETRY * 2);
        let quiet: Vec<usize> = replicas.iter().map(Replica::writes).collect();
        create_policy(&cluster, "second");
        eventually(|| replicas.iter().all(|replica| replica.policies.snapshot().policies.len() == 2));
        if holder(&cluster, None) == "foo" {
            assert_eq!(replicas.iter().map(Replica::writes).collect::<Vec<_>>(), quiet);
            assert!(!ready(&cluster, "second"));
        }
        // What it serves is served on, by both.
        assert!(replicas.iter().all(|replica| replica.certs.ready(Timestamp::now()).is_ok()));
        eventually(|| holder(&cluster, None) != "foo" && ready(&cluster, "second"));
    }

    #[test]
    fn replicas_that_come_and_go_leave_the_registration_as_it_is() {
        let cluster = cluster();
        create_policy(&cluster, "p");
        let configurations = || {
            let kind = cluster.resolve("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration").unwrap();
            cluster.list(&kind, &ListQuery::all()).unwrap().items
        };
        let first = Replica::start(&cluster, "a");
        eventually(|| ready(&cluster, "p"));
        let written = configurations();
        drop(first);
        assert_eq!(configurations(), written, "nobody is left, and the policies still hold");
        // Started cold: everything is as it must be already, so nothing is written.
        let again = Replica::start(&cluster, "c");
        eventually(|| holder(&cluster, None) == "c" && again.certs.ready(Timestamp::now()).is_ok());
        std::thread::sleep(RETRY * 4);
        assert_eq!(again.writes(), 0);
        assert_eq!(configurations(), written);
    }
}
