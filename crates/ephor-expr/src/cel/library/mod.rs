//! Functions as table entries: an overload's types, code and cost in one place. One file for each family.
//!
//! A [`Library`] is a set of overloads and macros that environments include as a whole. The code of an overload gets
//! arguments that fit its declared types, unless it is `generic`: then it decides for itself, as operators do.

#![expect(clippy::unnecessary_wraps, reason = "entries of the tables have one signature")]

pub(super) mod conversions;
pub(super) mod cost;
mod equality;
pub(super) mod format;
mod kubernetes;
mod kyverno;
mod lists;
mod math;
pub(super) mod operators;
mod optionals;
mod regex;
mod sets;
mod strings;
mod time;

pub use kyverno::world::context;

pub use kubernetes::authorizer::{Attributes, Decision, authorizer, request_resource};

use self::cost::CostRule;
use super::environment::Edition;
use super::error::EvalError;
use super::macros::{self, Macro};
use super::value::Val;
use crate::budget::Budget;
use crate::scalar::go_regex::{ConstantRegex, GoRegex, GoRegexError, RegexCache};
use crate::value::Value;

/// A set of functions and macros.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    /// Its name.
    pub name: &'static str,
    /// Its functions.
    pub overloads: &'static [Overload],
    /// Its macros.
    pub macros: &'static [Macro],
}

const fn library(name: &'static str, overloads: &'static [Overload], macros: &'static [Macro]) -> Library {
    Library { name, overloads, macros }
}

/// The operators of the language.
pub const OPERATORS: Library = library("operators", operators::OVERLOADS, macros::STANDARD);
/// Equality and membership.
pub const EQUALITY: Library = library("equality", equality::OVERLOADS, &[]);
/// Conversions between types.
pub const CONVERSIONS: Library = library("conversions", conversions::OVERLOADS, &[]);
/// Durations of integers, which later versions do not have.
pub const DURATION_OF_INT: Library = library("duration of int", conversions::DURATION_OF_INT, &[]);
/// `regex.extract` and its like.
pub const REGEX: Library = library("regex", regex::OVERLOADS, &[]);
/// Functions of text that the language itself has.
pub const STANDARD_STRINGS: Library = library("standard strings", strings::STANDARD, &[]);
/// Parts of timestamps and durations.
pub const TIME: Library = library("time", time::OVERLOADS, &[]);
/// Optional values.
pub const OPTIONALS: Library = library("optionals", optionals::OVERLOADS, macros::OPTIONALS);
/// More functions of text.
pub const STRINGS: Library = library("strings", strings::EXTENSION, &[]);
/// `string.reverse`.
pub const STRING_REVERSE: Library = library("string reverse", strings::REVERSE, &[]);
/// Sets.
pub const SETS: Library = library("sets", sets::OVERLOADS, &[]);
/// More functions of lists.
pub const LISTS: Library = library("lists", lists::EXTENSION, macros::LISTS);
/// Comprehensions over two variables.
pub const TWO_VARIABLES: Library = library("two variables", lists::MAP_INSERT, macros::TWO_VARIABLE);
/// `cel.bind`.
pub const BINDINGS: Library = library("bindings", &[], macros::BINDINGS);
/// `math`.
pub const MATH: Library = library("math", math::OVERLOADS, macros::MATH);
/// `base64`.
pub const ENCODERS: Library = library("encoders", strings::ENCODERS, &[]);
/// `json.encode`.
pub const JSON_ENCODER: Library = library("json encoder", strings::JSON_ENCODER, &[]);
/// `proto`: macros that no use of is valid.
pub const PROTOS: Library = library("protos", &[], macros::PROTOS);
/// Lists, as Kubernetes extends them.
pub const KUBERNETES_LISTS: Library = library("kubernetes lists", lists::KUBERNETES, &[]);
/// Regular expressions, as Kubernetes extends them.
pub const KUBERNETES_REGEX: Library = library("kubernetes regex", strings::KUBERNETES_REGEX, &[]);
/// URLs.
pub const KUBERNETES_URL: Library = library("kubernetes url", kubernetes::url::OVERLOADS, &[]);
/// IP addresses.
pub const KUBERNETES_IP: Library = library("kubernetes ip", kubernetes::ip::ADDRESSES, &[]);
/// CIDR ranges.
pub const KUBERNETES_CIDR: Library = library("kubernetes cidr", kubernetes::ip::RANGES, &[]);
/// Quantities.
pub const KUBERNETES_QUANTITY: Library = library("kubernetes quantity", kubernetes::quantity::OVERLOADS, &[]);
/// Semantic versions.
pub const KUBERNETES_SEMVER: Library = library("kubernetes semver", kubernetes::semver::OVERLOADS, &[]);
/// Named formats.
pub const KUBERNETES_FORMAT: Library = library("kubernetes format", kubernetes::named_format::OVERLOADS, &[]);
/// Authorization checks.
pub const KUBERNETES_AUTHORIZER: Library = library("kubernetes authorizer", kubernetes::authorizer::OVERLOADS, &[]);
/// JSON patches.
pub const KUBERNETES_JSON_PATCH: Library = library("kubernetes json patch", strings::JSON_PATCH, &[]);

