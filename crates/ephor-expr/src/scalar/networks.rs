//! Addresses with a special purpose, as IANA's registries and the clouds name them, and the spellings of addresses.
//!
//! In: an address, or the text of a host. Out: what the address is for, the IPv4 addresses that it carries, and the
//! address that a text means to a resolver. `is_external_url` and the client of service calls both ask here, so that
//! they agree about an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for, the most guarded last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Any host of the Internet.
    Global,
    /// A network of the owner's own, such as `10.0.0.0/8`, or one that is reserved.
    Private,
    /// This machine, its link or the metadata service of its cloud.
    Local,
}

/// IPv4 networks with a purpose of their own. The longest prefix decides; all others are global.
const V4: [(Ipv4Addr, u32, Purpose); 21] = [
    (Ipv4Addr::UNSPECIFIED, 8, Purpose::Local),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Purpose::Local),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Purpose::Local),
    // Metadata services of Alibaba Cloud, Azure and Oracle Cloud.
    (Ipv4Addr::new(100, 100, 100, 200), 32, Purpose::Local),
    (Ipv4Addr::new(168, 63, 129, 16), 32, Purpose::Local),
    (Ipv4Addr::new(192, 0, 0, 192), 32, Purpose::Local),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Purpose::Local),
    (Ipv4Addr::BROADCAST, 32, Purpose::Local),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Purpose::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Purpose::Private),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Purpose::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Purpose::Private),
    // Anycast addresses of port control and TURN.
    (Ipv4Addr::new(192, 0, 0, 9), 32, Purpose::Global),
    (Ipv4Addr::new(192, 0, 0, 10), 32, Purpose::Global),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Purpose::Private),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Purpose::Private),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Purpose::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Purpose::Private),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Purpose::Private),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Purpose::Private),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Purpose::Private),
];

/// IPv6 networks. The longest prefix decides; what has no entry of its own is reserved.
const V6: [(Ipv6Addr, u32, Purpose); 25] = [
    (Ipv6Addr::UNSPECIFIED, 0, Purpose::Private),
    (Ipv6Addr::UNSPECIFIED, 128, Purpose::Local),
    (Ipv6Addr::LOCALHOST, 128, Purpose::Local),
    (net(0xfe80, 0, 0), 10, Purpose::Local),
    (net(0xff00, 0, 0), 8, Purpose::Local),
    // What EC2 offers its machines, and the metadata services of Google Cloud and Scaleway.
    (net(0xfd00, 0xec2, 0), 32, Purpose::Local),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, Purpose::Local),
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128, Purpose::Local),
    // The IPv4 address in these decides.
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, Purpose::Global),
    (net(0x64, 0xff9b, 0), 96, Purpose::Global),
    (net(0x64, 0xff9b, 1), 48, Purpose::Private),
    (net(0x2000, 0, 0), 3, Purpose::Global),
    (net(0x2001, 0, 0), 23, Purpose::Private),
    // Teredo: the IPv4 addresses in it decide.
    (net(0x2001, 0, 0), 32, Purpose::Global),
    // Anycast addresses of port control, TURN and service discovery.
    (Ipv6Addr::new(0x2001, 1, 0, 0, 0, 0, 0, 1), 128, Purpose::Global),
    (Ipv6Addr::new(0x2001, 1, 0, 0, 0, 0, 0, 2), 128, Purpose::Global),
    (Ipv6Addr::new(0x2001, 1, 0, 0, 0, 0, 0, 3), 128, Purpose::Global),
    // Benchmarks; multicast tunnels, AS112, ORCHIDv2 and tags of drones.
    (net(0x2001, 2, 0), 48, Purpose::Private),
    (net(0x2001, 3, 0), 32, Purpose::Global),
    (net(0x2001, 4, 0x112), 48, Purpose::Global),
    (net(0x2001, 0x20, 0), 28, Purpose::Global),
    (net(0x2001, 0x30, 0), 28, Purpose::Global),
    // Documentation, and segments of routes.
    (net(0x2001, 0xdb8, 0), 32, Purpose::Private),
    (net(0x3fff, 0, 0), 20, Purpose::Private),
    (net(0x5f00, 0, 0), 16, Purpose::Private),
];

