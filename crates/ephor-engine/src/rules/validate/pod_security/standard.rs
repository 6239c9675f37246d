//! Which standard is asked for: its level and version.

use ephor_expr::Str;

/// A level of the Pod Security Standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Forbids known ways out of the container.
    Baseline,
    /// Everything in baseline, and the current best practices of hardening.
    Restricted,
    /// Upstream: behaves as [`Level::Restricted`], against its name.
    Privileged,
}

/// A level that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown pod security level `{0}`; known levels: privileged, baseline, restricted")]
pub struct UnknownLevel(pub Str);

impl Level {
    /// Reads a level as policies write it.
    pub fn parse(level: &str) -> Result<Self, UnknownLevel> {
        match level {
            "privileged" => Ok(Level::Privileged),
            "baseline" => Ok(Level::Baseline),
            "restricted" => Ok(Level::Restricted),
            other => Err(UnknownLevel(other.into())),
        }
    }

    /// Whether checks that belong to `check` run at this level.
    pub(super) fn includes(self, check: Level) -> bool {
        self != Level::Baseline || check == Level::Baseline
    }
}

/// A version of the standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The `n` of `v1.n`; the largest number for the newest version.
    minor: u8,
}

/// A version that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown pod security version `{0}`; known versions: v1.19 to v1.32, latest")]
pub struct UnknownVersion(pub Str);

impl Version {
    /// The newest version.
    pub const LATEST: Version = Version { minor: u8::MAX };

    /// Reads a version as policies write it; missing or empty means the newest.
    pub fn parse(version: &str) -> Result<Self, UnknownVersion> {
        if matches!(version, "" | "latest") {
            return Ok(Self::LATEST);
        }
        // The schema lists the versions one by one, so that `v1.019` is none of them.
        (19..=32)
            .find(|minor| version.strip_prefix("v1.").is_some_and(|rest| rest == minor.to_string()))
            .map(|minor| Version { minor })
            .ok_or_else(|| UnknownVersion(version.into()))
    }

    /// Whether this is `v1.<minor>` or newer.
    pub(super) fn at_least(self, minor: u8) -> bool {
        self.minor >= minor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listed_versions_are_known() {
        for known in ["", "latest", "v1.19", "v1.32"] {
            assert!(Version::parse(known).is_ok(), "{known}");
        }
        for unknown in ["v1.18", "v1.33", "v1.019", "1.24", "v2.0", "newest", "v1.", "v1.256"] {
            assert!(Version::parse(unknown).is_err(), "{unknown}");
        }
        assert!(Version::parse("v1.25").unwrap().at_least(25));
        assert!(!Version::parse("v1.24").unwrap().at_least(25));
        assert!(Version::LATEST.at_least(32));
    }
}
