//! Kinds as a cluster serves them, and what rules say about them.
//!
//! The engine knows Kubernetes' own kinds. Here discovery tells about all kinds: which group serves a kind that a rule
//! names without one, which kinds a rule can be about, and which a rule misspells.

use std::collections::{BTreeMap, BTreeSet};

use ephor_cluster::discovery::priority;
use ephor_cluster::{Discovery, Resource};
use ephor_engine::check::MISSING_API_VERSION;
use ephor_engine::compile::{CompiledRule, Requested};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::matching::{Gvk, KindSelector};
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

/// A kind, whatever its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// The group; empty for the core group.
    pub group: Str,
    /// The kind.
    pub kind: Str,
}

impl GroupKind {
    /// The kind of objects with that `apiVersion`.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, _) = ephor_cluster::resource::split_api_version(api_version);
        Self { group: group.into(), kind: kind.into() }
    }
}

/// The document with an `apiVersion` where a target of a generate rule lacks it and one group alone serves its kind;
/// `None` if nothing is missing, or nothing can be done about it.
pub fn with_api_versions(document: &Value, discovery: &Discovery) -> Option<Value> {
    let rules = document.at(&["spec", "rules"]).and_then(Value::as_array)?;
    if !rules.iter().any(lacks_api_version) {
        return None;
    }
    let complete = |block: &Value| -> Option<Value> {
        let kind = without_api_version(block)?;
        let mut block = block.clone();
        block.as_object_mut()?.insert("apiVersion", only_version(kind, discovery)?);
        Some(block)
    };
    let mut any = false;
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| {
            let mut rule = rule.clone();
            let Some(generate) = rule.get("generate").cloned() else { return rule };
            let mut after = complete(&generate).unwrap_or_else(|| generate.clone());
            if let Some(loops) = generate.get("foreach").and_then(Value::as_array) {
                let loops: Vec<Value> =
                    loops.iter().map(|entry| complete(entry).unwrap_or_else(|| entry.clone())).collect();
                if let Some(members) = after.as_object_mut() {
                    members.insert("foreach", Value::array(loops));
                }
            }
            any |= after != generate;
            if let Some(members) = rule.as_object_mut() {
                members.insert("generate", after);
            }
            rule
        })
        .collect();
    let mut document = document.clone();
    let spec = document.as_object_mut()?.entry("spec").as_object_mut()?;
    spec.insert("rules", Value::array(rules));
    any.then_some(document)
}

fn lacks_api_version(rule: &Value) -> bool {
    let Some(generate) = rule.get("generate") else { return false };
    let lacks = |block: &Value| without_api_version(block).is_some();
    lacks(generate) || generate.get("foreach").and_then(Value::as_array).unwrap_or_default().iter().any(lacks)
}

/// The kind of a target that does not say its `apiVersion`.
pub fn without_api_version(target: &Value) -> Option<&str> {
    let text = |key: &str| target.str_at(&[key]).filter(|text| !text.is_empty());
    text("kind").filter(|_| text("apiVersion").is_none())
}

/// The best version of a kind, if only one group serves it.
pub fn only_version(kind: &str, discovery: &Discovery) -> Option<Str> {
    let best = discovery.with_kind(kind).max_by_key(|resource| priority(&resource.version))?;
    discovery.with_kind(kind).all(|other| other.group == best.group).then(|| best.api_version())
}

/// Whether a rule is about objects of whatever kind. They are not followed: watching everything is not worth it.
pub fn is_for_any_kind(kinds: Option<&[KindSelector]>) -> bool {
    let any = |selector: &KindSelector| selector.kind.as_str() == "*" && selector.group.as_str() == "*";
    kinds.is_none_or(|kinds| kinds.iter().any(any))
}

/// The same of a rule that names kinds or resources.
pub fn is_for_any(rule: &CompiledRule) -> bool {
    if rule.body.constraints().is_none() {
        let kinds: Option<Vec<KindSelector>> = rule.matches.kinds().map(|kinds| kinds.into_iter().cloned().collect());
        return is_for_any_kind(kinds.as_deref());
    }
    rule.demands.requests.iter().any(|request| names_any(&request.requested))
}

