//! Client certificates: checks that the caller is the API server, if that is configured.
//!
//! TLS checks that a certificate comes from the CA and takes callers without one, for the kubelet's probes have none.
//! A review is answered only to a caller with a certificate, of one of the names if some are given.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum_server::accept::Accept;
use axum_server::tls_rustls::RustlsAcceptor;
use http::{Request, Response};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio::net::TcpStream;
use tower::Service;
use x509_parser::extensions::GeneralName;

use super::EndConnection;
use super::connections::{Bounded, Connection, Stream};
use super::memory_quota::Peer;
use super::sending::Answered;

/// Whose reviews are answered.
#[derive(Debug, Clone, Default)]
pub enum Callers {
    /// Every client.
    #[default]
    All,
    /// Those of callers with a certificate; of one of these names, unless there are none.
    Named(Arc<[String]>),
}

/// Why no certificate of a caller can be checked.
#[derive(Debug, thiserror::Error)]
pub enum CallersError {
    /// The file with the CA cannot be read.
    #[error("cannot read the CA of callers from `{file}`: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
}

/// What TLS checks of callers' certificates: that they come from the CAs in a PEM file.
pub fn verifier(file: &str) -> Result<Arc<dyn ClientCertVerifier>, CallersError> {
    let unreadable =
        |why: &dyn std::fmt::Display| CallersError::Unreadable { file: file.to_owned(), why: why.to_string() };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))? {
        roots.add(certificate.map_err(|error| unreadable(&error))?).map_err(|error| unreadable(&error))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).allow_unauthenticated();
    verifier.build().map(|verifier| verifier as Arc<dyn ClientCertVerifier>).map_err(|error| unreadable(&error))
}

/// The caller of one connection. Requests carry it as an extension.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    peer: Peer,
    /// The names in its certificate, `None` without one.
    names: Option<Arc<[String]>>,
    /// The certificates that it has shown, its own first.
    certificates: Arc<[CertificateDer<'static>]>,
}

impl Caller {
    #[cfg(test)]
    pub(super) fn at(address: std::net::IpAddr) -> Self {
        Self { peer: address.into(), ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn named(name: &str) -> Self {
        Self { names: Some(Arc::new([name.to_owned()])), ..Self::default() }
    }

    /// The certificates that it has shown, its own first; none if it has shown none.
    pub fn certificates(&self) -> &Arc<[CertificateDer<'static>]> {
        &self.certificates
    }

    /// Who takes what this caller takes.
    pub(super) fn peer(&self) -> Peer {
        self.peer
    }
}

impl Callers {
    /// Whether those whose reviews are answered have shown a certificate.
    pub(super) fn are_named(&self) -> bool {
        matches!(self, Self::Named(_))
    }

    /// Whether reviews of this caller are answered.
    pub(super) fn welcome(&self, caller: &Caller) -> bool {
        match (self, &caller.names) {
            (Self::All, _) => true,
            (Self::Named(_), None) => false,
            (Self::Named(allowed), Some(names)) => {
                allowed.is_empty() || names.iter().any(|name| allowed.contains(name))
            }
        }
    }
}

/// The common name and the DNS names of a certificate.
fn names(certificate: &CertificateDer<'_>) -> Arc<[String]> {
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else { return Arc::new([]) };
    let common = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok()).map(str::to_owned);
    let alternative = parsed.subject_alternative_name().ok().flatten();
    let alternative = alternative.iter().flat_map(|extension| &extension.value.general_names);
    let dns = alternative.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    });
    common.chain(dns).collect()
}

/// Accepts connections, and remembers for their requests who calls.
#[derive(Debug, Clone)]
pub(super) struct CallerAcceptor(pub(super) RustlsAcceptor<Bounded>);

impl<S: Send + 'static> Accept<TcpStream, S> for CallerAcceptor {
    type Stream = <RustlsAcceptor<Bounded> as Accept<TcpStream, S>>::Stream;
    type Service = Called<S>;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let accepting = self.0.accept(stream, service);
        Box::pin(async move {
            let (stream, service) = accepting.await?;
            let (bounded, tls) = stream.get_ref();
            let certificates: Arc<[_]> = tls.peer_certificates().unwrap_or_default().into();
            let caller = Caller { peer: bounded.peer(), names: certificates.first().map(names), certificates };
            let connection = Arc::clone(bounded.connection());
            Ok((stream, Called { caller, connection, service }))
        })
    }
}

/// The same without TLS: a caller is known by its address only.
#[derive(Debug, Clone)]
pub(super) struct PlainAcceptor(pub(super) Bounded);

impl<S: Send + 'static> Accept<TcpStream, S> for PlainAcceptor {
    type Stream = Stream;
    type Service = Called<S>;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let accepting = self.0.accept(stream, service);
        Box::pin(async move {
            let (stream, service) = accepting.await?;
            let caller = Caller { peer: stream.peer(), ..Caller::default() };
            let connection = Arc::clone(stream.connection());
            Ok((stream, Called { caller, connection, service }))
        })
    }
}

/// The service of one connection: its requests know their caller, and keep the connection open while they are in work.
#[derive(Debug, Clone)]
pub(super) struct Called<S> {
    caller: Caller,
    connection: Arc<Connection>,
    service: S,
}

impl<S, B, A> Service<Request<B>> for Called<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
{
    type Response = Response<Answered<A>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.caller.clone());
        let connection = Arc::clone(&self.connection);
        // A connection of HTTP/1 has one request, and ends with it.
        let has_others = request.version() == axum::http::Version::HTTP_2;
        let (work, answering) = (connection.work(), self.service.call(request));
        Box::pin(async move {
            let answer = answering.await;
            drop(work);
            if has_others && answer.as_ref().is_ok_and(|answer| answer.extensions().get::<EndConnection>().is_some()) {
                connection.close();
            }
            Ok(answer?.map(|body| Answered::new(body, connection.unsent_answer())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(names: &[&str]) -> Caller {
        Caller { names: Some(names.iter().map(|name| (*name).to_owned()).collect()), ..Caller::default() }
    }

    #[test]
    fn only_callers_of_the_right_name_are_welcome() {
        let some: Callers = Callers::Named(Arc::new(["kube-apiserver".to_owned()]));
        let any = Callers::Named(Arc::new([]));
        for (callers, who, welcome) in [
            (&Callers::All, Caller::default(), true),
            (&any, Caller::default(), false),
            (&any, caller(&[]), true),
            (&some, caller(&["x", "kube-apiserver"]), true),
            (&some, caller(&["kube-apiserver.x"]), false),
        ] {
            assert_eq!(callers.welcome(&who), welcome, "{callers:?} {who:?}");
        }
    }

    #[test]
    fn a_certificate_has_a_common_name_and_others() {
        let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "b");
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        assert_eq!(*names(certificate.der()), ["b".to_owned(), "a.example".to_owned()]);
    }
}
