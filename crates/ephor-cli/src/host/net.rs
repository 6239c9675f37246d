//! Answers from the network, for hosts that the user allows.
//!
//! Policies are text of others: what they may reach is what `--allow-net` names and nothing that a name or an answer
//! leads to. Redirects are not followed, proxies of the environment are not used, addresses are checked after the name
//! is looked up and the checked address is the one that is called. Nothing is sent but what the policy says.

use std::fmt;
use std::net::ToSocketAddrs;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::policy::HttpMethod;
use ephor_expr::{Str, Value};
use ureq::config::Config;
use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderMap, Request, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

use super::Source;
use super::allowed::{AllowedHost, AllowedHosts};

/// The longest answer, in bytes.
const MAX_ANSWER: u64 = 2 << 20;

/// How long a call may take, from the look-up of the name to the end of the answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Services and names of the network.
pub struct Network {
    allowed: Arc<AllowedHosts>,
    /// Made when the first question comes: most runs ask none.
    agent: OnceLock<Agent>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({:?})", self.allowed)
    }
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("only http and https are spoken")]
    Scheme,
    #[error("the CA bundle holds no certificate in PEM")]
    CaBundle,
    #[error("{0}")]
    Request(#[from] ureq::http::Error),
    #[error("status {0}: redirects are not followed")]
    Redirect(u16),
    #[error("status {0}")]
    Status(u16),
    #[error("the answer has more than 2 MiB")]
    TooLong,
    #[error("the answer is not JSON: {0}")]
    NotJson(String),
    #[error("{0}")]
    Transport(String),
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        match error {
            Error::BodyExceedsLimit(_) => CallError::TooLong,
            Error::Timeout(_) => CallError::Transport(format!("no answer within {} s", TIMEOUT.as_secs())),
            Error::Other(reason) => CallError::Transport(reason.to_string()),
            Error::Io(error) => CallError::Transport(error.to_string()),
            error => CallError::Transport(error.to_string()),
        }
    }
}

/// An address that the user did not name.
#[derive(Debug, thiserror::Error)]
#[error("`{host}` leads to {address}, which is not called unless it is named: `--allow-net {address}`")]
struct GuardedAddress {
    host: String,
    address: std::net::IpAddr,
}

/// Looks names up, and refuses addresses that they must not lead to.
struct CheckedResolver {
    allowed: Arc<AllowedHosts>,
    system: DefaultResolver,
}

impl fmt::Debug for CheckedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckedResolver({:?})", self.allowed)
    }
}

impl Resolver for CheckedResolver {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let addresses = self.system.resolve(uri, config, timeout)?;
        let host = uri.host().unwrap_or_default();
        match addresses.iter().find(|address| !self.allowed.may_lead_to(host, **address)) {
            None => Ok(addresses),
            Some(address) => {
                let guarded = GuardedAddress { host: host.to_owned(), address: address.ip().to_canonical() };
                Err(Error::Other(Box::new(guarded)))
            }
        }
    }
}

impl Network {
    /// A network of these hosts.
    pub fn of(hosts: Vec<AllowedHost>) -> Self {
        Self { allowed: Arc::new(AllowedHosts(hosts)), agent: OnceLock::new() }
    }

    fn agent(&self, roots: &[Certificate<'static>]) -> Agent {
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .root_certs(RootCerts::new_with_certs(roots))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("ephor/", env!("CARGO_PKG_VERSION")))
            .build();
        let resolver = CheckedResolver { allowed: Arc::clone(&self.allowed), system: DefaultResolver::default() };
        Agent::with_parts(config, DefaultConnector::default(), resolver)
    }

    /// Trusts the system's certificates, or those of the bundle and no others.
    fn agent_for(&self, ca_bundle: Option<&str>) -> Result<Agent, CallError> {
        let Some(bundle) = ca_bundle else {
            // What of the system's store cannot be read is not trusted.
            let agent = self.agent.get_or_init(|| {
                let roots = rustls_native_certs::load_native_certs().certs;
                let roots: Vec<_> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
                self.agent(&roots)
            });
            return Ok(agent.clone());
        };
        let items = parse_pem(bundle.as_bytes()).filter_map(Result::ok);
        let roots: Vec<_> = items
            .filter_map(|item| match item {
                PemItem::Certificate(certificate) => Some(certificate),
                _ => None,
            })
            .collect();
        if roots.is_empty() { Err(CallError::CaBundle) } else { Ok(self.agent(&roots)) }
    }

    fn call(&self, uri: Uri, call: &Call<'_>) -> Result<Value, CallError> {
        let agent = self.agent_for(call.ca_bundle)?;
        let mut request = match call.method {
            HttpMethod::Get => Request::get(uri),
            HttpMethod::Post => Request::post(uri),
        };
        for (name, value) in call.headers {
            request = request.header(name.as_str(), value.as_str());
        }
        let mut response = match call.body {
            None => agent.run(request.body(())?)?,
            Some(body) => {
                let typed = request.headers_ref().is_some_and(|headers: &HeaderMap| headers.contains_key(CONTENT_TYPE));
                if !typed {
                    request = request.header(CONTENT_TYPE, "application/json");
                }
                agent.run(request.body(body)?)?
            }
        };
        let status = response.status();
        if status.is_redirection() {
            return Err(CallError::Redirect(status.as_u16()));
        }
        if !status.is_success() {
            return Err(CallError::Status(status.as_u16()));
        }
        // The limit is what may not be reached.
        let text = response.body_mut().with_config().limit(MAX_ANSWER + 1).read_to_string()?;
        Value::from_json(&text).map_err(|error| CallError::NotJson(error.to_string()))
    }
}

/// What a policy sends.
struct Call<'a> {
    method: HttpMethod,
    headers: &'a [(Str, Str)],
    body: Option<&'a str>,
    ca_bundle: Option<&'a str>,
}

/// The host of a URL.
pub(super) fn host_of(url: &str) -> Option<String> {
    url.parse::<Uri>().ok()?.host().filter(|host| !host.is_empty()).map(str::to_owned)
}

impl Source for Network {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        match fetch {
            Fetch::Service { method, url, headers, body, ca_bundle } => {
                let uri: Uri = url.parse().ok()?;
                let host = uri.host()?;
                let default_port = match uri.scheme_str() {
                    Some("http") => 80,
                    Some("https") => 443,
                    _ if !self.allowed.name(host) => return None,
                    _ => return Some(Fact::Failed(format!("`{url}`: {}", CallError::Scheme))),
                };
                if !self.allowed.allow(host, uri.port_u16().unwrap_or(default_port)) {
                    return None;
                }
                let (body, ca_bundle) = (body.as_deref(), ca_bundle.as_deref());
                let call = Call { method: *method, headers, body, ca_bundle };
                Some(match self.call(uri, &call) {
                    Ok(value) => Fact::Found(value),
                    Err(error) => Fact::Failed(format!("`{url}`: {error}")),
                })
            }
            Fetch::Host { name } if self.allowed.name(name) => Some(match (name.as_str(), 0).to_socket_addrs() {
                Ok(addresses) => {
                    let mut found: Vec<_> = Vec::new();
                    for address in addresses.map(|address| Value::from(address.ip().to_string())) {
                        if !found.contains(&address) {
                            found.push(address);
                        }
                    }
                    Fact::Found(Value::array(found))
                }
                Err(error) => Fact::Failed(error.to_string()),
            }),
            _ => None,
        }
    }
}
