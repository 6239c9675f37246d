//! Settings of the certificates: names, algorithm and lifetimes.

use std::time::Duration;

use ephor_expr::Str;
use ephor_runtime::settings::{AdmissionSettings, KeyAlgorithm};

/// What certificates depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertSettings {
    /// The namespace of the Secrets and of the Service.
    pub namespace: Str,
    /// The admission Service.
    pub service: Str,
    /// The Secret with the CA.
    pub ca_secret: Str,
    /// The Secret with the serving certificate.
    pub pair_secret: Str,
    /// The algorithm of both keys.
    pub algorithm: KeyAlgorithm,
    /// How long before their end certificates are renewed.
    pub renew_before: Duration,
    /// The host outside of the cluster at which the API server reaches the webhooks: a name or an IP address.
    pub outside_host: Option<Str>,
    /// Whether Ephor creates the certificates. Otherwise another tool writes the Secrets.
    pub makes_them: bool,
}

impl CertSettings {
    /// The part of the flags that is about certificates.
    pub fn of(settings: &AdmissionSettings) -> Self {
        Self {
            namespace: settings.common.namespace.clone(),
            service: settings.common.service.clone(),
            ca_secret: settings.ca_secret.clone(),
            pair_secret: settings.tls_secret.clone(),
            algorithm: settings.key_algorithm,
            renew_before: settings.renew_before,
            outside_host: settings.server_address.as_ref().map(|address| Str::new(&address.host)),
            makes_them: settings.own_certificates,
        }
    }

    /// The names and addresses that the serving certificate must have; the first is the one that the API server asks
    /// for inside of a cluster.
    pub fn names(&self) -> Vec<String> {
        let (service, namespace) = (&self.service, &self.namespace);
        let mut names =
            vec![format!("{service}.{namespace}.svc"), format!("{service}.{namespace}"), service.to_string()];
        names.extend(self.outside_host.iter().map(ToString::to_string));
        names
    }

    /// The name under which the API server calls.
    pub fn called_name(&self) -> String {
        match &self.outside_host {
            Some(host) => host.to_string(),
            None => format!("{}.{}.svc", self.service, self.namespace),
        }
    }
}
