//! `match` and `exclude` blocks.

use ephor_expr::Str;
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::value::Path;

use super::kinds::{self, Place};
use crate::diagnostic::{Diagnostic, Severity};
use crate::matching::KindSelector;
use crate::policy::{
    LabelSelector, Match, Policy, PolicyKind, ResourceFilter, ResourceSelection, Rule, Subject, Validate,
};
use crate::scope::variables;

/// Checks both blocks of a rule.
pub(super) fn check(policy: &Policy, rule: &Rule, path: &Path, found: &mut Vec<Diagnostic>) {
    let at = path.key("match");
    block(&rule.matches, &at, found);
    let mut filters = 0;
    each_filter(&rule.matches, &at, |filter, path| {
        filters += 1;
        check_filter(filter, &path, found);
        match_filter(policy, rule, filter, &path, found);
    });
    if filters == 0 {
        found.push(Diagnostic::error(
            "empty-match",
            at.clone(),
            "`match` selects nothing: it needs a filter with kinds",
        ));
    }
    if let Some(exclude) = &rule.exclude {
        let at = path.key("exclude");
        block(exclude, &at, found);
        each_filter(exclude, &at, |filter, path| {
            check_filter(filter, &path, found);
            namespaced(policy, filter, &path, found);
            user_in_background(policy, filter, &path, found);
        });
        if cancels(&rule.matches, exclude) {
            found.push(Diagnostic::error("empty-match", at, "Rule is matching an empty set: `exclude` takes all away"));
        }
    }
}

fn each_filter(block: &Match, path: &Path, mut visit: impl FnMut(&ResourceFilter, Path)) {
    for (key, list) in [("any", &block.any), ("all", &block.all)] {
        for (i, filter) in list.iter().flatten().enumerate() {
            visit(filter, path.key(key).index(i));
        }
    }
    if let Some(direct) = direct(block) {
        visit(&direct, path.clone());
    }
}

fn direct(block: &Match) -> Option<ResourceFilter> {
    let filter = ResourceFilter {
        resources: block.resources.clone().filter(|r| *r != ResourceSelection::default()),
        roles: block.roles.clone(),
        cluster_roles: block.cluster_roles.clone(),
        subjects: block.subjects.clone(),
    };
    (filter != ResourceFilter::default()).then_some(filter)
}

fn block(block: &Match, path: &Path, found: &mut Vec<Diagnostic>) {
    let any = block.any.as_ref().is_some_and(|list| !list.is_empty());
    let all = block.all.as_ref().is_some_and(|list| !list.is_empty());
    if any && all {
        found.push(Diagnostic::error("any-and-all", path.clone(), "`any` and `all` cannot stand together"));
    }
    if (any || all) && direct(block).is_some() {
        let message = "filters beside `any` or `all` are not allowed: move them into the list";
        found.push(Diagnostic::error("mixed-filters", path.clone(), message));
    }
}

fn check_filter(filter: &ResourceFilter, path: &Path, found: &mut Vec<Diagnostic>) {
    if *filter == ResourceFilter::default() {
        found.push(Diagnostic::error("empty-filter", path.clone(), "a filter needs at least one attribute"));
    }
    if let Some(resources) = &filter.resources {
        let at = path.key("resources");
        let name = resources.name.as_ref().is_some_and(|n| !n.is_empty());
        let names = resources.names.as_ref().is_some_and(|n| !n.is_empty());
        if name && !names {
            let finding = Diagnostic::warning("deprecated-field", at.key("name"), "`name` is deprecated").at_key();
            found.push(finding.with_help("use `names`"));
        }
        if name && names {
            found.push(
                Diagnostic::error("name-and-names", at.key("name"), "both `name` and `names` are given").at_key(),
            );
        }
        for (key, selector) in [("selector", &resources.selector), ("namespaceSelector", &resources.namespace_selector)]
        {
            if selector.as_ref().is_some_and(is_empty) {
                found.push(Diagnostic::error("empty-selector", at.key(key), "the selector has no requirement"));
            }
        }
        no_variables(resources, &at, found);
    }
    for (i, role) in filter.roles.iter().flatten().enumerate() {
        if role.split(':').count() != 2 {
            let message = format!("role `{role}` is not of the form `namespace:name`");
            found.push(Diagnostic::error("role-name", path.key("roles").index(i), message));
        }
    }
    for (i, subject) in filter.subjects.iter().flatten().enumerate() {
        check_subject(subject, &path.key("subjects").index(i), found);
    }
}

fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(std::collections::BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

fn check_subject(subject: &Subject, path: &Path, found: &mut Vec<Diagnostic>) {
    const KINDS: [&str; 3] = ["User", "Group", "ServiceAccount"];
    if !KINDS.contains(&subject.kind.as_str()) {
        let message = format!("subject kind `{}` is not `User`, `Group` or `ServiceAccount`", subject.kind);
        let mut finding = Diagnostic::error("subject-kind", path.key("kind"), message);
        finding.help = nearest(&subject.kind, KINDS).map(|near| format!("did you mean `{near}`?"));
        found.push(finding);
    }
    if subject.name.is_empty() {
        found.push(Diagnostic::error("subject-name", path.clone(), "a subject needs a name"));
    }
    if subject.kind == "ServiceAccount" && subject.namespace.as_ref().is_none_or(smol_str::SmolStr::is_empty) {
        found.push(Diagnostic::error("subject-namespace", path.clone(), "a ServiceAccount subject needs a namespace"));
    }
}

fn no_variables(resources: &ResourceSelection, path: &Path, found: &mut Vec<Diagnostic>) {
    let mut look = |text: &Str, path: Path| {
        if !variables(text).is_empty() {
            let message = "variables cannot be used in `match` and `exclude`";
            found.push(Diagnostic::error("variable-in-match", path, message));
        }
    };
    let lists = [("kinds", &resources.kinds), ("names", &resources.names), ("namespaces", &resources.namespaces)];
    for (key, list) in lists {
        for (i, text) in list.iter().flatten().enumerate() {
            look(text, path.key(key).index(i));
        }
    }
    if let Some(name) = &resources.name {
        look(name, path.key("name"));
    }
    let labels = |selector: &Option<LabelSelector>| selector.as_ref().and_then(|s| s.match_labels.clone());
    let maps = [
        ("annotations", resources.annotations.clone()),
        ("selector", labels(&resources.selector)),
        ("namespaceSelector", labels(&resources.namespace_selector)),
    ];
    for (key, map) in maps {
        for (name, text) in map.iter().flatten() {
            look(name, path.key(key));
            look(text, path.key(key));
        }
    }
}

/// What only `match` filters must satisfy.
fn match_filter(policy: &Policy, rule: &Rule, filter: &ResourceFilter, path: &Path, found: &mut Vec<Diagnostic>) {
    let resources = filter.resources.as_ref();
    let kinds = resources.and_then(|r| r.kinds.as_deref()).unwrap_or_default();
    let at = path.keys(&["resources", "kinds"]);
    if kinds.is_empty() {
        let message = "at least one element must be specified in a kind block, the kind attribute is mandatory when \
                       working with the resources element";
        found.push(Diagnostic::error("no-kinds", path.clone(), message));
    }
    let background = policy.spec.background.unwrap_or(true);
    for (i, kind) in kinds.iter().enumerate() {
        let selector = KindSelector::parse(kind);
        let subresource = !selector.subresource.as_str().is_empty();
        if subresource && background && rule.validate.is_some() {
            let message = format!("background scan enabled with subresource `{kind}`");
            let mut finding = Diagnostic::error("background-subresource", at.index(i), message);
            if !kinds::is_native_group(selector.group.as_str()) {
                // Whether a custom kind has that subresource is for a cluster to tell.
                finding.severity = Severity::Warning;
            }
            found.push(finding.with_help("set `spec.background: false`"));
        }
        if !subresource
            && kinds::is_native_group(selector.group.as_str())
            && kinds::is_of_subresource(kind_name(&selector))
        {
            let message = format!("no object has the kind `{kind}`, it is one of subresources");
            let finding = Diagnostic::error("subresource-kind", at.index(i), message);
            found.push(finding.with_help("name the subresource, such as `Deployment/scale`"));
        }
        let place = kinds::place(&format!("{}/v1", selector.group.as_str()), kind_name(&selector));
        if policy.kind == PolicyKind::Policy && place == Some(Place::Cluster) {
            let message = format!("a Policy cannot match the cluster-scoped kind `{kind}`");
            found.push(Diagnostic::error("cluster-kind", at.index(i), message));
        }
    }
    if kinds.iter().any(|k| k == "*") {
        any_kind(policy, rule, kinds.len(), &at, found);
    }
    namespaced(policy, filter, path, found);
    user_in_background(policy, filter, path, found);
}

/// The kind that a selector names without wildcards.
fn kind_name(selector: &KindSelector) -> &str {
    selector.exact_kind().unwrap_or_default()
}

/// The kind `*` is for rules about metadata, outside background scans.
fn any_kind(policy: &Policy, rule: &Rule, kinds: usize, path: &Path, found: &mut Vec<Diagnostic>) {
    let mut refuse = |message: &str| found.push(Diagnostic::error("any-kind", path.clone(), message));
    if kinds > 1 {
        refuse("the kind `*` cannot stand beside other kinds");
    }
    if policy.spec.background.unwrap_or(true) {
        refuse(
            "wildcard policy can not be used in background mode. Set spec.background=false to disable background mode",
        );
    }
    if rule.generate.is_some() || rule.verify_images.is_some() {
        refuse("the kind `*` cannot be used with generate and verifyImages rules");
    }
    let only_metadata = |value: &ephor_expr::Value| {
        value
            .as_object()
            .is_some_and(|map| map.keys().all(|k| k.trim_matches(['(', ')', '=', '+', '<', '^', 'X']) == "metadata"))
    };
    if let Some(Validate { pattern, any_pattern, foreach, .. }) = &rule.validate {
        if foreach.is_some() {
            refuse("the kind `*` cannot be used with foreach");
        }
        if !pattern.iter().chain(any_pattern.iter().flatten()).all(only_metadata) {
            refuse(
                "policy can only deal with the metadata field of the resource if the policy does not match any kind",
            );
        }
    }
    if let Some(patch) = rule.mutate.as_ref().and_then(|m| m.patch_strategic_merge.as_ref())
        && !only_metadata(patch)
    {
        refuse("policy can only deal with the metadata field of the resource if the policy does not match any kind");
    }
}

fn namespaced(policy: &Policy, filter: &ResourceFilter, path: &Path, found: &mut Vec<Diagnostic>) {
    let listed = filter.resources.as_ref().is_some_and(|r| r.namespaces.as_ref().is_some_and(|n| !n.is_empty()));
    if policy.kind == PolicyKind::Policy && listed {
        let message = "a Policy applies to its own namespace: `namespaces` cannot be used";
        found.push(Diagnostic::error("namespaced-filter", path.keys(&["resources", "namespaces"]), message).at_key());
    }
}

fn user_in_background(policy: &Policy, filter: &ResourceFilter, path: &Path, found: &mut Vec<Diagnostic>) {
    if !policy.spec.background.unwrap_or(true) {
        return;
    }
    let used = [
        ("roles", filter.roles.as_ref().is_some_and(|l| !l.is_empty())),
        ("clusterRoles", filter.cluster_roles.as_ref().is_some_and(|l| !l.is_empty())),
        ("subjects", filter.subjects.as_ref().is_some_and(|l| !l.is_empty())),
    ];
    for (key, _) in used.into_iter().filter(|(_, used)| *used) {
        let message = format!("invalid variable used: `{key}` is not known in background mode");
        let finding = Diagnostic::error("user-in-background", path.key(key), message).at_key();
        found.push(finding.with_help("set `spec.background: false` to disable background mode for this policy"));
    }
}

/// Whether nothing is left: the same filter in both `any` lists, or everything that is matched directly is excluded.
fn cancels(matches: &Match, exclude: &Match) -> bool {
    if matches.all.is_some() || exclude.all.is_some() {
        return false;
    }
    if let (Some(wanted), Some(unwanted)) = (&matches.any, &exclude.any) {
        return wanted.len() == 1 && wanted.iter().any(|filter| unwanted.contains(filter));
    }
    matches!((direct(matches), direct(exclude)), (Some(a), Some(b)) if a == b)
}
