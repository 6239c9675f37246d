//! Kind selectors as rules of a webhook: groups, versions and resources by their URL names.

use std::collections::BTreeSet;

use ephor_cluster::Discovery;
use ephor_engine::compile::Requested;
use ephor_engine::matching::{Gvk, KindSelector};
use ephor_expr::Str;

/// Where objects live that a rule of a webhook is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// Anywhere.
    Any,
    /// In namespaces.
    Namespaced,
    /// Outside of namespaces.
    Cluster,
}

impl Scope {
    /// The word on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scope::Any => "*",
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
        }
    }
}

/// One resource that a webhook is called for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) group: Str,
    pub(crate) version: Str,
    pub(crate) scope: Scope,
    /// With its subresource: `pods`, `pods/exec`, `*/scale`.
    pub(crate) resource: Str,
}

/// The resources that a selector selects. None for a kind or a subresource that is not served: no such object can be
/// created, and names that a tenant makes up would fill the configuration that all policies share.
///
/// `within` is the scope of the policy: a namespaced one sees nothing outside of namespaces.
pub(crate) fn targets(selector: &str, within: Scope, discovery: &Discovery) -> Vec<Target> {
    let selector = KindSelector::parse(selector);
    let wide = |part: &ephor_expr::scalar::wildcard::Wildcard| part.is_exact() || part.as_str() == "*";
    if selector.kind.as_str() == "*" && wide(&selector.group) && wide(&selector.version) {
        return of_any_kind(&selector, within, discovery);
    }
    let mut found = Vec::new();
    let all: Box<dyn Iterator<Item = _>> = match selector.exact_kind() {
        Some(kind) => Box::new(discovery.with_kind(kind)),
        None => Box::new(discovery.iter()),
    };
    for resource in all {
        let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
        if !selector.matches_kind(&gvk) || (within == Scope::Namespaced && !resource.namespaced) {
            continue;
        }
        let scope = if resource.namespaced { Scope::Namespaced } else { Scope::Any };
        let mut add = |name: Str| {
            found.push(Target { group: gvk.group.clone(), version: gvk.version.clone(), scope, resource: name });
        };
        let below = |name: &str| [resource.plural.as_str(), "/", name].into_iter().collect::<Str>();
        if selector.subresource.matches("") {
            add(resource.plural.clone());
            // A policy for Pods also sees ephemeral containers that are added to running Pods.
            if resource.plural == "pods" && resource.group.is_empty() {
                add(below("ephemeralcontainers"));
            }
        }
        match selector.subresource.as_str() {
            "" => {}
            _ => {
                for subresource in resource.subresources.iter() {
                    if selector.subresource.matches(&subresource.name) {
                        add(below(&subresource.name));
                    }
                }
            }
        }
    }
    found
}

/// The resources that a policy names, as far as they are served. What it leaves open with `*` stays open.
pub(crate) fn resources(requested: &Requested, within: Scope, discovery: &Discovery) -> Vec<Target> {
    let Requested::Resources { groups, versions, resources, namespaced } = requested else { return Vec::new() };
    let scope = match (within, namespaced) {
        (Scope::Any, Some(true)) => Scope::Namespaced,
        (Scope::Any, Some(false)) => Scope::Cluster,
        _ => within,
    };
    let fits = |named: &str, text: &str| named == "*" || named == text;
    // Wide where it may be: then what a policy names need not be told apart.
    let part = |named: &[Str], text: &Str| {
        let any = named.iter().any(|named| named == "*");
        if any { Some(Str::new_static("*")) } else { named.iter().any(|named| named == text).then(|| text.clone()) }
    };
    let mut found = BTreeSet::new();
    for served in discovery.iter().filter(|served| within != Scope::Namespaced || served.namespaced) {
        let (Some(group), Some(version)) = (part(groups, &served.group), part(versions, &served.version)) else {
            continue;
        };
        for named in resources {
            let (resource, below) = named.split_once('/').unwrap_or((named, ""));
            let known = |below| served.subresources.iter().any(|subresource| fits(below, &subresource.name));
            if fits(resource, &served.plural) && (below.is_empty() || below == "*" || known(below)) {
                let (group, version) = (group.clone(), version.clone());
                found.insert(Target { group, version, scope, resource: named.clone() });
            }
        }
    }
    found.into_iter().collect()
}

/// A selector of any kind is registered as it is, if something that it selects is served.
fn of_any_kind(selector: &KindSelector, within: Scope, discovery: &Discovery) -> Vec<Target> {
    let is_served = discovery.iter().any(|resource| {
        let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
        let below = || resource.subresources.iter().any(|subresource| selector.subresource.matches(&subresource.name));
        selector.matches_kind(&gvk) && (selector.subresource.matches("") || below())
    });
    if !is_served {
        return Vec::new();
    }
    let target = |resource: &str| Target {
        group: Str::new(selector.group.as_str()),
        version: Str::new(selector.version.as_str()),
        scope: within,
        resource: Str::new(resource),
    };
    match selector.subresource.as_str() {
        "" => {
            let pods = matches!(selector.group.as_str(), "" | "*");
            let containers = pods.then(|| target("pods/ephemeralcontainers"));
            [target("*")].into_iter().chain(containers).collect()
        }
        "*" => vec![target("*/*")],
        name if selector.subresource.is_exact() => vec![target(&format!("*/{name}"))],
        // A webhook cannot name a part of the subresources of all kinds.
        _ => vec![target("*/*")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_tenant_makes_up_are_not_registered() {
        let discovery = Discovery::kubernetes();
        let resources = |selector: &str| -> Vec<String> {
            let found = targets(selector, Scope::Namespaced, &discovery);
            found.iter().map(|target| target.resource.to_string()).collect()
        };
        assert_eq!(resources("Pod/exec"), ["pods/exec"]);
        assert_eq!(resources("*/scale"), ["*/scale"]);
        assert_eq!(resources("apps/v1/*"), ["*"]);
        let long = format!("ConfigMap/{}", "x".repeat(300));
        for selector in [
            "ConfigMap/made-up",
            "ConfigMap/a/b",
            "ConfigMap/a b",
            &long,
            "*/made-up",
            "made.up/v1/*",
            "apps/v9/*",
            "MadeUp",
        ] {
            assert!(resources(selector).is_empty(), "{selector}");
        }
    }
}
