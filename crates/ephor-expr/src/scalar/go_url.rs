//! URLs as Go's `net/url` reads them.
//!
//! Which host a URL names decides whether it may be called, so this reader accepts and refuses what the reference
//! does instead of following the more forgiving rules of browsers.

use std::net::Ipv6Addr;

use super::percent::{self, AsciiSet};

/// The parts of a URL, decoded unless their name says `raw`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Url {
    /// What stands before the first colon, in lower case; empty for a relative URL.
    pub scheme: String,
    /// What follows the scheme when that is not a slash, as in `mailto:a@b`.
    pub opaque: String,
    /// Whether there is a user before the host.
    pub user: bool,
    /// Host and port, with the brackets of an IPv6 address.
    pub host: String,
    /// Whether an absolute URL has a rooted path but no `//`.
    pub omit_host: bool,
    /// The path.
    pub path: String,
    /// The path as written, if encoding `path` anew would give another text.
    pub raw_path: String,
    /// Whether there is a question mark with nothing behind it.
    pub force_query: bool,
    /// The query as written.
    pub raw_query: String,
    /// What follows `#`.
    pub fragment: String,
    /// The fragment as written, if encoding `fragment` anew would give another text.
    pub raw_fragment: String,
}

/// Why a text is no URL, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parse {url:?}: {reason}")]
pub struct UrlError {
    /// The text.
    pub url: String,
    /// What is wrong with it.
    pub reason: UrlFault,
}

/// What may be wrong with a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// A control character anywhere.
    #[error("net/url: invalid control character in URL")]
    ControlCharacter,
    /// A colon first.
    #[error("missing protocol scheme")]
    MissingScheme,
    /// Something like a scheme that is none.
    #[error("first path segment in URL cannot contain colon")]
    ColonInFirstSegment,
    /// A percent sign without two digits, or one that hides a character of the host.
    #[error("invalid URL escape {0:?}")]
    Escape(String),
    /// A character that user names cannot have.
    #[error("net/url: invalid userinfo")]
    User,
    /// A port that is no number.
    #[error("invalid port {0:?} after host")]
    Port(String),
    /// An opening bracket alone.
    #[error("missing ']' in host")]
    OpenBracket,
    /// Brackets around something other than an IPv6 address, or after the start of the host.
    #[error("invalid IP-literal")]
    IpLiteral,
    /// A character that hosts cannot have.
    #[error("invalid character {:?} in host name", .0.to_string())]
    HostCharacter(char),
}

impl Url {
    /// Reads an absolute or relative URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        parse(text).map_err(|reason| UrlError { url: text.to_owned(), reason })
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &str {
        if let Some(inner) = self.host.strip_prefix('[') {
            return inner.rsplit_once(']').map_or(inner, |(host, _)| host);
        }
        self.host.rsplit_once(':').map_or(self.host.as_str(), |(host, _)| host)
    }
}

fn parse(text: &str) -> Result<Url, UrlFault> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err(UrlFault::ControlCharacter);
    }
    let mut url = Url::default();
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    (url.fragment, url.raw_fragment) = decoded(fragment, Part::Fragment)?;
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let rest = match rest.split_once('?') {
        None => rest,
        Some((rest, query)) => {
            query.clone_into(&mut url.raw_query);
            url.force_query = query.is_empty();
            rest
        }
    };
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err(UrlFault::ColonInFirstSegment);
        }
    }
    url.omit_host = !scheme.is_empty() && !rest.starts_with("//");
    let mut path = rest;
    // Three slashes without a scheme are a path.
    if let Some(after) = rest.strip_prefix("//").filter(|after| !scheme.is_empty() || !after.starts_with('/')) {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, after) = after.split_at(end);
        path = after;
        let host = match authority.rsplit_once('@') {
            None => authority,
            Some((user, host)) => {
                check_user(user)?;
                url.user = true;
                host
            }
        };
        url.host = parse_host(host)?;
    }
    (url.path, url.raw_path) = decoded(path, Part::Path)?;
    Ok(url)
}

