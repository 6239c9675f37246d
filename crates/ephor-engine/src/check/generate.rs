//! Generate rules.

use std::iter;

use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::bodies::{conditions, has_list};
use super::context;
use super::kinds::{self, Place};
use crate::diagnostic::Diagnostic;
use crate::policy::{Generate, GenerateParts, Policy, PolicyKind, Rule};
use crate::rules::anchor::parse_anchor;
use crate::scope::variables;

/// The code of the finding that a target does not say its `apiVersion`.
pub const MISSING_API_VERSION: &str = "missing-api-version";

/// What is generated carries the name of its rule as a label, by which it is found again.
pub(super) fn check_name(rule: &Rule, path: &Path, found: &mut Vec<Diagnostic>) {
    if !is_label_value(&rule.name) {
        let message = format!("the name of a generate rule is written into a label, and `{}` cannot be one", rule.name);
        let finding = Diagnostic::error("label-name", path.key("name"), message);
        found.push(finding.with_help("use letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"));
    }
}

/// What chance or the clock is in cannot be kept in step: it is another each time.
pub(super) fn varying(rule: &Rule, document: &Value, path: &Path, found: &mut Vec<Diagnostic>) {
    if rule.generate.as_ref().is_none_or(|generate| generate.synchronize != Some(true)) {
        return;
    }
    for place in crate::scope::varying(document) {
        let mut at = path.clone();
        at.0.extend(place.path.0);
        let message = format!(
            "`{}` gives another value each time, so what this rule generates is rendered once and not kept in step",
            place.call
        );
        let finding = Diagnostic::warning("rendered-once", at, message);
        found.push(finding.with_help("set `synchronize: false`, or leave out the call"));
    }
}

/// Checks a `generate` block at `path`.
pub(super) fn check(policy: &Policy, rule: &Rule, generate: &Generate, path: &Path, found: &mut Vec<Diagnostic>) {
    let Some(loops) = &generate.foreach else {
        return check_parts(policy, rule, &generate.parts(), path, found);
    };
    if generate.data.is_some() || generate.clone.is_some() || generate.clone_list.is_some() {
        let message = "`foreach` stands alone: move the target into its entries";
        found.push(Diagnostic::error("several-bodies", path.clone(), message));
    }
    for (i, entry) in loops.iter().enumerate() {
        let at = path.key("foreach").index(i);
        has_list(&entry.list, &at, found);
        check_parts(policy, rule, &entry.parts(), &at, found);
        context::check(policy, entry.context.as_ref(), &at.key("context"), found);
        conditions(entry.preconditions.as_ref(), &at.key("preconditions"), found);
    }
}