const fn net(first: u16, second: u16, third: u16) -> Ipv6Addr {
    Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0)
}

/// What an address is for. One that carries IPv4 addresses is guarded at least as much as they are.
pub fn purpose(address: IpAddr) -> Purpose {
    match address {
        IpAddr::V4(v4) => of_v4(v4),
        IpAddr::V6(v6) => {
            let nets = V6.iter().filter(|(net, bits, _)| shares(v6.to_bits(), net.to_bits(), *bits));
            let own = nets.max_by_key(|(_, bits, _)| *bits).map_or(Purpose::Private, |(_, _, purpose)| *purpose);
            carried(v6).into_iter().map(of_v4).fold(own, Purpose::max)
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Purpose {
    let wide = |address: Ipv4Addr| u128::from(address.to_bits()) << 96;
    let nets = V4.iter().filter(|(net, bits, _)| shares(wide(address), wide(*net), *bits));
    nets.max_by_key(|(_, bits, _)| *bits).map_or(Purpose::Global, |(_, _, purpose)| *purpose)
}

/// Whether the first `bits` bits are the same.
fn shares(address: u128, network: u128, bits: u32) -> bool {
    (address ^ network).checked_shr(128 - bits).is_none_or(|different| different == 0)
}

/// The IPv4 addresses that traffic to an IPv6 address can end at: those in mapped, compatible, NAT64, 6to4 and Teredo
/// addresses.
pub fn carried(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let bits = address.to_bits();
    let at = |places: [u32; 4]| Ipv4Addr::from(places.map(|place| (bits >> (120 - 8 * place)) as u8));
    let last = [12, 13, 14, 15];
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![at(last)],
        // The operator of the translator chooses a prefix of 48, 56, 64 or 96 bits, and no address tells which. A place
        // that starts with zero is padding: no translator passes `0.0.0.0/8` on.
        [0x64, 0xff9b, 1, ..] => {
            let places = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], last];
            places.map(at).into_iter().filter(|address| address.octets()[0] != 0).collect()
        }
        [0x2002, ..] => vec![at([2, 3, 4, 5])],
        // The server, and the client, whose bits are inverted.
        [0x2001, 0, ..] => vec![at([4, 5, 6, 7]), Ipv4Addr::from_bits(!at(last).to_bits())],
        _ => Vec::new(),
    }
}

/// The IPv4 address that a text of numbers means to the resolvers of C: one to four numbers, decimal, octal after `0`
/// or hexadecimal after `0x`, of which the last fills what is left (`127.1`, `0x7f.1`, `2130706433`).
pub fn numeric_v4(text: &str) -> Option<Ipv4Addr> {
    let numbers = text.split('.').map(number).collect::<Option<Vec<u32>>>()?;
    let (last, front) = numbers.split_last()?;
    let left = 32_u32.checked_sub(8 * u32::try_from(front.len()).ok()?).filter(|left| *left > 0)?;
    if front.iter().any(|number| *number > 0xff) || u64::from(*last) >> left != 0 {
        return None;
    }
    let high = front.iter().fold(0_u32, |bits, number| bits << 8 | number);
    Some(Ipv4Addr::from_bits(high.checked_shl(left).unwrap_or(0) | last))
}

fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    // `from_str_radix` takes a sign.
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, radix).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_for_what_the_registries_say() {
        for (address, want) in [
            ("8.8.8.8", Purpose::Global),
            ("2606:4700::1111", Purpose::Global),
            ("::ffff:8.8.8.8", Purpose::Global),
            ("64:ff9b::808:808", Purpose::Global),
            ("172.32.0.1", Purpose::Global),
            ("10.1.2.3", Purpose::Private),
            ("100.64.0.1", Purpose::Private),
            ("fd00::1", Purpose::Private),
            ("::ffff:192.168.0.1", Purpose::Private),
            ("64:ff9b::a00:1", Purpose::Private),
            ("127.8.9.1", Purpose::Local),
            ("0.1.2.3", Purpose::Local),
            ("169.254.169.254", Purpose::Local),
            ("100.100.100.200", Purpose::Local),
            ("168.63.129.16", Purpose::Local),
            ("fd20:ce::254", Purpose::Local),
            ("fd00:ec2::254", Purpose::Local),
            ("fe80::1", Purpose::Local),
            ("::", Purpose::Local),
            ("::1", Purpose::Local),
            ("::127.0.0.1", Purpose::Local),
            ("64:ff9b::a9fe:a9fe", Purpose::Local),
            ("64:ff9b:1::7f00:1", Purpose::Local),
            ("2002:7f00:1::", Purpose::Local),
            ("2001:0:808:808::80ff:fffe", Purpose::Local),
            ("192.0.0.192", Purpose::Local),
            ("fd00:ec2::23", Purpose::Local),
            ("fd00:42::42", Purpose::Local),
            ("fd00:42::43", Purpose::Private),
            ("192.0.0.8", Purpose::Private),
            ("192.0.0.9", Purpose::Global),
            ("192.0.0.170", Purpose::Private),
            ("192.31.196.1", Purpose::Global),
            ("192.175.48.1", Purpose::Global),
            ("2001:1::1", Purpose::Global),
            ("2001:1::3", Purpose::Global),
            ("2001:1::4", Purpose::Private),
            ("2001:2::1", Purpose::Private),
            ("2001:2:1::1", Purpose::Private),
            ("2001:3::1", Purpose::Global),
            ("2001:4:112::1", Purpose::Global),
            ("2001:4:113::1", Purpose::Private),
            ("2001:10::1", Purpose::Private),
            ("2001:2f::1", Purpose::Global),
            ("2001:3f::1", Purpose::Global),
            ("2001:40::1", Purpose::Private),
            ("2001:200::1", Purpose::Global),
            ("2001:db8::1", Purpose::Private),
            ("2620:4f:8000::1", Purpose::Global),
            ("3fff:fff::1", Purpose::Private),
            ("3fff:1000::1", Purpose::Global),
            ("4000::1", Purpose::Private),
            ("5f00::1", Purpose::Private),
            ("100::1", Purpose::Private),
            ("100:0:0:1::1", Purpose::Private),
            ("fec0::1", Purpose::Private),
            ("64:ff9b:1::808:808", Purpose::Private),
            // NAT64 with prefixes of 48, 56 and 64 bits.
            ("64:ff9b:1:7f00:0:100::", Purpose::Local),
            ("64:ff9b:1:7f:0:1::", Purpose::Local),
            ("64:ff9b:1:0:7f:0:100:0", Purpose::Local),
            ("64:ff9b:1:a00:0:100::", Purpose::Private),
            // Teredo: a server on the link, and clients that are global and private.
            ("2001:0:a9fe:a9fe::f7f7:f7f7", Purpose::Local),
            ("2001:0:808:808::f7f7:f7f7", Purpose::Global),
            ("2001:0:808:808::f5ff:fffe", Purpose::Private),
            ("2002:808:808::1", Purpose::Global),
        ] {
            assert_eq!(purpose(address.parse().unwrap()), want, "{address}");
        }
    }

    #[test]
    fn numbers_are_read_as_the_resolvers_of_c_read_them() {
        for (text, want) in [
            ("127.0.0.1", Some("127.0.0.1")),
            ("127.1", Some("127.0.0.1")),
            ("10.1.258", Some("10.1.1.2")),
            ("0x7f.1", Some("127.0.0.1")),
            ("0X7F.0x1", Some("127.0.0.1")),
            ("0177.0.0.01", Some("127.0.0.1")),
            ("2130706433", Some("127.0.0.1")),
            ("017700000001", Some("127.0.0.1")),
            ("0x7f000001", Some("127.0.0.1")),
            ("0", Some("0.0.0.0")),
            ("4294967295", Some("255.255.255.255")),
            ("4294967296", None),
            ("127.16777216", None),
            ("256.1", None),
            ("1.2.3.256", None),
            ("1.2.3.4.5", None),
            ("08.1", None),
            ("0x", None),
            ("+1", None),
            ("-1", None),
            ("1..2", None),
            ("1.", None),
            ("", None),
            ("a.1", None),
            ("example.com", None),
        ] {
            assert_eq!(numeric_v4(text), want.map(|address| address.parse().unwrap()), "{text}");
        }
    }
}
