//! Taking Ephor out of a cluster: webhooks first, so that nothing waits for an engine that is gone.
//!
//! A leader that still runs writes its webhook configurations again, and the admission policies that it makes from
//! policies. So they are removed first, and once more when the last pod has ended. Policies and their definitions stay
//! unless the caller asks otherwise, so that a later installation, of Ephor or of Kyverno, finds them.

use std::time::{Duration, Instant};

use ephor_admission::admission_policies::is_generated;
use ephor_admission::webhooks::{Names, Serving};
use ephor_cluster::write::Propagation;
use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, LabelSelector, ListQuery};
use ephor_expr::{Str, Value};

use crate::manifests::{InstallError, Release, render};

/// What is to go.
#[derive(Debug, Clone)]
pub struct Uninstall {
    /// The namespace of the installation.
    pub namespace: Str,
    /// What names of its objects begin with.
    pub name: Str,
    /// Whether the kinds go too, and with them every policy.
    pub definitions: bool,
    /// How long to wait for the last pod.
    pub deletion_timeout: Duration,
}

/// Why it cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum UninstallError {
    /// The cluster refuses or is out of reach.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The manifests that say what there is cannot be rendered.
    #[error(transparent)]
    Manifests(#[from] InstallError),
    /// Pods do not end, and may write webhook configurations again.
    #[error("{0} did not end in time; run the command again when they have")]
    PodsRemain(String),
}

/// One object that exists and is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Its API version.
    pub api_version: Str,
    /// Its kind.
    pub kind: Str,
    /// Its namespace, if it has one.
    pub namespace: Option<Str>,
    /// Its name.
    pub name: Str,
}

impl std::fmt::Display for Removal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

impl Removal {
    fn of(object: &Value) -> Self {
        let text = |keys: &[&str]| object.str_at(keys).filter(|text| !text.is_empty()).map(Str::new);
        Self {
            api_version: text(&["apiVersion"]).unwrap_or_default(),
            kind: text(&["kind"]).unwrap_or_default(),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]).unwrap_or_default(),
        }
    }

    fn in_namespace(api_version: &'static str, kind: &'static str, namespace: &Str, name: String) -> Self {
        Self {
            api_version: Str::new_static(api_version),
            kind: Str::new_static(kind),
            namespace: Some(namespace.clone()),
            name: name.into(),
        }
    }

    fn exists(&self, cluster: &dyn Cluster) -> Result<bool, ClusterError> {
        absent_is_none(
            cluster
                .resolve(&self.api_version, &self.kind)
                .and_then(|resource| cluster.get(&resource, self.namespace.as_deref(), &self.name)),
        )
        .map(|found| found.is_some())
    }

    fn carry_out(&self, cluster: &dyn Cluster) -> Result<(), ClusterError> {
        let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
        absent_is_none(
            cluster
                .resolve(&self.api_version, &self.kind)
                .and_then(|resource| cluster.delete(&resource, self.namespace.as_deref(), &self.name, &options)),
        )
        .map(|_| ())
    }
}