/// Whether a text can be the value of a label; too long ones are reported elsewhere.
fn is_label_value(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().next_back()];
    ends.iter().flatten().all(char::is_ascii_alphanumeric)
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn check_parts(policy: &Policy, rule: &Rule, parts: &GenerateParts<'_>, path: &Path, found: &mut Vec<Diagnostic>) {
    let given = [parts.data.is_some(), parts.clone.is_some(), parts.clone_list.is_some()];
    match given.iter().filter(|is_set| **is_set).count() {
        0 => {
            let message = "the generated object has no content: `data`, `clone` and `cloneList` are all missing";
            found.push(Diagnostic::warning("generate-source", path.clone(), message));
        }
        1 => {}
        _ => {
            let message = "a generate rule needs exactly one of `data`, `clone`, `cloneList`";
            found.push(Diagnostic::error("generate-source", path.clone(), message));
        }
    }
    if parts.clone_list.is_none() {
        for (key, part) in [("apiVersion", parts.api_version), ("kind", parts.kind), ("name", parts.name)] {
            if !part.is_none_or(smol_str::SmolStr::is_empty) {
                continue;
            }
            let literal = parts.kind.is_some_and(|kind| !kind.is_empty() && !kind.contains("{{"));
            if key == "apiVersion" && literal {
                let message =
                    "`apiVersion` is missing: in a cluster it is filled in if one group alone serves the kind";
                found.push(Diagnostic::warning(MISSING_API_VERSION, path.clone(), message));
            } else {
                found.push(Diagnostic::error("generate-target", path.clone(), format!("`{key}` cannot be empty")));
            }
        }
    }
    if let Some(list) = parts.clone_list {
        let at = path.key("cloneList");
        if list.kinds.as_ref().is_none_or(Vec::is_empty) {
            found.push(Diagnostic::error("clone-list", at.clone(), "a cloneList needs `kinds`"));
        }
        let labels = list.selector.iter().flat_map(|s| s.match_labels.iter().flatten());
        for (key, value) in labels {
            if [key, value].into_iter().any(|text| text.contains(['*', '?'])) {
                let message = "the selector of a cloneList takes no wildcards";
                found.push(Diagnostic::error("clone-list", at.key("selector"), message));
            }
        }
    }
    if let Some(clone) = parts.clone
        && clone.name.as_ref().is_none_or(smol_str::SmolStr::is_empty)
    {
        found.push(Diagnostic::error("clone", path.key("clone"), "a clone needs a `name`"));
    }
    if let Some(data) = parts.data {
        data_is_map(data, &path.key("data"), found);
        no_anchors(data, &path.key("data"), found);
    }
    names(parts, path, found);
    places(parts, path, found);
    let own_kinds = rule.matches.resources.iter().flat_map(|r| r.kinds.iter().flatten());
    if parts.kind.is_some_and(|kind| !kind.is_empty() && own_kinds.clone().any(|k| k == kind)) {
        let message = "generation kind and match resource kind should not be the same";
        found.push(Diagnostic::error("generate-loop", path.key("kind"), message));
    }
    if policy.kind == PolicyKind::Policy {
        let own = policy.metadata.namespace.as_deref().unwrap_or("default");
        let clone = parts.clone.and_then(|c| c.namespace.as_ref());
        let list = parts.clone_list.and_then(|c| c.namespace.as_ref());
        let places = [
            (parts.namespace, path.key("namespace")),
            (clone, path.keys(&["clone", "namespace"])),
            (list, path.keys(&["cloneList", "namespace"])),
        ];
        for (namespace, at) in places {
            if namespace.is_some_and(|ns| !ns.is_empty() && ns != own) {
                let message = format!("a Policy can only generate and clone within its own namespace `{own}`");
                found.push(Diagnostic::error("foreign-target", at, message));
            }
        }
        for (key, part) in [("apiVersion", parts.api_version), ("kind", parts.kind)] {
            kinds::check_written_out(part, &path.key(key), found);
        }
        for (i, kind) in parts.clone_list.iter().flat_map(|list| list.kinds.iter().flatten()).enumerate() {
            kinds::check_written_out(Some(kind), &path.keys(&["cloneList", "kinds"]).index(i), found);
        }
        if parts.namespace.is_none_or(smol_str::SmolStr::is_empty) {
            let message = "a Policy can only generate namespaced objects: `namespace` is needed";
            found.push(Diagnostic::error("foreign-target", path.clone(), message));
        }
    }
}

/// Checks the namespaces of targets whose kinds are known without a cluster.
fn places(parts: &GenerateParts<'_>, path: &Path, found: &mut Vec<Diagnostic>) {
    let Some(list) = parts.clone_list else {
        let kind = parts.kind.map(Str::as_str).unwrap_or_default();
        let api_version = parts.api_version.map(Str::as_str).unwrap_or_default();
        if let Some(place) = kinds::place(api_version, kind) {
            found.extend(check_namespaces(parts, place == Place::Namespace, path));
        }
        return;
    };
    let of = |kind: &Str| {
        let (api_version, kind) = kind.rsplit_once('/').unwrap_or(("", kind.as_str()));
        kinds::place(api_version, kind)
    };
    let known: Vec<Place> = list.kinds.iter().flatten().filter_map(of).collect();
    match known.split_first() {
        Some((first, rest)) if rest.iter().all(|place| place == first) => {
            found.extend(check_namespaces(parts, *first == Place::Namespace, path));
        }
        Some(_) => {
            let message = "the kinds of a cloneList are all namespaced or all cluster-wide";
            found.push(Diagnostic::error("clone-list", path.keys(&["cloneList", "kinds"]), message));
        }
        None => {}
    }
}

/// Checks the namespaces of the target at `path` and of its source: namespaced objects need one, others have none.
pub fn check_namespaces(parts: &GenerateParts<'_>, namespaced: bool, path: &Path) -> Vec<Diagnostic> {
    // Upstream takes a namespace for the copies of cluster-wide objects that a list selects.
    let listed = parts.clone_list.is_some() && !namespaced;
    let target = (!listed).then(|| (parts.namespace, path.clone(), "target namespace"));
    let clone = parts.clone.map(|clone| (clone.namespace.as_ref(), path.key("clone"), "`clone.namespace`"));
    let list = parts.clone_list.map(|list| (list.namespace.as_ref(), path.key("cloneList"), "`cloneList.namespace`"));
    let check = |(namespace, path, what): (Option<&Str>, Path, &str)| {
        let given = namespace.is_some_and(|namespace| !namespace.is_empty());
        let message = match (namespaced, given) {
            (true, false) => format!("{what} must be set for a namespaced resource"),
            (false, true) => format!("{what} must not be set for a cluster-wide resource"),
            _ => return None,
        };
        Some(Diagnostic::error("target-namespace", path, message))
    };
    target.into_iter().chain(clone).chain(list).filter_map(check).collect()
}

