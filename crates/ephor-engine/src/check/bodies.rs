//! The bodies of rules: which forms can stand together, and what their values must look like.

use ephor_expr::Value;
use ephor_expr::value::{Path, Segment};

use super::kinds::{self, Place};
use super::{cel, context};
use crate::conditions::Operator;
use crate::diagnostic::Diagnostic;
use crate::policy::{
    Condition, Conditions, Mutate, MutateForEach, PodSecurityExclusion, Policy, PolicyKind, Rule, Validate,
    ValidateForEach,
};
use crate::rules::anchor::{Anchor, parse_anchor};
use crate::rules::references::resolve_message;
use crate::rules::validate::pod_security::{Level, check_exclusions};
use crate::scope::variables;

/// Checks context, preconditions and body of a rule.
pub(super) fn check(policy: &Policy, rule: &Rule, path: &Path, found: &mut Vec<Diagnostic>) {
    context::check(policy, rule.context.as_ref(), &path.key("context"), found);
    conditions(rule.preconditions.as_ref(), &path.key("preconditions"), found);
    if let Some(validate) = &rule.validate {
        check_validate(policy, validate, &path.key("validate"), found);
        if let Some(block) = &validate.cel {
            cel::check(rule, block, path, found);
        }
    }
    if let Some(mutate) = &rule.mutate {
        check_mutate(policy, mutate, &path.key("mutate"), found);
    }
}

fn one_of(names: &[(&str, bool)], what: &str, path: &Path, found: &mut Vec<Diagnostic>) {
    let given: Vec<&str> = names.iter().filter_map(|(name, is_set)| is_set.then_some(*name)).collect();
    let all = names.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match given.as_slice() {
        [] => found.push(Diagnostic::error("no-body", path.clone(), format!("{what} needs one of {all}"))),
        [_] => {}
        several => {
            let message = format!("only one of {all} is allowed, found {}", several.join(" and "));
            found.push(Diagnostic::error("several-bodies", path.clone(), message));
        }
    }
}

fn check_validate(policy: &Policy, validate: &Validate, path: &Path, found: &mut Vec<Diagnostic>) {
    if validate.assert.is_some() {
        let message = "`assert` has no effect";
        let finding = Diagnostic::error("no-effect", path.key("assert"), message).at_key();
        found.push(finding.with_help("write the check as a pattern or as deny conditions"));
    }
    let bodies = [
        ("pattern", validate.pattern.is_some()),
        ("anyPattern", validate.any_pattern.is_some()),
        ("deny", validate.deny.is_some()),
        ("foreach", validate.foreach.is_some()),
        ("podSecurity", validate.pod_security.is_some()),
        ("cel", validate.cel.is_some()),
        ("manifests", validate.manifests.is_some()),
    ];
    if validate.assert.is_none() {
        one_of(&bodies, "a validate rule", path, found);
    }
    if policy.kind == PolicyKind::Policy && validate.failure_action_overrides.as_ref().is_some_and(|o| !o.is_empty()) {
        let message = "a Policy applies to its own namespace, so it has no overrides for others";
        found.push(Diagnostic::error("namespaced-overrides", path.key("failureActionOverrides"), message).at_key());
    }
    patterns(validate.pattern.as_ref(), validate.any_pattern.as_ref(), path, found);
    deny(validate.deny.as_ref().and_then(|d| d.conditions.as_ref()), path, found);
    check_loops(policy, validate.foreach.as_ref(), path, found);
    if let Some(pod_security) = &validate.pod_security {
        let entries = pod_security.exclude.as_deref().unwrap_or_default();
        let level = Level::parse(&pod_security.level).ok();
        exclusions(level, entries, &path.keys(&["podSecurity", "exclude"]), found);
    }
}

/// Exclusions of a Pod Security rule, or of an exception (then of no level).
pub(super) fn exclusions(
    level: Option<Level>,
    entries: &[PodSecurityExclusion],
    path: &Path,
    found: &mut Vec<Diagnostic>,
) {
    for problem in check_exclusions(level, entries) {
        let place = path.index(problem.index).key(problem.fault.key());
        let message = problem.fault.to_string();
        found.push(if problem.fault.is_refused() {
            Diagnostic::error("pod-security-exclude", place, message)
        } else {
            Diagnostic::warning("pod-security-exclude", place, message)
        });
    }
}

