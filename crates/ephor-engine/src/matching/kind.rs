//! Kinds of objects, and the selectors by which policies name them.

use ephor_expr::Str;
use ephor_expr::scalar::wildcard::Wildcard;

/// Group, version and kind of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Gvk {
    /// The API group; empty for the core group.
    pub group: Str,
    /// The version, such as `v1`.
    pub version: Str,
    /// The kind, such as `Pod`.
    pub kind: Str,
}

impl Gvk {
    /// The kind of an object with these `apiVersion` (`v1`, `apps/v1`) and `kind` fields.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// The kind of an object, by its `apiVersion` and `kind`; parts it lacks are empty.
    pub fn of_object(object: &ephor_expr::Value) -> Self {
        let text = |key| object.str_at(&[key]).unwrap_or_default();
        Self::new(text("apiVersion"), text("kind"))
    }

    /// Whether this is the core group's Namespace, to which several attributes of a filter apply differently.
    pub fn is_namespace(&self) -> bool {
        self.kind == "Namespace" && self.group.is_empty()
    }
}

/// A kind selector such as `Pod`, `apps/v1/Deploy*` or `Pod/exec`: one wildcard pattern for each part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindSelector {
    /// Pattern of the group.
    pub group: Wildcard,
    /// Pattern of the version.
    pub version: Wildcard,
    /// Pattern of the kind.
    pub kind: Wildcard,
    /// Pattern of the subresource; a request for the object itself has the empty one.
    pub subresource: Wildcard,
}

impl KindSelector {
    /// Reads a selector. Every text is one; one with more than four parts never matches.
    ///
    /// Parts are split at `/`, the last also at `.`. Which part is which depends on how many there are and on whether
    /// the first looks like a version: `v1/Pod` is version and kind, `Pod/exec` kind and subresource, and `*/scale`
    /// (lower case) that subresource of any kind.
    pub fn parse(text: &str) -> Self {
        let mut parts: Vec<&str> = text.split('/').collect();
        if let Some(last) = parts.pop() {
            parts.extend(last.split('.'));
        }
        let [group, version, kind, subresource] = match *parts.as_slice() {
            [kind] => ["*", "*", kind, ""],
            ["*", "*"] => ["*", "*", "*", "*"],
            ["*", subresource] if subresource.to_lowercase() == subresource => ["*", "*", "*", subresource],
            [version, kind] if is_version(version) => ["*", version, kind, ""],
            [kind, subresource] => ["*", "*", kind, subresource],
            [version, kind, subresource] if is_version(version) => ["*", version, kind, subresource],
            [group, version, kind] => [group, version, kind, ""],
            [group, version, kind, subresource] => [group, version, kind, subresource],
            // The empty pattern fits only the empty kind, which no object has.
            _ => ["", "", "", ""],
        };
        Self {
            group: Wildcard::new(group),
            version: Wildcard::new(version),
            kind: Wildcard::new(kind),
            subresource: Wildcard::new(subresource),
        }
    }

    /// Selects one kind in one version.
    pub fn exactly(gvk: &Gvk) -> Self {
        Self {
            group: Wildcard::new(&gvk.group),
            version: Wildcard::new(&gvk.version),
            kind: Wildcard::new(&gvk.kind),
            subresource: Wildcard::new(""),
        }
    }

    /// Whether a request for `subresource` (empty: the object itself) of a `gvk` is selected.
    pub fn matches(&self, gvk: &Gvk, subresource: &str) -> bool {
        self.matches_kind(gvk) && self.subresource.matches(subresource)
    }

    /// Whether the kind is selected, whatever the subresource.
    pub fn matches_kind(&self, gvk: &Gvk) -> bool {
        self.kind.matches(&gvk.kind) && self.version.matches(&gvk.version) && self.group.matches(&gvk.group)
    }

    /// The only kind that can match, if the kind part has no wildcard.
    pub fn exact_kind(&self) -> Option<&str> {
        self.kind.is_exact().then(|| self.kind.as_str())
    }
}

/// Whether `part` is `*`, `v1`, `v2beta1` and the like.
fn is_version(part: &str) -> bool {
    let Some(digits) = part.strip_prefix('v') else { return part == "*" };
    let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (major, minor) = digits.split_once("alpha").or_else(|| digits.split_once("beta")).unwrap_or((digits, "1"));
    number(major) && number(minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_from_kinds() {
        for version in ["*", "v1", "v10", "v1alpha1", "v2beta12"] {
            assert!(is_version(version), "{version}");
        }
        for other in ["", "v", "v*", "v1?", "1", "V1", "valpha1", "v1alpha", "v1gamma1", "v1alpha1beta1", "apps"] {
            assert!(!is_version(other), "{other}");
        }
    }

    #[test]
    fn an_exact_kind_is_known_to_the_index() {
        assert_eq!(KindSelector::parse("apps/*/Deployment/*").exact_kind(), Some("Deployment"));
        assert_eq!(KindSelector::parse("Deploy*").exact_kind(), None);
        assert_eq!(KindSelector::parse("*/scale").exact_kind(), None);
    }

    #[test]
    fn api_versions_split_into_group_and_version() {
        let gvk = Gvk::new("apps/v1", "Deployment");
        assert_eq!((gvk.group.as_str(), gvk.version.as_str()), ("apps", "v1"));
        let gvk = Gvk::new("v1", "Pod");
        assert_eq!((gvk.group.as_str(), gvk.version.as_str()), ("", "v1"));
    }
}
