//! IP addresses and CIDR ranges.

use std::any::Any;
use std::net::{IpAddr, Ipv6Addr};

use super::super::super::error::EvalError;
use super::super::super::value::{Opaque, Val};
use super::super::{Call, Overload, cost, global, member};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

const IP: &str = "net.IP";
const CIDR: &str = "net.CIDR";

pub(in super::super) const ADDRESSES: &[Overload] = &[
    global("ip", "string_to_ip", "string", IP, |c| address(c.str(0)).map(|ip| Val::opaque(Address(ip))))
        .cost(cost::traverse),
    global("ip.isCanonical", "ip_is_canonical", "string", "bool", |c| {
        Ok(Val::Bool(address(c.str(0))?.to_string() == c.str(0)))
    })
    .cost(cost::traverse_twice),
    global("isIP", "is_ip", "string", "bool", |c| Ok(Val::Bool(address(c.str(0)).is_ok())))
        .cost_by_name(cost::traverse),
    global("string", "ip_to_string", IP, "string", |c| with(c, |ip| Val::text(ip.to_string()))),
    member("family", "ip_family", IP, "int", |c| with(c, |ip| Val::Int(if ip.is_ipv4() { 4 } else { 6 }))),
    member("isGlobalUnicast", "ip_is_global_unicast", IP, "bool", |c| with(c, |ip| Val::Bool(global_unicast(ip)))),
    member("isLinkLocalMulticast", "ip_is_link_local_multicast", IP, "bool", |c| {
        with(c, |ip| {
            Val::Bool(match ip {
                IpAddr::V4(ip) => matches!(ip.octets(), [224, 0, 0, _]),
                IpAddr::V6(ip) => ip.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
            })
        })
    }),
    member("isLinkLocalUnicast", "ip_is_link_local_unicast", IP, "bool", |c| {
        with(c, |ip| Val::Bool(link_local_unicast(ip)))
    }),
    member("isLoopback", "ip_is_loopback", IP, "bool", |c| with(c, |ip| Val::Bool(ip.is_loopback()))),
    member("isUnspecified", "ip_is_unspecified", IP, "bool", |c| with(c, |ip| Val::Bool(ip.is_unspecified()))),
];

pub(in super::super) const RANGES: &[Overload] = &[
    global("cidr", "string_to_cidr", "string", CIDR, |c| range(c.str(0)).map(Val::opaque)).cost_by_name(cost::traverse),
    global("isCIDR", "is_cidr", "string", "bool", |c| Ok(Val::Bool(range(c.str(0)).is_ok())))
        .cost_by_name(cost::traverse),
    global("string", "cidr_to_string", CIDR, "string", |c| with_range(c, |r| Ok(Val::text(r.text())))),
    member("containsCIDR", "cidr_contains_cidr_string", "net.CIDR, string", "bool", contains_range)
        .cost(contains_text_range_cost),
    member("containsCIDR", "cidr_contains_cidr", "net.CIDR, net.CIDR", "bool", contains_range)
        .cost_by_name(contains_range_cost),
    member("containsIP", "cidr_contains_ip_string", "net.CIDR, string", "bool", contains_address)
        .cost(contains_text_cost),
    member("containsIP", "cidr_contains_ip_ip", "net.CIDR, net.IP", "bool", contains_address)
        .cost_by_name(contains_address_cost),
    member("ip", "cidr_ip", CIDR, IP, |c| with_range(c, |r| Ok(Val::opaque(Address(r.address))))),
    member("masked", "cidr_masked", CIDR, CIDR, |c| with_range(c, |r| Ok(Val::opaque(r.masked())))),
    member("prefixLength", "cidr_prefix_length", CIDR, "int", |c| with_range(c, |r| Ok(Val::Int(r.bits.into())))),
];

#[derive(Debug)]
struct Address(IpAddr);

#[derive(Debug, PartialEq)]
struct Range {
    address: IpAddr,
    bits: u8,
}

