//! The rules that a definition sets: types, bounds, patterns, alternatives.
//!
//! Messages are those of the API server's validator. Rules in CEL (`x-kubernetes-validations`) have a place of their
//! own, `cel`.

use std::collections::BTreeSet;

use ephor_expr::scalar::go_regex;
use ephor_expr::{Map, Value};

use super::format::fits;
use super::{Kind, ListKind, Schema};
use crate::error::Cause;

/// How many faults of one object are reported.
const MAX_CAUSES: usize = 64;

/// What is wrong with `object`.
pub fn validate(schema: Schema<'_>, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(schema, object, "", &mut causes);
    causes.truncate(MAX_CAUSES);
    causes
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// How the validator shows a value.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "\"object\"".to_owned(),
        Value::Array(_) => "\"array\"".to_owned(),
        other => other.to_json(),
    }
}

fn check(schema: Schema<'_>, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if causes.len() > MAX_CAUSES || (value.is_null() && schema.is_nullable()) {
        return;
    }
    if !check_type(schema, value, path, causes) {
        return;
    }
    check_rules(schema, value, path, causes);
    match value {
        Value::Object(members) => {
            for key in schema.required().filter(|key| members.get(key).is_none()) {
                causes.push(Cause::required(join(path, key), ""));
            }
            for (key, value) in members.iter() {
                // Metadata has rules of its own, and what a built-in type looks like has been seen to on reading.
                if let Some(member) = schema.member(key).filter(|member| member.is_custom) {
                    check(member, value, &join(path, key), causes);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.items() {
                for (index, value) in items.iter().enumerate() {
                    check(item, value, &format!("{path}[{index}]"), causes);
                }
            }
            check_keys(schema, items, path, causes);
        }
        _ => {}
    }
}

fn check_type(schema: Schema<'_>, value: &Value, path: &str, causes: &mut Vec<Cause>) -> bool {
    let (fits, wanted) = match schema.kind() {
        Kind::Any => (true, ""),
        Kind::Object => (value.as_object().is_some(), "object"),
        Kind::Array => (value.as_array().is_some(), "array"),
        Kind::String => (value.as_str().is_some(), "string"),
        Kind::Integer => (value.as_i64().is_some(), "integer"),
        Kind::Number => (value.as_f64().is_some(), "number"),
        Kind::Boolean => (value.as_bool().is_some(), "boolean"),
        Kind::IntOrString | Kind::Quantity => (value.as_str().is_some() || value.as_i64().is_some(), "integer,string"),
    };
    if !fits {
        let found = match value {
            Value::Int(_) => "integer",
            other => other.type_name(),
        };
        let why = format!("{path} in body must be of type {wanted}: {found:?}");
        causes.push(Cause {
            field: path.into(),
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: {found:?}: {why}"),
        });
    }
    fits
}

/// What the keywords say that are about this value alone.
fn check_rules(schema: Schema<'_>, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(allowed) = schema.keyword("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        causes.push(Cause::unsupported(path, &shown(value), allowed));
    }
    let mut refuse = |why: String| {
        causes.push(Cause::invalid_raw(path, &shown(value), &format!("{path} in body {why}")));
    };
    let number = |key: &str| schema.keyword(key).and_then(Value::as_f64);
    let count = |key: &str| schema.keyword(key).and_then(Value::as_i64).and_then(|n| usize::try_from(n).ok());
    let is_exclusive = |key: &str| schema.keyword(key).and_then(Value::as_bool) == Some(true);
    let bound = |key: &str| schema.keyword(key).map(Value::to_json).unwrap_or_default();
    match value {
        Value::Int(_) | Value::Float(_) => {
            let n = value.as_f64().unwrap_or_default();
            if let Some(least) = number("minimum") {
                if is_exclusive("exclusiveMinimum") && n <= least {
                    refuse(format!("should be greater than {}", bound("minimum")));
                } else if n < least {
                    refuse(format!("should be greater than or equal to {}", bound("minimum")));
                }
            }
            if let Some(most) = number("maximum") {
                if is_exclusive("exclusiveMaximum") && n >= most {
                    refuse(format!("should be less than {}", bound("maximum")));
                } else if n > most {
                    refuse(format!("should be less than or equal to {}", bound("maximum")));
                }
            }
            if let Some(step) = number("multipleOf").filter(|step| *step > 0.0)
                && (n / step).fract() != 0.0
            {
                refuse(format!("should be a multiple of {}", bound("multipleOf")));
            }
        }
        Value::String(text) => {
            let length = text.chars().count();
            // The first of these that is wrong is the one that is told.
            if let Some(most) = count("maxLength").filter(|most| length > *most) {
                causes.push(Cause::too_long(path, most));
            } else if count("minLength").is_some_and(|least| length < least) {
                refuse(format!("should be at least {} chars long", bound("minLength")));
            } else if let Some(pattern) = schema.keyword("pattern").and_then(Value::as_str)
                && go_regex::compile(pattern).is_ok_and(|regex| !regex.is_match(text))
            {
                refuse(format!("should match '{pattern}'"));
            }
            if let Some(format) = schema.format()
                && fits(format, text) == Some(false)
            {
                causes.push(Cause::invalid(path, text, &format!("{path} in body must be of type {format}: {text:?}")));
            }
        }
        Value::Array(items) => {
            if count("minItems").is_some_and(|least| items.len() < least) {
                refuse(format!("should have at least {} items", bound("minItems")));
            }
            if let Some(most) = count("maxItems").filter(|most| items.len() > *most) {
                causes.push(Cause::too_many(path, items.len(), most));
            }
        }
        Value::Object(members) => {
            if count("minProperties").is_some_and(|least| members.len() < least) {
                refuse(format!("should have at least {} properties", bound("minProperties")));
            }
            if let Some(most) = count("maxProperties").filter(|most| members.len() > *most) {
                causes.push(Cause::too_many(path, members.len(), most));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
    check_alternatives(schema, value, path, causes);
}

fn check_alternatives(schema: Schema<'_>, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    // Kubernetes spells int-or-string as alternatives as well; the type was looked at already.
    if schema.kind() == Kind::IntOrString {
        return;
    }
    let holds = |site: &Value| {
        let mut faults = Vec::new();
        check(Schema::part_of_custom(site), value, path, &mut faults);
        faults.is_empty()
    };
    let list = |key: &str| schema.keyword(key).and_then(Value::as_array);
    let mut refuse = |why: &str| {
        causes.push(Cause::invalid_raw(path, &shown(value), &format!("{path} in body {why}")));
    };
    if list("anyOf").is_some_and(|any| !any.iter().any(holds)) {
        refuse("must validate at least one schema (anyOf)");
    }
    if list("oneOf").is_some_and(|one| one.iter().filter(|site| holds(site)).count() != 1) {
        refuse("must validate one and only one schema (oneOf)");
    }
    if list("allOf").is_some_and(|all| !all.iter().all(holds)) {
        refuse("must validate all the schemas (allOf)");
    }
    if schema.keyword("not").is_some_and(holds) {
        refuse("must not validate the schema (not)");
    }
}

/// Items of sets and of keyed lists may be there once only.
fn check_keys(schema: Schema<'_>, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let keys: Vec<Value> = match schema.list_kind() {
        ListKind::Atomic => return,
        ListKind::Set => items.to_vec(),
        ListKind::Map(keys) => {
            let key_of = |item: &Value| {
                let defaults = schema.items();
                let part = |key: &str| {
                    let default = || defaults.and_then(|d| d.member(key)).and_then(|m| m.default_value()).cloned();
                    item.get(key).cloned().or_else(default).unwrap_or_default()
                };
                Value::object(keys.iter().map(|key| ((*key).into(), part(key))).collect::<Map>())
            };
            items.iter().map(key_of).collect()
        }
    };
    let mut seen = BTreeSet::new();
    for (index, key) in keys.iter().enumerate() {
        if !seen.insert(key.to_json()) {
            causes.push(Cause::duplicate(format!("{path}[{index}]"), key));
        }
    }
}