/// `foreach` has an entry.
fn not_empty<T>(loops: &[T], path: &Path, found: &mut Vec<Diagnostic>) {
    if loops.is_empty() {
        found.push(Diagnostic::error("empty-foreach", path.clone(), "`foreach` has no entry"));
    }
}

/// An entry of a loop says what it goes through.
pub(super) fn has_list(list: &str, path: &Path, found: &mut Vec<Diagnostic>) {
    if list.is_empty() {
        found.push(Diagnostic::error("no-list", path.clone(), "a foreach entry needs a `list`"));
    }
}

fn check_loops(policy: &Policy, loops: Option<&Vec<ValidateForEach>>, path: &Path, found: &mut Vec<Diagnostic>) {
    let Some(loops) = loops else { return };
    let at = path.key("foreach");
    not_empty(loops, &at, found);
    for (i, entry) in loops.iter().enumerate() {
        let at = at.index(i);
        has_list(&entry.list, &at, found);
        let bodies = [
            ("pattern", entry.pattern.is_some()),
            ("anyPattern", entry.any_pattern.is_some()),
            ("deny", entry.deny.is_some()),
            ("foreach", entry.foreach.is_some()),
        ];
        one_of(&bodies, "a foreach entry", &at, found);
        context::check(policy, entry.context.as_ref(), &at.key("context"), found);
        conditions(entry.preconditions.as_ref(), &at.key("preconditions"), found);
        patterns(entry.pattern.as_ref(), entry.any_pattern.as_ref(), &at, found);
        deny(entry.deny.as_ref().and_then(|d| d.conditions.as_ref()), &at, found);
        check_loops(policy, entry.foreach.as_ref(), &at, found);
    }
}

fn deny(block: Option<&Conditions>, path: &Path, found: &mut Vec<Diagnostic>) {
    conditions(block, &path.keys(&["deny", "conditions"]), found);
}

fn patterns(pattern: Option<&Value>, any: Option<&Vec<Value>>, path: &Path, found: &mut Vec<Diagnostic>) {
    if let Some(pattern) = pattern {
        let at = path.key("pattern");
        anchors(pattern, &at, found);
        text_metadata(pattern, &at, found);
    }
    for (i, pattern) in any.into_iter().flatten().enumerate() {
        let at = path.key("anyPattern").index(i);
        anchors(pattern, &at, found);
        text_metadata(pattern, &at, found);
    }
}

/// `+()` has no meaning in a pattern, and `^()` needs items to look for.
fn anchors(pattern: &Value, path: &Path, found: &mut Vec<Diagnostic>) {
    match pattern {
        Value::Object(map) => {
            for (key, value) in map.iter() {
                let at = path.key(key.clone());
                match parse_anchor(key) {
                    Some((Anchor::AddIfAbsent, _)) => {
                        let message = format!("unsupported anchor {key}: `+()` is for mutate patches");
                        found.push(Diagnostic::error("anchor", at.clone(), message).at_key());
                    }
                    Some((Anchor::Existence, _)) if value.as_array().is_none_or(<[Value]>::is_empty) => {
                        let message = format!("the anchor {key} needs a list of at least one item");
                        found.push(Diagnostic::error("anchor", at.clone(), message));
                    }
                    _ => {}
                }
                anchors(value, &at, found);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                anchors(item, &path.index(i), found);
            }
        }
        _ => {}
    }
}

/// Labels and annotations are strings, in patterns and patches too.
fn text_metadata(pattern: &Value, path: &Path, found: &mut Vec<Diagnostic>) {
    let bare = |key: &str| parse_anchor(key).map_or_else(|| key.to_owned(), |(_, inner)| inner.to_owned());
    for (key, metadata) in pattern.as_object().into_iter().flat_map(ephor_expr::Map::iter) {
        if bare(key) != "metadata" {
            continue;
        }
        for (block, entries) in metadata.as_object().into_iter().flat_map(ephor_expr::Map::iter) {
            if !matches!(bare(block).as_str(), "labels" | "annotations") {
                continue;
            }
            for (name, value) in entries.as_object().into_iter().flat_map(ephor_expr::Map::iter) {
                if !matches!(value, Value::String(_) | Value::Null) {
                    let at = Path([key, block, name].into_iter().map(|k| Segment::Key(k.clone())).collect());
                    let mut place = path.clone();
                    place.0.extend(at.0);
                    let message = format!("labels and annotations are strings, found {}", value.type_name());
                    found.push(Diagnostic::error("label-type", place, message).with_help("quote the value"));
                }
            }
        }
    }
}