/// Whether resources are named of any group and any name.
fn names_any(requested: &Requested) -> bool {
    let Requested::Resources { groups, resources, .. } = requested else { return false };
    let any = |names: &[Str], texts: &[&str]| names.iter().any(|name| texts.contains(&name.as_str()));
    any(groups, &["*"]) && any(resources, &["*", "*/*"])
}

/// The kinds of the triggers of a rule; `None` for any. A rule that names resources is about the kinds that are served
/// of them now.
pub fn kinds_of_triggers(rule: &CompiledRule, discovery: &Discovery) -> Option<Vec<KindSelector>> {
    if rule.body.constraints().is_none() {
        return rule.matches.kinds().map(|kinds| kinds.into_iter().cloned().collect());
    }
    if is_for_any(rule) {
        return None;
    }
    let kinds = rule.demands.requests.iter().flat_map(|request| requested_kinds(&request.requested, discovery));
    let kinds: BTreeSet<(Str, Str)> = kinds.collect();
    Some(kinds.into_iter().map(|(version, kind)| KindSelector::exactly(&Gvk::new(&version, &kind))).collect())
}

/// Kinds that change all the time. Only rules that name them match them.
const RESTLESS: [&str; 3] = ["Event", "Lease", "UpdateRequest"];

/// The kinds that a rule's triggers can have and that can be listed, each in its best version.
pub fn trigger_kinds(kinds: Option<&[KindSelector]>, discovery: &Discovery) -> Vec<(Str, Str)> {
    let selected = |resource: &Resource| {
        let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
        let calm = !RESTLESS.contains(&resource.kind.as_str());
        kinds.map_or(calm, |kinds| kinds.iter().any(|k| k.matches(&gvk, "") && (calm || k.exact_kind().is_some())))
    };
    best_versions(discovery.iter().filter(|resource| resource.stored && selected(resource)))
}

/// `apiVersion` and kind of each kind of these resources, in its best version.
fn best_versions<'d>(resources: impl Iterator<Item = &'d Resource>) -> Vec<(Str, Str)> {
    let mut found: BTreeMap<GroupKind, Str> = BTreeMap::new();
    for resource in resources {
        let id = GroupKind { group: resource.group.clone(), kind: resource.kind.clone() };
        let version = found.entry(id).or_insert_with(|| resource.version.clone());
        if priority(&resource.version) > priority(version) {
            *version = resource.version.clone();
        }
    }
    let named =
        |(id, version): (GroupKind, Str)| (ephor_cluster::resource::join_api_version(&id.group, &version), id.kind);
    found.into_iter().map(named).collect()
}

/// The kinds of resources that a policy names and that can be listed, each in its best version.
pub fn requested_kinds(requested: &Requested, discovery: &Discovery) -> Vec<(Str, Str)> {
    let Requested::Resources { groups, versions, resources, namespaced } = requested else { return Vec::new() };
    let fits = |named: &[Str], text: &str| named.iter().any(|named| named == "*" || named == text);
    let selected = |resource: &Resource| {
        let calm = !RESTLESS.contains(&resource.kind.as_str());
        fits(groups, &resource.group)
            && fits(versions, &resource.version)
            && namespaced.is_none_or(|namespaced| namespaced == resource.namespaced)
            && resources
                .iter()
                .any(|named| named == resource.plural.as_str() || (calm && matches!(named.as_str(), "*" | "*/*")))
    };
    best_versions(discovery.iter().filter(|resource| resource.stored && selected(resource)))
}

/// What there is to say about a target without `apiVersion`, of which `taken` is filled in.
pub fn missing_group(kind: &str, taken: Option<&Str>, discovery: &Discovery, path: &Path) -> Diagnostic {
    if let Some(api_version) = taken {
        let message = format!("`apiVersion` is missing: `{api_version}` is taken, which alone serves `{kind}`");
        return Diagnostic::warning(MISSING_API_VERSION, path.clone(), message);
    }
    let groups: BTreeSet<&str> = discovery.with_kind(kind).map(|resource| resource.group.as_str()).collect();
    if groups.is_empty() {
        let message = format!("`{kind}` is not defined in the cluster, so it cannot be generated yet");
        return Diagnostic::warning("unknown-kind", path.key("kind"), message);
    }
    let groups: Vec<String> = groups.iter().map(|group| format!("`{group}`")).collect();
    let message = format!("`apiVersion` is missing, and `{kind}` is served by several groups: {}", groups.join(", "));
    Diagnostic::error(MISSING_API_VERSION, path.clone(), message)
}