/// `existsOne` with one variable.
pub const EXISTS_ONE: Library = library("exists one", &[], macros::EXISTS_ONE);
/// `orValue` on what may be an optional or not.
pub const OR_VALUE: Library = library("or value", optionals::OR_VALUE, macros::OR_VALUE);

/// Kyverno: hashes, JSON, YAML, times.
pub const KYVERNO_DATA: Library = library("kyverno data", kyverno::data::OVERLOADS, &[]);
/// Kyverno: service accounts.
pub const KYVERNO_SERVICE_ACCOUNTS: Library = library("kyverno service accounts", kyverno::data::SERVICE_ACCOUNTS, &[]);
/// Kyverno: references of images.
pub const KYVERNO_IMAGES: Library = library("kyverno images", kyverno::image::OVERLOADS, &[]);
/// Kyverno: resources, the part that all policies have.
pub const KYVERNO_RESOURCES: Library = library("kyverno resources", kyverno::world::RESOURCES, &[]);
/// Kyverno: resources of all namespaces.
pub const KYVERNO_CLUSTER_RESOURCES: Library =
    library("kyverno cluster resources", kyverno::world::CLUSTER_RESOURCES, &[]);
/// Kyverno: resources of the policy's namespace.
pub const KYVERNO_NAMESPACE_RESOURCES: Library =
    library("kyverno namespace resources", kyverno::world::NAMESPACE_RESOURCES, &[]);
/// Kyverno: HTTP services.
pub const KYVERNO_HTTP: Library = library("kyverno http", kyverno::world::HTTP, &[]);
/// Kyverno: global context entries.
pub const KYVERNO_GLOBAL_CONTEXT: Library = library("kyverno global context", kyverno::world::GLOBAL_CONTEXT, &[]);
/// Kyverno: data of images in registries.
pub const KYVERNO_IMAGE_DATA: Library = library("kyverno image data", kyverno::world::IMAGE_DATA, &[]);
/// Kyverno: generation of resources.
pub const KYVERNO_GENERATOR: Library = library("kyverno generator", kyverno::world::GENERATOR, &[]);
/// Kyverno: generation of resources in the policy's namespace.
pub const KYVERNO_NAMESPACE_GENERATOR: Library =
    library("kyverno namespace generator", kyverno::world::NAMESPACE_GENERATOR, &[]);
/// Kyverno: verification of images.
pub const KYVERNO_SIGNATURES: Library = library("kyverno signatures", kyverno::world::SIGNATURES, &[]);
/// Kyverno: the clock and chance.
pub const KYVERNO_CHANCE: Library = library("kyverno chance", kyverno::world::CHANCE, &[]);
/// Kyverno: certificates.
pub const KYVERNO_CERTIFICATES: Library = library("kyverno certificates", kyverno::data::CERTIFICATES, &[]);
/// Kyverno: compression.
pub const KYVERNO_ARCHIVES: Library = library("kyverno archives", kyverno::data::ARCHIVES, &[]);

