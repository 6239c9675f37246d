//! Kinds that rules name: whether they exist, and where their objects live.
//!
//! The engine knows this of Kubernetes' own kinds; what it said already is said again here in the same words, and
//! dropped when the answer is put together.

use ephor_cluster::{Discovery, Resource};
use ephor_engine::check::{MISSING_API_VERSION, check_namespaces};
use ephor_engine::diagnostic::{Diagnostic, Severity};
use ephor_engine::matching::{Gvk, KindSelector};
use ephor_engine::policy::{
    GenerateParts, Match, ParamKind, Policy, PolicyKind, ResourceFilter, ResourceSelection, Rule,
};
use ephor_expr::Str;
use ephor_expr::value::Path;
use ephor_runtime::kinds::{did_you_mean, meant, meant_target, missing_group, only_version};
use rustc_hash::FxHashMap;

/// Where the findings are that the engine could only suspect of a custom kind, by their place in the policy.
type Suspects = FxHashMap<Path, Vec<usize>>;

/// Checks the kinds in all rules of a policy.
pub(super) fn check(policy: &Policy, discovery: &Discovery, found: &mut Vec<Diagnostic>) {
    let mut suspects = Suspects::default();
    for (i, finding) in found.iter().enumerate().filter(|(_, finding)| finding.code == "background-subresource") {
        suspects.entry(finding.path.clone()).or_default().push(i);
    }
    for (i, rule) in policy.spec.rules.iter().enumerate() {
        let path = Path::root().keys(&["spec", "rules"]).index(i);
        matched(policy, rule, discovery, &suspects, &path, found);
        if let Some(params) = rule.validate.as_ref().and_then(|validate| validate.cel.as_ref()?.param_kind.as_ref()) {
            parameters(params, discovery, &path.keys(&["validate", "cel", "paramKind", "kind"]), found);
        }
        if let Some(generate) = &rule.generate {
            let at = path.key("generate");
            match &generate.foreach {
                None => target(policy, &generate.parts(), discovery, &at, found),
                Some(loops) => {
                    for (i, entry) in loops.iter().enumerate() {
                        target(policy, &entry.parts(), discovery, &at.key("foreach").index(i), found);
                    }
                }
            }
        }
        for (i, target) in rule.mutate.iter().flat_map(|m| m.targets.iter().flatten()).enumerate() {
            let resource = literal(target.api_version.as_ref(), target.kind.as_ref())
                .and_then(|(api_version, kind)| discovery.find(api_version, kind));
            if policy.kind == PolicyKind::Policy && resource.is_some_and(|resource| !resource.namespaced) {
                let message = "a Policy can only mutate targets in its own namespace, and this kind has none";
                let at = path.keys(&["mutate", "targets"]).index(i).key("kind");
                found.push(Diagnostic::error("foreign-target", at, message));
            }
        }
    }
}

/// The kinds that a policy names in full and that are not served.
pub(super) fn unknown(policy: &Policy, discovery: &Discovery) -> Vec<KindSelector> {
    let mut named: Vec<String> = Vec::new();
    for rule in &policy.spec.rules {
        for block in std::iter::once(&rule.matches).chain(&rule.exclude) {
            let selections = selections(block, &Path::root());
            named.extend(selections.iter().flat_map(|(_, s)| s.kinds.iter().flatten().map(ToString::to_string)));
        }
        let targets = rule.mutate.iter().flat_map(|mutate| mutate.targets.iter().flatten());
        let mut generated: Vec<(Option<&Str>, Option<&Str>)> =
            targets.map(|target| (target.api_version.as_ref(), target.kind.as_ref())).collect();
        let generate = rule.generate.iter();
        let parts = generate.flat_map(|generate| match &generate.foreach {
            None => vec![generate.parts()],
            Some(loops) => loops.iter().map(|entry| entry.parts()).collect(),
        });
        for parts in parts {
            generated.push((parts.api_version, parts.kind));
            let listed = parts.clone_list.iter().flat_map(|list| list.kinds.iter().flatten());
            named.extend(listed.map(ToString::to_string));
        }
        let generated = generated.into_iter().filter_map(|(api_version, kind)| literal(api_version, kind));
        named.extend(generated.map(|(api_version, kind)| format!("{api_version}/{kind}")));
    }
    let selectors = named.iter().filter(|name| !name.contains("{{")).map(|name| KindSelector::parse(name));
    selectors.filter(|s| s.exact_kind().is_some() && resources(s, discovery).next().is_none()).collect()
}

