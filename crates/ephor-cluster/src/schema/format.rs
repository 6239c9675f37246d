//! The `format` of a text: which texts are times, addresses, bytes.
//!
//! As the API server's validator has them, but that mail addresses and URIs are only looked at from afar. Formats that
//! are not here (`isbn`, `creditcard`, `ssn`, colours) are not judged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use ephor_expr::scalar::duration::Duration;

/// Whether `text` has that format; `None` if the format is not supported.
pub(super) fn fits(format: &str, text: &str) -> Option<bool> {
    Some(match format {
        "byte" => bytes_problem(text).is_none(),
        "date" => is_date(text),
        "date-time" | "datetime" => is_date_time(text),
        "duration" => Duration::parse(text).is_ok() || is_count_of_time(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_network(text),
        "mac" => is_hardware_address(text),
        "uuid" => is_uuid(text, &['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f']),
        "uuid3" => is_uuid(text, &['3']),
        "uuid4" => is_uuid(text, &['4']),
        "uuid5" => is_uuid(text, &['5']),
        "hostname" => text.len() <= 255 && text.trim_end_matches('.').split('.').all(is_host_label),
        "email" => is_address(text),
        "uri" => is_uri(text),
        _ => return None,
    })
}

/// What Go says of a text that is no base64.
pub(super) fn bytes_problem(text: &str) -> Option<String> {
    // Line breaks are skipped, as Go skips them.
    let plain: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let place = match STANDARD.decode(&plain) {
        Ok(_) => return None,
        Err(DecodeError::InvalidByte(place, _) | DecodeError::InvalidLastSymbol { offset: place, .. }) => place,
        Err(DecodeError::InvalidLength(_) | DecodeError::InvalidPadding) => plain.len() / 4 * 4,
    };
    Some(format!("illegal base64 data at input byte {place}"))
}

/// Digits of that many places, and no more than `most`.
fn number(text: &str, places: usize, most: u32) -> bool {
    text.len() == places
        && text.bytes().all(|b| b.is_ascii_digit())
        && text.parse::<u32>().is_ok_and(|number| number <= most)
}

fn is_date(text: &str) -> bool {
    let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return false };
    if !(number(year, 4, 9999) && number(month, 2, 12) && number(day, 2, 31)) {
        return false;
    }
    let year: u32 = year.parse().unwrap_or_default();
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        "04" | "06" | "09" | "11" => 30,
        "02" => 28 + u32::from(is_leap),
        "00" => 0,
        _ => 31,
    };
    day != "00" && number(day, 2, days)
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((date, time)) = text.split_once('t') else { return false };
    let (time, zone) = match time.find(['z', '+', '-']) {
        Some(end) => time.split_at(end),
        None => return false,
    };
    let is_zone = zone == "z"
        || zone
            .get(1..)
            .and_then(|offset| offset.split_once(':'))
            .is_some_and(|(hours, minutes)| !zone.starts_with('z') && number(hours, 2, 99) && number(minutes, 2, 99));
    let (clock, fraction) = time.split_once('.').map_or((time, None), |(clock, fraction)| (clock, Some(fraction)));
    let is_fraction = fraction.is_none_or(|f| !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit()));
    let [hours, minutes, seconds] = clock.split(':').collect::<Vec<_>>()[..] else { return false };
    is_date(date) && is_zone && is_fraction && number(hours, 2, 23) && number(minutes, 2, 59) && number(seconds, 2, 59)
}

/// `3 days`: a number and a unit that Go itself does not know.
fn is_count_of_time(text: &str) -> bool {
    const UNITS: [&str; 12] = [
        "nanosecond",
        "nano",
        "microsecond",
        "micro",
        "millisecond",
        "milli",
        "second",
        "sec",
        "minute",
        "min",
        "hour",
        "hr",
    ];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit = text.get(digits..).unwrap_or_default().trim().to_ascii_lowercase();
    let unit = unit.strip_suffix('s').unwrap_or(&unit);
    digits > 0 && (UNITS.contains(&unit) || matches!(unit, "d" | "day" | "w" | "wk" | "week"))
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    number(length, length.len().clamp(1, 3), most)
}

fn is_hardware_address(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(|part| part.len() == 2 && is_hex(part))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A UUID of one of these versions, with its hyphens or without.
fn is_uuid(text: &str, versions: &[char]) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let plain = parts.concat().to_ascii_lowercase();
    matches!(lengths[..], [32] | [8, 4, 4, 4, 12])
        && is_hex(&plain)
        && plain.chars().nth(12).is_some_and(|version| versions.contains(&version))
}

fn is_host_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= 63
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_address(text: &str) -> bool {
    // `Somebody <somebody@example.com>` is an address too.
    let inner = text.strip_suffix('>').and_then(|text| text.rsplit_once('<')).map_or(text, |(_, inner)| inner);
    inner.rsplit_once('@').is_some_and(|(local, domain)| {
        let is_plain = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control());
        is_plain(local) && is_plain(domain)
    })
}

fn is_uri(text: &str) -> bool {
    let has_scheme = text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    });
    (has_scheme || text.starts_with('/')) && !text.contains(|c: char| c.is_control() || c == ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_format_or_not() {
        for (format, good, bad) in [
            ("byte", &["", "YQ==", "YWJj\n"][..], &["not base64!", "YQ", "YR=="][..]),
            ("date", &["2024-02-29"], &["2023-02-29", "2023-2-1", "2023-00-10", "today"]),
            (
                "date-time",
                &["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123+02:00", "2024-01-02t03:04:05z"],
                &["yesterday", "2024-01-02", "2024-01-02T03:04:05", "2024-01-02T24:04:05Z", "2024-01-02T03:04:05.Z"],
            ),
            ("duration", &["1h30m", "3 days", "2w", "0"], &["", "soon", "1 moon"]),
            ("ipv4", &["1.2.3.4"], &["1.2.3", "::1"]),
            ("ipv6", &["::1"], &["1.2.3.4", ":"]),
            ("cidr", &["10.0.0.0/8", "fd00::/64"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8"]),
            ("mac", &["00:11:22:aa:bb:cc"], &["00:11:22:aa:bb", "00:11:22:aa:bb:gg"]),
            ("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567", "123e4567-e89b-12d3-a456-42661417400g"]),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("hostname", &["example.com", "a"], &["", "-a", "a_b", "a..b"]),
            ("email", &["a@b.c", "A <a@b.c>"], &["nobody", "@b", "a b@c"]),
            ("uri", &["https://a/b?c", "/path", "urn:x"], &["no uri", "a/b", ""]),
        ] {
            for text in good {
                assert_eq!(fits(format, text), Some(true), "{format} {text:?}");
            }
            for text in bad {
                assert_eq!(fits(format, text), Some(false), "{format} {text:?}");
            }
        }
        assert_eq!(fits("isbn", "x"), None);
    }
}
