//! The operator's rules for service calls: `httpBlocklist` and `httpAllowlist`.

use std::net::{IpAddr, SocketAddr};

use ureq::http::Uri;

use super::hosts::{address_of, canonical, with_carried};

/// Hosts that are never called, and URLs beside which nothing is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceRules {
    blocked: Vec<Blocked>,
    /// Empty: all.
    allowed: Vec<Prefix>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Blocked {
    Host(String),
    Network(IpAddr, u8),
}

/// The beginning of a URL, up to the end of a segment of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Prefix {
    scheme: String,
    host: String,
    port: u16,
    /// Without the slash at its end.
    path: String,
}

/// What is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// Of `httpBlocklist`.
    #[error("`{0}` is no host, address or network (`metadata.example.com`, `10.0.0.1`, `10.0.0.0/8`)")]
    Blocked(String),
    /// Of `httpAllowlist`.
    #[error("`{0}` is not the beginning of an http or https URL (`https://example.com/teams`)")]
    Allowed(String),
}

impl ServiceRules {
    /// The rules of both flags.
    pub fn new(blocked: &[String], allowed: &[String]) -> Result<Self, InvalidRule> {
        let blocked = blocked.iter().map(|text| Blocked::parse(text).ok_or_else(|| InvalidRule::Blocked(text.clone())));
        let allowed = allowed.iter().map(|text| Prefix::parse(text).ok_or_else(|| InvalidRule::Allowed(text.clone())));
        Ok(Self { blocked: blocked.collect::<Result<_, _>>()?, allowed: allowed.collect::<Result<_, _>>()? })
    }

    /// Whether a URL may be called, as far as its text tells.
    pub(super) fn allow(&self, uri: &Uri) -> bool {
        let host = canonical(uri.host().unwrap_or_default());
        let blocked = self.blocked.iter().any(|rule| matches!(rule, Blocked::Host(name) if *name == host));
        !blocked && (self.allowed.is_empty() || self.allowed.iter().any(|prefix| prefix.covers(uri)))
    }

    /// Whether this address may be called, whatever name leads to it. Neither it nor an address that it carries is in a
    /// blocked network.
    pub(super) fn may_lead_to(&self, address: SocketAddr) -> bool {
        let reached = with_carried(address.ip());
        let covers = |rule: &Blocked| match rule {
            Blocked::Host(_) => false,
            Blocked::Network(network, bits) => reached.iter().any(|ip| within(*ip, *network, *bits)),
        };
        !self.blocked.iter().any(covers)
    }
}

impl Blocked {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        if let Some(address) = address_of(address) {
            let width = if address.is_ipv4() { 32 } else { 128 };
            // `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
            let mapped = address.is_ipv4() && text.contains(':');
            let bits = match bits {
                Some(bits) if mapped => bits.checked_sub(96)?,
                bits => bits.unwrap_or(width),
            };
            return (bits <= width).then_some(Self::Network(address, bits));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let host = Some(canonical(text)).filter(|host| bits.is_none() && !host.is_empty());
        host.filter(|_| text.chars().all(plain)).map(Self::Host)
    }
}

fn within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let (address, network, width) = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => (u128::from(address.to_bits()), network.to_bits().into(), 32),
        (IpAddr::V6(address), IpAddr::V6(network)) => (address.to_bits(), network.to_bits(), 128),
        _ => return false,
    };
    // A network of no bits holds every address, and a shift by all bits is none.
    (address ^ network).checked_shr(width - u32::from(bits)).is_none_or(|different: u128| different == 0)
}

