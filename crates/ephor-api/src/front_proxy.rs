//! Authenticates requests that the API server forwards to an extension API server.
//!
//! The API server authenticates the user, and names the user in headers (`X-Remote-User` and others). Everyone who
//! reaches the port can send such headers, so they count only on a connection whose client certificate comes from the
//! CA of the front proxy and has an allowed common name. CA, names and headers are in the `ConfigMap` that each API
//! server keeps for this purpose, and [`FrontProxy::follow`] follows it. Without the `ConfigMap` every request is
//! refused.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use ephor_cluster::admission::User;
use ephor_cluster::{Cluster, ClusterError};
use ephor_expr::{Str, Value};
use ephor_runtime::CancellationToken;
use ephor_runtime::watcher::{StoreEvent, WatchTarget, Watcher};
use percent_encoding::percent_decode_str;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

/// Where the API server says how it forwards requests.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// The certificates that the client of a connection has shown, its own first. A request carries them as an extension.
#[derive(Debug, Clone)]
pub struct ClientCertificates(pub Arc<[CertificateDer<'static>]>);

/// Why the `ConfigMap` says nothing that can be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFault {
    /// A key is missing or empty.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// The value of a key is not what it should be.
    #[error("`{key}` cannot be read: {why}")]
    Unreadable {
        /// The key.
        key: &'static str,
        /// Why.
        why: String,
    },
}

/// How the API server forwards requests.
struct Config {
    verifier: Arc<dyn ClientCertVerifier>,
    /// Allowed common names; empty: all.
    names: Vec<String>,
    users: Vec<HeaderName>,
    uids: Vec<HeaderName>,
    groups: Vec<HeaderName>,
    /// In lower case.
    extra_prefixes: Vec<String>,
}

impl Config {
    fn of(data: &Value) -> Result<Self, ConfigFault> {
        const CA: &str = "requestheader-client-ca-file";
        let unreadable = |key, why: &dyn fmt::Display| ConfigFault::Unreadable { key, why: why.to_string() };
        let pem = data.str_at(&[CA]).unwrap_or_default();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| unreadable(CA, &error))?;
            roots.add(certificate).map_err(|error| unreadable(CA, &error))?;
        }
        if roots.is_empty() {
            return Err(ConfigFault::Missing(CA));
        }
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(aws_lc_rs::default_provider()));
        let verifier = verifier.build().map_err(|error| unreadable(CA, &error))?;
        let headers = |key| -> Result<Vec<HeaderName>, ConfigFault> {
            let names = texts(data, key)?;
            names.iter().map(|name| name.parse().map_err(|error| unreadable(key, &error))).collect()
        };
        let users = headers("requestheader-username-headers")?;
        if users.is_empty() {
            return Err(ConfigFault::Missing("requestheader-username-headers"));
        }
        Ok(Self {
            verifier,
            names: texts(data, "requestheader-allowed-names")?,
            users,
            uids: headers("requestheader-uid-headers")?,
            groups: headers("requestheader-group-headers")?,
            extra_prefixes: texts(data, "requestheader-extra-headers-prefix")?
                .iter()
                .map(|prefix| prefix.to_ascii_lowercase())
                .filter(|prefix| !prefix.is_empty())
                .collect(),
        })
    }

    /// Whether the client is the front proxy, by what the `ConfigMap` says now: a connection may be older than that.
    fn is_proxy(&self, shown: &ClientCertificates) -> bool {
        let Some((own, intermediates)) = shown.0.split_first() else { return false };
        self.verifier.verify_client_cert(own, intermediates, UnixTime::now()).is_ok()
            && (self.names.is_empty() || common_name(own).is_some_and(|name| self.names.contains(&name)))
    }

    fn user(&self, headers: &HeaderMap) -> Option<User> {
        let all = |names: &[HeaderName]| -> Option<Vec<Str>> {
            let values = names.iter().flat_map(|name| headers.get_all(name));
            values.map(|value| value.to_str().ok().map(Str::new)).collect()
        };
        let mut user = User::new(all(&self.users)?.into_iter().find(|name| !name.is_empty())?, all(&self.groups)?);
        user.uid = all(&self.uids)?.into_iter().find(|uid| !uid.is_empty()).unwrap_or_default();
        for (name, value) in headers {
            let Some(key) = self.extra_prefixes.iter().find_map(|prefix| name.as_str().strip_prefix(prefix.as_str()))
            else {
                continue;
            };
            let key = percent_decode_str(key).decode_utf8().ok()?;
            user.extra.entry(Str::new(&*key)).or_default().push(Str::new(value.to_str().ok()?));
        }
        Some(user)
    }
}

