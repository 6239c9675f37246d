//! Checks of literals that come after the types are known: one type in a list or map, constants that are no duration,
//! timestamp or regular expression.

use super::super::ast::{Ast, Id, Kind};
use super::super::environment::{Environment, Literals};
use super::super::error::Issue;
use super::super::library::format;
use super::super::library::operators::in_range;
use super::super::literal::Literal;
use super::super::types::Type;
use super::Types;
use crate::scalar::duration::Duration;
use crate::scalar::go_regex;
use crate::scalar::go_time::{self, Time};

pub(super) fn check(ast: &Ast, types: &Types, environment: &Environment, issues: &mut Vec<Issue>) {
    let asked = environment.options().literals;
    if asked == Literals::Lenient {
        return;
    }
    let exempt = format_arguments(ast);
    for id in (0..ast.len()).map(Id) {
        // A node without a type stands in no part of the whole.
        if types.get(id).is_none_or(|node| node.kind.is_none()) {
            continue;
        }
        if asked == Literals::Strict {
            constants(ast, types, id, issues);
        }
        if !exempt.contains(&id) {
            homogeneous(ast, types, id, issues);
        }
    }
}

/// The literals within arguments of `format`, which may mix types.
fn format_arguments(ast: &Ast) -> Vec<Id> {
    let mut exempt: Vec<Id> = (0..ast.len())
        .filter_map(|i| match ast.kind(Id(i)) {
            Kind::Call { function, args, .. } if function == "format" => args.first().copied(),
            _ => None,
        })
        .collect();
    let mut next = 0;
    while let Some(id) = exempt.get(next).copied() {
        match ast.kind(id) {
            Kind::List(items) => exempt.extend(items.iter().map(|item| item.value)),
            Kind::Map(entries) => exempt.extend(entries.iter().flat_map(|entry| [entry.key, entry.value])),
            Kind::Call { target, args, .. } => exempt.extend(target.iter().chain(args)),
            _ => {}
        }
        next += 1;
    }
    exempt
}

fn homogeneous(ast: &Ast, types: &Types, id: Id, issues: &mut Vec<Issue>) {
    let optional = |id: Id, optional: bool| {
        let kind = types.kind(id);
        if optional { kind.unwrap_optional().0 } else { kind }
    };
    match ast.kind(id) {
        Kind::List(items) => {
            let kinds = items.iter().map(|item| (item.value, optional(item.value, item.optional)));
            same(ast, kinds, true, issues);
        }
        Kind::Map(entries) => {
            same(ast, entries.iter().map(|entry| (entry.key, types.kind(entry.key))), false, issues);
            same(ast, entries.iter().map(|entry| (entry.value, optional(entry.value, entry.optional))), false, issues);
        }
        _ => {}
    }
}

/// All types must be the type of the first. For a list only the first that is not is reported.
fn same<'a>(ast: &Ast, mut kinds: impl Iterator<Item = (Id, &'a Type)>, once: bool, issues: &mut Vec<Issue>) {
    let Some((_, first)) = kinds.next() else { return };
    for (id, kind) in kinds {
        if !equivalent(first, kind) {
            let message = format!("expected type '{}' but found '{}'", first.message(), kind.message());
            issues.push(Issue { offset: Some(ast.offset(id)), message });
            if once {
                return;
            }
        }
    }
}

fn equivalent(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Wrapper(inner), other) | (other, Type::Wrapper(inner)) if **inner == *other => true,
        _ => a == b,
    }
}

fn constants(ast: &Ast, types: &Types, id: Id, issues: &mut Vec<Issue>) {
    let Kind::Call { function, target, args } = ast.kind(id) else { return };
    let text = |id: &Id| match ast.kind(*id) {
        Kind::Literal(Literal::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (Some(argument), "duration" | "timestamp" | "matches" | "format") = (args.last(), function.as_str()) else {
        return;
    };
    if function == "format" {
        if let Some(template) = target.as_ref().and_then(text) {
            format::check_literal(ast, types, id, template, *argument, issues);
        }
        return;
    }
    let Kind::Literal(literal) = ast.kind(*argument) else { return };
    let valid = match (function.as_str(), literal) {
        ("duration", Literal::String(text)) => Duration::parse(text).is_ok(),
        ("timestamp", Literal::String(text)) => go_time::parse_rfc3339(text).is_ok_and(|time| in_range(&time)),
        ("timestamp", Literal::Int(seconds)) => in_range(&Time::from_unix(*seconds, 0)),
        ("matches", Literal::String(text)) => target.is_none() || go_regex::check(text).is_ok(),
        _ => false,
    };
    if !valid {
        let offset = Some(ast.offset(*argument));
        issues.push(Issue { offset, message: format!("invalid {function} argument") });
    }
}
