//! Types of expressions, and which overloads their calls mean.
//!
//! Takes a syntax tree and an [`Environment`]; gives a type for every node and the matching overloads for every call,
//! or all faults in the words of the reference. Overloads are resolved by unification with type variables: a call of
//! which several overloads fit decides between them at run time.

mod literals;
mod unify;

use std::sync::Arc;

use self::unify::{Mappings, covers};
use super::ast::{Ast, Comprehension, Entry, Field, Id, Item, Kind};
use super::environment::{Environment, Name, Signature};
use super::error::{CompileError, Issue};
use super::literal::Literal;
use super::types::Type;
use crate::Str;

/// The overloads that a call may mean.
pub(super) type Overloads = Vec<Arc<Signature>>;

/// What the checker knows of one node.
#[derive(Debug, Clone, Default)]
pub(super) struct Checked {
    pub(super) kind: Option<Type>,
    /// The overloads that a call may mean.
    pub(super) overloads: Overloads,
    /// What a name or a chain of selections means.
    pub(super) reference: Option<Reference>,
}

/// What a name means.
#[derive(Debug, Clone)]
pub(super) enum Reference {
    /// A declared variable, by its full name.
    Variable(Str),
    /// A type.
    Type(Type),
    /// A namespaced function was called, so the target is part of its name.
    Function(Str),
}

/// Types of all nodes.
#[derive(Debug)]
pub(super) struct Types {
    nodes: Vec<Checked>,
}

impl Types {
    pub(super) fn get(&self, id: Id) -> Option<&Checked> {
        self.nodes.get(id.0)
    }

    pub(super) fn kind(&self, id: Id) -> &Type {
        self.get(id).and_then(|node| node.kind.as_ref()).unwrap_or(&Type::Dyn)
    }
}

/// Checks `ast`.
pub(super) fn check(text: &str, ast: &Ast, environment: &Environment) -> Result<Types, CompileError> {
    let nodes = vec![Checked::default(); ast.len()];
    let mut checker = Checker {
        ast,
        environment,
        nodes,
        mappings: Mappings::default(),
        scopes: Vec::new(),
        next: 0,
        issues: Vec::new(),
    };
    if let Some(root) = ast.root {
        checker.check(root);
    }
    let Checker { mut nodes, mappings, mut issues, .. } = checker;
    for node in &mut nodes {
        node.kind = node.kind.take().map(|kind| mappings.substitute(&kind, true));
    }
    let types = Types { nodes };
    if issues.is_empty() {
        literals::check(ast, &types, environment, &mut issues);
    }
    if issues.is_empty() { Ok(types) } else { Err(CompileError::issues(text, issues)) }
}

