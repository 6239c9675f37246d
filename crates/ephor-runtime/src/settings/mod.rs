//! Settings of a role: upstream's flags and environment, and some of Ephor's own.
//!
//! Ephor's own: `--context`, `--shadow`, `--clientCAFile` and `--clientNames` (the client certificate that callers of
//! the webhooks must show), `--healthPort` (probes of the background, reports and cleanup roles, over plain
//! HTTP; 0, the default: none), `--cleanupServiceAccountName`, `--cleanup-limit`, `--roles`. What can change while
//! running stands in the `ConfigMap` ([`crate::config`]).

mod parse;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ephor_expr::Str;
use ephor_reports::report::Reported;

use crate::network::{InvalidRule, ServiceRules};
use crate::policies::ExceptionScope;
pub use parse::SettingsError;
use parse::{Reader, Values};
use table::For;

/// The environment of the process, as far as settings look.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// What all roles are told.
#[derive(Debug, Clone)]
pub struct CommonSettings {
    /// Where Ephor's own objects are (`KYVERNO_NAMESPACE`).
    pub namespace: Str,
    /// The `ConfigMap` with what can change (`INIT_CONFIG`).
    pub config_name: Str,
    /// The `ConfigMap` about metrics (`METRICS_CONFIG`).
    pub metrics_config_name: Str,
    /// The service account that the role runs as (`KYVERNO_SERVICEACCOUNT_NAME`).
    pub service_account: Str,
    /// The service in front of the webhooks (`KYVERNO_SVC`).
    pub service: Str,
    /// The deployment that the role belongs to (`KYVERNO_DEPLOYMENT`).
    pub deployment: Str,
    /// Who this replica is: the name of its pod (`KYVERNO_POD_NAME`), or host and process.
    pub identity: Str,
    /// Which exceptions count.
    pub exceptions: ExceptionScope,
    /// Where metrics are served; `None`: nowhere.
    pub metrics_port: Option<u16>,
    /// How the log is written.
    pub log: LogSettings,
    /// The kubeconfig; `None`: the pod's service account, or the user's usual file.
    pub kubeconfig: Option<String>,
    /// The context of the kubeconfig.
    pub context: Option<String>,
    /// The pause between attempts to become the leader.
    pub leader_retry: Duration,
    /// How much an answer to an API call may weigh, in bytes.
    pub max_api_response: u64,
    /// How long an API call may take.
    pub api_call_timeout: Duration,
    /// How many events wait at most; 0 switches them off.
    pub max_queued_events: usize,
    /// Reasons of events that are not written.
    pub omit_events: Vec<String>,
    /// Which services policies may call.
    pub services: ServiceRules,
    /// Whether objects that Ephor made can be changed by Ephor only.
    pub protect_managed_resources: bool,
    /// Sorts of rules whose results are reported.
    pub reporting: BTreeSet<Reported>,
    /// Flags that were given and have no effect, with the reason; for the log.
    pub without_effect: Vec<(&'static str, &'static str)>,
}

/// How the log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// Lines for people or for machines.
    pub format: LogFormat,
    /// How much: 2 is usual, 4 explains, 6 and more tells everything.
    pub verbosity: u64,
    /// Whether lines for people may have colour.
    pub color: bool,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// The algorithm of Ephor's own keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyAlgorithm {
    /// RSA with 2048 bits.
    #[default]
    Rsa,
    /// ECDSA on P-256.
    Ecdsa,
    /// Ed25519.
    Ed25519,
}

