//! `webhookConfiguration.matchConditions`: CEL conditions on requests, evaluated before the webhook is called.
//!
//! The API server compiles the expressions when the webhook is registered, and has the last word: its version decides
//! which functions exist.

use std::collections::BTreeSet;

use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use crate::cel::{Body, Fault, Listed, Place, Source};
use crate::diagnostic::Diagnostic;
use crate::policy::MatchCondition;

/// As many as a webhook may have.
const MAX_CONDITIONS: usize = 64;

/// Checks the list at `path`.
pub(super) fn check(conditions: &[Value], path: &Path, found: &mut Vec<Diagnostic>) {
    if conditions.len() > MAX_CONDITIONS {
        found.push(refusal(path.clone(), format!("more than {MAX_CONDITIONS} match conditions")));
    }
    let mut names = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let at = path.index(i);
        let Some(members) = condition.as_object() else {
            found.push(refusal(at, "a match condition is an object with `name` and `expression`"));
            continue;
        };
        for key in members.keys().filter(|key| !matches!(key.as_str(), "name" | "expression")) {
            let message = format!("unknown field `{key}`; known: name, expression");
            found.push(refusal(at.key(key.clone()), message).at_key());
        }
        match condition.str_at(&["name"]).filter(|name| !name.is_empty()) {
            None => found.push(refusal(at.key("name"), "a match condition needs a name")),
            Some(name) if !names.insert(name) => {
                found.push(refusal(at.key("name"), format!("`{name}` is there twice")));
            }
            Some(_) => {}
        }
        if condition.str_at(&["expression"]).is_none_or(|text| text.trim().is_empty()) {
            found.push(refusal(at.key("expression"), "a match condition needs an expression"));
        }
    }
    if let Err(faults) = compile(conditions, path) {
        found.extend(faults.into_iter().map(|fault| {
            let finding = refusal(fault.path, fault.message);
            Diagnostic { offset: fault.offset, ..finding }
        }));
    }
}

/// Compiles the conditions of a list at `path`. An entry without an expression, which [`check`] refuses, says nothing.
pub(crate) fn compile(conditions: &[Value], path: &Path) -> Result<Body, Vec<Fault>> {
    let text = |value: &Value, key| value.str_at(&[key]).filter(|text| !text.trim().is_empty()).map(Str::new);
    let condition = |value: &Value| MatchCondition {
        name: text(value, "name").unwrap_or_default(),
        expression: text(value, "expression").unwrap_or_else(|| Str::new_static("true")),
    };
    let items: Vec<MatchCondition> = conditions.iter().map(condition).collect();
    let conditions = Listed { items: &items, path: path.clone() };
    Body::compile(&Source { conditions, ..Source::at(Place::Webhook) })
}

fn refusal(at: Path, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("match-condition", at, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(expression: &str) -> Vec<(Option<usize>, String)> {
        let condition = Value::from([("name", Value::from("a")), ("expression", Value::from(expression))]);
        let mut found = Vec::new();
        check(&[condition], &Path::root(), &mut found);
        found.into_iter().map(|finding| (finding.offset, finding.message)).collect()
    }

    #[test]
    fn expressions_of_the_language_are_accepted() {
        for text in [
            "true",
            "object.metadata.namespace == 'a' && !(\"x\" in request.userInfo.groups)",
            "has(object.spec) ? object.spec.a[0] > 1.5e3 : {'a': 1u}.size() != 0 // done",
            r#"object.a.matches(r'^\d+\(') || b"\"" == b'x' || """a"b""" == ''"#,
            "authorizer.group('').resource('pods').check('get').allowed()",
        ] {
            assert_eq!(findings(text), [], "{text}");
        }
    }

    #[test]
    fn what_does_not_compile_is_found_with_its_place() {
        for (text, offset, says) in [
            ("object.a == 'é' && nope", Some(20), "undeclared reference to 'nope' (in container '')"),
            ("1 + 'a' == 2", Some(2), "found no matching overload for '_+_' applied to '(int, string)'"),
            ("object.a", None, "must evaluate to bool but got dyn"),
            ("params.a == 1", Some(0), "undeclared reference to 'params' (in container '')"),
        ] {
            let found = findings(text);
            assert_eq!(found, [(offset, says.to_owned())], "{text}");
        }
        for text in ["a.keys(@)", "a = b", "(a", "x == 'a", "{{ request.name }} #"] {
            assert!(!findings(text).is_empty(), "{text}");
        }
    }
}