struct Checker<'a> {
    ast: &'a Ast,
    environment: &'a Environment,
    nodes: Vec<Checked>,
    mappings: Mappings,
    scopes: Vec<(Str, Type)>,
    next: u32,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn issue(&mut self, offset: usize, message: String) {
        self.issues.push(Issue { offset: Some(offset), message });
    }

    fn issue_at(&mut self, id: Id, message: String) {
        self.issue(self.ast.offset(id), message);
    }

    fn mismatch(&mut self, id: Id, wanted: &Type, found: &Type) {
        let (wanted, found) = (self.mappings.substitute(wanted, false), self.mappings.substitute(found, false));
        self.issue_at(id, format!("expected type '{}' but found '{}'", wanted.message(), found.message()));
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.issue_at(id, format!("undeclared reference to '{name}' (in container '')"));
        self.set(id, Type::Error);
    }

    fn kind(&self, id: Id) -> Type {
        self.nodes.get(id.0).and_then(|node| node.kind.clone()).unwrap_or(Type::Error)
    }

    fn set(&mut self, id: Id, kind: Type) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.kind = Some(kind);
        }
    }

    fn refer(&mut self, id: Id, reference: Reference) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.reference = Some(reference);
        }
    }

    fn variable(&mut self) -> Type {
        self.next += 1;
        Type::Var(self.next)
    }

    fn check(&mut self, id: Id) {
        // A node that a macro uses twice is checked once.
        if self.nodes.get(id.0).is_some_and(|node| node.kind.is_some()) && !matches!(self.ast.kind(id), Kind::Ident(_))
        {
            return;
        }
        let ast = self.ast;
        match ast.kind(id) {
            Kind::Literal(literal) => self.set(id, literal_type(literal)),
            Kind::Ident(name) => self.ident(id, name),
            Kind::Select { operand, field, test } => self.select(id, *operand, field, *test),
            Kind::Call { function, target, args } => self.call(id, function, *target, args),
            Kind::List(items) => self.list(id, items),
            Kind::Map(entries) => self.map(id, entries),
            Kind::Struct { name, fields } => self.object(id, name, fields),
            Kind::Comprehension(fold) => self.comprehension(id, fold),
        }
    }

    fn ident(&mut self, id: Id, name: &Str) {
        if let Some((_, kind)) = self.scopes.iter().rev().find(|(local, _)| local == name) {
            let kind = kind.clone();
            self.set(id, kind);
        } else if !self.global(id, name) {
            self.undeclared(id, name);
        }
    }

    /// Resolves a full name of the environment.
    fn global(&mut self, id: Id, name: &str) -> bool {
        match self.environment.name(name) {
            Some(Name::Variable(kind)) => {
                self.refer(id, Reference::Variable(name.trim_start_matches('.').into()));
                self.set(id, kind);
                true
            }
            Some(Name::Type(kind)) => {
                self.set(id, Type::type_of(kind.clone()));
                self.refer(id, Reference::Type(kind));
                true
            }
            None => false,
        }
    }

    fn select(&mut self, id: Id, operand: Id, field: &Str, test: bool) {
        if !test
            && let Some(name) = self.ast.qualified_name(id)
            && self.global(id, &name)
        {
            return;
        }
        let found = self.field(id, operand, field, false);
        let kind = if test { Type::Bool } else { self.mappings.substitute(&found, false) };
        self.set(id, kind);
    }

    fn field(&mut self, id: Id, operand: Id, field: &str, optional: bool) -> Type {
        self.check(operand);
        let of = self.mappings.substitute(&self.kind(operand), false);
        let (target, was_optional) = of.unwrap_optional();
        let found = match target {
            Type::Map(pair) => pair.1.clone(),
            Type::Object(name) if self.environment.is_open(name) => Type::Dyn,
            // A library names a type that the environment gives fields.
            Type::Opaque(name) if self.environment.object(name).is_none() => {
                self.issue_at(id, format!("type '{name}' does not support field selection"));
                Type::Dyn
            }
            Type::Object(name) | Type::Opaque(name) => {
                let found = self.environment.object(name).and_then(|object| object.field(field)).cloned();
                found.unwrap_or_else(|| {
                    self.issue_at(id, format!("undefined field '{field}'"));
                    Type::Error
                })
            }
            Type::Var(_) => {
                self.mappings.assign(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            other => {
                self.issue_at(id, format!("type '{}' does not support field selection", other.message()));
                Type::Dyn
            }
        };
        if optional || was_optional { Type::optional(found) } else { found }
    }

    fn call(&mut self, id: Id, function: &Str, target: Option<Id>, args: &[Id]) {
        if function == "_?._"
            && let [operand, field] = args
        {
            let Kind::Literal(Literal::String(name)) = self.ast.kind(*field) else { return };
            self.set(*field, Type::String);
            let found = self.field(id, *operand, name, true);
            let kind = self.mappings.substitute(&found, false);
            self.set(id, kind);
            return;
        }
        for arg in args {
            self.check(*arg);
        }
        if matches!(function.as_str(), "_&&_" | "_||_") {
            for arg in args {
                self.expect(*arg, &Type::Bool);
            }
            self.set(id, Type::Bool);
            return;
        }
        let environment = self.environment;
        let Some(target) = target else {
            match environment.function(function) {
                Some(signatures) => self.resolve(id, function, signatures, None, args),
                None => self.undeclared(id, function),
            }
            return;
        };
        if let Some(prefix) = self.ast.qualified_name(target) {
            let full = format!("{prefix}.{function}");
            if let Some(signatures) = environment.function(&full) {
                self.refer(id, Reference::Function(full.as_str().into()));
                self.resolve(id, &full, signatures, None, args);
                return;
            }
        }
        self.check(target);
        match environment.function(function) {
            Some(signatures) => self.resolve(id, function, signatures, Some(target), args),
            None => self.undeclared(id, function),
        }
    }

    fn resolve(&mut self, id: Id, name: &str, signatures: &[Arc<Signature>], target: Option<Id>, args: &[Id]) {
        let given: Vec<Type> = target.iter().chain(args).map(|arg| self.kind(*arg)).collect();
        let mut result: Option<Type> = None;
        let mut overloads = Overloads::new();
        for signature in signatures {
            if signature.overload.member != target.is_some() {
                continue;
            }
            let fresh: Vec<(Str, Type)> =
                signature.generics.iter().map(|name| (name.clone(), self.variable())).collect();
            let params: Vec<Type> = signature.params.iter().map(|kind| instantiate(kind, &fresh)).collect();
            if !self.mappings.assign_all(&given, &params) {
                continue;
            }
            overloads.push(Arc::clone(signature));
            let found = self.mappings.substitute(&instantiate(&signature.result, &fresh), false);
            result = Some(match result {
                None => found,
                Some(same) if same.is_dyn() || same == found => same,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            let shown: Vec<String> =
                given.iter().map(|kind| self.mappings.substitute(kind, true).message().to_string()).collect();
            let applied = match shown.split_first() {
                Some((first, rest)) if target.is_some() => format!("{first}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            self.issue_at(id, format!("found no matching overload for '{name}' applied to '{applied}'"));
            self.set(id, Type::Error);
            return;
        };
        self.set(id, result);
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.overloads = overloads;
        }
    }

    /// The common type of `before` and `found`.
    fn join(&mut self, before: Option<Type>, found: Type) -> Type {
        let Some(before) = before else { return found };
        if self.mappings.assign(&before, &found) {
            return if covers(&before, &found) { before } else { found };
        }
        Type::Dyn
    }

    /// The type of an element, unwrapped if it is marked as optional.
    fn element(&mut self, id: Id, optional: bool) -> Type {
        self.check(id);
        let kind = self.kind(id);
        if !optional {
            return kind;
        }
        let (inner, is_optional) = kind.unwrap_optional();
        if !is_optional && !kind.is_dyn() {
            self.mismatch(id, &Type::optional(kind.clone()), &kind);
        }
        inner.clone()
    }

    fn list(&mut self, id: Id, items: &[Item]) {
        let mut joined = None;
        for item in items {
            let kind = self.element(item.value, item.optional);
            joined = Some(self.join(joined, kind));
        }
        let item = joined.unwrap_or_else(|| self.variable());
        self.set(id, Type::list(item));
    }

    fn map(&mut self, id: Id, entries: &[Entry]) {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.element(entry.key, false);
            keys = Some(self.join(keys, key));
            let value = self.element(entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.variable());
        let value = values.unwrap_or_else(|| self.variable());
        self.set(id, Type::map(key, value));
    }

    fn object(&mut self, id: Id, name: &Str, fields: &[Field]) {
        let made = match self.environment.name(name) {
            None => {
                self.undeclared(id, name);
                return;
            }
            Some(Name::Type(kind)) => kind,
            Some(Name::Variable(_)) => {
                self.issue_at(id, format!("'{name}' is not a type"));
                Type::Error
            }
        };
        let declared = self.environment.object(name).cloned();
        let open = self.environment.is_open(name);
        if declared.is_none() && !open && !name.contains("google.protobuf.") && made != Type::Error {
            self.issue_at(id, format!("'{name}' is not a message type"));
        }
        for field in fields {
            let value = self.element(field.value, field.optional);
            if open {
                continue;
            }
            let wanted = match &declared {
                Some(object) => object.field(&field.name).cloned(),
                None => well_known_field(name, &field.name),
            };
            match wanted {
                None if declared.is_some() => {
                    let found = self.mappings.substitute(&value, false);
                    let text = format!(
                        "expected type of field '{}' is '' but provided type is '{}'",
                        field.name,
                        found.message()
                    );
                    self.issue(field.offset, text);
                }
                None => self.issue(field.offset, format!("undefined field '{}'", field.name)),
                Some(wanted) if !self.mappings.assign(&wanted, &value) => {
                    let found = self.mappings.substitute(&value, false);
                    let text = format!(
                        "expected type of field '{}' is '{}' but provided type is '{}'",
                        field.name,
                        wanted.message(),
                        found.message()
                    );
                    self.issue(field.offset, text);
                }
                Some(_) => {}
            }
        }
        self.set(id, made);
    }

    fn comprehension(&mut self, id: Id, fold: &Comprehension) {
        self.check(fold.range);
        self.check(fold.init);
        let accumulator = self.kind(fold.init);
        let range = self.mappings.substitute(&self.kind(fold.range), false);
        let (first, second) = match &range {
            Type::List(item) if fold.second.is_some() => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Dyn),
            Type::Map(pair) => pair.as_ref().clone(),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.mappings.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let text = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    other.message()
                );
                self.issue_at(fold.range, text);
                (Type::Error, Type::Error)
            }
        };
        let outer = self.scopes.len();
        self.scopes.push((fold.accumulator.clone(), accumulator.clone()));
        self.scopes.push((fold.variable.clone(), first));
        if let Some(name) = &fold.second {
            self.scopes.push((name.clone(), second));
        }
        self.check(fold.condition);
        self.expect(fold.condition, &Type::Bool);
        self.check(fold.step);
        self.expect(fold.step, &accumulator);
        self.scopes.truncate(outer + 1);
        self.check(fold.result);
        self.scopes.truncate(outer);
        let kind = self.mappings.substitute(&self.kind(fold.result), false);
        self.set(id, kind);
    }

    fn expect(&mut self, id: Id, wanted: &Type) {
        let found = self.kind(id);
        if !self.mappings.assign(wanted, &found) {
            self.mismatch(id, wanted, &found);
        }
    }
}

fn instantiate(kind: &Type, fresh: &[(Str, Type)]) -> Type {
    let inner = |t: &Type| instantiate(t, fresh);
    match kind {
        Type::Param(name) => fresh.iter().find(|(n, _)| n == name).map_or(Type::Dyn, |(_, var)| var.clone()),
        Type::List(item) => Type::list(inner(item)),
        Type::Map(pair) => Type::map(inner(&pair.0), inner(&pair.1)),
        Type::Optional(of) => Type::optional(inner(of)),
        Type::TypeOf(Some(of)) => Type::type_of(inner(of)),
        other => other.clone(),
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// The fields of the message types of the language itself.
fn well_known_field(object: &str, field: &str) -> Option<Type> {
    let object = object.trim_start_matches('.');
    Some(match (object.strip_prefix("google.protobuf.")?, field) {
        ("Timestamp" | "Duration", "seconds" | "nanos") => Type::Int,
        ("Any", "type_url") | ("Value", "string_value") => Type::String,
        ("Any", "value") => Type::Bytes,
        ("Value", "number_value") => Type::Double,
        ("Value", "bool_value") => Type::Bool,
        ("Value", "null_value") => Type::Null,
        ("Value", "struct_value") | ("Struct", "fields") => Type::map(Type::String, Type::Dyn),
        ("Value", "list_value") | ("ListValue", "values") => Type::list(Type::Dyn),
        (_, "value") => Type::wrapped(object)?,
        _ => return None,
    })
}
