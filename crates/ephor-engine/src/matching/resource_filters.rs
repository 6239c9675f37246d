//! `resourceFilters` of Kyverno's `ConfigMap`: objects that no policy sees.

use ephor_expr::Str;
use ephor_expr::scalar::wildcard::Wildcard;

use super::{Gvk, KindSelector};

/// Installation-wide filters, written `[kind,namespace,name][kind,namespace,name]…`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceFilters(Vec<Entry>);

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    kind: KindSelector,
    namespace: Wildcard,
    name: Wildcard,
}

/// Which objects of a kind are hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HiddenOfKind {
    /// Whether all are.
    pub all: bool,
    /// Namespaces in which all are.
    pub namespaces: Vec<Str>,
    /// Whether some are by their name, or by a wildcard in their namespace.
    pub partly: bool,
}

/// Text that is not a list of resource filters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceFilterError {
    /// Something other than space and commas stands outside brackets.
    #[error("`{0}` stands outside of a `[kind,namespace,name]` filter")]
    Stray(String),
    /// A bracket is not closed.
    #[error("filter `[{0}` is not closed")]
    Unclosed(String),
    /// A filter has more than three parts.
    #[error("filter `[{0}]` has more parts than kind, namespace and name")]
    TooManyParts(String),
}

impl ResourceFilters {
    /// Reads a list of filters. Kinds are written as in policies, all parts may have wildcards, and a missing part is
    /// empty: it fits only an empty namespace or name.
    pub fn parse(text: &str) -> Result<Self, ResourceFilterError> {
        let mut entries = Vec::new();
        let between = |c: char| c.is_whitespace() || c == ',';
        let mut rest = text.trim_matches(between);
        while !rest.is_empty() {
            let Some(inner) = rest.strip_prefix('[') else {
                let stray = rest.split('[').next().unwrap_or(rest).trim();
                return Err(ResourceFilterError::Stray(stray.to_owned()));
            };
            let Some((filter, after)) = inner.split_once(']').filter(|(filter, _)| !filter.contains('[')) else {
                let open = inner.split(['[', ']']).next().unwrap_or(inner);
                return Err(ResourceFilterError::Unclosed(open.to_owned()));
            };
            let mut parts = filter.split(',').map(str::trim);
            let mut part = || parts.next().unwrap_or_default();
            entries.push(Entry {
                kind: KindSelector::parse(part()),
                namespace: Wildcard::new(part()),
                name: Wildcard::new(part()),
            });
            if parts.next().is_some() {
                return Err(ResourceFilterError::TooManyParts(filter.to_owned()));
            }
            rest = after.trim_start_matches(between);
        }
        Ok(Self(entries))
    }

    /// How the filters hide objects of a kind.
    pub fn of_kind(&self, gvk: &Gvk, subresource: &str) -> HiddenOfKind {
        let mut hidden = HiddenOfKind::default();
        for entry in self.0.iter().filter(|entry| entry.kind.matches(gvk, subresource)) {
            match (entry.namespace.as_str(), entry.name.as_str()) {
                ("*", "*") => hidden.all = true,
                (namespace, "*") if entry.namespace.is_exact() => hidden.namespaces.push(namespace.into()),
                _ => hidden.partly = true,
            }
        }
        hidden
    }

    /// Whether an object is hidden from all policies. A Namespace is also hidden by the namespace part of a filter
    /// for its kind, so that `[*/*,kube-system,*]` hides the namespace with its content.
    pub fn drops(&self, gvk: &Gvk, subresource: &str, namespace: &str, name: &str) -> bool {
        self.0.iter().any(|entry| {
            entry.kind.matches(gvk, subresource)
                && (entry.namespace.matches(namespace) && entry.name.matches(name)
                    || gvk.is_namespace() && entry.namespace.matches(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_in_a_filter_are_dropped() {
        let filters = ResourceFilters::parse("[Event,*,*] [*/*,kube-*,*],\n[Node][Pod/*, a , p-?][Secret,b]").unwrap();
        for (kind, subresource, namespace, name, dropped) in [
            ("Event", "", "x", "e", true),
            ("Event", "status", "x", "e", false),
            ("Pod", "exec", "kube-system", "p", true),
            ("Pod", "exec", "a", "p-1", true),
            ("Pod", "", "a", "p-10", false),
            ("Namespace", "", "", "kube-system", true),
            ("Namespace", "", "", "a", false),
            ("Node", "", "", "", true),
            ("Node", "", "", "n1", false),
            ("Secret", "", "b", "s", false),
        ] {
            let got = filters.drops(&Gvk::new("v1", kind), subresource, namespace, name);
            assert_eq!(got, dropped, "{kind}/{subresource} {namespace}/{name}");
        }
    }

    #[test]
    fn a_filter_of_another_kind_does_not_drop_its_namespace() {
        let filters = ResourceFilters::parse("[Pod,prod,*][Namespace,stage,]").unwrap();
        assert!(!filters.drops(&Gvk::new("v1", "Namespace"), "", "", "prod"));
        assert!(filters.drops(&Gvk::new("v1", "Namespace"), "", "", "stage"));
    }

    #[test]
    fn text_that_is_no_filter_list_is_refused() {
        for (text, error) in [
            ("Pod,*,*", "`Pod,*,*` stands outside of a `[kind,namespace,name]` filter"),
            ("[A,*,*] and [B,*,*]", "`and` stands outside of a `[kind,namespace,name]` filter"),
            ("[A,*,*", "filter `[A,*,*` is not closed"),
            ("[A,*[B,*,*]", "filter `[A,*` is not closed"),
            ("[A,b,c,d]", "filter `[A,b,c,d]` has more parts than kind, namespace and name"),
        ] {
            assert_eq!(ResourceFilters::parse(text).unwrap_err().to_string(), error, "{text}");
        }
        assert_eq!(ResourceFilters::parse(" \n"), Ok(ResourceFilters::default()));
    }
}