/// The selections of a block, each with its place.
pub(super) fn selections<'m>(block: &'m Match, path: &Path) -> Vec<(Path, &'m ResourceSelection)> {
    let mut all = Vec::new();
    for (key, list) in [("any", &block.any), ("all", &block.all)] {
        let filters = list.iter().flatten().enumerate();
        let of = |(i, filter): (usize, &'m ResourceFilter)| {
            filter.resources.as_ref().map(|resources| (path.key(key).index(i).key("resources"), resources))
        };
        all.extend(filters.filter_map(of));
    }
    all.extend(block.resources.as_ref().map(|resources| (path.key("resources"), resources)));
    all
}

/// The resources that a kind selector takes in.
pub(super) fn resources<'d>(
    selector: &'d KindSelector,
    discovery: &'d Discovery,
) -> impl Iterator<Item = &'d Resource> {
    discovery.iter().filter(|resource| {
        let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
        selector.matches_kind(&gvk)
    })
}

fn matched(
    policy: &Policy,
    rule: &Rule,
    discovery: &Discovery,
    suspects: &Suspects,
    path: &Path,
    found: &mut Vec<Diagnostic>,
) {
    for (at, selection) in selections(&rule.matches, &path.key("match")) {
        for (i, kind) in selection.kinds.iter().flatten().enumerate() {
            let at = at.key("kinds").index(i);
            let selector = KindSelector::parse(kind);
            let near = || meant(kind, discovery).map(|near| did_you_mean(&near));
            if selector.exact_kind().is_none() || kind.contains("{{") {
                if let Some(help) = near() {
                    let message = format!("there is no kind `{kind}`, so nothing matches it");
                    found.push(Diagnostic::warning("unknown-kind", at, message).with_help(help));
                }
                continue;
            }
            let known: Vec<&Resource> = resources(&selector, discovery).collect();
            if known.is_empty() {
                let written = selector.exact_kind().unwrap_or_default();
                let of_object = discovery.iter().any(|resource| resource.kind == *written);
                let of_body = discovery.iter().flat_map(|r| r.subresources.iter()).any(|sub| sub.kind == *written);
                if of_object || !of_body {
                    // Upstream takes such a policy too: the kind may be defined later.
                    let message = format!("the kind `{kind}` is not defined in the cluster, so nothing matches it yet");
                    let mut finding = Diagnostic::warning("unknown-kind", at, message);
                    finding.help = near();
                    found.push(finding);
                }
                continue;
            }
            if policy.kind == PolicyKind::Policy && known.iter().all(|resource| !resource.namespaced) {
                let message = format!("a Policy cannot match the cluster-scoped kind `{kind}`");
                found.push(Diagnostic::error("cluster-kind", at.clone(), message));
            }
            let is_there =
                known.iter().any(|r| r.subresources.iter().any(|sub| selector.subresource.matches(&sub.name)));
            let asks_below = !selector.subresource.matches("") && selector.subresource.is_exact();
            if asks_below && !is_there {
                let message = format!(
                    "the subresource `{}` is not defined in the cluster, so nothing matches it yet",
                    kind.escape_debug()
                );
                let finding = Diagnostic::warning("unknown-kind", at.clone(), message);
                found.push(Diagnostic { help: near(), ..finding });
            }
            for suspect in suspects.get(&at).filter(|_| is_there).into_iter().flatten() {
                if let Some(finding) = found.get_mut(*suspect) {
                    finding.severity = Severity::Error;
                }
            }
        }
    }
}

/// The kind of the parameters of a CEL rule.
fn parameters(params: &ParamKind, discovery: &Discovery, at: &Path, found: &mut Vec<Diagnostic>) {
    let Some((api_version, kind)) = literal(params.api_version.as_ref(), params.kind.as_ref()) else { return };
    if let Some(near) = meant_target(api_version, kind, discovery) {
        let message = format!("`{api_version}` has no kind `{kind}`, so there are no parameters");
        found.push(Diagnostic::warning("unknown-kind", at.clone(), message).with_help(did_you_mean(near)));
    }
}