/// The same for all targets of a policy's document whose kinds `discovery` knows.
pub fn missing_groups(document: &Value, discovery: &Discovery) -> Vec<Diagnostic> {
    let rules = document.at(&["spec", "rules"]).and_then(Value::as_array).unwrap_or_default();
    let mut found = Vec::new();
    for (i, generate) in rules.iter().enumerate().filter_map(|(i, rule)| Some((i, rule.get("generate")?))) {
        let path = Path::root().keys(&["spec", "rules"]).index(i).key("generate");
        let loops = generate.get("foreach").and_then(Value::as_array).unwrap_or_default().iter().enumerate();
        let targets = loops.map(|(i, entry)| (path.key("foreach").index(i), entry));
        for (path, target) in std::iter::once((path.clone(), generate)).chain(targets) {
            if let Some(kind) = without_api_version(target).filter(|kind| discovery.with_kind(kind).next().is_some()) {
                found.push(missing_group(kind, only_version(kind, discovery).as_ref(), discovery, &path));
            }
        }
    }
    found
}

/// The kinds in the document of a policy, a cleanup policy or an exception that are spelt as no kind is: in `match` and
/// `exclude` in another case, or as the plural name; in targets, parameters and lists of sources almost as another kind
/// of the same group. A kind that resembles none may be defined later.
pub fn misspelt_kinds(document: &Value, discovery: &Discovery) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    // Cleanup policies and exceptions select in their `spec`, as a rule does.
    let spec = Path::root().key("spec");
    misspelt_in_filters(document.get("spec").unwrap_or(&Value::Null), &spec, discovery, &mut found);
    let rules = document.at(&["spec", "rules"]).and_then(Value::as_array).unwrap_or_default();
    for (i, rule) in rules.iter().enumerate() {
        let path = spec.key("rules").index(i);
        misspelt_in_filters(rule, &path, discovery, &mut found);
        for (api_version, kind, at) in rule_targets(rule, &path) {
            if let Some(near) = meant_target(api_version, kind, discovery) {
                let message = format!("`{api_version}` has no kind `{kind}`");
                found.push(Diagnostic::warning("unknown-kind", at, message).with_help(did_you_mean(near)));
            }
        }
    }
    found
}

/// The kinds in `match` and `exclude` of what stands at `path`.
fn misspelt_in_filters(rule: &Value, path: &Path, discovery: &Discovery, found: &mut Vec<Diagnostic>) {
    for block in ["match", "exclude"] {
        let Some(value) = rule.get(block) else { continue };
        let path = path.key(block);
        let mut filters = vec![(path.clone(), value)];
        for list in ["any", "all"] {
            let listed = value.get(list).and_then(Value::as_array).unwrap_or_default().iter().enumerate();
            filters.extend(listed.map(|(i, filter)| (path.key(list).index(i), filter)));
        }
        for (path, filter) in filters {
            let kinds = filter.at(&["resources", "kinds"]).and_then(Value::as_array).unwrap_or_default();
            for (i, kind) in kinds.iter().enumerate().filter_map(|(i, kind)| Some((i, kind.as_str()?))) {
                if let Some(near) = meant(kind, discovery) {
                    let at = path.keys(&["resources", "kinds"]).index(i);
                    let message = format!("there is no kind `{kind}`, so nothing matches it");
                    found.push(Diagnostic::warning("unknown-kind", at, message).with_help(did_you_mean(&near)));
                }
            }
        }
    }
}