/// The scheme, empty if there is none, and what follows its colon.
fn split_scheme(text: &str) -> Result<(&str, &str), UrlFault> {
    if text.starts_with(':') {
        return Err(UrlFault::MissingScheme);
    }
    let is_scheme = |s: &str| {
        s.starts_with(|c: char| c.is_ascii_alphabetic())
            && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    };
    Ok(text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).unwrap_or(("", text)))
}

fn check_user(user: &str) -> Result<(), UrlFault> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    if !user.bytes().all(allowed) {
        return Err(UrlFault::User);
    }
    decode(user).map(|_| ())
}

fn parse_host(host: &str) -> Result<String, UrlFault> {
    let Some(bracket) = host.find('[') else {
        let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
        check_port(port)?;
        return Ok(decode_name(name)? + port);
    };
    if bracket > 0 {
        return Err(UrlFault::IpLiteral);
    }
    let end = host.rfind(']').ok_or(UrlFault::OpenBracket)?;
    let (address, port) = host.split_at(end);
    let (address, port) = (address.get(1..).unwrap_or_default(), port.get(1..).unwrap_or_default());
    check_port(port)?;
    // Only the part after `%25`, which names a network interface, may be encoded.
    let (ip, zone) = match address.split_once("%25") {
        Some((ip, zone)) => (ip, Some(decode(zone)?)),
        None => (address, None),
    };
    if ip.parse::<Ipv6Addr>().is_err() || zone.as_deref() == Some("") {
        return Err(UrlFault::IpLiteral);
    }
    Ok(match zone {
        Some(zone) => format!("[{ip}%{zone}]{port}"),
        None => format!("[{ip}]{port}"),
    })
}

/// A port is empty, or a colon and digits.
fn check_port(port: &str) -> Result<(), UrlFault> {
    let digits = port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    if digits { Ok(()) } else { Err(UrlFault::Port(port.to_owned())) }
}

/// Decodes a host name, in which ASCII must not be encoded.
fn decode_name(name: &str) -> Result<String, UrlFault> {
    for (i, _) in name.match_indices('%') {
        if !matches!(hex_byte(name, i), Some(0x80..)) {
            return Err(bad_escape(name, i));
        }
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    match name.chars().find(|&c| c.is_ascii() && !allowed(c)) {
        Some(c) => Err(UrlFault::HostCharacter(c)),
        None => decode(name),
    }
}

/// A part with its own rule of what is encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Fragment,
}

/// The decoded text, and the text as written if it is not how the decoded one would be encoded.
fn decoded(raw: &str, part: Part) -> Result<(String, String), UrlFault> {
    let text = decode(raw)?;
    let canonical = encode(&text, part) == raw;
    Ok((text, if canonical { String::new() } else { raw.to_owned() }))
}