/// What `ephor serve admission` is told.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of upstream by that name")]
pub struct AdmissionSettings {
    /// What all roles are told.
    pub common: CommonSettings,
    /// The host (and port) under which the API server reaches the webhooks, outside of a cluster; `None`: by the
    /// service.
    pub server_address: Option<ServerAddress>,
    /// Whether to decide for the record only.
    pub shadow: bool,
    /// The timeout of webhooks, in seconds, for policies without their own.
    pub webhook_timeout: u64,
    /// The port that the webhooks listen on.
    pub port: u16,
    /// The port of the service.
    pub service_port: u16,
    /// Whether webhook configurations follow the policies.
    pub auto_update_webhooks: bool,
    /// Whether webhooks that fail closed leave out what a cluster needs to start.
    pub exclude_bootstrap_resources: bool,
    /// Whether all policies fail open.
    pub force_failure_policy_ignore: bool,
    /// Whether policies that ask for it become admission policies of the API server.
    pub generate_validating_admission_policy: bool,
    /// Whether policies that mutate and ask for it become admission policies of the API server.
    pub generate_mutating_admission_policy: bool,
    /// Whether results of admission are reported: webhooks then have side effects.
    pub admission_reports: bool,
    /// How many results of admission may wait to be taken over in the cluster.
    pub max_admission_reports: usize,
    /// How many threads evaluate audit policies.
    pub audit_workers: usize,
    /// How many requests wait for audit at most.
    pub audit_capacity: usize,
    /// Whether requests are logged.
    pub dump_payload: bool,
    /// Whether patches are logged.
    pub dump_patches: bool,
    /// The account of the background role, as `system:serviceaccount:<namespace>:<name>`; empty: unknown.
    pub background_account: Str,
    /// The account of the reports role, likewise.
    pub reports_account: Str,
    /// The account of the cleanup role, likewise.
    pub cleanup_account: Str,
    /// The Secret with the CA.
    pub ca_secret: Str,
    /// The Secret with the serving certificate.
    pub tls_secret: Str,
    /// The algorithm of both keys.
    pub key_algorithm: KeyAlgorithm,
    /// How long before their end certificates are renewed.
    pub renew_before: Duration,
    /// Whether Ephor makes its own certificates.
    pub own_certificates: bool,
    /// PEM file with the CA of the certificates that callers must show; `None`: callers show none.
    pub client_ca_file: Option<String>,
    /// Common names that callers' certificates may have; empty: any.
    pub client_names: Vec<String>,
}

/// Where the API server finds the webhooks outside of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// A name or an IP address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// What `ephor serve background` is told.
#[derive(Debug, Clone)]
pub struct BackgroundSettings {
    /// What all roles are told.
    pub common: CommonSettings,
    /// How many threads work on requests.
    pub workers: usize,
    /// How often policies are applied to what exists (`BACKGROUND_SCAN_INTERVAL`).
    pub scan_interval: Duration,
    /// Where the kubelet asks; `None`: nowhere.
    pub health_port: Option<u16>,
}

/// What `ephor serve reports` is told.
#[derive(Debug, Clone)]
pub struct ReportsSettings {
    /// What all roles are told.
    pub common: CommonSettings,
    /// How many threads judge objects and write reports.
    pub workers: usize,
    /// How often everything is judged again.
    pub scan_interval: Duration,
    /// Whether objects that the filters of the `ConfigMap` match are judged all the same.
    pub skip_resource_filters: bool,
    /// Whether reports are those of `openreports.io`.
    pub open_reports: bool,
    /// Which results are stored; empty: all.
    pub allowed_results: Vec<Str>,
    /// Where the kubelet asks; `None`: nowhere.
    pub health_port: Option<u16>,
    /// Where reports are.
    pub storage: ReportStorage,
}

/// What `ephor serve cleanup` is told.
#[derive(Debug, Clone)]
pub struct CleanupSettings {
    /// What all roles are told.
    pub common: CommonSettings,
    /// How often it is looked which kinds the label for lifetimes counts for.
    pub ttl_interval: Duration,
    /// The most objects that a run of a policy may delete where the policy does not say it; `None`: any number.
    pub limit: Option<usize>,
    /// Where the kubelet asks; `None`: nowhere.
    pub health_port: Option<u16>,
}

/// What `ephor serve all` is told: the settings of each role.
#[derive(Debug, Clone)]
pub struct AllSettings {
    /// The admission role, which every such process has.
    pub admission: AdmissionSettings,
    /// The background role.
    pub background: Option<BackgroundSettings>,
    /// The reports role.
    pub reports: Option<ReportsSettings>,
    /// The cleanup role.
    pub cleanup: Option<CleanupSettings>,
}

/// Where `ephor serve reports` keeps reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportStorage {
    /// As objects in the cluster.
    Stored,
    /// In the memory of each replica, which serves them as an extension API server.
    Aggregated(AggregatedSettings),
}

/// How the API server reaches reports in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregatedSettings {
    /// The port that the role listens on.
    pub port: u16,
    /// The Service in front of it.
    pub service: Str,
    /// The port of the Service.
    pub service_port: u16,
    /// The ClusterRole that owns the registration, if one does.
    pub owner: Option<Str>,
}

impl AdmissionSettings {
    /// Reads flags and environment.
    pub fn parse(arguments: &[String], environment: &BTreeMap<String, String>) -> Result<Self, SettingsError> {
        let values = parse::parse(Reader::Alone(For::Admission), arguments, environment)?;
        Self::of(&values, environment, "kyverno-admission-controller")
    }