/// `apiVersion` and kind without subresource, if both are literal.
pub(super) fn literal<'s>(api_version: Option<&'s Str>, kind: Option<&'s Str>) -> Option<(&'s str, &'s str)> {
    let plain = |text: &&Str| !text.is_empty() && !text.contains("{{") && !text.contains(['*', '?']);
    let api_version = api_version.filter(plain)?.trim();
    let kind = kind.filter(plain)?.trim();
    Some((api_version, kind.split('/').next().unwrap_or(kind)))
}

/// `apiVersion` and kind of an entry of a `cloneList`.
pub(super) fn listed(kind: &Str) -> Option<(&str, &str)> {
    let plain = !kind.contains("{{") && !kind.contains(['*', '?']);
    kind.rsplit_once('/').filter(|_| plain)
}

fn target(policy: &Policy, parts: &GenerateParts<'_>, discovery: &Discovery, path: &Path, found: &mut Vec<Diagnostic>) {
    let Some(list) = parts.clone_list else {
        let kind = parts.kind.filter(|kind| !kind.is_empty() && !kind.contains("{{"));
        if let Some(kind) = kind.filter(|_| parts.api_version.is_none_or(Str::is_empty)) {
            return without_group(policy, kind, parts, discovery, path, found);
        }
        let Some((api_version, kind)) = literal(parts.api_version, parts.kind) else { return };
        if let Some(resource) = discovery.find(api_version, kind) {
            place(policy, resource, parts, path, found);
        } else {
            let message =
                format!("`{api_version}` `{kind}` is not defined in the cluster, so it cannot be generated yet");
            let finding = Diagnostic::warning("unknown-kind", path.key("kind"), message);
            let help = meant_target(api_version, kind, discovery).map(|kind| did_you_mean(kind));
            found.push(Diagnostic { help, ..finding });
        }
        return;
    };
    let at = path.key("cloneList");
    let mut known = Vec::new();
    for (i, kind) in list.kinds.iter().flatten().enumerate() {
        let Some((api_version, name)) = listed(kind) else { continue };
        if let Some(resource) = discovery.find(api_version, name) {
            known.push(resource);
        } else {
            let message = format!("the kind `{kind}` is not defined in the cluster, so it cannot be copied yet");
            let finding = Diagnostic::warning("unknown-kind", at.key("kinds").index(i), message);
            let help = meant_target(api_version, name, discovery).map(|kind| did_you_mean(kind));
            found.push(Diagnostic { help, ..finding });
        }
    }
    match known.split_first() {
        Some((first, rest)) if rest.iter().all(|resource| resource.namespaced == first.namespaced) => {
            place(policy, first, parts, path, found);
        }
        Some(_) => {
            let message = "the kinds of a cloneList are all namespaced or all cluster-wide";
            found.push(Diagnostic::error("clone-list", at.key("kinds"), message));
        }
        None => {}
    }
}

/// A target that leaves its group to discovery: possible if one group alone serves the kind.
fn without_group(
    policy: &Policy,
    kind: &str,
    parts: &GenerateParts<'_>,
    discovery: &Discovery,
    path: &Path,
    found: &mut Vec<Diagnostic>,
) {
    // The engine could only say that it depends.
    found.retain(|finding| !(finding.code == MISSING_API_VERSION && finding.path == *path));
    let taken = only_version(kind, discovery);
    found.push(missing_group(kind, taken.as_ref(), discovery, path));
    if let Some(resource) = taken.and_then(|api_version| discovery.find(&api_version, kind)) {
        place(policy, resource, parts, path, found);
    }
}

/// What the engine checks for kinds that it knows, and that a Policy stays in its namespace.
fn place(policy: &Policy, resource: &Resource, parts: &GenerateParts<'_>, path: &Path, found: &mut Vec<Diagnostic>) {
    found.extend(check_namespaces(parts, resource.namespaced, path));
    let given = parts.namespace.is_some_and(|namespace| !namespace.is_empty());
    if policy.kind == PolicyKind::Policy && !resource.namespaced && !given {
        let message = "a Policy cannot generate cluster-wide resources";
        found.push(Diagnostic::error("target-namespace", path.clone(), message));
    }
}