impl Prefix {
    fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        uri.query().is_none().then(|| Self::of(&uri)).flatten()
    }

    fn of(uri: &Uri) -> Option<Self> {
        let port = super::port_of(uri)?;
        Some(Self {
            scheme: uri.scheme_str()?.to_owned(),
            host: canonical(uri.host().filter(|host| !host.is_empty())?),
            port,
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    fn covers(&self, uri: &Uri) -> bool {
        // What a server makes of dots and of encoded slashes is its own affair: they could leave the prefix.
        let plain = !uri.path().split('/').any(|segment| matches!(segment, "." | "..")) && !uri.path().contains('%');
        Self::of(uri).is_some_and(|called| {
            let rest = called.path.strip_prefix(&self.path);
            (&self.scheme, &self.host, self.port) == (&called.scheme, &called.host, called.port)
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && (plain || self.path.is_empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(blocked: &[&str], allowed: &[&str]) -> ServiceRules {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        ServiceRules::new(&owned(blocked), &owned(allowed)).unwrap()
    }

    #[test]
    fn only_what_is_under_an_allowed_prefix_is_called() {
        let rules = rules(&[], &["https://example.com/teams/", "http://data.test:8080"]);
        for (url, allowed) in [
            ("https://example.com/teams", true),
            ("https://EXAMPLE.com:443/teams/a?b=c", true),
            ("https://example.com/teamsters", false),
            ("https://example.com/teams/../secret", false),
            ("https://example.com/teams/%2e%2e/secret", false),
            ("http://example.com/teams", false),
            ("https://example.com.evil.test/teams", false),
            ("http://data.test:8080/any/%20thing", true),
            ("http://data.test/any", false),
        ] {
            assert_eq!(rules.allow(&url.parse().unwrap()), allowed, "{url}");
        }
    }

    #[test]
    fn blocked_hosts_and_networks_are_not_called() {
        let some = rules(&["metadata.test", "10.1.0.0/16", "fd00::/8", "192.0.2.7"], &[]);
        for (url, allowed) in [("http://Metadata.test./x", false), ("http://other.test", true)] {
            assert_eq!(some.allow(&url.parse().unwrap()), allowed, "{url}");
        }
        for (address, allowed) in [
            ("10.1.2.3", false),
            ("::ffff:10.1.2.3", false),
            ("10.2.0.1", true),
            ("fd12::1", false),
            ("fe00::1", true),
            ("192.0.2.7", false),
            ("192.0.2.8", true),
        ] {
            assert_eq!(some.may_lead_to(SocketAddr::new(address.parse().unwrap(), 80)), allowed, "{address}");
        }
        assert!(!rules(&["0.0.0.0/0"], &[]).may_lead_to("192.0.2.1:1".parse().unwrap()));
    }

    #[test]
    fn networks_are_blocked_in_every_form_of_their_addresses() {
        let reaches = |blocked: &str, address: &str| {
            rules(&[blocked], &[]).may_lead_to(SocketAddr::new(address.parse().unwrap(), 80))
        };
        for form in ["10.0.0.1", "0xa.1", "167772161", "01200000001", "10.0.0.1.", "::ffff:10.0.0.1", "[::ffff:a00:1]"]
        {
            assert!(!reaches(form, "10.0.0.1"), "{form}");
            assert!(reaches(form, "10.0.0.2"), "{form}");
        }
        // Mapped, NAT64 with prefixes of 96 and 48 bits, 6to4, and the client and the server of Teredo.
        for address in [
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::a00:1",
            "64:ff9b:1:a00:0:100::",
            "2002:a00:1::",
            "2001:0:808:808::f5ff:fffe",
            "2001:0:a00:1::f7f7:f7f7",
        ] {
            for blocked in ["10.0.0.0/8", "::ffff:10.0.0.0/104"] {
                assert!(!reaches(blocked, address), "{blocked}: {address}");
            }
            assert!(reaches("11.0.0.0/8", address), "{address}");
            assert!(!reaches("::/0", address), "{address}");
        }
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        let one = |text: &str| vec![text.to_owned()];
        for text in
            ["", "http://example.com", "10.0.0.0/33", "example.com/8", "*.test", "[10.0.0.1", "::ffff:10.0.0.0/95", "."]
        {
            assert_eq!(ServiceRules::new(&one(text), &[]).unwrap_err(), InvalidRule::Blocked(text.to_owned()));
        }
        for text in ["", "example.com", "ftp://example.com", "https://", "https://example.com/?a=b"] {
            assert_eq!(ServiceRules::new(&[], &one(text)).unwrap_err(), InvalidRule::Allowed(text.to_owned()));
        }
    }
}