/// Every library.
pub fn all() -> impl Iterator<Item = Library> {
    [
        OPERATORS,
        EQUALITY,
        CONVERSIONS,
        STANDARD_STRINGS,
        TIME,
        OPTIONALS,
        STRINGS,
        STRING_REVERSE,
        SETS,
        LISTS,
        TWO_VARIABLES,
        BINDINGS,
        MATH,
        ENCODERS,
        JSON_ENCODER,
        PROTOS,
        KUBERNETES_LISTS,
        KUBERNETES_REGEX,
        KUBERNETES_URL,
        KUBERNETES_IP,
        KUBERNETES_CIDR,
        KUBERNETES_QUANTITY,
        KUBERNETES_SEMVER,
        KUBERNETES_FORMAT,
        KUBERNETES_AUTHORIZER,
        KUBERNETES_JSON_PATCH,
        EXISTS_ONE,
        DURATION_OF_INT,
        REGEX,
        OR_VALUE,
        KYVERNO_DATA,
        KYVERNO_SERVICE_ACCOUNTS,
        KYVERNO_IMAGES,
        KYVERNO_RESOURCES,
        KYVERNO_CLUSTER_RESOURCES,
        KYVERNO_NAMESPACE_RESOURCES,
        KYVERNO_HTTP,
        KYVERNO_GLOBAL_CONTEXT,
        KYVERNO_IMAGE_DATA,
        KYVERNO_GENERATOR,
        KYVERNO_NAMESPACE_GENERATOR,
        KYVERNO_SIGNATURES,
        KYVERNO_CHANCE,
        KYVERNO_ARCHIVES,
        KYVERNO_CERTIFICATES,
    ]
    .into_iter()
}

/// The code of an overload.
pub type Code = for<'v> fn(&Call<'_, 'v>) -> Result<Val<'v>, EvalError>;

/// Which arguments an overload's code takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arguments {
    /// Those of the declared types; the error for others names their types.
    Declared,
    /// Those of the declared types; the error for others does not.
    DeclaredBare,
    /// Any: the code decides.
    Any,
}

/// One overload of a function.
#[derive(Debug, Clone, Copy)]
pub struct Overload {
    /// The function's name.
    pub function: &'static str,
    /// The name of the overload.
    pub id: &'static str,
    /// Whether it is called on its first argument: `x.f(y)`.
    pub member: bool,
    /// The types of its parameters, comma-separated.
    pub params: &'static str,
    /// The type of its result.
    pub result: &'static str,
    pub(super) cost: CostRule,
    /// The cost in later versions, if it is another.
    pub(super) cost_of_head: Option<CostRule>,
    pub(super) arguments: Arguments,
    /// Whether the cost holds for every call of the function, even if the overload is known only at run time.
    pub(super) cost_by_name: bool,
    /// Which argument is a regular expression, to be compiled once if it is constant.
    pub(super) regex: Option<usize>,
    pub(super) code: Code,
}

impl Overload {
    const fn new(function: &'static str, id: &'static str, types: (&'static str, &'static str), code: Code) -> Self {
        let (params, result) = types;
        let cost: CostRule = cost::one;
        Overload {
            function,
            id,
            member: false,
            params,
            result,
            cost,
            cost_of_head: None,
            arguments: Arguments::Declared,
            cost_by_name: false,
            regex: None,
            code,
        }
    }

    const fn cost(self, cost: CostRule) -> Self {
        Overload { cost, ..self }
    }

    const fn cost_by_name(self, cost: CostRule) -> Self {
        Overload { cost, cost_by_name: true, ..self }
    }

    const fn cost_of_head(self, cost: CostRule) -> Self {
        Overload { cost_of_head: Some(cost), ..self }
    }

    const fn bare(self) -> Self {
        Overload { arguments: Arguments::DeclaredBare, ..self }
    }

    const fn generic(self) -> Self {
        Overload { arguments: Arguments::Any, ..self }
    }

    const fn regex(self, argument: usize) -> Self {
        Overload { regex: Some(argument), ..self }
    }

    /// The call as texts write it: `string.split(string, int) -> list(string)`.
    pub fn signature(&self) -> String {
        let params = super::types::split_arguments(self.params);
        match params.split_first() {
            Some((target, rest)) if self.member => {
                format!("{target}.{}({}) -> {}", self.function, rest.join(", "), self.result)
            }
            _ => format!("{}({}) -> {}", self.function, params.join(", "), self.result),
        }
    }
}