/// Key, operator and value are there, the operator exists, `request.operation` is compared with operations.
pub(super) fn conditions(block: Option<&Conditions>, path: &Path, found: &mut Vec<Diagnostic>) {
    let mut list = |conditions: &[Condition], path: &Path| {
        for (i, condition) in conditions.iter().enumerate() {
            check_condition(condition, &path.index(i), found);
        }
    };
    match block {
        None => {}
        Some(Conditions::List(conditions)) => list(conditions, path),
        Some(Conditions::AnyAll(block)) => {
            list(block.any.as_deref().unwrap_or_default(), &path.key("any"));
            list(block.all.as_deref().unwrap_or_default(), &path.key("all"));
        }
    }
}

fn check_condition(condition: &Condition, path: &Path, found: &mut Vec<Diagnostic>) {
    // A missing or unknown operator is reported where conditions are compiled.
    for (name, part) in [("key", &condition.key), ("value", &condition.value)] {
        if part.is_none() {
            let message = format!("a condition needs a `{name}` that is not null");
            found.push(Diagnostic::error("condition", path.clone(), message));
        }
    }
    let operator = condition.operator.as_ref().and_then(|word| Operator::parse(word).ok());
    if let Some(operator) = operator.filter(|operator| operator.is_deprecated()) {
        let message = format!("operator `{}` is deprecated", operator.as_str());
        let mut finding = Diagnostic::warning("deprecated-operator", path.key("operator"), message);
        finding.help = match operator {
            Operator::In => Some("use `AnyIn` or `AllIn`".to_owned()),
            Operator::NotIn => Some("use `AnyNotIn` or `AllNotIn`".to_owned()),
            _ => Some("use the operator without `Duration`".to_owned()),
        };
        found.push(finding);
    }
    let value = condition.value.as_ref().and_then(Value::as_str);
    let excludes = matches!(operator, Some(Operator::AnyNotIn | Operator::AllNotIn | Operator::NotIn));
    if excludes && value.is_some_and(may_be_null) {
        let message = "the value is null where the list is missing: then nothing is in it, and the condition holds";
        let finding = Diagnostic::warning("null-value", path.key("value"), message);
        found.push(finding.with_help("say what is meant then, such as `|| `[]``"));
    }
    if let Some(Err(error)) = condition.message.as_ref().map(|text| resolve_message(text)) {
        found.push(Diagnostic::error("reference", path.key("message"), error.to_string()));
    }
    if is_operation(condition.key.as_ref()) {
        let values = match &condition.value {
            Some(Value::Array(items)) => items.to_vec(),
            Some(value) => vec![value.clone()],
            None => Vec::new(),
        };
        for value in values {
            let known = value
                .as_str()
                .is_some_and(|text| matches!(text, "CREATE" | "UPDATE" | "DELETE" | "CONNECT") || text.contains("{{"));
            if !known {
                let message = format!("unknown value `{value}` for `request.operation`");
                let finding = Diagnostic::error("request-operation", path.key("value"), message);
                found.push(finding.with_help("operations are CREATE, UPDATE, DELETE, CONNECT"));
            }
        }
    }
}

/// Whether a text is one variable that picks from lists, and says nothing for the case that there are none. Fields
/// that are missing are errors, but what is picked from nothing is null.
fn may_be_null(text: &str) -> bool {
    let found = variables(text);
    let [place] = found.as_slice() else { return false };
    let body = place.body(text);
    place.start == 0
        && place.end == text.len()
        && body.contains('[')
        && !body.contains("||")
        && !body.contains('(')
        && !body.starts_with(['[', '`', '\''])
}

fn is_operation(key: Option<&Value>) -> bool {
    let text = key.and_then(Value::as_str).unwrap_or_default();
    let inner = text.trim().strip_prefix("{{").and_then(|t| t.strip_suffix("}}"));
    inner.is_some_and(|inner| inner.trim() == "request.operation")
}

