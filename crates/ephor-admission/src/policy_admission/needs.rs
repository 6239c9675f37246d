//! The permissions that a policy needs, by account.

use ephor_cluster::{Discovery, Resource};
use ephor_engine::diagnostic::{Diagnostic, Severity};
use ephor_engine::matching::KindSelector;
use ephor_engine::policy::{CleanupPolicy, Generate, GenerateParts, Policy, PolicyKind, Rule};
use ephor_expr::scalar::wildcard::has_wildcard;
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};
use ephor_runtime::access::question;

use super::Accounts;
use super::kinds::{listed, resources, selections};

/// One permission that an account needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Need {
    /// The user name of the account.
    pub(super) account: Str,
    /// The verbs.
    pub(super) verbs: Vec<&'static str>,
    /// On what.
    pub(super) resource: Resource,
    /// Below it; empty for the object itself.
    pub(super) subresource: Str,
    /// The namespace; empty for all.
    pub(super) namespace: Str,
    /// The object's name; empty for all.
    pub(super) name: Str,
    /// Where in the policy the need comes from.
    pub(super) path: Path,
    /// What it means when it is not met.
    pub(super) severity: Severity,
    /// What for.
    pub(super) purpose: Purpose,
}

/// What a permission is for; the words of the refusal depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Generating, or reading for reports.
    Rule,
    /// Mutating what exists.
    Mutate,
    /// Cleaning up.
    Cleanup,
}

/// The needs of a policy. Kinds that are not served are left out, and those that [`unchecked`] tells of.
pub(super) fn of_policy(policy: &Policy, accounts: &Accounts, discovery: &Discovery) -> Vec<Need> {
    let mut needs = Vec::new();
    let background = policy.spec.background.unwrap_or(true);
    for (i, rule) in policy.spec.rules.iter().enumerate() {
        let path = Path::root().keys(&["spec", "rules"]).index(i);
        if let Some(generate) = &rule.generate {
            let server_side_apply = policy.spec.use_server_side_apply == Some(true);
            generated(generate, server_side_apply, accounts, discovery, &path.key("generate"), &mut needs);
            // What is made for triggers follows them, and those that were there before are listed.
            let existing = generate.generate_existing.or(policy.spec.generate_existing) == Some(true);
            let looks = existing || generate.synchronize == Some(true);
            if let Some(account) = accounts.background.as_ref().filter(|_| looks) {
                watched(rule, account, discovery, &path.key("match"), &mut needs);
            }
        }
        if let Some(account) = &accounts.background {
            mutated(policy, rule, account, discovery, &path.keys(&["mutate", "targets"]), &mut needs);
        }
        if let (true, Some(_), Some(account)) = (background, &rule.validate, &accounts.reports) {
            watched(rule, account, discovery, &path.key("match"), &mut needs);
        }
    }
    needs
}

/// Reading and following the kinds that a rule matches. Upstream does not ask for these permissions and its accounts
/// may lack them, so that this warns.
fn watched(rule: &Rule, account: &Str, discovery: &Discovery, path: &Path, needs: &mut Vec<Need>) {
    for (at, selection) in selections(&rule.matches, path) {
        for (i, kind) in selection.kinds.iter().flatten().enumerate() {
            let selector = KindSelector::parse(kind);
            if selector.exact_kind().is_none() || !selector.subresource.as_str().is_empty() {
                continue;
            }
            if let Some(resource) = resources(&selector, discovery).next() {
                let need = Need::new(account, &["get", "list", "watch"], resource, at.key("kinds").index(i));
                needs.push(Need { severity: Severity::Warning, ..need });
            }
        }
    }
}

/// The needs of a cleanup policy.
pub(super) fn of_cleanup(policy: &CleanupPolicy, account: &Str, discovery: &Discovery) -> Vec<Need> {
    let mut needs = Vec::new();
    let namespace = policy.metadata.namespace.clone().filter(|_| policy.kind == "CleanupPolicy").unwrap_or_default();
    for (at, selection) in selections(&policy.spec.matches, &Path::root().keys(&["spec", "match"])) {
        let names: Vec<Str> = match (&selection.names, &selection.name) {
            (Some(names), _) if !names.is_empty() => names.iter().map(|name| fixed(Some(name))).collect(),
            (_, name) => vec![fixed(name.as_ref())],
        };
        for (i, kind) in selection.kinds.iter().flatten().enumerate() {
            let selector = KindSelector::parse(kind);
            let Some(resource) = resources(&selector, discovery).next().filter(|_| selector.exact_kind().is_some())
            else {
                continue;
            };
            let namespace = if resource.namespaced { namespace.clone() } else { Str::default() };
            for name in &names {
                let need = Need::new(account, &["delete", "list"], resource, at.key("kinds").index(i));
                needs.push(Need {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    purpose: Purpose::Cleanup,
                    ..need
                });
            }
        }
    }
    needs
}