/// Checks what a target and its source are called. Both are one object, so that neither wildcards nor subresources
/// make sense.
fn names(parts: &GenerateParts<'_>, path: &Path, found: &mut Vec<Diagnostic>) {
    let (clone, list) = (path.key("clone"), path.key("cloneList"));
    for (text, at) in [
        (parts.api_version, path.key("apiVersion")),
        (parts.kind, path.key("kind")),
        (parts.name, path.key("name")),
        (parts.namespace, path.key("namespace")),
        (parts.clone.and_then(|clone| clone.name.as_ref()), clone.key("name")),
        (parts.clone.and_then(|clone| clone.namespace.as_ref()), clone.key("namespace")),
        (parts.clone_list.and_then(|list| list.namespace.as_ref()), list.key("namespace")),
    ] {
        if text.is_some_and(|text| outside_variables(text).any(|part| part.contains(['*', '?']))) {
            let message = "wildcards cannot be used here: one object is generated, from one source";
            found.push(Diagnostic::error("wildcard", at, message));
        }
    }
    let listed = parts.clone_list.iter().flat_map(|list| list.kinds.iter().flatten()).enumerate();
    let listed = listed.map(|(i, kind)| {
        let (api_version, kind) = split_kind(kind);
        (api_version, kind, list.key("kinds").index(i))
    });
    let own = parts
        .kind
        .filter(|_| parts.clone_list.is_none())
        .map(|kind| (parts.api_version.map(Str::as_str).unwrap_or_default(), kind.as_str(), path.key("kind")));
    for (api_version, kind, at) in own.into_iter().chain(listed) {
        let group = kinds::group_of(api_version);
        kinds::check_case(group, kind, &at, found);
        let of_subresource = kinds::is_native_group(group) && kinds::is_of_subresource(kind);
        // No kind has a dot or a slash in its name: upstream reads `Deployment.scale` and `Deployment/scale` alike.
        if of_subresource || outside_variables(kind).any(|part| part.contains(['/', '.'])) {
            // Upstream takes such a policy.
            let message = format!("subresources such as `{kind}` cannot be generated");
            found.push(Diagnostic::warning("generate-subresource", at, message));
        }
    }
}

/// The API version and the kind in `apps/v1/Deployment`, the kind with a subresource if one is named. Kinds begin with
/// a capital letter, groups and versions do not.
fn split_kind(text: &str) -> (&str, &str) {
    let begins_kind =
        |at: &usize| text.get(*at..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    let starts = text.match_indices('/').map(|(slash, _)| slash + 1);
    match starts.into_iter().find(begins_kind).filter(|_| !begins_kind(&0)) {
        Some(start) => (text.get(..start - 1).unwrap_or_default(), text.get(start..).unwrap_or_default()),
        None if begins_kind(&0) => ("", text),
        None => text.rsplit_once('/').unwrap_or(("", text)),
    }
}

/// The parts of a text that no variable fills in.
fn outside_variables(text: &str) -> impl Iterator<Item = &str> {
    let places = variables(text);
    let ends = iter::once(0).chain(places.clone().into_iter().map(|place| place.end));
    let starts = places.into_iter().map(|place| place.start).chain([text.len()]);
    ends.zip(starts).filter_map(|(from, to)| text.get(from..to))
}

/// The content of a generated object is a map; a text can be one only if it is a variable.
fn data_is_map(data: &Value, path: &Path, found: &mut Vec<Diagnostic>) {
    let may_be = match data {
        Value::Object(_) => true,
        Value::String(text) => {
            matches!(variables(text).as_slice(), [only] if only.start == 0 && only.end == text.len())
        }
        _ => false,
    };
    if !may_be {
        let message = format!("`data` is the generated object and must be a map, found {}", data.type_name());
        found.push(Diagnostic::error("generate-data", path.clone(), message));
    }
}

fn no_anchors(data: &Value, path: &Path, found: &mut Vec<Diagnostic>) {
    match data {
        Value::Object(map) => {
            for (key, value) in map.iter() {
                let at = path.key(key.clone());
                if parse_anchor(key).is_some() {
                    let message = format!("anchors are not allowed in generated data: `{key}`");
                    found.push(Diagnostic::error("anchor", at.clone(), message).at_key());
                }
                no_anchors(value, &at, found);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                no_anchors(item, &path.index(i), found);
            }
        }
        _ => {}
    }
}