impl Opaque for Address {
    fn type_name(&self) -> &str {
        IP
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Address>().is_some_and(|other| other.0 == self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

impl Opaque for Range {
    fn type_name(&self) -> &str {
        CIDR
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Range>().is_some_and(|other| other == self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        format!("{}/{}", self.address, self.bits)
    }

    fn size(&self) -> Option<usize> {
        Some(usize::from(self.bits).div_ceil(8))
    }
}

impl Range {
    fn masked(&self) -> Range {
        let address = match self.address {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4((u32::from(ip) & mask).into())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6((u128::from(ip) & mask).into())
            }
        };
        Range { address, bits: self.bits }
    }

    fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Range { address, bits: self.bits }.masked().address == self.masked().address
    }
}

fn mapped(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

fn address(text: &str) -> std::result::Result<IpAddr, EvalError> {
    if text.split_once('%').is_some_and(|(ip, zone)| !zone.is_empty() && ip.parse::<Ipv6Addr>().is_ok()) {
        return Err(EvalError::Other(format!("IP address {text:?} with zone value is not allowed")));
    }
    let ip: IpAddr = text.parse().map_err(|_| {
        let reason = fault(text);
        EvalError::Other(format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): {reason}"
        ))
    })?;
    if mapped(&ip) {
        return Err(EvalError::Other(format!("IPv4-mapped IPv6 address {text:?} is not allowed")));
    }
    Ok(ip)
}

/// Why a text is no address, in Go's words.
fn fault(text: &str) -> String {
    match text.find(['.', ':', '%']) {
        Some(at) if text.get(at..).is_some_and(|rest| rest.starts_with('.')) => v4_fault(text),
        Some(at) if text.get(at..).is_some_and(|rest| rest.starts_with('%')) => "missing IPv6 address".into(),
        Some(_) if text.contains('%') => "IPv6 zones are not allowed".into(),
        Some(_) => v6_fault(text),
        None => "unable to parse IP".into(),
    }
}

fn v4_fault(text: &str) -> String {
    let (mut digits, mut value, mut fields) = (0, 0_u32, 0);
    let mut leading_zero = false;
    for (at, c) in text.char_indices() {
        let rest = text.get(at..).unwrap_or_default();
        match c.to_digit(10) {
            Some(_) if digits == 1 && leading_zero => return "IPv4 field has octet with leading zero".into(),
            Some(digit) => {
                leading_zero = digits == 0 && digit == 0;
                digits += 1;
                value = value * 10 + digit;
                if value > 255 {
                    return "IPv4 field has value >255".into();
                }
            }
            None if c == '.' => {
                if digits == 0 || rest == "." {
                    return format!("IPv4 field must have at least one digit (at {rest:?})");
                }
                if fields == 3 {
                    return "IPv4 address too long".into();
                }
                (digits, value, fields, leading_zero) = (0, 0, fields + 1, false);
            }
            None => return format!("unexpected character (at {rest:?})"),
        }
    }
    "IPv4 address too short".into()
}

fn v6_fault(text: &str) -> String {
    let body = text.strip_prefix("::").unwrap_or(text);
    let mut rest = body;
    let mut fields = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            return format!("each colon-separated field must have at least one digit (at {rest:?})");
        }
        if digits > 4 {
            return format!("each group must have 4 or less digits (at {rest:?})");
        }
        fields += 1;
        rest = rest.get(digits..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        if fields == 8 {
            return format!("trailing garbage after address (at {rest:?})");
        }
        let Some(after) = rest.strip_prefix(':') else {
            return format!("unexpected character, want colon (at {rest:?})");
        };
        if after.is_empty() {
            return format!("colon must be followed by more characters (at {rest:?})");
        }
        rest = after.strip_prefix(':').unwrap_or(after);
    }
    "address string too short".into()
}

fn range(text: &str) -> std::result::Result<Range, EvalError> {
    let fail = |reason: String| {
        EvalError::Other(format!(
            "network address parse error during conversion from string: network address parse error during conversion \
             from string: netip.ParsePrefix({text:?}): {reason}"
        ))
    };
    let Some((ip, bits)) = text.rsplit_once('/') else { return Err(fail("no '/'".into())) };
    let address: IpAddr = match ip.parse() {
        Ok(ip) => ip,
        Err(_) if ip.contains('%') && ip.split('%').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok()) => {
            return Err(fail("IPv6 zones cannot be present in a prefix".into()));
        }
        Err(_) => return Err(fail(format!("ParseAddr({ip:?}): {}", fault(ip)))),
    };
    let plain =
        !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit()) && (bits.len() == 1 || !bits.starts_with('0'));
    if !plain {
        return Err(fail(format!("bad bits after slash: {bits:?}")));
    }
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let Some(bits) = bits.parse().ok().filter(|bits| *bits <= longest) else {
        return Err(fail("prefix length out of range".into()));
    };
    if mapped(&address) {
        return Err(EvalError::Other(format!(
            "network address parse error during conversion from string: IPv4-mapped IPv6 address {text:?} is not allowed"
        )));
    }
    Ok(Range { address, bits })
}

fn with<'v>(call: &Call<'_, 'v>, part: fn(&IpAddr) -> Val<'v>) -> Result<'v> {
    let value = call.arg(0);
    value.downcast::<Address>().map(|address| part(&address.0)).ok_or_else(|| call.no_such_overload())
}

fn with_range<'v>(call: &Call<'_, 'v>, part: impl Fn(&Range) -> Result<'v>) -> Result<'v> {
    let value = call.arg(0);
    match value.downcast::<Range>() {
        Some(range) => part(range),
        None => Err(call.no_such_overload()),
    }
}

fn link_local_unicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments().first().is_some_and(|first| first & 0xffc0 == 0xfe80),
    }
}

fn global_unicast(ip: &IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !broadcast && !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && !link_local_unicast(ip)
}

fn contains_address<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    with_range(call, |range| {
        let other = call.arg(1);
        let ip = match other.downcast::<Address>() {
            Some(address) => address.0,
            // A text that is no address is no argument at all.
            None => address(call.str(1)).map_err(|_| EvalError::NoSuchOverload)?,
        };
        Ok(Val::Bool(range.contains(ip)))
    })
}

fn contains_range<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    with_range(call, |outer| {
        let other = call.arg(1);
        let parsed;
        let inner = if let Some(range) = other.downcast::<Range>() {
            range
        } else {
            parsed = range(call.str(1))?;
            &parsed
        };
        Ok(Val::Bool(inner.bits >= outer.bits && outer.contains(inner.address)))
    })
}

fn size(args: &[Val<'_>], i: usize) -> u64 {
    args.get(i).map_or(1, Val::size)
}

fn contains_address_cost(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    (2 * size(args, 0)).div_ceil(10)
}

fn contains_range_cost(args: &[Val<'_>], result: Option<&Val<'_>>) -> u64 {
    contains_address_cost(args, result) + size(args, 0).div_ceil(10) + 1
}

/// The text has to be read first.
fn contains_text_cost(args: &[Val<'_>], result: Option<&Val<'_>>) -> u64 {
    contains_address_cost(args, result) + size(args, 1).div_ceil(10)
}

fn contains_text_range_cost(args: &[Val<'_>], result: Option<&Val<'_>>) -> u64 {
    contains_range_cost(args, result) + size(args, 1).div_ceil(10)
}
