//! Fields that change through a subresource, which a rule sees only if it says so.

use ephor_expr::Value;
use ephor_expr::value::Path;

use crate::diagnostic::Diagnostic;
use crate::matching::KindSelector;
use crate::policy::{Match, ResourceSelection, Rule};
use crate::rules::anchor::strip_anchor;

/// Kinds that are scaled through `scale`.
const SCALED: [&str; 4] = ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"];

/// Warns of patterns over `spec.replicas` or `status` whose rule does not match `scale` or `status`.
pub(super) fn check(rule: &Rule, path: &Path, found: &mut Vec<Diagnostic>) {
    let Some(validate) = &rule.validate else { return };
    let kinds: Vec<KindSelector> = selections(&rule.matches).flat_map(kinds).collect();
    let matches = |subresource: &str| kinds.iter().any(|kind| kind.subresource.matches(subresource));
    let scaled = kinds.iter().any(|kind| kind.exact_kind().is_some_and(|kind| SCALED.contains(&kind)));
    for pattern in validate.pattern.iter().chain(validate.any_pattern.iter().flatten()) {
        let reads = |keys: &[&str]| keys.iter().try_fold(pattern, |value, key| member(value, key)).is_some();
        for (reads, subresource, what) in [
            (scaled && reads(&["spec", "replicas"]), "scale", "`replicas` also changes"),
            (reads(&["status"]), "status", "`status` changes"),
        ] {
            if reads && !matches(subresource) {
                let message = format!("{what} through the subresource `{subresource}`, which the rule does not match");
                let finding = Diagnostic::warning("unmatched-subresource", path.key("match"), message);
                found.push(finding.with_help(format!("add a kind such as `Deployment/{subresource}`")));
                return;
            }
        }
    }
}

fn selections(block: &Match) -> impl Iterator<Item = &ResourceSelection> {
    let listed = block.any.iter().chain(&block.all).flatten();
    listed.filter_map(|filter| filter.resources.as_ref()).chain(&block.resources)
}

fn kinds(resources: &ResourceSelection) -> impl Iterator<Item = KindSelector> {
    resources.kinds.iter().flatten().map(|kind| KindSelector::parse(kind))
}

fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.as_object()?.iter().find(|(key, _)| strip_anchor(key) == name).map(|(_, member)| member)
}
