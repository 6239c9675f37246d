//! The table of flags, one line each.
//!
//! Names and defaults are upstream's, so that a manifest written for it starts Ephor. What Ephor does
//! with each is part of the line: a flag without effect here is accepted and mentioned in the log, one whose effect is
//! missing is refused unless it keeps its default, so that no operator relies on a missing protection.

/// The roles that a flag belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// All roles.
    All,
    /// `ephor serve admission`.
    Admission,
    /// `ephor serve background`.
    Background,
    /// `ephor serve reports`.
    Reports,
    /// `ephor serve cleanup`.
    Cleanup,
    /// `ephor serve all`, for what is about several roles in one process.
    Together,
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `true` or `false`; the flag alone means `true`.
    Switch,
    /// Any text.
    Text,
    /// A whole number, not negative.
    Count,
    /// A number.
    Number,
    /// A duration such as `90s`.
    Time,
    /// A TCP port.
    Port,
}

/// What Ephor does with a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// What upstream does with it.
    Honoured,
    /// Nothing, and nothing is lost by it: why.
    None(&'static str),
    /// Not built yet: other values than the default are refused.
    Missing(&'static str),
}

/// One flag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) role: For,
    pub(super) shape: Shape,
    pub(super) default: &'static str,
    pub(super) effect: Effect,
    /// The environment variable behind it, for upstream's toggles.
    pub(super) variable: Option<&'static str>,
}

const fn flag(role: For, name: &'static str, shape: Shape, default: &'static str) -> Flag {
    Flag { name, role, shape, default, effect: Effect::Honoured, variable: None }
}

impl Flag {
    const fn without_effect(self, why: &'static str) -> Self {
        Self { effect: Effect::None(why), ..self }
    }

    const fn missing(self, what: &'static str) -> Self {
        Self { effect: Effect::Missing(what), ..self }
    }

    const fn or_variable(self, variable: &'static str) -> Self {
        Self { variable: Some(variable), ..self }
    }
}

use For::{Admission, All, Background, Cleanup, Reports, Together};
use Shape::{Count, Number, Port, Switch, Text, Time};

const NO_IMAGES: &str = "image verification is not part of this version";
const NO_BACKGROUND_REPORTS: &str = "results of background work are not reported by this version";
const NO_NATIVE: &str = "this version reports no admission policies of the API server";
const WATCHES: &str = "Ephor watches and needs no resync";
const OWN_WEBHOOKS: &str = "the admission role answers the webhooks about cleanup policies and lifetimes";
const OWN_PACE: &str = "the client paces itself by the answers of the API server";

