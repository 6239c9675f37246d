//! Semantic versions and the range language of `semver_compare()`.
//!
//! Ranges follow the library upstream uses: comparators `= == ! != < <= > >=` before a full version or one with a
//! trailing `x` (`1.x`, `1.2.x`), joined by spaces (and) and `||` (or). Prereleases compare like any version; build
//! metadata never counts.

use std::cmp::Ordering;

pub use ::semver::Version;

/// Reads a strict semantic version (`1.2.3`, `1.2.3-rc.1+build`; no `v`, no missing part).
pub fn parse_strict(text: &str) -> Option<Version> {
    if !text.as_bytes().first()?.is_ascii_digit() {
        return None;
    }
    Version::parse(text).ok()
}

/// The order of two versions, build metadata aside.
pub fn compare(a: &Version, b: &Version) -> Ordering {
    a.cmp_precedence(b)
}

/// A set of versions: any of several groups, of which every comparator must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    groups: Vec<Vec<Comparator>>,
}

/// Why a text is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseRangeError {
    /// A comparator with an unknown operator (`^`, `~`) or with a version that is not one (`1.2`).
    #[error("Could not parse Range \"{part}\": Could not parse {what} \"{culprit}\" in \"{part}\"")]
    Comparator {
        /// The comparator as written.
        part: String,
        /// `comparator` or `version`.
        what: &'static str,
        /// The piece of it that is wrong.
        culprit: String,
    },
    /// An operator with nothing behind it.
    #[error("Could not get version from string: \"{0}\"")]
    NoVersion(String),
    /// No comparator on one side of `||`, or none at all.
    #[error("Could not parse Range \"{0}\": nothing on one side of '||'")]
    EmptyGroup(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Comparator {
    Equal(Version),
    NotEqual(Version),
    Less(Version),
    LessOrEqual(Version),
    Greater(Version),
    GreaterOrEqual(Version),
    /// From the first version up to, not including, the second: `1.2.x`.
    Within(Version, Version),
    /// Everything but that: `!1.2.x`.
    Outside(Version, Version),
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Range {
    /// Reads a range. `||` stands between spaces; a space may follow an operator.
    pub fn parse(text: &str) -> Result<Self, ParseRangeError> {
        let mut groups = vec![Vec::new()];
        // An operator written apart from its version, as in `> 1.2.3`.
        let mut pending = String::new();
        for word in text.split_ascii_whitespace() {
            if word == "||" {
                groups.push(Vec::new());
                continue;
            }
            pending.push_str(word);
            if word.ends_with(['<', '>', '=']) {
                continue;
            }
            let comparator = Comparator::parse(&std::mem::take(&mut pending))?;
            if let Some(group) = groups.last_mut() {
                group.push(comparator);
            }
        }
        if !pending.is_empty() {
            return Err(ParseRangeError::NoVersion(pending));
        }
        if groups.iter().any(Vec::is_empty) {
            return Err(ParseRangeError::EmptyGroup(text.to_owned()));
        }
        Ok(Range { groups })
    }

    /// Whether `version` is in the range.
    pub fn contains(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| group.iter().all(|comparator| comparator.holds(version)))
    }
}

impl Comparator {
    fn parse(part: &str) -> Result<Self, ParseRangeError> {
        let bad = |what, culprit: &str| ParseRangeError::Comparator {
            part: part.to_owned(),
            what,
            culprit: culprit.to_owned(),
        };
        let start = part.find(|c: char| c.is_ascii_digit());
        let Some((operator, version)) = start.and_then(|at| part.split_at_checked(at)) else {
            return Err(bad("comparator", part));
        };
        let operator = match operator {
            "" | "=" | "==" => Operator::Equal,
            "!" | "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            other => return Err(bad("comparator", other)),
        };
        if let Some(exact) = parse_strict(version) {
            return Ok(Self::exact(operator, exact));
        }
        let (low, high) = wildcard_bounds(version).ok_or_else(|| bad("version", version))?;
        Ok(match operator {
            Operator::Equal => Comparator::Within(low, high),
            Operator::NotEqual => Comparator::Outside(low, high),
            Operator::Less => Comparator::Less(low),
            Operator::LessOrEqual => Comparator::Less(high),
            Operator::Greater => Comparator::GreaterOrEqual(high),
            Operator::GreaterOrEqual => Comparator::GreaterOrEqual(low),
        })
    }

    fn exact(operator: Operator, version: Version) -> Self {
        match operator {
            Operator::Equal => Comparator::Equal(version),
            Operator::NotEqual => Comparator::NotEqual(version),
            Operator::Less => Comparator::Less(version),
            Operator::LessOrEqual => Comparator::LessOrEqual(version),
            Operator::Greater => Comparator::Greater(version),
            Operator::GreaterOrEqual => Comparator::GreaterOrEqual(version),
        }
    }

    fn holds(&self, version: &Version) -> bool {
        let to = |other| compare(version, other);
        match self {
            Comparator::Equal(v) => to(v).is_eq(),
            Comparator::NotEqual(v) => to(v).is_ne(),
            Comparator::Less(v) => to(v).is_lt(),
            Comparator::LessOrEqual(v) => to(v).is_le(),
            Comparator::Greater(v) => to(v).is_gt(),
            Comparator::GreaterOrEqual(v) => to(v).is_ge(),
            Comparator::Within(low, high) => to(low).is_ge() && to(high).is_lt(),
            Comparator::Outside(low, high) => to(low).is_lt() || to(high).is_ge(),
        }
    }
}

/// The half-open interval that `1.x`, `1.x.x` or `1.2.x` stands for.
fn wildcard_bounds(text: &str) -> Option<(Version, Version)> {
    let number = |part: &str| -> Option<u64> {
        let plain = part.bytes().all(|b| b.is_ascii_digit()) && (part.len() == 1 || !part.starts_with('0'));
        if plain { part.parse().ok() } else { None }
    };
    let mut parts = text.split('.');
    let major = number(parts.next()?)?;
    match (parts.next()?, parts.next(), parts.next()) {
        ("x", None | Some("x"), None) => Some((Version::new(major, 0, 0), Version::new(major.checked_add(1)?, 0, 0))),
        (minor, Some("x"), None) => {
            let minor = number(minor)?;
            Some((Version::new(major, minor, 0), Version::new(major, minor.checked_add(1)?, 0)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: [&str; 9] = ["0.0.0", "1.0.0", "1.2.0-a", "1.2.0", "1.2.3", "1.3.0-b", "1.3.0", "1.9.9", "2.0.0"];

    #[test]
    fn versions_are_strict() {
        for (text, good) in [
            ("1.2.3", true),
            ("1.2.3-rc.1+b.2", true),
            ("v1.2.3", false),
            ("1.2", false),
            ("01.2.3", false),
            ("1.2.3-", false),
            ("1.2.3 ", false),
            ("", false),
        ] {
            assert_eq!(parse_strict(text).is_some(), good, "{text}");
        }
        let order = |a, b| Some(compare(&parse_strict(a)?, &parse_strict(b)?));
        assert_eq!(order("1.10.0", "1.9.0"), Some(Ordering::Greater));
        assert_eq!(order("2.0.0", "2.0.0-rc1"), Some(Ordering::Greater));
        assert_eq!(order("1.0.0+a", "1.0.0+b"), Some(Ordering::Equal));
    }

    #[test]
    fn ranges_hold_what_upstream_holds() {
        for (range, members) in [
            ("1.2.3", "1.2.3"),
            ("==1.2.3", "1.2.3"),
            ("1.2.3+build", "1.2.3"),
            ("!=1.2.3", "0.0.0 1.0.0 1.2.0-a 1.2.0 1.3.0-b 1.3.0 1.9.9 2.0.0"),
            (">=1.4.x", "1.9.9 2.0.0"),
            (">1.2.x", "1.3.0 1.9.9 2.0.0"),
            (">=1.2.x", "1.2.0 1.2.3 1.3.0-b 1.3.0 1.9.9 2.0.0"),
            ("<1.2.x", "0.0.0 1.0.0 1.2.0-a"),
            ("<=1.2.x", "0.0.0 1.0.0 1.2.0-a 1.2.0 1.2.3 1.3.0-b"),
            ("=1.2.x", "1.2.0 1.2.3 1.3.0-b"),
            ("1.x", "1.0.0 1.2.0-a 1.2.0 1.2.3 1.3.0-b 1.3.0 1.9.9"),
            (">1.x", "2.0.0"),
            ("<=1.x", "0.0.0 1.0.0 1.2.0-a 1.2.0 1.2.3 1.3.0-b 1.3.0 1.9.9"),
            (">1.2.3 <2.0.0", "1.3.0-b 1.3.0 1.9.9"),
            (">  1.2.3   < 2.0.0", "1.3.0-b 1.3.0 1.9.9"),
            ("1.2.3 || 2.0.0", "1.2.3 2.0.0"),
            (">1.2.3 <1.9.9 || 1.0.0", "1.0.0 1.3.0-b 1.3.0"),
            (" 1.2.3 ", "1.2.3"),
            // Upstream these two hold nothing and only 1.0.0: defects no policy relies on.
            ("!1.2.x", "0.0.0 1.0.0 1.2.0-a 1.3.0 1.9.9 2.0.0"),
            ("1.x.x", "1.0.0 1.2.0-a 1.2.0 1.2.3 1.3.0-b 1.3.0 1.9.9"),
        ] {
            let parsed = Range::parse(range).unwrap();
            let held: Vec<&str> = VERSIONS.into_iter().filter(|v| parsed.contains(&parse_strict(v).unwrap())).collect();
            assert_eq!(held.join(" "), members, "{range}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (text, message) in [
            ("1.2", "Could not parse Range \"1.2\": Could not parse version \"1.2\" in \"1.2\""),
            ("^1.0.0", "Could not parse Range \"^1.0.0\": Could not parse comparator \"^\" in \"^1.0.0\""),
            ("~1.2.0", "Could not parse Range \"~1.2.0\": Could not parse comparator \"~\" in \"~1.2.0\""),
            ("=v1.2.3", "Could not parse Range \"=v1.2.3\": Could not parse comparator \"=v\" in \"=v1.2.3\""),
            (">=", "Could not get version from string: \">=\""),
        ] {
            assert_eq!(Range::parse(text).map_err(|e| e.to_string()), Err(message.to_owned()));
        }
        for text in [
            "",
            "1",
            "x",
            "1.2.X",
            "1.2.*",
            "1.x.3",
            "1.2.x.x",
            "=>1.2.3",
            "===1.2.3",
            "v1.2.3",
            ">1.0.0,<2.0.0",
            ">1.2.3<2.0.0",
            "1.2.3||2.0.0",
            "|| 1.2.3",
            "1.2.3 || || 2.0.0",
            "1.2.3 ||",
            "18446744073709551615.x",
        ] {
            assert!(Range::parse(text).is_err(), "{text}");
        }
    }
}
