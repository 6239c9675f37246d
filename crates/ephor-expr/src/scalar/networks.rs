//! Addresses with a special purpose, as IANA's registries and the clouds name them.
//!
//! `is_external_url` and the client of service calls both ask here, so that they agree about an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Any host of the Internet.
    Global,
    /// A network of the owner's own, such as `10.0.0.0/8`.
    Private,
    /// This machine, its link or the metadata service of its cloud.
    Local,
}

/// IPv4 networks that are not global.
const V4: [(Ipv4Addr, u32, Purpose); 19] = [
    (Ipv4Addr::UNSPECIFIED, 8, Purpose::Local),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Purpose::Local),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Purpose::Local),
    // Metadata services of Alibaba Cloud and of Azure.
    (Ipv4Addr::new(100, 100, 100, 200), 32, Purpose::Local),
    (Ipv4Addr::new(168, 63, 129, 16), 32, Purpose::Local),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Purpose::Local),
    (Ipv4Addr::BROADCAST, 32, Purpose::Local),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Purpose::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Purpose::Private),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Purpose::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Purpose::Private),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Purpose::Private),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Purpose::Private),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Purpose::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Purpose::Private),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Purpose::Private),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Purpose::Private),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Purpose::Private),
    (Ipv4Addr::new(192, 175, 48, 0), 24, Purpose::Private),
];

/// IPv6 networks that are not global.
const V6: [(Ipv6Addr, u32, Purpose); 10] = [
    (Ipv6Addr::UNSPECIFIED, 128, Purpose::Local),
    (Ipv6Addr::LOCALHOST, 128, Purpose::Local),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Purpose::Local),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Purpose::Local),
    // Metadata services of EC2 and of Google Cloud.
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, Purpose::Local),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, Purpose::Local),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Purpose::Private),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Purpose::Private),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, Purpose::Private),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Purpose::Private),
];

/// What an address is for. An IPv6 address that stands for one of IPv4 is for what that is for.
pub fn purpose(address: IpAddr) -> Purpose {
    match address {
        IpAddr::V4(v4) => of_v4(v4),
        IpAddr::V6(v6) => {
            let own = V6.iter().find(|(net, bits, _)| (v6.to_bits() ^ net.to_bits()) >> (128 - bits) == 0);
            own.map(|(_, _, purpose)| *purpose).or_else(|| embedded(v6).map(of_v4)).unwrap_or(Purpose::Global)
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Purpose {
    let own = V4.iter().find(|(net, bits, _)| (address.to_bits() ^ net.to_bits()) >> (32 - bits) == 0);
    own.map_or(Purpose::Global, |(_, _, purpose)| *purpose)
}

/// The IPv4 address that traffic to an IPv6 address ends at: mapped, compatible, NAT64, 6to4 and Teredo addresses.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => {
            Some(Ipv4Addr::from_bits(bits as u32))
        }
        [0x2002, ..] => Some(Ipv4Addr::from_bits((bits >> 80) as u32)),
        [0x2001, 0, ..] => Some(Ipv4Addr::from_bits(!(bits as u32))),
        _ => None,
    }
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
            ("2001:0:0:0:0:0:80ff:fffe", Purpose::Local),
        ] {
            assert_eq!(purpose(address.parse().unwrap()), want, "{address}");
        }
    }
}