fn decode(raw: &str) -> Result<String, UrlFault> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, _)) = rest.split_once('%') {
        let at = raw.len() - rest.len() + before.len();
        bytes.extend_from_slice(before.as_bytes());
        bytes.push(hex_byte(raw, at).ok_or_else(|| bad_escape(raw, at))?);
        rest = raw.get(at + 3..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// The byte of the two digits after the percent sign at `at`.
fn hex_byte(text: &str, at: usize) -> Option<u8> {
    let digits = text.get(at + 1..at + 3)?;
    if digits.bytes().all(|b| b.is_ascii_hexdigit()) { u8::from_str_radix(digits, 16).ok() } else { None }
}

fn bad_escape(text: &str, at: usize) -> UrlFault {
    UrlFault::Escape(text.get(at..).unwrap_or_default().chars().take(3).collect())
}

fn encode(text: &str, part: Part) -> String {
    let set = match part {
        Part::Path => IN_PATH,
        Part::Fragment => IN_FRAGMENT,
    };
    percent::encode(text, set).to_string()
}

/// What Go encodes in a path.
const IN_PATH: &AsciiSet = &percent::RESERVED
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// What Go encodes in a fragment.
const IN_FRAGMENT: &AsciiSet = &IN_PATH.remove(b'!').remove(b'(').remove(b')').remove(b'*').remove(b'?');

#[cfg(test)]
mod tests {
    use super::*;

    fn hostname(url: &str) -> Result<String, String> {
        Url::parse(url).map(|u| u.hostname().to_owned()).map_err(|e| e.reason.to_string())
    }

    #[test]
    fn the_host_is_the_one_that_the_reference_sees() {
        for (url, want) in [
            ("http://10.0.0.1", "10.0.0.1"),
            ("HTTP://user:p%41@10.0.0.1:80/x@8.8.8.8", "10.0.0.1"),
            ("http://x@y@10.0.0.1", "10.0.0.1"),
            ("//10.0.0.1", "10.0.0.1"),
            ("a+b-c.d://h:", "h"),
            ("http://[::1]:80/", "::1"),
            ("http://[fe80::1%25eth%20]", "fe80::1%eth "),
            ("http://10.0.0.1<>", "10.0.0.1<>"),
            ("http://a%e4%b8%ad", "a中"),
            ("http://10.0.0.1?%zz a", "10.0.0.1"),
            ("http://10.0.0.1#x", "10.0.0.1"),
            ("http:8.8.8.8", ""),
            ("http:/8.8.8.8", ""),
            ("http:///8.8.8.8", ""),
            ("///8.8.8.8", ""),
            ("8.8.8.8", ""),
            ("localhost:80", ""),
            ("a/b:c", ""),
            ("?http://8.8.8.8", ""),
            ("", ""),
        ] {
            assert_eq!(hostname(url).as_deref(), Ok(want), "{url}");
        }
    }

    #[test]
    fn what_the_reference_refuses_is_refused() {
        for (url, want) in [
            (":foo", "missing protocol scheme"),
            ("8.8.8.8:80", "first path segment in URL cannot contain colon"),
            ("a_b://10.0.0.1", "first path segment in URL cannot contain colon"),
            (" http://10.0.0.1", "first path segment in URL cannot contain colon"),
            ("http://a\n", "net/url: invalid control character in URL"),
            ("http://h:8a", "invalid port \":8a\" after host"),
            ("http://::1", "invalid port \"::1\" after host"),
            ("http://10.0.0.1:80:90", "invalid port \":80:90\" after host"),
            ("http://[::1]x", "invalid port \"x\" after host"),
            ("http://[::1", "missing ']' in host"),
            ("http://[1.2.3.4]", "invalid IP-literal"),
            ("http://a[::1]", "invalid IP-literal"),
            ("http://[::1%25]", "invalid IP-literal"),
            ("http://a b", "invalid character \" \" in host name"),
            ("http://1.1.1.1\\@10.0.0.1", "net/url: invalid userinfo"),
            ("http://10.0.0.1\\", "invalid character \"\\\\\" in host name"),
            ("http://%31.0.0.1", "invalid URL escape \"%31\""),
            ("http://ab%2", "invalid URL escape \"%2\""),
            ("http://a/%zz", "invalid URL escape \"%zz\""),
            ("http://a#%zz", "invalid URL escape \"%zz\""),
            ("http://u%zz@a", "invalid URL escape \"%zz\""),
        ] {
            assert_eq!(hostname(url), Err(want.to_owned()), "{url}");
        }
    }

    #[test]
    fn parts_are_decoded_and_odd_spellings_kept() {
        let url = Url::parse("spiffe://td/a%20b!c?q=%41#f(%21)").unwrap();
        assert_eq!((url.scheme.as_str(), url.host.as_str()), ("spiffe", "td"));
        assert_eq!((url.path.as_str(), url.raw_path.as_str()), ("/a b!c", "/a%20b!c"));
        assert_eq!(url.raw_query, "q=%41");
        assert_eq!((url.fragment.as_str(), url.raw_fragment.as_str()), ("f(!)", "f(%21)"));
    }
}