    fn of(
        values: &Values,
        environment: &BTreeMap<String, String>,
        default_account: &str,
    ) -> Result<Self, SettingsError> {
        let common = CommonSettings::of(values, environment, default_account)?;
        let port = values.port("webhookServerPort");
        let timeout = values.count("webhookTimeout");
        if !(1..=30).contains(&timeout) {
            return Err(values.refuse("webhookTimeout", "seconds from 1 to 30"));
        }
        let secret = |kind: &str| format!("{}.{}.svc.kyverno-tls-{kind}", common.service, common.namespace);
        Ok(Self {
            server_address: server_address(values, port)?,
            shadow: values.switch("shadow"),
            webhook_timeout: timeout,
            port,
            service_port: values.port("servicePort"),
            auto_update_webhooks: values.switch("autoUpdateWebhooks"),
            exclude_bootstrap_resources: values.switch("excludeBootstrapResources"),
            force_failure_policy_ignore: values.switch("forceFailurePolicyIgnore"),
            generate_validating_admission_policy: values.switch("generateValidatingAdmissionPolicy"),
            generate_mutating_admission_policy: values.switch("generateMutatingAdmissionPolicy"),
            admission_reports: values.switch("admissionReports"),
            max_admission_reports: usize::try_from(values.count("maxAdmissionReports")).unwrap_or(usize::MAX),
            audit_workers: usize::try_from(values.count("maxAuditWorkers")).unwrap_or(usize::MAX),
            audit_capacity: usize::try_from(values.count("maxAuditCapacity")).unwrap_or(usize::MAX),
            dump_payload: values.switch("dumpPayload"),
            dump_patches: values.switch("dumpPatches"),
            background_account: account(values.text("backgroundServiceAccountName"), &common.namespace),
            reports_account: account(values.text("reportsServiceAccountName"), &common.namespace),
            cleanup_account: account(values.text("cleanupServiceAccountName"), &common.namespace),
            ca_secret: values.text_or("caSecretName", || secret("ca")).into(),
            tls_secret: values.text_or("tlsSecretName", || secret("pair")).into(),
            key_algorithm: match values.text("tlsKeyAlgorithm") {
                "RSA" => KeyAlgorithm::Rsa,
                "ECDSA" => KeyAlgorithm::Ecdsa,
                "Ed25519" => KeyAlgorithm::Ed25519,
                _ => return Err(values.refuse("tlsKeyAlgorithm", "`RSA`, `ECDSA` or `Ed25519`")),
            },
            renew_before: values.time("renewBefore"),
            own_certificates: !values.switch("disableCertManagerController"),
            client_ca_file: Some(values.text("clientCAFile").to_owned()).filter(|file| !file.is_empty()),
            client_names: values.list("clientNames"),
            common,
        })
    }
}

impl BackgroundSettings {
    /// Reads flags and environment.
    pub fn parse(arguments: &[String], environment: &BTreeMap<String, String>) -> Result<Self, SettingsError> {
        let values = parse::parse(Reader::Alone(For::Background), arguments, environment)?;
        Self::of(&values, environment, "kyverno-background-controller")
    }

    fn of(
        values: &Values,
        environment: &BTreeMap<String, String>,
        default_account: &str,
    ) -> Result<Self, SettingsError> {
        let common = CommonSettings::of(values, environment, default_account)?;
        let interval = environment.get("BACKGROUND_SCAN_INTERVAL").map_or("1h", String::as_str);
        let scan_interval = ephor_expr::scalar::duration::Duration::parse(interval)
            .ok()
            .and_then(|duration| u64::try_from(duration.0).ok())
            .filter(|nanoseconds| *nanoseconds > 0)
            .map(Duration::from_nanos)
            .ok_or_else(|| SettingsError::BadValue {
                source_name: "variable `BACKGROUND_SCAN_INTERVAL`".into(),
                value: interval.to_owned(),
                expected: "a duration such as `1h`",
            })?;
        Ok(Self {
            workers: usize::try_from(values.count("genWorkers").max(1)).unwrap_or(usize::MAX),
            scan_interval,
            health_port: Some(values.port("healthPort")).filter(|port| *port != 0),
            common,
        })
    }
}

/// The results that a report can hold.
const RESULTS: [&str; 5] = ["pass", "fail", "warn", "error", "skip"];

impl ReportsSettings {
    /// Reads flags and environment.
    pub fn parse(arguments: &[String], environment: &BTreeMap<String, String>) -> Result<Self, SettingsError> {
        let values = parse::parse(Reader::Alone(For::Reports), arguments, environment)?;
        Self::of(&values, environment, "kyverno-reports-controller")
    }

