//! The authority of a control plane, the certificate of its API server and the key of its service account tokens.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use crate::Error;

/// All of it in PEM.
pub(crate) struct Certificates {
    pub(crate) ca: String,
    pub(crate) ca_key: String,
    pub(crate) server: String,
    pub(crate) server_key: String,
    pub(crate) service_account_key: String,
    pub(crate) service_account_public: String,
    pub(crate) front_proxy_ca: String,
    pub(crate) front_proxy: String,
    pub(crate) front_proxy_key: String,
}

/// The common name by which the API server forwards requests to extension API servers.
pub(crate) const FRONT_PROXY: &str = "front-proxy-client";

impl Certificates {
    /// Makes new ones for an API server on the loopback interface.
    pub(crate) fn generate() -> Result<Self, Error> {
        let ca_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.distinguished_name.push(DnType::CommonName, "kubernetes");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        let ca = authority.self_signed(&ca_key)?.pem();
        let ca_key_text = ca_key.serialize_pem();
        let issuer = Issuer::new(authority, ca_key);

        let names =
            ["127.0.0.1", "10.96.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut server = CertificateParams::new(names.map(String::from))?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let server_key = KeyPair::generate()?;
        let service_account = KeyPair::generate()?;

        let proxy_ca_key = KeyPair::generate()?;
        let mut proxy_authority = CertificateParams::new(Vec::new())?;
        proxy_authority.distinguished_name.push(DnType::CommonName, "front-proxy-ca");
        proxy_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        proxy_authority.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        let front_proxy_ca = proxy_authority.self_signed(&proxy_ca_key)?.pem();
        let mut proxy = CertificateParams::new(Vec::new())?;
        proxy.distinguished_name.push(DnType::CommonName, FRONT_PROXY);
        proxy.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let proxy_key = KeyPair::generate()?;
        Ok(Self {
            front_proxy_ca,
            front_proxy: proxy.signed_by(&proxy_key, &Issuer::new(proxy_authority, proxy_ca_key))?.pem(),
            front_proxy_key: proxy_key.serialize_pem(),
            ca,
            ca_key: ca_key_text,
            server: server.signed_by(&server_key, &issuer)?.pem(),
            server_key: server_key.serialize_pem(),
            service_account_key: service_account.serialize_pem(),
            service_account_public: service_account.public_key_pem(),
        })
    }
}