fn check_mutate(policy: &Policy, mutate: &Mutate, path: &Path, found: &mut Vec<Diagnostic>) {
    let bodies = [
        ("patchStrategicMerge", mutate.patch_strategic_merge.is_some()),
        ("patchesJson6902", mutate.patches_json6902.is_some()),
        ("foreach", mutate.foreach.is_some()),
    ];
    one_of(&bodies, "a mutate rule", path, found);
    if let Some(patch) = &mutate.patch_strategic_merge {
        text_metadata(patch, &path.key("patchStrategicMerge"), found);
    }
    mutate_loops(policy, mutate.foreach.as_ref(), path, found);
    let on_update = mutate.mutate_existing_on_policy_update.or(policy.spec.mutate_existing_on_policy_update);
    if on_update == Some(true) && mutate.targets.as_ref().is_none_or(Vec::is_empty) {
        let message = "`mutateExistingOnPolicyUpdate` needs `targets`";
        found.push(Diagnostic::error("no-targets", path.clone(), message));
    }
    for (i, target) in mutate.targets.iter().flatten().enumerate() {
        let at = path.key("targets").index(i);
        for (key, part) in [("apiVersion", &target.api_version), ("kind", &target.kind)] {
            if part.as_ref().is_none_or(smol_str::SmolStr::is_empty) {
                found.push(Diagnostic::error("target", at.clone(), format!("a target needs `{key}`")));
            }
        }
        if let (Some(api_version), Some(kind)) = (&target.api_version, &target.kind) {
            kinds::check_case(kinds::group_of(api_version), kind, &at.key("kind"), found);
        }
        if policy.kind == PolicyKind::Policy {
            let own = policy.metadata.namespace.as_deref().unwrap_or("default");
            if target.namespace.as_ref().is_some_and(|ns| !ns.is_empty() && ns != own) {
                let message = format!("a Policy can only mutate targets in its own namespace `{own}`");
                found.push(Diagnostic::error("foreign-target", at.key("namespace"), message));
            }
            kinds::check_written_out(target.api_version.as_ref(), &at.key("apiVersion"), found);
            kinds::check_written_out(target.kind.as_ref(), &at.key("kind"), found);
            let kind = target.kind.as_deref().unwrap_or_default();
            let kind = kind.split('/').next().unwrap_or_default();
            if kinds::place(target.api_version.as_deref().unwrap_or_default(), kind) == Some(Place::Cluster) {
                let message = "a Policy can only mutate targets in its own namespace, and this kind has none";
                found.push(Diagnostic::error("foreign-target", at.key("kind"), message));
            }
        }
        context::check(policy, target.context.as_ref(), &at.key("context"), found);
        conditions(target.preconditions.as_ref(), &at.key("preconditions"), found);
    }
}

fn mutate_loops(policy: &Policy, loops: Option<&Vec<MutateForEach>>, path: &Path, found: &mut Vec<Diagnostic>) {
    let Some(loops) = loops else { return };
    let at = path.key("foreach");
    not_empty(loops, &at, found);
    for (i, entry) in loops.iter().enumerate() {
        let at = at.index(i);
        has_list(&entry.list, &at, found);
        let bodies = [
            ("patchStrategicMerge", entry.patch_strategic_merge.is_some()),
            ("patchesJson6902", entry.patches_json6902.is_some()),
            ("foreach", entry.foreach.is_some()),
        ];
        one_of(&bodies, "a foreach entry", &at, found);
        if entry.foreach.is_some() && (entry.context.is_some() || entry.preconditions.is_some()) {
            let message = "an entry that holds another loop has only `list`, `order` and `foreach`";
            found.push(Diagnostic::error("nested-foreach", at.clone(), message));
        }
        if let Some(patch) = &entry.patch_strategic_merge {
            text_metadata(patch, &at.key("patchStrategicMerge"), found);
        }
        context::check(policy, entry.context.as_ref(), &at.key("context"), found);
        conditions(entry.preconditions.as_ref(), &at.key("preconditions"), found);
        mutate_loops(policy, entry.foreach.as_ref(), &at, found);
    }
}