pub(super) const FLAGS: &[Flag] = &[
    // All roles.
    flag(All, "enablePolicyException", Switch, "false"),
    flag(All, "exceptionNamespace", Text, ""),
    flag(All, "clientRateLimitQPS", Number, "100").without_effect(OWN_PACE),
    flag(All, "clientRateLimitBurst", Count, "200").without_effect(OWN_PACE),
    flag(All, "eventsRateLimitQPS", Number, "1000").without_effect(OWN_PACE),
    flag(All, "eventsRateLimitBurst", Count, "2000").without_effect(OWN_PACE),
    flag(All, "resyncPeriod", Time, "15m").without_effect(WATCHES),
    flag(All, "enableConfigMapCaching", Switch, "true").without_effect("ConfigMaps are read when a rule asks for them"),
    flag(All, "enableDeferredLoading", Switch, "true")
        .missing("context entries always load when they are used")
        .or_variable("FLAG_ENABLE_DEFERRED_LOADING"),
    flag(All, "maxAPICallResponseLength", Count, "10000000"),
    flag(All, "apiCallTimeout", Time, "30s"),
    flag(All, "imagePullSecrets", Text, "").missing(NO_IMAGES),
    flag(All, "allowInsecureRegistry", Switch, "false").missing(NO_IMAGES),
    flag(All, "registryCredentialHelpers", Text, "").without_effect(NO_IMAGES),
    flag(All, "imageVerifyCacheEnabled", Switch, "true").without_effect(NO_IMAGES),
    flag(All, "imageVerifyCacheMaxSize", Count, "1000").without_effect(NO_IMAGES),
    flag(All, "imageVerifyCacheTTLDuration", Time, "60m").without_effect(NO_IMAGES),
    flag(All, "enableTuf", Switch, "false").missing(NO_IMAGES),
    flag(All, "tufMirror", Text, "").missing(NO_IMAGES),
    flag(All, "tufRoot", Text, "").missing(NO_IMAGES),
    flag(All, "tufRootRaw", Text, "").missing(NO_IMAGES),
    flag(All, "enableReporting", Text, "validate,mutate,mutateExisting,generate,imageVerify"),
    // The role that writes reports honours them.
    flag(All, "allowedResults", Text, ""),
    flag(All, "openreportsEnabled", Switch, "false"),
    flag(All, "metricsPort", Port, "8000"),
    flag(All, "otelConfig", Text, "prometheus").missing("metrics are scraped, not pushed"),
    flag(All, "otelCollector", Text, "").without_effect("metrics are scraped, not pushed"),
    flag(All, "transportCreds", Text, "").without_effect("metrics are scraped, not pushed"),
    flag(All, "disableMetrics", Switch, "false"),
    flag(All, "enableTracing", Switch, "false").missing("traces are not exported by this version"),
    flag(All, "tracingAddress", Text, "").without_effect("traces are not exported by this version"),
    flag(All, "tracingPort", Text, "4317").without_effect("traces are not exported by this version"),
    flag(All, "tracingCreds", Text, "").without_effect("traces are not exported by this version"),
    flag(All, "profile", Switch, "false").missing("there is no profiling endpoint"),
    flag(All, "profilePort", Text, "6060").without_effect("there is no profiling endpoint"),
    flag(All, "profileAddress", Text, "").without_effect("there is no profiling endpoint"),
    flag(All, "autoMemLimitEnabled", Switch, "true").without_effect("there is no garbage collector to tune"),
    flag(All, "autoMemLimitRatio", Number, "0.9").without_effect("there is no garbage collector to tune"),
    flag(All, "crdWatcher", Switch, "false").without_effect("new kinds are always noticed"),
    flag(All, "loggingFormat", Text, "text"),
    flag(All, "loggingtsFormat", Text, "default").without_effect("times are always RFC 3339"),
    flag(All, "disableLogColor", Switch, "false"),
    flag(All, "v", Count, "2"),
    flag(All, "kubeconfig", Text, ""),
    flag(All, "context", Text, ""),
    flag(All, "leaderElectionRetryPeriod", Time, "2s"),
    flag(All, "maxQueuedEvents", Count, "1000"),
    flag(All, "omitEvents", Text, ""),
    flag(All, "autogenV2", Switch, "false").missing("auto-gen follows the first form").or_variable("FLAG_AUTOGEN_V2"),
    flag(All, "allowHTTPInNamespacedPolicies", Switch, "false")
        .missing("a namespaced Policy calls no services")
        .or_variable("FLAG_ENABLE_HTTP_IN_NAMESPACED_POLICIES"),
    flag(All, "httpBlocklist", Text, "").or_variable("FLAG_HTTP_BLOCKLIST"),
    flag(All, "httpAllowlist", Text, "").or_variable("FLAG_HTTP_ALLOWLIST"),
    flag(All, "protectManagedResources", Switch, "false").or_variable("FLAG_PROTECT_MANAGED_RESOURCES"),
    // Several roles in one process.
    flag(Together, "roles", Text, "admission,background,reports,cleanup"),
    // Admission.
    flag(Admission, "serverIP", Text, ""),
    flag(Admission, "shadow", Switch, "false"),
    flag(Admission, "webhookTimeout", Count, "10"),
    flag(Admission, "webhookServerPort", Port, "9443"),
    flag(Admission, "servicePort", Port, "443"),
    flag(Admission, "webhookRegistrationTimeout", Time, "120s")
        .without_effect("registration is retried until it succeeds"),
    flag(Admission, "autoUpdateWebhooks", Switch, "true"),
    flag(Admission, "excludeBootstrapResources", Switch, "false"),
    flag(Admission, "forceFailurePolicyIgnore", Switch, "false").or_variable("FLAG_FORCE_FAILURE_POLICY_IGNORE"),
    flag(Admission, "generateValidatingAdmissionPolicy", Switch, "true")
        .or_variable("FLAG_GENERATE_VALIDATING_ADMISSION_POLICY"),
    flag(Admission, "generateMutatingAdmissionPolicy", Switch, "false")
        .or_variable("FLAG_GENERATE_MUTATING_ADMISSION_POLICY"),
    flag(Admission, "admissionReports", Switch, "true"),
    flag(Admission, "maxAdmissionReports", Count, "10000"),
    flag(Admission, "maxAuditWorkers", Count, "8"),
    flag(Admission, "maxAuditCapacity", Count, "1000"),
    flag(Admission, "dumpPayload", Switch, "false"),
    flag(Admission, "dumpPatches", Switch, "false").or_variable("FLAG_DUMP_PATCHES"),
    flag(Admission, "backgroundServiceAccountName", Text, ""),
    flag(Admission, "reportsServiceAccountName", Text, ""),
    flag(Admission, "cleanupServiceAccountName", Text, ""),
    flag(Admission, "caSecretName", Text, ""),
    flag(Admission, "tlsSecretName", Text, ""),
    flag(Admission, "tlsKeyAlgorithm", Text, "RSA"),
    flag(Admission, "renewBefore", Time, "360h"),
    flag(Admission, "disableCertManagerController", Switch, "false"),
    flag(Admission, "clientCAFile", Text, ""),
    flag(Admission, "clientNames", Text, ""),
    // Background.
    flag(Background, "genWorkers", Count, "10"),
    flag(Background, "healthPort", Port, "0"),
    flag(Background, "maxBackgroundReports", Count, "10000").without_effect(NO_BACKGROUND_REPORTS),
    // Reports.
    flag(Reports, "backgroundScan", Switch, "true").missing("scanning is what the role does"),
    flag(Reports, "admissionReports", Switch, "true").missing("results of admission are always taken over"),
    flag(Reports, "aggregateReports", Switch, "true").missing("reports are always aggregated"),
    flag(Reports, "policyReports", Switch, "true").missing("policies are always reported"),
    flag(Reports, "validatingAdmissionPolicyReports", Switch, "false").missing(NO_NATIVE),
    flag(Reports, "mutatingAdmissionPolicyReports", Switch, "false").missing(NO_NATIVE),
    flag(Reports, "backgroundScanWorkers", Count, "2"),
    flag(Reports, "aggregationWorkers", Count, "10").without_effect("one number of workers does all of the work"),
    flag(Reports, "backgroundScanInterval", Time, "1h"),
    flag(Reports, "skipResourceFilters", Switch, "true"),
    flag(Reports, "maxBackgroundReports", Count, "10000").without_effect("scans leave no intermediate reports"),
    flag(Reports, "reportsChunkSize", Count, "0").without_effect("reports are cut by their size"),
    flag(Reports, "reportsServiceAccountName", Text, "").without_effect("the role knows its own account"),
    flag(Reports, "healthPort", Port, "0"),
    flag(Reports, "reports-storage", Text, "stored"),
    flag(Reports, "reportsServerPort", Port, "9443"),
    flag(Reports, "reportsServiceName", Text, "kyverno-reports-api"),
    flag(Reports, "reportsOwner", Text, ""),
    flag(Reports, "servicePort", Port, "443"),
    // Cleanup.
    flag(Cleanup, "ttlReconciliationInterval", Time, "1m"),
    flag(Cleanup, "cleanup-limit", Count, "0"),
    flag(Cleanup, "healthPort", Port, "0"),
    flag(Cleanup, "cleanupServerPort", Port, "9443").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "servicePort", Port, "443").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "serverIP", Text, "").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "webhookServerPort", Port, "9443").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "webhookTimeout", Count, "10").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "autoDeleteWebhooks", Switch, "false").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "caSecretName", Text, "").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "tlsSecretName", Text, "").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "tlsKeyAlgorithm", Text, "RSA").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "renewBefore", Time, "360h").without_effect(OWN_WEBHOOKS),
    flag(Cleanup, "dumpPayload", Switch, "false").without_effect(OWN_WEBHOOKS),
];
