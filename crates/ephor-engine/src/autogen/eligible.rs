//! Which rules can be rewritten.

use std::{fmt, iter};

use ephor_expr::Str;

use super::controllers::is_standard;
use crate::matching::{Gvk, KindSelector};
use crate::policy::{Match, MutateForEach, Policy, ResourceFilter, ResourceSelection, Rule};

/// Why no rules are made from a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ineligible {
    /// It does not match Pods.
    NotOnPods,
    /// It matches Pods by `v1/Pod` or `*/Pod`, and no rule of the policy names `Pod` or a controller kind.
    OnlyQualified,
    /// Its `exclude` names other kinds and no Pods.
    ExcludesOthers,
    /// It matches Pods and other kinds.
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
            Ineligible::OnlyQualified => {
                "it names Pods with their version, and no rule of the policy names just `Pod` or a controller kind"
            }
            Ineligible::ExcludesOthers => "its `exclude` names other kinds and no Pods",
            Ineligible::MixedKinds => "it matches other kinds beside Pods",
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

/// Decides for the rules of one policy.
#[derive(Debug, Clone, Copy)]
pub struct Eligibility {
    /// Whether a filter somewhere in the policy says `Pod` or the name of a controller kind.
    names_pods: bool,
}

impl Eligibility {
    /// For the rules of `policy`, which is looked through once.
    pub fn of(policy: &Policy) -> Self {
        let mut blocks = policy.spec.rules.iter().flat_map(|rule| iter::once(&rule.matches).chain(&rule.exclude));
        let names_pods =
            blocks.any(|block| filters(block).flat_map(kinds).any(|kind| kind == "Pod" || is_standard(kind)));
        Self { names_pods }
    }

    /// Whether a rule matches Pods, as auto-gen sees it.
    ///
    /// Upstream: somewhere in the policy a filter must say `Pod` or the name of a controller kind. With that, `v1/Pod`
    /// and `*/Pod` are as good as `Pod`; without it, a policy on `v1/Pod` is for Pods alone.
    pub fn is_on_pods(self, rule: &Rule) -> bool {
        self.names_pods && filters(&rule.matches).any(is_about_pods)
    }

    /// Whether rules can be made from `rule`.
    pub fn check(self, rule: &Rule) -> Result<(), Ineligible> {
        can_be_moved(rule)?;
        if !self.names_pods {
            return Err(Ineligible::OnlyQualified);
        }
        selects_all_pods(rule)
    }
}

/// Whether the rule is about Pods and of a type that can be rewritten.
fn can_be_moved(rule: &Rule) -> Result<(), Ineligible> {
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
    if !filters(&rule.matches).any(is_about_pods) {
        return Err(Ineligible::NotOnPods);
    }
    Ok(())
}

/// Whether the rule selects Pods by nothing that their controllers do not share.
fn selects_all_pods(rule: &Rule) -> Result<(), Ineligible> {
    if filters(&rule.matches).flat_map(kinds).any(|kind| !names_pods_or_subresources(kind)) {
        return Err(Ineligible::MixedKinds);
    }
    let exclude = || rule.exclude.as_ref().into_iter().flat_map(filters);
    for resources in filters(&rule.matches).chain(exclude()) {
        if kinds(resources).count() > 1 && is_about_pods(resources) {
            return Err(Ineligible::MixedKinds);
        }
        let named = resources.name.as_ref().is_some_and(|name| !name.is_empty());
        let listed = resources.names.as_ref().is_some_and(|names| !names.is_empty());
        if named || listed || resources.selector.is_some() || resources.annotations.is_some() {
            return Err(Ineligible::SelectsPods);
        }
    }
    let mut with_kinds = exclude().filter(|resources| kinds(resources).next().is_some()).peekable();
    if with_kinds.peek().is_some() && !with_kinds.any(is_about_pods) {
        return Err(Ineligible::ExcludesOthers);
    }
    Ok(())
}

fn is_about_pods(resources: &ResourceSelection) -> bool {
    kinds(resources).any(|kind| selects_pods(kind))
}

/// Whether a selector names Pods and nothing else: `Pod`, `v1/Pod`, `*/Pod`.
pub(super) fn selects_pods(kind: &str) -> bool {
    let pod = Gvk { version: Str::new_static("v1"), kind: Str::new_static("Pod"), ..Gvk::default() };
    let selector = KindSelector::parse(kind);
    selector.exact_kind() == Some("Pod") && selector.matches(&pod, "")
}

fn names_pods_or_subresources(kind: &Str) -> bool {
    KindSelector::parse(kind).exact_kind() == Some("Pod")
}

fn kinds(resources: &ResourceSelection) -> impl Iterator<Item = &Str> {
    resources.kinds.iter().flatten()
}

fn filters(block: &Match) -> impl Iterator<Item = &ResourceSelection> {
    let listed = block.any.iter().chain(&block.all).flatten();
    listed.filter_map(|f: &ResourceFilter| f.resources.as_ref()).chain(&block.resources)
}

fn has_json_patch(loops: &[MutateForEach]) -> bool {
    loops.iter().any(|l| l.patches_json6902.is_some() || l.foreach.as_deref().is_some_and(has_json_patch))
}