impl Need {
    fn new(account: &Str, verbs: &[&'static str], resource: &Resource, path: Path) -> Self {
        Self {
            account: account.clone(),
            verbs: verbs.to_vec(),
            resource: resource.clone(),
            subresource: Str::default(),
            namespace: Str::default(),
            name: Str::default(),
            path,
            severity: Severity::Error,
            purpose: Purpose::Rule,
        }
    }
}

/// A namespace or name if it is fixed; else empty, which means any.
fn fixed(text: Option<&Str>) -> Str {
    text.filter(|text| !text.contains("{{") && !text.contains(['*', '?'])).cloned().unwrap_or_default()
}

/// What stands behind a `/` in a kind.
fn below(kind: Option<&Str>) -> Str {
    kind.and_then(|kind| kind.split_once('/')).map(|(_, subresource)| subresource.trim().into()).unwrap_or_default()
}

fn generated(
    generate: &Generate,
    server_side_apply: bool,
    accounts: &Accounts,
    discovery: &Discovery,
    path: &Path,
    needs: &mut Vec<Need>,
) {
    let follows = generate.synchronize == Some(true);
    let mut each = |parts: &GenerateParts<'_>, path: &Path| {
        for (resource, subresource, at) in targets(parts, discovery, path) {
            let namespace = if resource.namespaced { fixed(parts.namespace) } else { Str::default() };
            let name = if parts.clone_list.is_some() { Str::default() } else { fixed(parts.name) };
            let need = |account, verbs: &[&'static str]| Need {
                namespace: namespace.clone(),
                name: name.clone(),
                subresource: subresource.clone(),
                ..Need::new(account, verbs, resource, at.clone())
            };
            if let Some(account) = &accounts.background {
                let verbs: &[_] = if follows { &["get", "create", "update", "delete"] } else { &["get", "create"] };
                needs.push(need(account, verbs));
                if server_side_apply {
                    needs.push(need(account, &["patch"]));
                }
                let from = if parts.clone.is_some() { path.key("clone") } else { at.clone() };
                needs.extend(source(parts, account, resource, follows, &from));
                needs.extend(grants(parts, account, resource, discovery, &at));
            }
            if let (true, Some(account)) = (follows, &accounts.admission) {
                needs.push(need(account, &["list", "get"]));
            }
        }
    };
    match &generate.foreach {
        None => each(&generate.parts(), path),
        Some(loops) => {
            for (i, entry) in loops.iter().enumerate() {
                each(&entry.parts(), &path.key("foreach").index(i));
            }
        }
    }
}

/// The kinds that are generated, each with a subresource and its place.
fn targets<'d>(parts: &GenerateParts<'_>, discovery: &'d Discovery, path: &Path) -> Vec<(&'d Resource, Str, Path)> {
    let Some(list) = parts.clone_list else {
        let found = possible(parts.api_version, parts.kind, discovery).into_iter().flatten();
        return found.map(|resource| (resource, below(parts.kind), path.key("kind"))).collect();
    };
    let kinds = list.kinds.iter().flatten().enumerate();
    let at = path.keys(&["cloneList", "kinds"]);
    let of = |(i, kind): (usize, &Str)| {
        let (api_version, kind) = listed(kind)?;
        Some((discovery.find(api_version, kind)?, Str::default(), at.index(i)))
    };
    kinds.filter_map(of).collect()
}

