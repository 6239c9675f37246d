//! Templates into values.

use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::jmespath::{Expression, Runtime};
use ephor_expr::value::{Path, Segment};
use ephor_expr::{Map, Str, Value};

use super::context::Scope;
use super::error::{Cause, ScopeError};
use super::scan::{needs_resolving, variables};
use super::template::{Expr, Key, Part, Template, Text, Variable};

/// How often a text is read again for variables that its variables brought in, and how deep values may nest them.
const MAX_ROUNDS: usize = 32;

/// What compiling an expression counts for, in evaluation steps.
const COMPILE_STEPS: u64 = 100;

impl Template {
    /// The value of the template in `scope`. Errors name the place in the template.
    pub fn resolve(&self, scope: &mut Scope<'_>) -> Result<Value, ScopeError> {
        match self {
            Template::Fixed(value) => Ok(value.clone()),
            Template::Variable(variable) => {
                let value = variable.value(scope)?;
                expand_value(value, scope, 0)
            }
            Template::Text(text) => text.resolve(scope),
            Template::Array(items) => {
                let mut out = Vec::with_capacity(items.len());
                for (i, item) in items.iter().enumerate() {
                    out.push(item.resolve(scope).map_err(|e| e.below(Segment::Index(i)))?);
                }
                Ok(Value::array(out))
            }
            Template::Object(members) => {
                let mut out = Map::with_capacity(members.len());
                for (key, member) in members {
                    let (name, written) = match key {
                        Key::Fixed(name) => (name.clone(), name),
                        Key::Text(written, template) => match template.resolve(scope)? {
                            Value::String(name) => (name, written),
                            _ => return Err(ScopeError::KeyNotString { key: written.clone(), path: Path::root() }),
                        },
                    };
                    let value = member.resolve(scope).map_err(|e| e.below(Segment::Key(written.clone())))?;
                    out.insert(name, value);
                }
                Ok(Value::object(out))
            }
        }
    }
}

impl Variable {
    fn value(&self, scope: &mut Scope<'_>) -> Result<Value, ScopeError> {
        scope.evaluate(&self.expr).map_err(|cause| cause.into_error(self.expr.text(), Some(self.offset)))
    }
}

impl Text {
    fn resolve(&self, scope: &mut Scope<'_>) -> Result<Value, ScopeError> {
        let Some(parts) = &self.parts else { return expand_text(self.source.to_string(), scope, 0) };
        let mut out = String::new();
        let mut again = false;
        for part in parts {
            match part {
                Part::Plain(plain) => out.push_str(plain),
                Part::Variable(variable) => {
                    let text = embedded(&variable.value(scope)?, scope.world().budget())?;
                    if variable.protected {
                        out.push_str(&text.replace("{{", "\\{{"));
                    } else {
                        again |= text.contains('{');
                        out.push_str(&text);
                    }
                }
            }
        }
        if again {
            return expand_text(out, scope, 1);
        }
        Ok(Value::String(unescape(out)))
    }
}

/// The value of a text that is put together at run time.
pub(crate) fn resolve_text(text: &str, scope: &mut Scope<'_>) -> Result<Value, ScopeError> {
    if needs_resolving(text) { expand_text(text.to_owned(), scope, 0) } else { Ok(Value::from(text)) }
}

/// Replaces variables until none is left: what variables bring in is read again (engine 4.1).
fn expand_text(mut text: String, scope: &mut Scope<'_>, depth: usize) -> Result<Value, ScopeError> {
    for _ in depth..MAX_ROUNDS {
        let found = variables(&text);
        if found.is_empty() {
            return Ok(Value::String(unescape(text)));
        }
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for place in &found {
            let body = place.body(&text);
            let value = evaluate_text(body, scope)?;
            if place.start == 0 && place.end == text.len() {
                return expand_value(value, scope, depth + 1);
            }
            out.push_str(text.get(from..place.start).unwrap_or_default());
            let inserted = embedded(&value, scope.world().budget())?;
            if place.protected {
                out.push_str(&inserted.replace("{{", "\\{{"));
            } else {
                out.push_str(&inserted);
            }
            from = place.end;
        }
        out.push_str(text.get(from..).unwrap_or_default());
        text = out;
    }
    Err(ScopeError::TooDeep { path: Path::root() })
}

