//! What an expression can see: variables, types with fields, functions, macros and options.
//!
//! An [`Environment`] is built once for each place where expressions stand and shared; deriving one with another
//! variable or type copies only those.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::library::{Library, Overload};
use super::macros::Macro;
use super::parser::Syntax;
use super::types::{Type, split_arguments};
use crate::Str;

/// A type with fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectType {
    /// Its name.
    pub name: Str,
    /// Its fields.
    pub fields: BTreeMap<Str, Type>,
    /// Whether texts may construct it: `Name{field: value}`.
    pub constructible: bool,
}

impl ObjectType {
    pub(super) fn field(&self, name: &str) -> Option<&Type> {
        self.fields.get(name)
    }
}

/// Which version of the reference is followed where versions differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Edition {
    /// Kubernetes 1.34.
    #[default]
    Kubernetes134,
    /// Kubernetes 1.35, which Kyverno 1.18 is built on.
    Kubernetes135,
    /// Kubernetes 1.36 and the head of Kyverno.
    Head,
}

/// What is asked of literals and constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Literals {
    /// Nothing: what has no value fails when it is reached.
    #[default]
    Lenient,
    /// Elements of one list or map literal have one type.
    Homogeneous,
    /// As Kubernetes asks: elements of one list or map literal have one type, constant durations, timestamps, regular
    /// expressions and formats are checked, and conversions of constants are made while compiling.
    Strict,
}

/// Switches of an environment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The version followed.
    pub edition: Edition,
    /// What is asked of literals.
    pub literals: Literals,
    /// What evaluating one expression may cost; none = no limit.
    pub cost_limit: Option<u64>,
    /// Field names may stand in backquotes.
    pub quoted_fields: bool,
    /// A type with this name, and all below it (`Object.spec`), may be constructed with any fields.
    pub open_object: Option<&'static str>,
}

/// An overload of a function with its types read.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) overload: &'static Overload,
    pub(super) params: Vec<Type>,
    pub(super) result: Type,
    /// The names of its type parameters.
    pub(super) generics: Vec<Str>,
}

/// Names and their meanings.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    functions: Arc<FxHashMap<&'static str, Vec<Arc<Signature>>>>,
    variables: FxHashMap<Str, Type>,
    objects: FxHashMap<Str, Arc<ObjectType>>,
    macros: Arc<Vec<Macro>>,
    options: Options,
}

impl Environment {
    /// An environment with the functions and macros of `libraries` and no variables.
    pub fn new(libraries: &[Library], options: Options) -> Self {
        let mut functions: FxHashMap<&'static str, Vec<Arc<Signature>>> = FxHashMap::default();
        let mut macros = Vec::new();
        for library in libraries {
            macros.extend_from_slice(library.macros);
            for overload in library.overloads {
                if let Some(signature) = Signature::read(overload) {
                    functions.entry(overload.function).or_default().push(Arc::new(signature));
                }
            }
        }
        Self { functions: Arc::new(functions), macros: Arc::new(macros), options, ..Self::default() }
    }

    /// Declares a variable, in place of one with the same name.
    pub fn declare(&mut self, name: impl Into<Str>, kind: Type) {
        self.variables.insert(name.into(), kind);
    }

    /// Whether there is a variable with that name.
    pub fn declares(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// Declares a type with fields, in place of one with the same name.
    pub fn declare_object(&mut self, object: ObjectType) {
        self.objects.insert(object.name.clone(), Arc::new(object));
    }

    /// Adds fields to a declared type.
    pub fn extend_object(&mut self, name: &str, fields: impl IntoIterator<Item = (impl Into<Str>, Type)>) {
        if let Some(object) = self.objects.get_mut(name) {
            Arc::make_mut(object).fields.extend(fields.into_iter().map(|(name, kind)| (name.into(), kind)));
        }
    }

    /// Its switches.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Sets its switches.
    pub fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    /// Every overload, in no particular order of functions.
    pub fn overloads(&self) -> impl Iterator<Item = &'static Overload> {
        let mut names: Vec<_> = self.functions.keys().copied().collect();
        names.sort_unstable();
        names.into_iter().filter_map(|name| self.functions.get(name)).flatten().map(|signature| signature.overload)
    }

    pub(super) fn macros(&self) -> &[Macro] {
        &self.macros
    }

    pub(super) fn syntax(&self) -> Syntax {
        Syntax { optionals: true, quoted_fields: self.options.quoted_fields }
    }

    pub(super) fn function(&self, name: &str) -> Option<&[Arc<Signature>]> {
        self.functions.get(name.strip_prefix('.').unwrap_or(name)).map(Vec::as_slice)
    }

    pub(super) fn object(&self, name: &str) -> Option<&Arc<ObjectType>> {
        self.objects.get(name)
    }

    /// The type of a variable, or of the name of a type.
    pub(super) fn name(&self, name: &str) -> Option<Name> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(kind) = self.variables.get(name) {
            return Some(Name::Variable(kind.clone()));
        }
        self.type_named(name).map(Name::Type)
    }

    /// Whether `name` is a type that has any fields.
    pub(super) fn is_open(&self, name: &str) -> bool {
        let below = self.options.open_object.and_then(|open| name.strip_prefix(open));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    fn type_named(&self, name: &str) -> Option<Type> {
        if self.objects.contains_key(name) || self.is_open(name) {
            return Some(Type::Object(name.into()));
        }
        Some(match name {
            "bool"
            | "int"
            | "uint"
            | "double"
            | "string"
            | "bytes"
            | "null_type"
            | "google.protobuf.Timestamp"
            | "google.protobuf.Duration"
            | "google.protobuf.Any"
            | "google.protobuf.Value"
            | "google.protobuf.Struct"
            | "google.protobuf.ListValue" => Type::parse(name)?,
            "type" => Type::TypeOf(None),
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "optional_type" if self.options.edition == Edition::Head => Type::optional(Type::Dyn),
            "optional_type" => Type::Opaque("optional_type".into()),
            // Opaque types that can be named.
            "net.IP" | "net.CIDR" if self.functions.contains_key("isCIDR") => Type::Opaque(name.into()),
            _ => Type::wrapper(Type::wrapped(name)?),
        })
    }
}

/// What a name means.
pub(super) enum Name {
    Variable(Type),
    Type(Type),
}

impl Signature {
    fn read(overload: &'static Overload) -> Option<Self> {
        let params: Vec<Type> = split_arguments(overload.params).into_iter().map(Type::parse).collect::<Option<_>>()?;
        let result = Type::parse(overload.result)?;
        let mut generics = Vec::new();
        for kind in params.iter().chain([&result]) {
            collect_params(kind, &mut generics);
        }
        Some(Self { overload, params, result, generics })
    }
}

fn collect_params(kind: &Type, names: &mut Vec<Str>) {
    match kind {
        Type::Param(name) if !names.contains(name) => names.push(name.clone()),
        Type::List(inner) | Type::Optional(inner) | Type::Wrapper(inner) | Type::TypeOf(Some(inner)) => {
            collect_params(inner, names);
        }
        Type::Map(pair) => {
            collect_params(&pair.0, names);
            collect_params(&pair.1, names);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_overload_of_every_library_has_readable_types() {
        for library in super::super::library::all() {
            for overload in library.overloads {
                assert!(
                    Signature::read(overload).is_some(),
                    "{}: {} -> {}",
                    overload.id,
                    overload.params,
                    overload.result
                );
            }
        }
    }
}
