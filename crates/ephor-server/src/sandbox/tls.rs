//! HTTPS and HTTP on one port.
//!
//! kubectl sends no token over plain HTTP, so that clients need a certificate; browsers would warn of one that nobody
//! knows, so that the live view is plain. The first byte of a connection tells which it is. The certificate is made
//! anew at each start and known to nobody but the kubeconfig.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A certificate for the loopback interface, with its key.
pub struct Certificate {
    /// The certificate, PEM: also what clients are to trust.
    pub pem: String,
    config: Arc<ServerConfig>,
}

impl Certificate {
    /// Makes a new one.
    pub fn new() -> io::Result<Self> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key))
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { pem: made.cert.pem(), config: Arc::new(config) })
    }

    /// What takes connections.
    pub(super) fn acceptor(&self) -> Either {
        Either(RustlsAcceptor::new(RustlsConfig::from_config(Arc::clone(&self.config))))
    }
}

/// A connection, encrypted or not.
pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// Takes connections of both kinds.
#[derive(Debug, Clone)]
pub(super) struct Either(RustlsAcceptor);

impl<S: Send + 'static> Accept<TcpStream, S> for Either {
    type Stream = Box<dyn Connection>;
    type Service = S;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, S)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let encrypted = self.0.clone();
        Box::pin(async move {
            let mut first = [0];
            let read = stream.peek(&mut first).await?;
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