/// `apiVersion` and kind of all targets, parameters and listed sources of a rule, each with the place of its kind.
fn rule_targets<'r>(rule: &'r Value, path: &Path) -> Vec<(&'r str, &'r str, Path)> {
    fn items<'v>(value: &'v Value, keys: &[&str], path: &Path) -> Vec<(&'v Value, Path)> {
        let items = value.at(keys).and_then(Value::as_array).unwrap_or_default().iter();
        items.enumerate().map(|(i, item)| (item, path.keys(keys).index(i))).collect()
    }
    let generate = path.key("generate");
    let mut blocks = items(rule, &["mutate", "targets"], path);
    let mut lists = Vec::new();
    if let Some(params) = rule.at(&["validate", "cel", "paramKind"]) {
        blocks.push((params, path.keys(&["validate", "cel", "paramKind"])));
    }
    if let Some(value) = rule.get("generate") {
        let mut parts = items(value, &["foreach"], &generate);
        parts.push((value, generate));
        lists = parts.iter().flat_map(|(part, at)| items(part, &["cloneList", "kinds"], at)).collect();
        blocks.extend(parts);
    }
    let of_block = |(block, at): (&'r Value, Path)| {
        Some((block.str_at(&["apiVersion"])?, block.str_at(&["kind"])?, at.key("kind")))
    };
    let listed =
        |(kind, at): (&'r Value, Path)| kind.as_str()?.rsplit_once('/').map(|(version, kind)| (version, kind, at));
    blocks.into_iter().filter_map(of_block).chain(lists.into_iter().filter_map(listed)).collect()
}

/// The kind that a target of an unknown kind means: the one of the same group and version that is called almost so.
pub fn meant_target<'d>(api_version: &str, kind: &str, discovery: &'d Discovery) -> Option<&'d Str> {
    let (group, version) = ephor_cluster::resource::split_api_version(api_version);
    let kinds: Vec<&Str> =
        discovery.iter().filter(|r| r.group == group && r.version == version).map(|resource| &resource.kind).collect();
    let known = kinds.iter().any(|known| *known == kind);
    let near = nearest(kind, kinds.iter().map(|known| known.as_str())).filter(|_| !known && !kind.contains("{{"))?;
    kinds.into_iter().find(|known| known.as_str() == near)
}

/// What a selector means that selects nothing: one that differs in case alone, in any of its parts, or that names its
/// kind by the plural. The kind alone where that is what is wrong.
pub fn meant(text: &str, discovery: &Discovery) -> Option<String> {
    if text.contains("{{") {
        return None;
    }
    let KindSelector { group, version, kind, subresource } = KindSelector::parse(text);
    let named = |word: &str| {
        let near = |r: &&Resource| r.kind.eq_ignore_ascii_case(word) || r.plural.eq_ignore_ascii_case(word);
        discovery.iter().find(near).map(|resource| resource.kind.as_str())
    };
    let below = subresource.is_exact().then(|| subresource.as_str()).filter(|below| !below.is_empty());
    let subresources = || discovery.iter().flat_map(|resource| resource.subresources.iter());
    if !kind.is_exact() {
        // `*/pod` is the subresource `pod` of any kind.
        let below = below.filter(|below| kind.as_str() == "*" && !subresources().any(|sub| sub.name == *below))?;
        return named(below).map(|kind| format!("*/{kind}"));
    }
    let written = kind.as_str();
    let of_kind = || discovery.iter().filter(|resource| resource.kind == *written);
    if of_kind().next().is_none() {
        if subresources().any(|sub| sub.kind == *written) {
            return None;
        }
        // `V1/Pod` is the subresource `Pod` of a kind `V1`.
        let as_version = |r: &&Resource| {
            r.version.eq_ignore_ascii_case(written) && below.is_some_and(|below| r.kind.eq_ignore_ascii_case(below))
        };
        let versioned = || discovery.iter().find(as_version).map(|r| format!("{}/{}", r.version, r.kind));
        return named(written).map(ToOwned::to_owned).or_else(versioned);
    }
    if !of_kind().any(|r| group.matches(&r.group) && version.matches(&r.version)) {
        let near = |pattern: &str, exact: bool, part: &str| exact || pattern.eq_ignore_ascii_case(part);
        let meant = of_kind().find(|r| {
            near(group.as_str(), group.matches(&r.group), &r.group)
                && near(version.as_str(), version.matches(&r.version), &r.version)
        });
        return meant.map(|resource| format!("{}/{written}", resource.api_version()));
    }
    let below = below.filter(|below| !of_kind().flat_map(|r| r.subresources.iter()).any(|sub| sub.name == *below))?;
    let near = of_kind().flat_map(|r| r.subresources.iter()).find(|sub| sub.name.eq_ignore_ascii_case(below));
    near.map(|sub| format!("{written}/{}", sub.name))
}

/// The help for a name that means another one.
pub fn did_you_mean(kind: &str) -> String {
    format!("did you mean `{kind}`?")
}
