//! Hosts that the user lets policies call (`--allow-net`), and the addresses that a name must not lead to.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use ephor_expr::scalar::networks::{Purpose, carried, numeric_v4, purpose};

use super::rules::ServiceRules;

/// A host that may be called: at every port, or at one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    /// As [`canonical`] writes it.
    host: String,
    port: Option<u16>,
}

/// What is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHost {
    /// Something with a slash.
    #[error("give the host alone, without scheme and path")]
    Url,
    /// The part after the colon is no port.
    #[error("the port must be a number from 0 to 65535")]
    Port,
    /// Anything else.
    #[error("expected a host name or an address, `HOST` or `HOST:PORT`; there are no wildcards")]
    Name,
}

impl FromStr for AllowedHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        if text.contains('/') {
            return Err(InvalidHost::Url);
        }
        if text.parse::<IpAddr>().is_ok() {
            return Ok(Self { host: canonical(text), port: None });
        }
        // The colons of an IPv6 address are inside its brackets.
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().map_err(|_| InvalidHost::Port)?)),
            _ => (text, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let valid = match bracketed {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => !without_dots(host).is_empty() && host.chars().all(plain),
        };
        if valid { Ok(Self { host: canonical(host), port }) } else { Err(InvalidHost::Name) }
    }
}

/// One spelling of a host: an address as digits, whatever form of it a resolver would read; a name in lower case,
/// without a dot at its end.
pub(super) fn canonical(host: &str) -> String {
    address_of(host).map_or_else(|| without_dots(host).to_ascii_lowercase(), |address| address.to_string())
}

/// The address that a host is, with or without brackets, in any form that a resolver reads (`0x7f.1`).
pub(super) fn address_of(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let bare = without_dots(bare);
    let address = bare.parse::<IpAddr>().ok().or_else(|| numeric_v4(bare).map(IpAddr::V4))?;
    Some(address.to_canonical())
}

fn without_dots(host: &str) -> &str {
    host.trim_end_matches('.')
}

/// An address, and those of IPv4 that traffic to it can end at.
pub(super) fn with_carried(address: IpAddr) -> Vec<IpAddr> {
    let mut all = vec![address];
    if let IpAddr::V6(v6) = address {
        all.extend(carried(v6).into_iter().map(IpAddr::V4));
    }
    all
}

/// What may be called.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    /// The hosts that the user named.
    Named(Vec<AllowedHost>),
    /// Everything but this machine, the metadata services of clouds and what the operator forbids.
    Services(ServiceRules),
}

impl Reach {
    /// Whether this host may be called at some port.
    pub(super) fn name(&self, host: &str) -> bool {
        let host = canonical(host);
        match self {
            Self::Named(hosts) => hosts.iter().any(|allowed| allowed.host == host),
            Self::Services(_) => true,
        }
    }

    /// Whether this host may be called at this port.
    pub(super) fn allow(&self, host: &str, port: u16) -> bool {
        let host = canonical(host);
        let allows = |allowed: &AllowedHost| allowed.host == host && allowed.port.is_none_or(|allowed| allowed == port);
        match self {
            Self::Named(hosts) => hosts.iter().any(allows),
            Self::Services(_) => true,
        }
    }

    /// Whether the allowed host `host` may lead to `address`. The owner of a name decides where it leads, so this
    /// machine and the metadata services of clouds must be allowed by address.
    pub(super) fn may_lead_to(&self, host: &str, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        if let Self::Services(rules) = self
            && !rules.may_lead_to(address)
        {
            return false;
        }
        let named = |host: &str| matches!(self, Self::Named(_)) && self.allow(host, address.port());
        !is_guarded(ip) || (ip.is_loopback() && canonical(host) == "localhost" && named(host)) || named(&ip.to_string())
    }
}

/// Addresses that only this machine or its cloud answers.
fn is_guarded(ip: IpAddr) -> bool {
    purpose(ip) == Purpose::Local
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(hosts: &[&str]) -> Reach {
        Reach::Named(hosts.iter().map(|host| host.parse().unwrap()).collect())
    }

    #[test]
    fn a_host_without_port_is_allowed_at_every_port() {
        let hosts = allowed(&["Example.com", "data.test:8443", "::1", "[fd00::2]:80", "10.0.0.1:9"]);
        for (host, port, allow) in [
            ("example.com", 80, true),
            ("EXAMPLE.com.", 8080, true),
            ("www.example.com", 80, false),
            ("example.com.evil.test", 80, false),
            ("data.test", 8443, true),
            ("data.test", 443, false),
            ("[::1]", 1, true),
            ("[0:0::1]", 1, true),
            ("[fd00::2]", 80, true),
            ("[fd00::2]", 81, false),
            ("10.0.0.1", 9, true),
            ("10.0.0.1", 10, false),
            ("0xa.1", 9, true),
            ("167772161", 9, true),
            ("01200000001", 9, true),
            ("10.0.0.1.", 9, true),
            ("[::ffff:10.0.0.1]", 9, true),
            ("10.0.0.2", 9, false),
            ("Example.com..", 80, true),
        ] {
            assert_eq!(hosts.allow(host, port), allow, "{host}:{port}");
        }
    }

    #[test]
    fn an_address_is_allowed_in_every_form() {
        for form in ["0x7f.1", "2130706433", "017700000001", "127.0.0.1.", "[::ffff:127.0.0.1]", "::ffff:7f00:1"] {
            assert!(allowed(&[form]).allow("127.0.0.1", 80), "{form}");
            assert!(allowed(&["127.0.0.1"]).allow(form, 80), "{form}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for (text, error) in [
            ("https://example.com", InvalidHost::Url),
            ("example.com/path", InvalidHost::Url),
            ("example.com:http", InvalidHost::Port),
            ("example.com:70000", InvalidHost::Port),
            ("", InvalidHost::Name),
            (":80", InvalidHost::Name),
            ("*", InvalidHost::Name),
            ("*.example.com", InvalidHost::Name),
            ("user@example.com", InvalidHost::Name),
            ("[example.com]", InvalidHost::Name),
            (".", InvalidHost::Name),
        ] {
            assert_eq!(text.parse::<AllowedHost>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_name_leads_to_this_machine_or_to_metadata_only_if_they_are_named() {
        let lead = |hosts: &[&str], host: &str, address: &str| {
            allowed(hosts).may_lead_to(host, SocketAddr::new(address.parse().unwrap(), 80))
        };
        for address in [
            "127.0.0.1",
            "127.8.9.1",
            "0.0.0.0",
            "169.254.169.254",
            "::1",
            "::",
            "fe80::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "fd00:ec2::254",
            "fd20:ce::254",
            "100.100.100.200",
            "168.63.129.16",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
        ] {
            assert!(!lead(&["example.com"], "example.com", address), "{address}");
            assert!(lead(&["example.com", address], "example.com", address), "{address}");
        }
        assert!(lead(&["localhost"], "localhost", "127.0.0.1"));
        assert!(lead(&["localhost"], "localhost", "::1"));
        assert!(!lead(&["localhost"], "localhost", "169.254.169.254"));
        assert!(!lead(&["localhost", "example.com"], "example.com", "127.0.0.1"));
        assert!(!lead(&["127.0.0.1:8080", "example.com"], "example.com", "127.0.0.1"));
        assert!(lead(&["example.com"], "example.com", "10.0.0.1"));
    }
}