/// A list of texts, which the `ConfigMap` writes as JSON. A missing key is an empty list.
fn texts(data: &Value, key: &'static str) -> Result<Vec<String>, ConfigFault> {
    let unreadable = |why: String| ConfigFault::Unreadable { key, why };
    let text = data.str_at(&[key]).unwrap_or("[]");
    let list = Value::from_json(text).map_err(|error| unreadable(error.to_string()))?;
    let items = list.as_array().ok_or_else(|| unreadable("it is no list".to_owned()))?;
    let own = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(|| unreadable("it lists no texts".to_owned()));
    items.iter().map(own).collect()
}

/// The common name of a certificate; `None` unless it has exactly one.
fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let mut names = parsed.subject().iter_common_name();
    let only = names.next()?.as_str().ok()?.to_owned();
    names.next().is_none().then_some(only)
}

/// Tells who sends a request. Clones are the same; they also verify client certificates in TLS handshakes.
#[derive(Clone)]
pub struct FrontProxy {
    config: Arc<ArcSwapOption<Config>>,
    provider: Arc<CryptoProvider>,
}

impl Default for FrontProxy {
    fn default() -> Self {
        Self { config: Arc::default(), provider: Arc::new(aws_lc_rs::default_provider()) }
    }
}

impl fmt::Debug for FrontProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrontProxy({})", if self.config.load().is_some() { "known" } else { "unknown" })
    }
}

impl FrontProxy {
    /// Follows the `ConfigMap` of the API server until `stop`.
    pub fn follow(&self, cluster: &Arc<dyn Cluster>, stop: &CancellationToken) -> Watcher {
        let watched = WatchTarget::all("v1", "ConfigMap").in_namespace(NAMESPACE).named(NAME);
        let own = self.clone();
        Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |event| {
            let found = match event {
                StoreEvent::Reset(objects) => objects.into_iter().next(),
                StoreEvent::Apply(object) => Some(object),
                StoreEvent::Delete(_) => None,
            };
            if let Err(fault) = own.observe(found.as_ref()) {
                tracing::error!(%fault, "ConfigMap {NAMESPACE}/{NAME} cannot be used, so every request is refused");
            }
        })
    }

    /// Takes over what the `ConfigMap` says; `None` if it does not exist. While it cannot be read, every request is
    /// refused.
    pub fn observe(&self, config_map: Option<&Value>) -> Result<(), ConfigFault> {
        let nothing = Value::default();
        let config = config_map.map(|object| Config::of(object.get("data").unwrap_or(&nothing))).transpose();
        let (known, observed) = match config {
            Ok(config) => (config.map(Arc::new), Ok(())),
            Err(fault) => (None, Err(fault)),
        };
        self.config.store(known);
        observed
    }

    /// Whether requests can be authenticated.
    pub fn is_known(&self) -> bool {
        self.config.load().is_some()
    }

    /// Who sends a request. An error unless the front proxy forwards it.
    pub fn authenticate(&self, request: &Parts) -> Result<User, ClusterError> {
        let config = self.config.load();
        let shown = request.extensions.get::<ClientCertificates>();
        let known = config.as_ref().zip(shown).filter(|(config, shown)| config.is_proxy(shown));
        let user = known.and_then(|(config, _)| config.user(&request.headers));
        user.ok_or_else(|| ClusterError::denied(401, "Unauthorized", "Unauthorized"))
    }
}