fn absent_is_none<T>(result: Result<T, ClusterError>) -> Result<Option<T>, ClusterError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Uninstall {
    /// What exists of the installation, in the order in which it goes.
    pub fn plan(&self, cluster: &dyn Cluster) -> Result<Vec<Removal>, UninstallError> {
        let mut removals = self.left_by_leaders(cluster)?;
        for removal in self.rest()? {
            if removal.exists(cluster)? {
                removals.push(removal);
            }
        }
        Ok(removals)
    }

    /// Removes what [`Uninstall::plan`] found; `done` hears of each object.
    pub fn carry_out(
        &self,
        cluster: &dyn Cluster,
        removals: &[Removal],
        mut done: impl FnMut(&Removal),
    ) -> Result<(), UninstallError> {
        let mut remove = |removal: &Removal| -> Result<(), ClusterError> {
            removal.carry_out(cluster)?;
            done(removal);
            Ok(())
        };
        let (first, rest): (Vec<_>, Vec<_>) =
            removals.iter().partition(|removal| is_left_by_leaders(removal) || removal.kind == "Deployment");
        for removal in first {
            remove(removal)?;
        }
        self.wait_for_pods(cluster)?;
        for removal in self.left_by_leaders(cluster)? {
            remove(&removal)?;
        }
        for removal in rest {
            remove(removal)?;
        }
        Ok(())
    }

    /// What the API server acts on and a leader writes again while it runs: webhooks, admission policies,
    /// registrations.
    fn left_by_leaders(&self, cluster: &dyn Cluster) -> Result<Vec<Removal>, ClusterError> {
        let (mut found, others_enforce) = self.webhooks(cluster)?;
        // The admission policies of two installations look alike. They are those of the installation that enforces.
        if !others_enforce {
            found.extend(admission_policies(cluster)?);
        }
        found.extend(self.registrations(cluster)?);
        Ok(found)
    }

    /// The webhook configurations of this installation, those of resources first, and whether another installation has
    /// some that enforce. Kyverno and a shadow of it run side by side, and both use Kyverno's label.
    fn webhooks(&self, cluster: &dyn Cluster) -> Result<(Vec<Removal>, bool), ClusterError> {
        let (mut found, mut others_enforce) = (Vec::new(), false);
        for serving in [Serving::Enforcing, Serving::Shadow] {
            let (key, value) = Names::of(serving).label();
            for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
                let resource = cluster.resolve("admissionregistration.k8s.io/v1", kind)?;
                let labels = LabelSelector::one_of(key, [value]);
                for object in cluster.list(&resource, &ListQuery::all().labels(labels))?.items {
                    if self.leads_elsewhere(&object) {
                        others_enforce |= serving == Serving::Enforcing;
                        continue;
                    }
                    found.push(Removal {
                        api_version: "admissionregistration.k8s.io/v1".into(),
                        kind: kind.into(),
                        namespace: None,
                        name: object.str_at(&["metadata", "name"]).unwrap_or_default().into(),
                    });
                }
            }
        }
        found.sort_by_key(|removal| !removal.name.contains("resource"));
        Ok((found, others_enforce))
    }

    /// Whether a webhook of a configuration leads to the Service of another installation.
    fn leads_elsewhere(&self, configuration: &Value) -> bool {
        let webhooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
        let service = format!("{}-svc", self.name);
        webhooks.iter().filter_map(|webhook| webhook.at(&["clientConfig", "service"])).any(|called| {
            called.str_at(&["namespace"]) != Some(self.namespace.as_str()) || called.str_at(&["name"]) != Some(&service)
        })
    }

    /// The `APIService`s that lead to this installation. One that leads nowhere would keep namespaces from being
    /// deleted.
    fn registrations(&self, cluster: &dyn Cluster) -> Result<Vec<Removal>, ClusterError> {
        let Some(resource) = absent_is_none(cluster.resolve("apiregistration.k8s.io/v1", "APIService"))? else {
            return Ok(Vec::new());
        };
        let labels = LabelSelector::one_of("app.kubernetes.io/managed-by", ["kyverno"]);
        let found = cluster.list(&resource, &ListQuery::all().labels(labels))?.items;
        let leads_here = |object: &&Value| {
            object.str_at(&["spec", "service", "namespace"]) == Some(self.namespace.as_str())
                && matches!(object.str_at(&["spec", "group"]), Some("wgpolicyk8s.io" | "openreports.io"))
        };
        let removal = |object: &Value| Removal {
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            namespace: None,
            name: Str::new(object.str_at(&["metadata", "name"]).unwrap_or_default()),
        };
        Ok(found.iter().filter(leads_here).map(removal).collect())
    }

    /// Everything but webhooks and registrations, whether it exists or not: Deployments first, what others need last.
    fn rest(&self) -> Result<Vec<Removal>, InstallError> {
        // With these values the chart has every object that any values give it.
        let settings = [
            format!("fullnameOverride={},crds.install={},openreports.installCrds=true", self.name, self.definitions),
            "admissionController.replicas=2,backgroundController.replicas=2,reportsController.replicas=2".to_owned(),
            "cleanupController.replicas=2,cleanupController.serviceMonitor.enabled=true".to_owned(),
            "cleanupController.rbac.clusterRole.extraResources[0].verbs={get}".to_owned(),
            "admissionController.rbac.clusterRole.extraResources[0].verbs={get}".to_owned(),
            "backgroundController.rbac.clusterRole.extraResources[0].verbs={get}".to_owned(),
            "reportsController.rbac.clusterRole.extraResources[0].verbs={get}".to_owned(),
            "reportsController.serviceMonitor.enabled=true".to_owned(),
            "admissionController.autoscaling.enabled=true,admissionController.autoscaling.minReplicas=2".to_owned(),
            "admissionController.serviceMonitor.enabled=true,backgroundController.serviceMonitor.enabled=true"
                .to_owned(),
            "global.caCertificates.data=x,grafana.enabled=true,grafana.grafanaDashboard.create=true".to_owned(),
        ];
        let mut release =
            Release { namespace: self.namespace.clone(), settings: settings.into(), ..Release::default() };
        let mut removals: Vec<Removal> = render(&release)?.objects.iter().rev().map(Removal::of).collect();
        // Reports in memory need objects of their own in place of definitions.
        release.settings.push("reports.storage=aggregated".to_owned());
        for removal in render(&release)?.objects.iter().rev().map(Removal::of) {
            if !removals.contains(&removal) {
                removals.push(removal);
            }
        }
        for service in ["svc", "reports-api"] {
            for part in ["ca", "pair"] {
                let name = format!("{}-{service}.{}.svc.kyverno-tls-{part}", self.name, self.namespace);
                removals.push(Removal::in_namespace("v1", "Secret", &self.namespace, name));
            }
        }
        for name in [
            "kyverno",
            "kyverno-health",
            "kyverno-background-controller",
            "kyverno-cleanup-controller",
            "kyverno-reports-controller",
            "ephor-shadow",
            "ephor-shadow-health",
        ] {
            removals.push(Removal::in_namespace("coordination.k8s.io/v1", "Lease", &self.namespace, name.to_owned()));
        }
        // Policies go with their kinds, so the kinds go last.
        removals.sort_by_key(|removal| removal.kind == "CustomResourceDefinition");
        Ok(removals)
    }

    fn wait_for_pods(&self, cluster: &dyn Cluster) -> Result<(), UninstallError> {
        let resource = cluster.resolve("v1", "Pod")?;
        let until = Instant::now() + self.deletion_timeout;
        let components = ["admission-controller", "background-controller", "cleanup-controller", "reports-controller"];
        let labels = LabelSelector::one_of("app.kubernetes.io/part-of", [self.name.clone()])
            .and(LabelSelector::one_of("app.kubernetes.io/component", components));
        let query = ListQuery::in_namespace(self.namespace.clone()).labels(labels);
        loop {
            let pods = cluster.list(&resource, &query)?.items;
            let names: Vec<&str> = pods.iter().filter_map(|pod| pod.str_at(&["metadata", "name"])).collect();
            if names.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(UninstallError::PodsRemain(names.join(", ")));
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

fn is_left_by_leaders(removal: &Removal) -> bool {
    let kind = removal.kind.as_str();
    kind == "APIService" || kind.ends_with("WebhookConfiguration") || kind.starts_with("ValidatingAdmissionPolicy")
}

/// The admission policies of the API server that were made from policies, bindings first. They would go on to refuse
/// requests, and nothing would keep them in step with their policies.
fn admission_policies(cluster: &dyn Cluster) -> Result<Vec<Removal>, ClusterError> {
    let mut found = Vec::new();
    for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
        let Some(resource) = absent_is_none(cluster.resolve("admissionregistration.k8s.io/v1", kind))? else {
            continue;
        };
        let listed = cluster.list(&resource, &ListQuery::all())?.items;
        found.extend(listed.iter().filter(|object| is_generated(object)).map(Removal::of));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use ephor_cluster::{MemoryCluster, WriteOptions};

    use super::*;

    const UNINSTALL: fn() -> Uninstall = || Uninstall {
        namespace: "kyverno".into(),
        name: "kyverno".into(),
        definitions: false,
        deletion_timeout: Duration::ZERO,
    };

    fn object(text: &str) -> Value {
        ephor_expr::yaml::parse_value(text).unwrap()
    }

    /// A cluster with an installation, its webhooks, a policy, and what belongs to others.
    fn cluster() -> MemoryCluster {
        let cluster = MemoryCluster::default();
        let release = Release { settings: vec!["admissionController.replicas=3".into()], ..Release::default() };
        let rendered = render(&release).unwrap();
        let mut objects = vec![rendered.namespace_object()];
        objects.extend(rendered.objects);
        let webhook = |name: &str, label: &str| {
            object(&format!(
                "{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, \
                 metadata: {{name: {name}, labels: {{webhook.kyverno.io/managed-by: {label}}}}}, webhooks: []}}"
            ))
        };
        objects.push(webhook("kyverno-policy-validating-webhook-cfg", "kyverno"));
        objects.push(webhook("kyverno-resource-validating-webhook-cfg", "kyverno"));
        objects.push(webhook("theirs", "them"));
        for text in [
            "{apiVersion: v1, kind: Secret, metadata: {name: kyverno-svc.kyverno.svc.kyverno-tls-ca, namespace: kyverno}}",
            "{apiVersion: v1, kind: Secret, metadata: {name: mine, namespace: kyverno}}",
            "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: kyverno, namespace: kyverno}}",
            "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: []}}",
        ] {
            objects.push(object(text));
        }
        for object in objects {
            let resource =
                cluster.resolve(object.str_at(&["apiVersion"]).unwrap(), object.str_at(&["kind"]).unwrap()).unwrap();
            cluster.create(&resource, object, &WriteOptions::default()).unwrap();
        }
        cluster
    }

    fn remove(cluster: &MemoryCluster, uninstall: &Uninstall) -> Vec<String> {
        let removals = uninstall.plan(cluster).unwrap();
        let mut done = Vec::new();
        uninstall.carry_out(cluster, &removals, |removal| done.push(removal.to_string())).unwrap();
        done
    }

    fn left(cluster: &MemoryCluster) -> Vec<String> {
        let mut left: Vec<String> = cluster.objects().iter().map(|object| Removal::of(object).to_string()).collect();
        left.sort();
        left
    }

    #[test]
    fn registrations_of_reports_go_and_those_of_others_stay() {
        let cluster = cluster();
        let kind = cluster.resolve("apiregistration.k8s.io/v1", "APIService").unwrap();
        for (group, manager, namespace) in [
            ("wgpolicyk8s.io", "kyverno", "kyverno"),
            ("openreports.io", "kyverno", "elsewhere"),
            ("metrics.k8s.io", "kyverno", "kyverno"),
            ("custom.metrics.k8s.io", "Helm", "kyverno"),
        ] {
            let text = format!(
                "{{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {{name: v1.{group}, labels: \
                 {{app.kubernetes.io/managed-by: {manager}}}}}, spec: {{group: {group}, version: v1, \
                 groupPriorityMinimum: 1, versionPriority: 1, service: {{name: s, namespace: {namespace}}}}}}}"
            );
            cluster.create(&kind, object(&text), &WriteOptions::default()).unwrap();
        }
        let done = remove(&cluster, &UNINSTALL());
        let gone: Vec<&String> = done.iter().filter(|name| name.starts_with("APIService")).collect();
        assert_eq!(gone, ["APIService v1.wgpolicyk8s.io"]);
        let place = |start: &str| done.iter().position(|name| name.starts_with(start));
        assert!(place("APIService") < place("Deployment"));
        assert_eq!(cluster.list(&kind, &ListQuery::all()).unwrap().items.len(), 3);
    }

    #[test]
    fn admission_policies_that_were_made_from_policies_go_and_others_stay() {
        let cluster = cluster();
        for kind in ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] {
            let resource = cluster.resolve("admissionregistration.k8s.io/v1", kind).unwrap();
            for (name, manager) in [("cpol-p", "kyverno"), ("theirs", "kyverno"), ("cpol-q", "Helm")] {
                let text = format!(
                    "{{apiVersion: admissionregistration.k8s.io/v1, kind: {kind}, metadata: {{name: {name}, labels: \
                     {{app.kubernetes.io/managed-by: {manager}}}, ownerReferences: [{{apiVersion: kyverno.io/v1, kind: \
                     ClusterPolicy, name: p, uid: u}}]}}, spec: {{policyName: x, validationActions: [Deny]}}}}"
                );
                cluster.create(&resource, object(&text), &WriteOptions::default()).unwrap();
            }
        }
        let done = remove(&cluster, &UNINSTALL());
        let gone: Vec<&String> = done.iter().filter(|name| name.starts_with("ValidatingAdmission")).collect();
        assert_eq!(gone, ["ValidatingAdmissionPolicyBinding cpol-p", "ValidatingAdmissionPolicy cpol-p"]);
        let place = |start: &str| done.iter().position(|name| name.starts_with(start));
        assert!(place("ValidatingAdmissionPolicyBinding") < place("Deployment"));
    }

    #[test]
    fn what_a_shadow_leaves_behind_goes_and_kyverno_beside_it_stays_whole() {
        let cluster = cluster();
        let configuration = |name: &str, label: &str, namespace: &str, service: &str| {
            let text = format!(
                "{{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {{name: {name}, \
                 labels: {{{label}}}}}, webhooks: [{{name: a.kyverno.svc, admissionReviewVersions: [v1], sideEffects: None, \
                 clientConfig: {{service: {{namespace: {namespace}, name: {service}}}}}}}]}}"
            );
            let kind = cluster.resolve("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration").unwrap();
            cluster.create(&kind, object(&text), &WriteOptions::default()).unwrap();
        };
        let theirs = "webhook.kyverno.io/managed-by: kyverno";
        configuration("kyverno-resource-mutating-webhook-cfg", theirs, "kyverno", "kyverno-svc");
        configuration(
            "ephor-shadow-resource-mutating-webhook-cfg",
            "ephor.dev/managed-by: ephor-shadow",
            "ephor",
            "ephor-svc",
        );
        let made = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: cpol-p, \
                    labels: {app.kubernetes.io/managed-by: kyverno}, ownerReferences: [{apiVersion: kyverno.io/v1, kind: \
                    ClusterPolicy, name: p, uid: u}]}, spec: {}}";
        let kind = cluster.resolve("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy").unwrap();
        cluster.create(&kind, object(made), &WriteOptions::default()).unwrap();
        let shadow = Uninstall { namespace: "ephor".into(), name: "ephor".into(), ..UNINSTALL() };
        let done = remove(&cluster, &shadow);
        assert!(done.iter().any(|name| name.ends_with("ephor-shadow-resource-mutating-webhook-cfg")), "{done:?}");
        let left = left(&cluster);
        for stays in [
            "MutatingWebhookConfiguration kyverno-resource-mutating-webhook-cfg",
            "ValidatingAdmissionPolicy cpol-p",
            "Deployment kyverno/kyverno-admission-controller",
        ] {
            assert!(left.iter().any(|name| name == stays), "{stays}: {left:?}");
        }
    }

    #[test]
    fn webhooks_go_first_and_what_is_not_ours_stays() {
        let cluster = cluster();
        let done = remove(&cluster, &UNINSTALL());
        assert_eq!(
            done[..6],
            [
                "ValidatingWebhookConfiguration kyverno-resource-validating-webhook-cfg",
                "ValidatingWebhookConfiguration kyverno-policy-validating-webhook-cfg",
                "Deployment kyverno/kyverno-reports-controller",
                "Deployment kyverno/kyverno-cleanup-controller",
                "Deployment kyverno/kyverno-background-controller",
                "Deployment kyverno/kyverno-admission-controller",
            ]
        );
        let left = left(&cluster);
        for stays in
            ["ClusterPolicy p", "Secret kyverno/mine", "ValidatingWebhookConfiguration theirs", "Namespace kyverno"]
        {
            assert!(left.iter().any(|name| name == stays), "{stays}: {left:?}");
        }
        assert_eq!(left.iter().filter(|name| name.starts_with("CustomResourceDefinition")).count(), 22);
        let gone = ["Role", "Deployment", "Lease", "Service", "ConfigMap kyverno/kyverno", "NetworkPolicy", "Pod"];
        let ours = |name: &&String| gone.iter().any(|kind| name.split(' ').next() == Some(kind));
        assert_eq!(left.iter().filter(ours).collect::<Vec<_>>(), Vec::<&String>::new());
        assert_eq!(UNINSTALL().plan(&cluster).unwrap(), []);
    }

    #[test]
    fn kinds_go_only_when_asked_and_last() {
        let done = remove(&cluster(), &Uninstall { definitions: true, ..UNINSTALL() });
        assert!(done[done.len() - 7..].iter().all(|name| name.starts_with("CustomResourceDefinition")), "{done:?}");
    }

    #[test]
    fn a_pod_that_does_not_end_stops_the_removal_before_accounts_and_roles_go() {
        let cluster = cluster();
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: kyverno, labels: \
                   {app.kubernetes.io/part-of: kyverno, app.kubernetes.io/component: admission-controller}}}";
        let pods = cluster.resolve("v1", "Pod").unwrap();
        cluster.create(&pods, object(pod), &WriteOptions::default()).unwrap();
        let removals = UNINSTALL().plan(&cluster).unwrap();
        let error = UNINSTALL().carry_out(&cluster, &removals, |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "a did not end in time; run the command again when they have");
        assert!(left(&cluster).iter().any(|name| name == "ServiceAccount kyverno/kyverno-admission-controller"));
    }
}