/// A global function.
const fn global(
    function: &'static str,
    id: &'static str,
    params: &'static str,
    result: &'static str,
    code: Code,
) -> Overload {
    Overload::new(function, id, (params, result), code)
}

/// A function called on its first argument.
const fn member(
    function: &'static str,
    id: &'static str,
    params: &'static str,
    result: &'static str,
    code: Code,
) -> Overload {
    Overload { member: true, ..Overload::new(function, id, (params, result), code) }
}

/// What a function asks from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The type of what the function is called on, `resource.Context` for example; empty for a function of nothing.
    pub target: &'static str,
    /// The function, in lower case.
    pub function: String,
    /// All its arguments; the first is null, or what was made by another function, if there is a target.
    pub arguments: Vec<Value>,
}

/// Answers what an expression asks from outside. An answer that is not there yet is [`EvalError::Pending`].
pub trait Host {
    /// Whether a user may do something.
    fn authorize(&self, attributes: &Attributes) -> Result<Decision, EvalError>;

    /// The answer to any other question.
    fn ask(&self, question: &Question) -> Result<Value, EvalError> {
        Err(EvalError::Other(format!("{} is not available here", question.function)))
    }
}

/// A host that knows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn authorize(&self, _: &Attributes) -> Result<Decision, EvalError> {
        Err(EvalError::other("authorization cannot be checked here"))
    }
}

/// One call: its arguments and the world.
pub struct Call<'c, 'v> {
    /// The function's name, for errors.
    pub function: &'c str,
    /// The arguments, the one it is called on first.
    pub args: &'c [Val<'v>],
    pub(super) constant: Option<&'c ConstantRegex>,
    pub(super) regexes: &'c RegexCache,
    pub(super) budget: &'c Budget,
    pub(super) edition: Edition,
    pub(super) host: &'c dyn Host,
}

impl<'v> Call<'_, 'v> {
    /// Argument `i`; null if there is none.
    pub(super) fn arg(&self, i: usize) -> Val<'v> {
        self.args.get(i).cloned().unwrap_or(Val::Null)
    }

    pub(super) fn two(&self) -> Option<(&Val<'v>, &Val<'v>)> {
        match self.args {
            [a, b] => Some((a, b)),
            _ => None,
        }
    }

    /// The text of argument `i`, declared as a string.
    pub(super) fn str(&self, i: usize) -> &str {
        self.args.get(i).and_then(Val::as_str).unwrap_or_default()
    }

    /// The integer argument `i`.
    pub(super) fn int(&self, i: usize) -> i64 {
        match self.args.get(i) {
            Some(Val::Int(n)) => *n,
            _ => 0,
        }
    }

    /// Takes `bytes` from the budget, before they are built.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), EvalError> {
        Ok(self.budget.charge_bytes(bytes)?)
    }

    /// Takes steps for reading or building `n` elements.
    pub(super) fn charge_steps(&self, n: usize) -> Result<(), EvalError> {
        Ok(self.budget.charge_steps(n as u64)?)
    }

    /// Searches the first argument by the regular expression that is the second; what that may cost is charged.
    pub(super) fn search<T>(
        &self,
        search: impl FnOnce(&GoRegex, &str) -> T,
        refused: impl FnOnce(&GoRegexError) -> EvalError,
    ) -> Result<T, EvalError> {
        let text = self.str(0);
        let run = |regex: &GoRegex| {
            self.budget.charge_steps(regex.cost(text.len()))?;
            Ok(search(regex, text))
        };
        let then = |regex: Result<&GoRegex, &GoRegexError>| match regex {
            Ok(regex) => run(regex),
            Err(error) => Err(refused(error)),
        };
        match self.constant {
            Some(constant) => constant.with(self.str(1), self.regexes, self.budget, then)?,
            None => then(self.regexes.get(self.str(1), self.budget)?.as_ref().as_ref()),
        }
    }

    /// The error that this function does not take its arguments.
    pub(super) fn no_such_overload(&self) -> EvalError {
        let types: Vec<_> = self.args.iter().map(Val::type_name).collect();
        EvalError::NoSuchOverloadOf(format!("{}({})", self.function, types.join(", ")))
    }
}
