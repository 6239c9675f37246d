//! Answers service calls and name lookups from the network.
//!
//! Policies are text of others. On the command line they reach what `--allow-net` names; in a cluster any service, but
//! neither the machine that Ephor runs on nor the metadata service of its cloud; and never anything that a name or an
//! answer leads to. Redirects are not followed, proxies of the environment are not used, addresses are checked after
//! the name is looked up and the checked address is the one that is called. Nothing is sent but what the policy says.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ephor_engine::fetch::{Fact, Fetch, ServiceAnswer};
use ephor_engine::policy::HttpMethod;
use ephor_expr::{Str, Value};
use hosts::Reach;
use ureq::config::Config;
use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderMap, Request, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

use crate::facts::Source;

mod hosts;
mod rules;
#[cfg(test)]
mod tests;

pub use hosts::{AllowedHost, InvalidHost};
pub use rules::{InvalidRule, ServiceRules};

/// What a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest answer, in bytes (`maxAPICallResponseLength`).
    pub answer: u64,
    /// From the look-up of the name to the end of the answer (`apiCallTimeout`).
    pub timeout: Duration,
}

impl Default for Limits {
    /// 2 MiB, 30 s.
    fn default() -> Self {
        Self { answer: 2 << 20, timeout: Duration::from_secs(30) }
    }
}

/// Services and names of the network.
pub struct Network {
    reach: Arc<Reach>,
    limits: Limits,
    /// Made when the first question comes: most runs ask none.
    agent: OnceLock<Agent>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({:?})", self.reach)
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
    #[error("the answer has more than {}", size(*.0))]
    TooLong(u64),
    #[error("the answer is not JSON: {0}")]
    NotJson(String),
    #[error("no answer within {} s", .0.as_secs())]
    Slow(Duration),
    #[error("{0}")]
    Transport(String),
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") }
}

impl CallError {
    fn of(error: Error, limits: Limits) -> Self {
        match error {
            Error::BodyExceedsLimit(_) => CallError::TooLong(limits.answer),
            Error::Timeout(_) => CallError::Slow(limits.timeout),
            Error::Other(reason) => CallError::Transport(reason.to_string()),
            Error::Io(error) => CallError::Transport(error.to_string()),
            error => CallError::Transport(error.to_string()),
        }
    }
}

/// An address that a name leads to and that is not called.
#[derive(Debug, thiserror::Error)]
enum GuardedAddress {
    #[error("`{host}` leads to {address}, which is not called unless it is named: `--allow-net {address}`")]
    NotNamed { host: String, address: std::net::IpAddr },
    #[error("`{host}` leads to {address}, which policies may not call")]
    Forbidden { host: String, address: std::net::IpAddr },
}

/// Looks names up, and refuses addresses that they must not lead to.
struct CheckedResolver {
    reach: Arc<Reach>,
    system: DefaultResolver,
}

impl fmt::Debug for CheckedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckedResolver({:?})", self.reach)
    }
}

impl Resolver for CheckedResolver {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let addresses = self.system.resolve(uri, config, timeout)?;
        let checked = self.reach.check(uri.host().unwrap_or_default(), &addresses);
        checked.map(|()| addresses).map_err(|guarded| Error::Other(Box::new(guarded)))
    }
}

impl Reach {
    /// Checks that the name `host` may lead to all of these addresses.
    fn check(&self, host: &str, addresses: &[SocketAddr]) -> Result<(), GuardedAddress> {
        let Some(address) = addresses.iter().find(|address| !self.may_lead_to(host, **address)) else { return Ok(()) };
        let (host, address) = (host.to_owned(), address.ip().to_canonical());
        Err(match self {
            Self::Named(_) => GuardedAddress::NotNamed { host, address },
            Self::Services(_) => GuardedAddress::Forbidden { host, address },
        })
    }
}

impl Network {
    /// A network of these hosts.
    pub fn of(hosts: Vec<AllowedHost>) -> Self {
        Self { reach: Arc::new(Reach::Named(hosts)), limits: Limits::default(), agent: OnceLock::new() }
    }