/// Sources of copies are read, and get a label by which they are known as such. Without the label a copy that does not
/// follow its source works all the same.
fn source(parts: &GenerateParts<'_>, account: &Str, resource: &Resource, follows: bool, path: &Path) -> Vec<Need> {
    let (namespace, name, reading): (_, _, &[&'static str]) = match (parts.clone, parts.clone_list) {
        (Some(clone), _) => (clone.namespace.as_ref(), fixed(clone.name.as_ref()), &["get"]),
        (_, Some(list)) => (list.namespace.as_ref(), Str::default(), &["list"]),
        _ => return Vec::new(),
    };

    let namespace = if resource.namespaced { fixed(namespace) } else { Str::default() };
    let need = |verbs: &[&'static str], severity| Need {
        namespace: namespace.clone(),
        name: name.clone(),
        severity,
        ..Need::new(account, verbs, resource, path.clone())
    };
    let labelling = if follows { Severity::Error } else { Severity::Warning };
    // Upstream asks for reading the target only, and policies with such accounts are in use: listing comes as a
    // warning.
    let mut needs = vec![need(reading, Severity::Warning), need(&["update"], labelling)];
    if follows {
        // A watch covers the whole kind.
        let watching = Need::new(account, &["list", "watch"], resource, path.clone());
        needs.push(Need { severity: Severity::Warning, ..watching });
    }
    needs
}

/// An account that writes roles and bindings must hold the granted rules, or have the verbs `escalate` or `bind`. Only
/// the second is checked here, so the result is a warning.
fn grants(
    parts: &GenerateParts<'_>,
    account: &Str,
    resource: &Resource,
    discovery: &Discovery,
    path: &Path,
) -> Option<Need> {
    if resource.group != "rbac.authorization.k8s.io" {
        return None;
    }
    let namespace = if resource.namespaced { fixed(parts.namespace) } else { Str::default() };
    let need = match resource.kind.as_str() {
        "Role" | "ClusterRole" => Need::new(account, &["escalate"], resource, path.clone()),
        "RoleBinding" | "ClusterRoleBinding" => {
            let given = |key| parts.data.and_then(|data| data.str_at(&["roleRef", key])).map(Str::new);
            let kind = fixed(given("kind").as_ref());
            let role = discovery.find(&resource.api_version(), if kind.is_empty() { "ClusterRole" } else { &kind })?;
            let name = fixed(given("name").as_ref());
            Need { name, ..Need::new(account, &["bind"], role, path.clone()) }
        }
        _ => return None,
    };
    Some(Need { namespace, severity: Severity::Warning, ..need })
}

fn mutated(policy: &Policy, rule: &Rule, account: &Str, discovery: &Discovery, path: &Path, needs: &mut Vec<Need>) {
    for (i, target) in rule.mutate.iter().flat_map(|m| m.targets.iter().flatten()).enumerate() {
        let namespace = match policy.kind {
            PolicyKind::Policy => policy.metadata.namespace.clone().unwrap_or_default(),
            PolicyKind::ClusterPolicy => fixed(target.namespace.as_ref()),
        };
        let found = possible(target.api_version.as_ref(), target.kind.as_ref(), discovery);
        needs.extend(found.into_iter().flatten().map(|resource| Need {
            namespace: if resource.namespaced { namespace.clone() } else { Str::default() },
            name: fixed(target.name.as_ref()),
            subresource: below(target.kind.as_ref()),
            purpose: Purpose::Mutate,
            ..Need::new(account, &["get", "update"], resource, path.index(i))
        }));
    }
}

/// All resources that a target can mean, as far as its text says: with a variable or a pattern for `apiVersion` those
/// of every group that serves the kind. `None` if the kind itself is known only when the rule runs.
fn possible<'d>(api_version: Option<&Str>, kind: Option<&Str>, discovery: &'d Discovery) -> Option<Vec<&'d Resource>> {
    let kind = kind.filter(|kind| !is_open(kind))?.split('/').next().unwrap_or_default().trim();
    let api_version = api_version.map(|text| text.trim()).filter(|text| !text.contains("{{")).unwrap_or_default();
    Some(discovery.matching(api_version, kind).collect())
}

/// Whether a kind is known only when the rule runs.
fn is_open(kind: &str) -> bool {
    kind.contains("{{") || has_wildcard(kind)
}

/// The targets of a policy that no permission is checked for, because their kind is known only when the rule runs.
pub(super) fn unchecked(policy: &Policy, accounts: &Accounts) -> Vec<Diagnostic> {
    let Some(account) = &accounts.background else { return Vec::new() };
    let mut found = Vec::new();
    let mut look = |kind: Option<&Str>, path: Path| {
        if let Some(kind) = kind.filter(|kind| is_open(kind)) {
            let message = format!(
                "the kind `{kind}` is known only when the rule runs: whether {account} may read and write such objects \
                 is not checked"
            );
            found.push(Diagnostic::warning("unchecked-permissions", path, message));
        }
    };
    for (i, rule) in policy.spec.rules.iter().enumerate() {
        let path = Path::root().keys(&["spec", "rules"]).index(i);
        for (i, target) in rule.mutate.iter().flat_map(|m| m.targets.iter().flatten()).enumerate() {
            look(target.kind.as_ref(), path.keys(&["mutate", "targets"]).index(i).key("kind"));
        }
        let Some(generate) = &rule.generate else { continue };
        let at = path.key("generate");
        look(generate.parts().kind, at.key("kind"));
        for (i, entry) in generate.foreach.iter().flatten().enumerate() {
            look(entry.parts().kind, at.key("foreach").index(i).key("kind"));
        }
    }
    found
}

/// What is asked of the API server about one verb of a need.
pub(super) fn review(need: &Need, verb: &str) -> Value {
    let mut attributes = ephor_expr::Map::new();
    for (key, text) in [
        ("group", need.resource.group.as_str()),
        ("name", &need.name),
        ("namespace", &need.namespace),
        ("resource", &need.resource.plural),
        ("subresource", &need.subresource),
        ("verb", verb),
        ("version", &need.resource.version),
    ] {
        if !text.is_empty() {
            attributes.insert(key, text);
        }
    }
    question(&need.account, attributes)
}