    fn of(
        values: &Values,
        environment: &BTreeMap<String, String>,
        default_account: &str,
    ) -> Result<Self, SettingsError> {
        let allowed_results: Vec<Str> = values.list("allowedResults").into_iter().map(Str::from).collect();
        if allowed_results.iter().any(|result| !RESULTS.contains(&result.as_str())) {
            return Err(
                values.refuse("allowedResults", "`pass`, `fail`, `warn`, `error` and `skip`, with commas between")
            );
        }
        let scan_interval = values.time("backgroundScanInterval");
        if scan_interval.is_zero() {
            return Err(values.refuse("backgroundScanInterval", "more than nothing"));
        }
        Ok(Self {
            common: CommonSettings::of(values, environment, default_account)?,
            workers: usize::try_from(values.count("backgroundScanWorkers").max(1)).unwrap_or(usize::MAX),
            scan_interval,
            skip_resource_filters: values.switch("skipResourceFilters"),
            open_reports: values.switch("openreportsEnabled"),
            allowed_results,
            health_port: Some(values.port("healthPort")).filter(|port| *port != 0),
            storage: match values.text("reports-storage") {
                "stored" => ReportStorage::Stored,
                "aggregated" => ReportStorage::Aggregated(AggregatedSettings {
                    port: values.port("reportsServerPort"),
                    service: values.text("reportsServiceName").into(),
                    service_port: values.port("servicePort"),
                    owner: Some(Str::new(values.text("reportsOwner"))).filter(|owner| !owner.is_empty()),
                }),
                _ => return Err(values.refuse("reports-storage", "`stored` or `aggregated`")),
            },
        })
    }
}

impl CleanupSettings {
    /// Reads flags and environment.
    pub fn parse(arguments: &[String], environment: &BTreeMap<String, String>) -> Result<Self, SettingsError> {
        let values = parse::parse(Reader::Alone(For::Cleanup), arguments, environment)?;
        Self::of(&values, environment, "kyverno-cleanup-controller")
    }

    fn of(
        values: &Values,
        environment: &BTreeMap<String, String>,
        default_account: &str,
    ) -> Result<Self, SettingsError> {
        let ttl_interval = values.time("ttlReconciliationInterval");
        if ttl_interval.is_zero() {
            return Err(values.refuse("ttlReconciliationInterval", "more than nothing"));
        }
        let limit = usize::try_from(values.count("cleanup-limit")).unwrap_or(usize::MAX);
        Ok(Self {
            common: CommonSettings::of(values, environment, default_account)?,
            ttl_interval,
            limit: Some(limit).filter(|limit| *limit != 0),
            health_port: Some(values.port("healthPort")).filter(|port| *port != 0),
        })
    }
}

impl AllSettings {
    /// Reads flags and environment. The roles share one account; unless flags say otherwise, policies are checked
    /// against it for what the other roles do.
    pub fn parse(arguments: &[String], environment: &BTreeMap<String, String>) -> Result<Self, SettingsError> {
        const ACCOUNT: &str = "kyverno-admission-controller";
        let read = |role| parse::parse(Reader::Together(role), arguments, environment);
        let values = read(For::Together)?;
        let roles = values.list("roles");
        let known = ["admission", "background", "reports", "cleanup"];
        if roles.iter().any(|role| !known.contains(&role.as_str())) || !roles.iter().any(|role| role == "admission") {
            return Err(values.refuse(
                "roles",
                "`admission`, and of `background`, `reports` and `cleanup` any, with commas between",
            ));
        }
        let has = |role: &str| roles.iter().any(|named| named == role);
        let mut admission = AdmissionSettings::of(&read(For::Admission)?, environment, ACCOUNT)?;
        let own = admission.common.own_account();
        for (role, account) in [
            ("background", &mut admission.background_account),
            ("reports", &mut admission.reports_account),
            ("cleanup", &mut admission.cleanup_account),
        ] {
            if account.is_empty() && has(role) {
                account.clone_from(&own);
            }
        }
        let background = BackgroundSettings::of(&read(For::Background)?, environment, ACCOUNT)?;
        let values = read(For::Reports)?;
        let reports = ReportsSettings::of(&values, environment, ACCOUNT)?;
        if reports.storage != ReportStorage::Stored {
            return Err(
                values.refuse("reports-storage", "`stored`: reports in memory need a role with a port of its own")
            );
        }
        let cleanup = CleanupSettings::of(&read(For::Cleanup)?, environment, ACCOUNT)?;
        Ok(Self {
            admission,
            background: has("background").then_some(background),
            reports: has("reports").then_some(reports),
            cleanup: has("cleanup").then_some(cleanup),
        })
    }
}