/// Variables inside a value that came from a variable. A plain string is left alone.
fn expand_value(value: Value, scope: &mut Scope<'_>, depth: usize) -> Result<Value, ScopeError> {
    if matches!(value, Value::Array(_) | Value::Object(_)) {
        // What holds this one may hold it many times, and be held many times itself.
        scope.world().budget().charge_tree(&value)?;
        if holds_variables(&value) {
            return expand_members(&value, scope, depth);
        }
    }
    Ok(value)
}

fn expand_members(value: &Value, scope: &mut Scope<'_>, depth: usize) -> Result<Value, ScopeError> {
    if depth >= MAX_ROUNDS {
        return Err(ScopeError::TooDeep { path: Path::root() });
    }
    match value {
        Value::String(text) if needs_resolving(text) => expand_text(text.to_string(), scope, depth + 1),
        Value::Array(items) => {
            let mut out = Vec::with_capacity(items.len());
            for (i, item) in items.iter().enumerate() {
                out.push(expand_members(item, scope, depth).map_err(|e| e.below(Segment::Index(i)))?);
            }
            Ok(Value::array(out))
        }
        Value::Object(map) => {
            let mut out = Map::with_capacity(map.len());
            for (key, member) in map.iter() {
                let name = if needs_resolving(key) {
                    match expand_text(key.to_string(), scope, depth + 1)? {
                        Value::String(name) => name,
                        _ => return Err(ScopeError::KeyNotString { key: key.clone(), path: Path::root() }),
                    }
                } else {
                    key.clone()
                };
                let member = expand_members(member, scope, depth).map_err(|e| e.below(Segment::Key(key.clone())))?;
                out.insert(name, member);
            }
            Ok(Value::object(out))
        }
        _ => Ok(value.clone()),
    }
}

fn holds_variables(value: &Value) -> bool {
    match value {
        Value::String(text) => needs_resolving(text),
        Value::Array(items) => items.iter().any(holds_variables),
        Value::Object(map) => map.iter().any(|(key, member)| needs_resolving(key) || holds_variables(member)),
        _ => false,
    }
}

fn evaluate_text(body: &str, scope: &mut Scope<'_>) -> Result<Value, ScopeError> {
    let failed = |cause| {
        let cause = Box::new(cause);
        ScopeError::Unresolved { variable: Str::new(body), path: Path::root(), offset: None, cause }
    };
    let rewritten;
    let text = if scope.is_delete() && body.contains("request.object") {
        rewritten = body.replace("request.object", "request.oldObject");
        rewritten.as_str()
    } else {
        body
    };
    scope.world().budget().charge_steps(COMPILE_STEPS)?;
    let normal = Expression::compile(text).map_err(|e| failed(Cause::Syntax(e)))?;
    scope.evaluate(&Expr { normal, on_delete: None }).map_err(|cause| cause.into_error(body, None))
}

/// A value as part of a text: strings as they are, anything else as compact JSON, with the two-digit exponents that
/// Go's formatting (not its JSON) gives numbers (engine 8.5).
fn embedded(value: &Value, budget: &Budget) -> Result<String, BudgetError> {
    let size = budget.charge_tree(value)?;
    budget.charge_bytes(size)?;
    Ok(match value {
        Value::String(text) => text.to_string(),
        Value::Float(_) => {
            let json = value.to_json();
            match json.split_once("e-") {
                Some((digits, exponent)) if exponent.len() == 1 => format!("{digits}e-0{exponent}"),
                _ => json,
            }
        }
        _ => value.to_json(),
    })
}

fn unescape(text: String) -> Str {
    if text.contains("\\{{") { text.replace("\\{{", "{{").into() } else { text.into() }
}
