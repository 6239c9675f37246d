//! The flags that configurations depend on.

use ephor_expr::Str;
use ephor_runtime::settings::AdmissionSettings;

/// From flags and environment: fixed while the process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Ephor's namespace, excluded from everything.
    pub namespace: Str,
    /// The admission Service.
    pub service: Str,
    /// The name that stands for the cleanup Service in webhook names.
    pub cleanup_service: Str,
    /// Where the API server calls.
    pub endpoint: Endpoint,
    /// Seconds that the API server waits, unless a policy asks for more.
    pub timeout: i64,
    /// Whether rules follow the policies.
    pub registered_from: RegisteredFrom,
    /// Whether policies decide what a failed call means.
    pub failure_mode: FailureMode,
    /// Whether what the API server does for itself is seen.
    pub bootstrap_requests: BootstrapRequests,
    /// Whether Ephor decides.
    pub serving: Serving,
}

impl Default for WebhookSettings {
    /// Upstream's defaults.
    fn default() -> Self {
        Self {
            namespace: Str::new_static("kyverno"),
            service: Str::new_static("kyverno-svc"),
            cleanup_service: Str::new_static("kyverno-cleanup-controller"),
            endpoint: Endpoint::Service { port: 443 },
            timeout: 10,
            registered_from: RegisteredFrom::Policies,
            failure_mode: FailureMode::AsPolicies,
            bootstrap_requests: BootstrapRequests::Seen,
            serving: Serving::Enforcing,
        }
    }
}

impl WebhookSettings {
    /// The part of the flags that is about webhooks.
    pub fn of(settings: &AdmissionSettings) -> Self {
        Self {
            namespace: settings.common.namespace.clone(),
            service: settings.common.service.clone(),
            endpoint: match &settings.server_address {
                None => Endpoint::Service { port: settings.service_port.into() },
                Some(address) if address.host.contains(':') => {
                    Endpoint::Url(format!("https://[{}]:{}", address.host, address.port).into())
                }
                Some(address) => Endpoint::Url(format!("https://{}:{}", address.host, address.port).into()),
            },
            timeout: i64::try_from(settings.webhook_timeout).unwrap_or(30),
            registered_from: if settings.auto_update_webhooks {
                RegisteredFrom::Policies
            } else {
                RegisteredFrom::Static
            },
            failure_mode: if settings.force_failure_policy_ignore {
                FailureMode::Ignore
            } else {
                FailureMode::AsPolicies
            },
            bootstrap_requests: if settings.exclude_bootstrap_resources {
                BootstrapRequests::Excluded
            } else {
                BootstrapRequests::Seen
            },
            serving: if settings.shadow { Serving::Shadow } else { Serving::Enforcing },
            ..Self::default()
        }
    }
}

/// Where the API server calls the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// The admission Service.
    Service {
        /// Its port.
        port: i64,
    },
    /// `https://HOST:PORT`, for Ephor outside the cluster.
    Url(Str),
}

/// Where the rules of resource webhooks come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RegisteredFrom {
    /// From the policies that exist (`autoUpdateWebhooks=true`).
    #[default]
    Policies,
    /// Everything is registered once; users may narrow it by hand (`autoUpdateWebhooks=false`).
    Static,
}

/// What failed calls mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailureMode {
    /// What the policies say.
    #[default]
    AsPolicies,
    /// Never a refusal (`forceFailurePolicyIgnore`).
    Ignore,
}

/// Requests that the API server makes for itself, such as its bootstrap roles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BootstrapRequests {
    /// They are judged.
    #[default]
    Seen,
    /// Webhooks that fail closed do not see them (`excludeBootstrapResources`).
    Excluded,
}

/// Whether Ephor decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Serving {
    /// It does.
    #[default]
    Enforcing,
    /// It only watches what another engine decides: other names, failures ignored.
    Shadow,
}