    /// All services that a role in a cluster may call.
    pub fn of_cluster(rules: ServiceRules, limits: Limits) -> Self {
        Self { reach: Arc::new(Reach::Services(rules)), limits, agent: OnceLock::new() }
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
            .timeout_global(Some(self.limits.timeout))
            .user_agent(concat!("ephor/", env!("CARGO_PKG_VERSION")))
            .build();
        let resolver = CheckedResolver { reach: Arc::clone(&self.reach), system: DefaultResolver::default() };
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
        let fail = |error| CallError::of(error, self.limits);
        let agent = self.agent_for(call.ca_bundle)?;
        let mut request = match call.method {
            HttpMethod::Get => Request::get(uri),
            HttpMethod::Post => Request::post(uri),
        };
        for (name, value) in call.headers {
            request = request.header(name.as_str(), value.as_str());
        }
        let mut response = match call.body {
            None => agent.run(request.body(())?).map_err(fail)?,
            Some(body) => {
                let typed = request.headers_ref().is_some_and(|headers: &HeaderMap| headers.contains_key(CONTENT_TYPE));
                if !typed {
                    request = request.header(CONTENT_TYPE, "application/json");
                }
                agent.run(request.body(body)?).map_err(fail)?
            }
        };
        let status = response.status();
        let limit = self.limits.answer + 1;
        if call.answer == ServiceAnswer::Response {
            let text = response.body_mut().with_config().limit(limit).read_to_string().map_err(fail)?;
            let body = Value::from_json(&text).unwrap_or_default();
            return Ok(Value::from([("body", body), ("statusCode", Value::from(i64::from(status.as_u16())))]));
        }
        if status.is_redirection() {
            return Err(CallError::Redirect(status.as_u16()));
        }
        if !status.is_success() {
            return Err(CallError::Status(status.as_u16()));
        }
        // The limit is what may not be reached.
        let text = response.body_mut().with_config().limit(limit).read_to_string().map_err(fail)?;
        Value::from_json(&text).map_err(|error| CallError::NotJson(error.to_string()))
    }
}

/// What a policy sends.
struct Call<'a> {
    method: HttpMethod,
    headers: &'a [(Str, Str)],
    body: Option<&'a str>,
    ca_bundle: Option<&'a str>,
    answer: ServiceAnswer,
}

/// The port that a URL means, if it is one of HTTP.
fn port_of(uri: &Uri) -> Option<u16> {
    let default = match uri.scheme_str()? {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    Some(uri.port_u16().unwrap_or(default))
}

/// The host of a URL.
pub fn host_of(url: &str) -> Option<String> {
    url.parse::<Uri>().ok()?.host().filter(|host| !host.is_empty()).map(str::to_owned)
}

impl Source for Network {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        match fetch {
            Fetch::Service { method, url, headers, body, ca_bundle, answer } => {
                let uri: Uri = url.parse().ok()?;
                let host = uri.host()?;
                let port = match port_of(&uri) {
                    Some(port) => port,
                    None if !self.reach.name(host) => return None,
                    None => return Some(Fact::Failed(format!("`{url}`: {}", CallError::Scheme))),
                };
                if let Reach::Services(rules) = &*self.reach
                    && !rules.allow(&uri)
                {
                    let why = "the settings forbid to call it (httpBlocklist, httpAllowlist)";
                    return Some(Fact::Unavailable(format!("`{url}`: {why}")));
                }
                if !self.reach.allow(host, port) {
                    return None;
                }
                let (body, ca_bundle) = (body.as_deref(), ca_bundle.as_deref());
                let call = Call { method: *method, headers, body, ca_bundle, answer: *answer };
                Some(match self.call(uri, &call) {
                    Ok(value) => Fact::Found(value),
                    Err(error) => Fact::Failed(format!("`{url}`: {error}")),
                })
            }
            Fetch::Host { name } if self.reach.name(name) => Some(match (name.as_str(), 0).to_socket_addrs() {
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