impl CommonSettings {
    fn of(
        values: &Values,
        environment: &BTreeMap<String, String>,
        default_account: &str,
    ) -> Result<Self, SettingsError> {
        let variable = |name: &str, default: &str| {
            Str::new(environment.get(name).map(String::as_str).filter(|value| !value.is_empty()).unwrap_or(default))
        };
        let some = |name| Some(values.text(name).to_owned()).filter(|text| !text.is_empty());
        let identity =
            environment.get("KYVERNO_POD_NAME").filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| {
                let host = environment.get("HOSTNAME").map_or("ephor", String::as_str);
                format!("{host}-{}", std::process::id())
            });
        Ok(Self {
            namespace: variable("KYVERNO_NAMESPACE", "kyverno"),
            config_name: variable("INIT_CONFIG", "kyverno"),
            metrics_config_name: variable("METRICS_CONFIG", "kyverno-metrics"),
            service_account: variable("KYVERNO_SERVICEACCOUNT_NAME", default_account),
            service: variable("KYVERNO_SVC", "kyverno-svc"),
            deployment: variable("KYVERNO_DEPLOYMENT", default_account),
            identity: identity.into(),
            exceptions: match (values.switch("enablePolicyException"), values.text("exceptionNamespace")) {
                // Exceptions from anywhere were a hole of upstream's (CVE-2024-48921): a place must be named.
                (false, _) | (true, "") => ExceptionScope::Disabled,
                (true, "*") => ExceptionScope::Everywhere,
                (true, namespace) => ExceptionScope::Namespace(namespace.into()),
            },
            metrics_port: (!values.switch("disableMetrics")).then(|| values.port("metricsPort")),
            log: LogSettings {
                format: match values.text("loggingFormat") {
                    "text" => LogFormat::Text,
                    "json" => LogFormat::Json,
                    _ => return Err(values.refuse("loggingFormat", "`text` or `json`")),
                },
                verbosity: values.count("v"),
                color: !values.switch("disableLogColor"),
            },
            kubeconfig: some("kubeconfig"),
            context: some("context"),
            leader_retry: Some(values.time("leaderElectionRetryPeriod"))
                .filter(|retry| !retry.is_zero())
                .ok_or_else(|| values.refuse("leaderElectionRetryPeriod", "more than nothing"))?,
            max_api_response: values.count("maxAPICallResponseLength"),
            api_call_timeout: values.time("apiCallTimeout"),
            max_queued_events: usize::try_from(values.count("maxQueuedEvents")).unwrap_or(usize::MAX),
            omit_events: values.list("omitEvents"),
            services: ServiceRules::new(&values.list("httpBlocklist"), &values.list("httpAllowlist")).map_err(
                |error| match error {
                    InvalidRule::Blocked(_) => values.refuse("httpBlocklist", "hosts, addresses or networks"),
                    InvalidRule::Allowed(_) => values.refuse("httpAllowlist", "beginnings of http or https URLs"),
                },
            )?,
            protect_managed_resources: values.switch("protectManagedResources"),
            reporting: reporting(values)?,
            without_effect: values.without_effect.clone(),
        })
    }

    /// The user name of the role's own account.
    pub fn own_account(&self) -> Str {
        account(&self.service_account, &self.namespace)
    }
}

/// The sorts of rules in `--enableReporting`.
fn reporting(values: &Values) -> Result<BTreeSet<Reported>, SettingsError> {
    let words = values.list("enableReporting");
    let sorts = words.iter().map(|word| Reported::parse(word)).collect::<Option<_>>();
    sorts.ok_or_else(|| {
        values.refuse(
            "enableReporting",
            "`validate`, `mutate`, `mutateExisting`, `generate` and `imageVerify`, with commas between",
        )
    })
}

/// The user name of a service account, given by that name or by its own.
fn account(name: &str, namespace: &str) -> Str {
    if name.is_empty() || name.starts_with("system:serviceaccount:") {
        return name.into();
    }
    format!("system:serviceaccount:{namespace}:{name}").into()
}

fn server_address(values: &Values, port: u16) -> Result<Option<ServerAddress>, SettingsError> {
    let text = values.text("serverIP");
    if text.is_empty() {
        return Ok(None);
    }
    let bad = || values.refuse("serverIP", "an address such as `10.0.0.1` or `10.0.0.1:9443`");
    // An IPv6 address has colons of its own; with a port it stands in brackets.
    let plain_v6 = text.matches(':').count() > 1 && !text.starts_with('[');
    let (host, port) = match text.rsplit_once(':') {
        Some((host, digits)) if !plain_v6 && !text.ends_with(']') => (host, digits.parse().map_err(|_| bad())?),
        _ => (text, port),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains(['/', ' ']) {
        return Err(bad());
    }
    Ok(Some(ServerAddress { host: host.to_owned(), port }))
}
