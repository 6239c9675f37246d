//! Versions of API groups, and of Kubernetes.

use std::cmp::Ordering;

/// The release of Kubernetes whose kinds are built in and which `/version` names.
pub const KUBERNETES_VERSION: &str = "v1.34.0";

/// A sort key that puts the version which Kubernetes prefers last: stable over beta over alpha, then the higher
/// number; what does not look like a version comes before all that do, in reverse alphabetical order.
pub fn priority(version: &str) -> impl Ord + use<'_> {
    match parse(version) {
        Some(parsed) => (Some(parsed), Backwards("")),
        None => (None, Backwards(version)),
    }
}

#[derive(PartialEq, Eq)]
struct Backwards<'v>(&'v str);

impl Ord for Backwards<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(self.0)
    }
}

impl PartialOrd for Backwards<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Stability (2 stable, 1 beta, 0 alpha), major number, number within the stability.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let major = major.parse().ok()?;
    let (stability, minor) = match rest {
        "" => return Some((2, major, 0)),
        _ => rest.strip_prefix("beta").map(|n| (1, n)).or_else(|| rest.strip_prefix("alpha").map(|n| (0, n)))?,
    };
    Some((stability, major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_win_over_beta_over_alpha_over_others() {
        let mut versions = [
            "foo10",
            "v1alpha1",
            "v11beta2",
            "v10",
            "v1",
            "v3beta1",
            "v10beta3",
            "v2",
            "foo1",
            "v11alpha2",
            "v12alpha1",
        ];
        versions.sort_by(|a, b| priority(b).cmp(&priority(a)));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v10beta3",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "v1alpha1",
                "foo1",
                "foo10"
            ]
        );
    }
}
