//! Whether a rule looks at who made a request, which only admission knows.
//!
//! In: the document of a rule. Out: whether what it matches, or an expression in it, reads the user. A context variable
//! may hold the whole request under another name, so expressions are read with what the variables hold.

use std::collections::BTreeMap;

use ephor_expr::jmespath::{Expression, Flow, Part, RootKind};
use ephor_expr::{Str, Value};

use crate::scope::{enclosing, variables};

/// What only admission knows: variables, and members of `request`.
const USER: [&str; 2] = ["serviceAccountName", "serviceAccountNamespace"];
const USER_OF_REQUEST: [&str; 3] = ["userInfo", "roles", "clusterRoles"];

/// The members of `match` and `exclude` that select users.
const SELECTS_USERS: [&str; 3] = ["clusterRoles", "roles", "subjects"];

/// How often variables are read again to find what they hold. Variables that read earlier ones need one round more than
/// the deepest use of a later one.
const MAX_ROUNDS: usize = 32;

/// What the context variables of a rule hold of the request.
pub(super) struct RequestVariables {
    /// The variables that hold any of it, by the parts of their names.
    held: BTreeMap<Vec<Str>, Part>,
}

impl RequestVariables {
    /// The variables of all contexts of a rule, those of loops and targets included.
    pub(super) fn of(rule: &Value) -> Self {
        let mut defined = Vec::new();
        collect_definitions(rule, &mut defined);
        let mut variables = Self { held: BTreeMap::new() };
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            for (name, expression) in &defined {
                let before = variables.held.get(name).copied().unwrap_or_default();
                let now = before.or(variables.flow(expression).result);
                if now != before {
                    variables.held.insert(name.clone(), now);
                    changed = true;
                }
            }
            if !changed {
                return variables;
            }
        }
        variables.held.extend(defined.into_iter().map(|(name, _)| (name, Part::WHOLE)));
        variables
    }

    fn flow(&self, expression: &Expression) -> Flow {
        expression.flow(&|keys| self.at(keys), &is_user)
    }

    /// What the path `keys` from the root holds.
    fn at(&self, keys: &[Str]) -> Part {
        let mut found = match keys {
            [first, rest @ ..] if first == "request" => Part::WHOLE.at(rest, &is_user),
            _ => Part::default(),
        };
        for length in 1..=keys.len() {
            let (name, rest) = keys.split_at(length);
            if let Some(part) = self.held.get(name) {
                found = found.or(part.at(rest, &is_user));
            }
        }
        // `a` holds what a variable `a.b` holds.
        let longer = self.held.range(keys.to_vec()..).find(|(name, _)| name.as_slice() != keys);
        if longer.is_some_and(|(name, _)| name.starts_with(keys)) { Part::WHOLE } else { found }
    }

    /// Whether `expression` reads the user, or passes on a whole request.
    pub(super) fn user_is_read(&self, expression: &Expression) -> bool {
        let Flow { result, used } = self.flow(expression);
        reads_account(expression) || result.or(used) != Part::default()
    }

    /// As [`RequestVariables::user_is_read`] for the `jmesPath` of a variable, which may be a whole request: what
    /// counts is what the rule reads of the variable.
    pub(super) fn user_is_read_by_definition(&self, expression: &Expression) -> bool {
        let Flow { result, used } = self.flow(expression);
        reads_account(expression) || result.member || used != Part::default()
    }
}

fn is_user(member: &str) -> bool {
    USER_OF_REQUEST.contains(&member)
}

fn reads_account(expression: &Expression) -> bool {
    expression.root_identifiers().iter().any(|root| USER.contains(&root.name.as_str()))
}

/// The variables that are defined by an expression over all that the rule sees.
fn collect_definitions(value: &Value, defined: &mut Vec<(Vec<Str>, Expression)>) {
    match value {
        Value::Object(map) => {
            for (key, member) in map.iter() {
                if key == "context" {
                    defined.extend(member.as_array().unwrap_or_default().iter().filter_map(definition));
                }
                collect_definitions(member, defined);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_definitions(item, defined)),
        _ => {}
    }
}

fn definition(entry: &Value) -> Option<(Vec<Str>, Expression)> {
    let expression = compile_bare(over_root(entry.get("variable")?)?)?;
    Some((entry.str_at(&["name"])?.split('.').map(Str::new).collect(), expression))
}

/// Compiles an expression without braces around it. Variables in it are holes.
pub(super) fn compile_bare(text: &str) -> Option<Expression> {
    if variables(text).is_empty() {
        return Expression::compile(text).ok();
    }
    Expression::compile_with_holes(&enclosing(text).1, RootKind::Names).ok()
}

/// The expression of a variable that starts from all that the rule sees.
fn over_root(variable: &Value) -> Option<&str> {
    if variable.get("value").is_some() { None } else { variable.str_at(&["jmesPath"]) }
}

/// Whether the document of a rule looks at the user of a request: in what it matches, or in a variable.
pub fn looks_at_user(rule: &Value) -> bool {
    let matches = || ["match", "exclude"].iter().filter_map(|key| rule.get(key));
    matches().any(selects_user) || has_user_variable(rule, &RequestVariables::of(rule))
}

fn selects_user(matches: &Value) -> bool {
    match matches {
        Value::Array(items) => items.iter().any(selects_user),
        Value::Object(map) => {
            map.iter().any(|(key, member)| SELECTS_USERS.contains(&key.as_str()) || selects_user(member))
        }
        _ => false,
    }
}

fn has_user_variable(value: &Value, request: &RequestVariables) -> bool {
    match value {
        Value::String(text) => {
            let inner = variables(text).into_iter().map(|place| place.body(text)).filter(|body| *body != "@");
            let inner = inner.filter_map(|body| Expression::compile(body).ok());
            inner.chain(enclosing(text).0).any(|expression| request.user_is_read(&expression))
        }
        Value::Array(items) => items.iter().any(|item| has_user_variable(item, request)),
        Value::Object(map) => map.iter().any(|(key, member)| {
            let definition = || Some(member).filter(|_| key == "variable").and_then(over_root).and_then(compile_bare);
            definition().is_some_and(|expression| request.user_is_read_by_definition(&expression))
                || has_user_variable(member, request)
        }),
        _ => false,
    }
}