/// In a handshake a client may show no certificate, for probes have none; one that it shows must come from the CA.
impl ClientCertVerifier for FrontProxy {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // They change; clients show their certificate without a hint.
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let config = self.config.load();
        let config =
            config.as_ref().ok_or_else(|| rustls::Error::General("the CA of clients is unknown".to_owned()))?;
        config.verifier.verify_client_cert(own, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

    use super::*;

    /// A CA, and what it signs.
    struct Ca {
        pem: String,
        issuer: Issuer<'static, KeyPair>,
    }

    fn ca() -> Ca {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Ca { pem, issuer: Issuer::new(params, key) }
    }

    impl Ca {
        fn client(&self, common_name: &str, dns: &[&str]) -> ClientCertificates {
            let names: Vec<String> = dns.iter().map(|name| (*name).to_owned()).collect();
            let mut params = CertificateParams::new(names).unwrap();
            params.distinguished_name.push(DnType::CommonName, common_name);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            let certificate = params.signed_by(&KeyPair::generate().unwrap(), &self.issuer).unwrap();
            ClientCertificates(Arc::new([certificate.der().clone()]))
        }
    }

    fn config_map(ca: &str, names: &str) -> Value {
        Value::from([(
            "data",
            Value::from([
                ("requestheader-allowed-names", Value::from(names)),
                ("requestheader-client-ca-file", Value::from(ca)),
                ("requestheader-extra-headers-prefix", Value::from(r#"["X-Remote-Extra-"]"#)),
                ("requestheader-group-headers", Value::from(r#"["X-Remote-Group"]"#)),
                ("requestheader-uid-headers", Value::from(r#"["X-Remote-Uid"]"#)),
                ("requestheader-username-headers", Value::from(r#"["X-Remote-User"]"#)),
            ]),
        )])
    }

    fn request(shown: Option<&ClientCertificates>, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut parts = request.body(()).unwrap().into_parts().0;
        if let Some(shown) = shown {
            parts.extensions.insert(shown.clone());
        }
        parts
    }

    const BOB: &[(&str, &str)] = &[("x-remote-user", "bob")];

    #[test]
    fn headers_name_a_user_only_together_with_the_certificate_of_the_front_proxy() {
        let (own, other) = (ca(), ca());
        let proxy = FrontProxy::default();
        let good = own.client("front-proxy", &[]);
        assert_eq!(proxy.authenticate(&request(Some(&good), BOB)).unwrap_err().code(), 401);
        proxy.observe(Some(&config_map(&own.pem, r#"["front-proxy"]"#))).unwrap();
        assert_eq!(proxy.authenticate(&request(Some(&good), BOB)).unwrap().name, "bob");
        for (case, shown, headers) in [
            ("no certificate", None, BOB),
            ("another CA", Some(other.client("front-proxy", &[])), BOB),
            ("another name", Some(own.client("mallory", &[])), BOB),
            ("the name as a DNS name", Some(own.client("mallory", &["front-proxy"])), BOB),
            ("no user", Some(good.clone()), &[("x-remote-group", "system:masters")]),
            ("an empty user", Some(good.clone()), &[("x-remote-user", "")]),
        ] {
            let refused = proxy.authenticate(&request(shown.as_ref(), headers));
            assert_eq!(refused.map_err(|error| error.code()), Err(401), "{case}");
        }
    }

    #[test]
    fn an_open_connection_loses_its_trust_with_the_ca() {
        let (own, next) = (ca(), ca());
        let proxy = FrontProxy::default();
        let shown = own.client("front-proxy", &[]);
        for (config, trusted) in [
            (Some(config_map(&own.pem, "[]")), true),
            (Some(config_map(&next.pem, "[]")), false),
            (Some(config_map(&format!("{}{}", next.pem, own.pem), "[]")), true),
            (None, false),
        ] {
            proxy.observe(config.as_ref()).unwrap();
            assert_eq!(proxy.authenticate(&request(Some(&shown), BOB)).is_ok(), trusted);
            let handshake = proxy.verify_client_cert(shown.0.first().unwrap(), &[], UnixTime::now());
            assert_eq!(handshake.is_ok(), trusted);
        }
    }

    #[test]
    fn a_config_map_that_cannot_be_read_refuses_every_request() {
        let own = ca();
        let proxy = FrontProxy::default();
        let shown = own.client("front-proxy", &[]);
        for broken in [
            config_map("", "[]"),
            config_map("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "[]"),
            config_map(&own.pem, "front-proxy"),
            config_map(&own.pem, r#"{"a":1}"#),
            config_map(&own.pem, "[1]"),
            Value::default(),
        ] {
            proxy.observe(Some(&config_map(&own.pem, "[]"))).unwrap();
            assert!(proxy.is_known());
            assert!(proxy.observe(Some(&broken)).is_err(), "{broken:?}");
            assert_eq!(proxy.authenticate(&request(Some(&shown), BOB)).unwrap_err().code(), 401, "{broken:?}");
        }
    }

    #[test]
    fn all_that_the_headers_say_belongs_to_the_user() {
        let own = ca();
        let proxy = FrontProxy::default();
        proxy.observe(Some(&config_map(&own.pem, "[]"))).unwrap();
        let headers = [
            ("X-Remote-User", "bob"),
            ("X-Remote-Uid", "7"),
            ("X-Remote-Group", "dev"),
            ("X-Remote-Group", "ops"),
            ("X-Remote-Extra-Example.com%2fscope", "read"),
            ("X-Remote-Extra-Example.com%2fscope", "list"),
        ];
        let user = proxy.authenticate(&request(Some(&own.client("p", &[])), &headers)).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("bob", "7"));
        assert_eq!(user.groups, ["dev", "ops"]);
        let extra: Vec<_> = user.extra.into_iter().collect();
        assert_eq!(extra, [("example.com/scope".into(), vec!["read".into(), "list".into()])]);
    }
}
