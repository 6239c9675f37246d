//! Which rules can be rewritten.

use std::fmt;

use crate::policy::{Match, MutateForEach, Policy, ResourceFilter, ResourceSelection, Rule};

/// Why no rules are made from a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ineligible {
    /// It does not match Pods.
    NotOnPods,
    /// It matches Pods and other kinds in one filter.
    MixedKinds,
    /// A filter selects by name, labels or annotations, which controllers need not share with their Pods.
    SelectsPods,
    /// It generates or verifies manifests.
    OtherType,
    /// It has a JSON patch, whose paths cannot be moved safely.
    JsonPatch,
    /// It patches existing targets, which have the shape their author wrote.
    Targets,
    /// It is already named like a generated rule.
    Named,
}

impl fmt::Display for Ineligible {
    /// The reason as the end of a sentence about the rule.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ineligible::NotOnPods => "it does not match Pods",
            Ineligible::MixedKinds => "it matches Pods and other kinds in one filter",
            Ineligible::SelectsPods => {
                "it selects by name, labels or annotations, which controllers need not share with their Pods"
            }
            Ineligible::OtherType => "it generates objects or verifies manifests",
            Ineligible::JsonPatch => "it has a JSON patch, whose paths cannot be moved",
            Ineligible::Targets => "it patches existing targets, which have the shape their author wrote",
            Ineligible::Named => "it is already named like a generated rule",
        })
    }
}

/// Whether rules can be made from `rule` of `policy`.
pub fn eligible(policy: &Policy, rule: &Rule) -> Result<(), Ineligible> {
    if rule.name.starts_with("autogen-") {
        return Err(Ineligible::Named);
    }
    let manifests = rule.validate.as_ref().is_some_and(|v| v.manifests.is_some());
    if rule.generate.is_some() || manifests {
        return Err(Ineligible::OtherType);
    }
    if let Some(mutate) = &rule.mutate {
        if mutate.targets.is_some() {
            return Err(Ineligible::Targets);
        }
        if mutate.patches_json6902.is_some() || mutate.foreach.as_deref().is_some_and(has_json_patch) {
            return Err(Ineligible::JsonPatch);
        }
    }
    let named_elsewhere = names_pods(policy);
    let on_pods = |r: &ResourceSelection| is_pod(r, named_elsewhere);
    if !filters(&rule.matches).any(on_pods) {
        return Err(Ineligible::NotOnPods);
    }
    let exclude = rule.exclude.as_ref().into_iter().flat_map(filters);
    for resources in filters(&rule.matches).chain(exclude) {
        let kinds = resources.kinds.as_deref().unwrap_or_default();
        if kinds.len() > 1 && on_pods(resources) {
            return Err(Ineligible::MixedKinds);
        }
        let named = resources.name.as_ref().is_some_and(|name| !name.is_empty());
        let listed = resources.names.as_ref().is_some_and(|names| !names.is_empty());
        if named || listed || resources.selector.is_some() || resources.annotations.is_some() {
            return Err(Ineligible::SelectsPods);
        }
    }
    let excluded = rule.exclude.as_ref().into_iter().flat_map(filters);
    let mut excluded = excluded.filter(|r| r.kinds.as_ref().is_some_and(|k| !k.is_empty())).peekable();
    if excluded.peek().is_some() && !excluded.any(on_pods) {
        return Err(Ineligible::NotOnPods);
    }
    Ok(())
}

/// Whether a rule matches Pods, as auto-gen sees it.
pub fn is_on_pods(policy: &Policy, rule: &Rule) -> bool {
    let named_elsewhere = names_pods(policy);
    filters(&rule.matches).any(|r| is_pod(r, named_elsewhere))
}

fn names_pods(policy: &Policy) -> bool {
    policy.spec.rules.iter().flat_map(|r| filters(&r.matches)).any(|r| names(r, "Pod"))
}

/// Whether a filter is about Pods: `Pod`, or `v1/Pod` and `*/Pod` where some rule says `Pod` (validate 4.1).
pub(super) fn is_pod(resources: &ResourceSelection, named_elsewhere: bool) -> bool {
    names(resources, "Pod") || (named_elsewhere && (names(resources, "v1/Pod") || names(resources, "*/Pod")))
}

fn names(resources: &ResourceSelection, kind: &str) -> bool {
    resources.kinds.iter().flatten().any(|k| k == kind)
}

fn filters(block: &Match) -> impl Iterator<Item = &ResourceSelection> {
    let listed = block.any.iter().chain(&block.all).flatten();
    listed.filter_map(|f: &ResourceFilter| f.resources.as_ref()).chain(&block.resources)
}

fn has_json_patch(loops: &[MutateForEach]) -> bool {
    loops.iter().any(|l| l.patches_json6902.is_some() || l.foreach.as_deref().is_some_and(has_json_patch))
}
