//! Serves HTTPS and HTTP on one port.
//!
//! kubectl sends no token over plain HTTP, so its clients use HTTPS. Browsers warn of a certificate that no authority
//! signed, so the live view uses HTTP. The first byte of a connection tells which it is. Only the kubeconfig names
//! the certificate; it is new at each start unless a state file keeps it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A certificate for the loopback interface, with its key.
#[derive(Clone)]
pub struct Certificate {
    /// The certificate, PEM: also what clients are to trust.
    pub pem: String,
    /// Its private key, PEM.
    pub(super) key_pem: String,
    config: Arc<ServerConfig>,
}

impl Certificate {
    /// Makes a new one.
    pub fn new() -> io::Result<Self> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        Self::from_pem(&made.cert.pem(), &made.signing_key.serialize_pem())
    }

    /// One that was made before. The error says what cannot be used.
    pub(super) fn from_pem(certificate: &str, key: &str) -> io::Result<Self> {
        let invalid = |error: rustls::pki_types::pem::Error| io::Error::other(error.to_string());
        let chain = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(invalid)?;
        let private = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(invalid)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![chain], private))
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { pem: certificate.to_owned(), key_pem: key.to_owned(), config: Arc::new(config) })
    }

    /// What takes connections.
    pub(super) fn acceptor(&self) -> Either {
        let encrypted = RustlsAcceptor::new(RustlsConfig::from_config(Arc::clone(&self.config)));
        Either { encrypted, peek_timeout: PEEK_TIMEOUT }
    }
}

/// A connection, encrypted or not.
pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// How long a client has for its first byte.
const PEEK_TIMEOUT: Duration = Duration::from_secs(10);

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// Takes connections of both kinds.
#[derive(Debug, Clone)]
pub(super) struct Either {
    encrypted: RustlsAcceptor,
    /// How long a connection may be silent at its beginning.
    peek_timeout: Duration,
}

impl<S: Send + 'static> Accept<TcpStream, S> for Either {
    type Stream = Box<dyn Connection>;
    type Service = S;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, S)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let (encrypted, peek_timeout) = (self.encrypted.clone(), self.peek_timeout);
        Box::pin(async move {
            let mut first = [0];
            let read = timeout(peek_timeout, stream.peek(&mut first)).await.map_err(|_| io::ErrorKind::TimedOut)??;
            // Small answers must not wait for company.
            stream.set_nodelay(true)?;
            if read == 1 && first == [HANDSHAKE] {
                let (stream, service) = encrypted.accept(stream, service).await?;
                return Ok((Box::new(stream) as Box<dyn Connection>, service));
            }
            Ok((Box::new(stream) as Box<dyn Connection>, service))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_that_says_nothing_ends() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let either = Either { peek_timeout: Duration::from_millis(10), ..Certificate::new().unwrap().acceptor() };
        let error = either.accept(accepted, ()).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
