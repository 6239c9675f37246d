//! The part of a filter that looks at who asks.

use ephor_expr::Str;
use ephor_expr::scalar::wildcard::Wildcard;

use super::UserInfo;
use crate::policy::{ResourceFilter, Subject};

/// `roles`, `clusterRoles` and `subjects` of a filter: each one given must hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UserFilter {
    roles: Vec<Str>,
    cluster_roles: Vec<Str>,
    subjects: Vec<SubjectPattern>,
}

#[derive(Debug, Clone, PartialEq)]
enum SubjectPattern {
    /// A user, or a service account by its full user name.
    User(Wildcard),
    Group(Wildcard),
    /// A subject kind that does not exist; no user is one.
    NoUser,
}

impl UserFilter {
    pub(super) fn compile(filter: &ResourceFilter) -> Self {
        Self {
            roles: filter.roles.clone().unwrap_or_default(),
            cluster_roles: filter.cluster_roles.clone().unwrap_or_default(),
            subjects: filter.subjects.iter().flatten().map(SubjectPattern::compile).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.cluster_roles.is_empty() && self.subjects.is_empty()
    }

    /// Whether `user` matches; no user counts as one with an empty name, without groups and roles.
    pub(super) fn matches(&self, user: Option<&UserInfo>) -> bool {
        let username = user.map_or("", |u| u.username.as_str());
        let groups = user.map_or(&[][..], |u| &u.groups);
        let meets = |wanted: &[Str], has: &[Str]| wanted.is_empty() || wanted.iter().any(|role| has.contains(role));
        meets(&self.roles, user.map_or(&[], |u| &u.roles))
            && meets(&self.cluster_roles, user.map_or(&[], |u| &u.cluster_roles))
            && (self.subjects.is_empty() || self.subjects.iter().any(|s| s.matches(username, groups)))
    }
}

impl SubjectPattern {
    fn compile(subject: &Subject) -> Self {
        match subject.kind.as_str() {
            "User" => Self::User(Wildcard::new(&subject.name)),
            "Group" => Self::Group(Wildcard::new(&subject.name)),
            "ServiceAccount" => {
                let namespace = subject.namespace.as_deref().unwrap_or_default();
                Self::User(Wildcard::new(&format!("system:serviceaccount:{namespace}:{}", subject.name)))
            }
            _ => Self::NoUser,
        }
    }

    fn matches(&self, username: &str, groups: &[Str]) -> bool {
        match self {
            Self::User(pattern) => pattern.matches(username),
            Self::Group(pattern) => groups.iter().any(|group| pattern.matches(group)),
            Self::NoUser => false,
        }
    }
}
