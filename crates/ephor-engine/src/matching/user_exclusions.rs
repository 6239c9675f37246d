//! `excludeGroups` and its kin of Kyverno's `ConfigMap`: users whose requests no policy sees.

use ephor_expr::Str;
use ephor_expr::scalar::wildcard::Wildcard;

use super::UserInfo;

/// A comma list of wildcard patterns; `!x` keeps what it fits in sight.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExclusionList {
    excluded: Vec<Wildcard>,
    included: Vec<Wildcard>,
}

impl ExclusionList {
    /// The patterns of those that are excluded.
    pub fn excluded(&self) -> &[Wildcard] {
        &self.excluded
    }

    /// The patterns of those that are included nevertheless.
    pub fn included(&self) -> &[Wildcard] {
        &self.included
    }

    /// Reads a list such as `system:nodes, dev-*, !dev-lead`; empty entries do not count.
    pub fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for entry in text.split(',').map(str::trim) {
            let (patterns, pattern) = match entry.strip_prefix('!') {
                Some(rest) => (&mut list.included, rest.trim_start()),
                None => (&mut list.excluded, entry),
            };
            if !pattern.is_empty() {
                patterns.push(Wildcard::new(pattern));
            }
        }
        list
    }
}

/// The four lists together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserExclusions {
    /// `excludeGroups`; the chart's default is `system:nodes`.
    pub groups: ExclusionList,
    /// `excludeUsernames`.
    pub usernames: ExclusionList,
    /// `excludeRoles`, against `namespace:name`.
    pub roles: ExclusionList,
    /// `excludeClusterRoles`.
    pub cluster_roles: ExclusionList,
}

impl UserExclusions {
    /// Whether requests of `user` are hidden from all policies. An inclusion in any list beats every exclusion.
    pub fn excludes(&self, user: &UserInfo) -> bool {
        let fits_any = |pick: fn(&ExclusionList) -> &[Wildcard]| {
            let fits = |list, names: &[Str]| pick(list).iter().any(|pattern| names.iter().any(|n| pattern.matches(n)));
            fits(&self.groups, &user.groups)
                || fits(&self.usernames, std::slice::from_ref(&user.username))
                || fits(&self.roles, &user.roles)
                || fits(&self.cluster_roles, &user.cluster_roles)
        };
        fits_any(|list| &list.excluded) && !fits_any(|list| &list.included)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inclusion_beats_every_exclusion() {
        let exclusions = UserExclusions {
            groups: ExclusionList::parse(" system:nodes , dev-*,, ! dev-lead,!"),
            usernames: ExclusionList::parse("bot-?,!alice"),
            roles: ExclusionList::parse("ns1:*"),
            cluster_roles: ExclusionList::parse("cluster-admin"),
        };
        let user = |name: &str, groups: &[&str], roles: &[&str], cluster_roles: &[&str]| {
            let list = |names: &[&str]| names.iter().map(Str::new).collect();
            UserInfo {
                username: name.into(),
                groups: list(groups),
                roles: list(roles),
                cluster_roles: list(cluster_roles),
                ..UserInfo::default()
            }
        };
        for (user, excluded) in [
            (user("n", &["x", "system:nodes"], &[], &[]), true),
            (user("n", &["x"], &[], &[]), false),
            (user("n", &["dev-a", "dev-lead"], &[], &[]), false),
            (user("alice", &["dev-a"], &[], &["cluster-admin"]), false),
            (user("bot-1", &[], &[], &[]), true),
            (user("bot-12", &[], &[], &[]), false),
            (user("n", &[], &["ns1:r"], &[]), true),
            (user("n", &[], &["ns2:r"], &["cluster-admin"]), true),
            (user("", &[], &[], &[]), false),
        ] {
            assert_eq!(exclusions.excludes(&user), excluded, "{user:?}");
        }
    }
}
