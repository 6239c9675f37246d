//! `validate.cel` and `celPreconditions`: which fields belong together. Expressions are judged where they are compiled.

use std::collections::BTreeSet;

use ephor_expr::Str;
use ephor_expr::value::Path;

use crate::diagnostic::Diagnostic;
use crate::policy::{Cel, MatchCondition, ParamKind, ParamRef, Rule};

/// Checks a rule with a `cel` block.
pub(super) fn check(rule: &Rule, cel: &Cel, path: &Path, found: &mut Vec<Diagnostic>) {
    let at = path.keys(&["validate", "cel"]);
    if rule.context.as_ref().is_some_and(|context| !context.is_empty()) {
        let message = "a rule with `validate.cel` has no `context`: its expressions read `variables`";
        found.push(Diagnostic::error("cel-context", path.key("context"), message).at_key());
    }
    preconditions(rule.cel_preconditions.as_deref().unwrap_or_default(), &path.key("celPreconditions"), found);
    let validations = cel.expressions.as_deref().unwrap_or_default();
    if validations.is_empty() {
        found.push(required(at.key("expressions"), "`cel` needs at least one of `expressions`"));
    }
    for (i, validation) in validations.iter().enumerate() {
        if validation.expression.trim().is_empty() {
            let at = at.key("expressions").index(i).key("expression");
            found.push(required(at, "`cel.expressions` needs an `expression`"));
        }
    }
    let mut names = BTreeSet::new();
    for (i, variable) in cel.variables.iter().flatten().enumerate() {
        let at = at.key("variables").index(i);
        named(&variable.name, &variable.expression, &mut names, &at, found);
    }
    for (i, annotation) in cel.audit_annotations.iter().flatten().enumerate() {
        let at = at.key("auditAnnotations").index(i);
        for (field, text) in [("key", &annotation.key), ("valueExpression", &annotation.value_expression)] {
            if text.trim().is_empty() {
                found.push(required(at.key(field), format!("`cel.auditAnnotations` needs `{field}`")));
            }
        }
    }
    match (&cel.param_kind, &cel.param_ref) {
        (None, None) => {}
        (Some(kind), Some(reference)) => params(kind, reference, &at, found),
        (Some(_), None) => found.push(required(at.key("paramRef"), "`cel.paramKind` needs a `cel.paramRef`")),
        (None, Some(_)) => found.push(required(at.key("paramKind"), "`cel.paramRef` needs a `cel.paramKind`")),
    }
}

fn preconditions(conditions: &[MatchCondition], path: &Path, found: &mut Vec<Diagnostic>) {
    let mut names = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        named(&condition.name, &condition.expression, &mut names, &path.index(i), found);
    }
}

/// A name and an expression are there, and the name is not there twice.
fn named<'p>(name: &'p Str, text: &str, names: &mut BTreeSet<&'p Str>, at: &Path, found: &mut Vec<Diagnostic>) {
    if name.is_empty() {
        found.push(required(at.key("name"), "an expression with a name needs `name`"));
    } else if !names.insert(name) {
        found.push(Diagnostic::error("cel", at.key("name"), format!("`{name}` is there twice")));
    }
    if text.trim().is_empty() {
        found.push(required(at.key("expression"), "an expression is empty"));
    }
}

fn params(kind: &ParamKind, reference: &ParamRef, at: &Path, found: &mut Vec<Diagnostic>) {
    let is_empty = |text: &Option<Str>| text.as_ref().is_none_or(Str::is_empty);
    for (field, text) in [("apiVersion", &kind.api_version), ("kind", &kind.kind)] {
        if is_empty(text) {
            found.push(required(at.key("paramKind"), format!("`cel.paramKind` needs `{field}`")));
        }
    }
    let at = at.key("paramRef");
    match (is_empty(&reference.name), &reference.selector) {
        (true, None) => found.push(required(at.clone(), "`cel.paramRef` needs one of `name`, `selector`")),
        (false, Some(_)) => {
            let message = "`cel.paramRef` has only one of `name`, `selector`";
            found.push(Diagnostic::error("cel", at.clone(), message));
        }
        _ => {}
    }
    if reference.parameter_not_found_action.is_none() {
        found.push(required(at, "`cel.paramRef` needs `parameterNotFoundAction`"));
    }
}

fn required(at: Path, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("cel", at, message)
}
