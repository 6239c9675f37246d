//! Both engines, and what they make of a case, written so that it can be compared.

use std::collections::BTreeMap;
use std::fmt;

use cel_core::{CelType, MapActivation, MapKey, Value as Theirs};
use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::profile::Kubernetes;
use ephor_expr::cel::{Environment, EvalError, Key, Literals, NoHost, Options, Program, Run, Scope, Type, Usage, Val};
use ephor_expr::scalar::go_time::Time;

use super::data::{Binding, Datum, VARIABLES};
use super::generate::Case;

/// What an engine makes of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The value, written with its type.
    Value(String),
    /// Evaluating it fails.
    Fails(String),
    /// It does not compile.
    Rejected(String),
}

impl Verdict {
    /// Whether both are the same value, or of the same kind. Texts of errors are each engine's own.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Verdict::Value(a), Verdict::Value(b)) => a == b,
            (Verdict::Fails(_), Verdict::Fails(_)) | (Verdict::Rejected(_), Verdict::Rejected(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Value(value) => write!(f, "{value}"),
            Verdict::Fails(error) => write!(f, "fails: {error}"),
            Verdict::Rejected(error) => write!(f, "rejected: {error}"),
        }
    }
}

/// Both engines with the variables declared.
pub(crate) struct Engines {
    strict: Environment,
    lenient: Environment,
    theirs: cel_core::Env,
}

/// Steps of Ephor for one case. What takes more is not given to the other engine, which has no bound.
const STEPS: u64 = 100_000;

impl Engines {
    /// As Kubernetes sets them up, as far as the other engine can be.
    pub(crate) fn new() -> Self {
        let mut strict = Kubernetes::Policy.environment();
        let mut theirs = cel_core::Env::with_standard_library().with_variable("object", CelType::Dyn);
        for (name, kind) in VARIABLES {
            strict.declare(name, Type::parse(kind).expect("the type of a variable"));
            theirs.add_variable(name, their_type(kind));
        }
        let mut lenient = strict.clone();
        lenient.set_options(Options { literals: Literals::Homogeneous, ..strict.options() });
        Self { strict, lenient, theirs }
    }

    /// What Ephor makes of `case`, and what `cel-core` makes of it. None if it takes too much work.
    pub(crate) fn verdicts(&self, case: &Case) -> Option<(Verdict, Verdict)> {
        let ours = self.ours(case)?;
        Some((ours, self.theirs(case)))
    }

    fn ours(&self, case: &Case) -> Option<Verdict> {
        let environment = if case.strict { &self.strict } else { &self.lenient };
        let program = match Program::compile(&case.text, environment) {
            Ok(program) => program,
            Err(error) => return Some(Verdict::Rejected(error.to_string())),
        };
        let (budget, usage) = (Budget::new(STEPS, 1 << 20), Usage::new(None));
        let variables = &Variables::new(&case.bindings);
        let run = Run { host: &NoHost, budget: &budget, usage: &usage };
        match program.evaluate(&variables, &run) {
            Ok(value) => Some(Verdict::Value(our_text(&value))),
            Err(EvalError::Budget(_)) => None,
            Err(error) => Some(Verdict::Fails(error.to_string())),
        }
    }

    fn theirs(&self, case: &Case) -> Verdict {
        // Their checker does not end for some types of elements of empty literals, so it sees generated cases only.
        let compiled = if case.checked { self.theirs.compile(&case.text) } else { self.theirs.parse_only(&case.text) };
        let program = match compiled.and_then(|ast| self.theirs.program(&ast)) {
            Ok(program) => program,
            Err(error) => return Verdict::Rejected(error.to_string()),
        };
        let mut activation = MapActivation::new();
        for binding in &case.bindings {
            activation.insert(binding.name, their_value(&binding.value));
        }
        match program.eval(&activation) {
            Theirs::Error(error) => Verdict::Fails(error.to_string()),
            value => Verdict::Value(their_text(&value)),
        }
    }
}

/// Ephor's variables. JSON is borrowed, as objects of requests are.
struct Variables<'b> {
    values: Vec<(&'b str, &'b Datum)>,
    json: BTreeMap<&'b str, Value>,
}

impl<'b> Variables<'b> {
    fn new(bindings: &'b [Binding]) -> Self {
        let json = bindings.iter().filter_map(|binding| match binding.value {
            Datum::Json(text) => Some((binding.name, Value::from_json(text).expect("JSON"))),
            _ => None,
        });
        let json = json.collect();
        Self { values: bindings.iter().map(|binding| (binding.name, &binding.value)).collect(), json }
    }
}

impl<'v> Scope<'v> for &'v Variables<'_> {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        if let Some(json) = self.json.get(name) {
            return Some(Ok(Val::from_json(json)));
        }
        let (_, value) = self.values.iter().find(|(variable, _)| *variable == name)?;
        Some(Ok(our_value(value)))
    }
}

fn our_value(value: &Datum) -> Val<'static> {
    match value {
        Datum::Null => Val::Null,
        Datum::Bool(b) => Val::Bool(*b),
        Datum::Int(n) => Val::Int(*n),
        Datum::Uint(n) => Val::Uint(*n),
        Datum::Double(n) => Val::Double(*n),
        Datum::Text(text) => Val::text(*text),
        Datum::Bytes(bytes) => Val::Bytes((*bytes).into()),
        Datum::Span(nanos) => Val::Duration(*nanos),
        Datum::Time(seconds) => Val::Timestamp(Time::from_unix(*seconds, 0)),
        Datum::List(items) => Val::list(items.iter().map(our_value).collect()),
        Datum::Map(entries) => {
            let key = |key: &Datum| match key {
                Datum::Int(n) => Key::Int(*n),
                Datum::Text(text) => Key::String((*text).into()),
                other => panic!("{other:?} is no key"),
            };
            Val::map(entries.iter().map(|(k, item)| (key(k), our_value(item))).collect())
        }
        Datum::Json(text) => Val::owned_json(&Value::from_json(text).expect("JSON")),
    }
}

fn their_value(value: &Datum) -> Theirs {
    match value {
        Datum::Null => Theirs::Null,
        Datum::Bool(b) => Theirs::Bool(*b),
        Datum::Int(n) => Theirs::Int(*n),
        Datum::Uint(n) => Theirs::UInt(*n),
        Datum::Double(n) => Theirs::Double(*n),
        Datum::Text(text) => Theirs::String((*text).into()),
        Datum::Bytes(bytes) => Theirs::Bytes((*bytes).into()),
        Datum::Span(nanos) => Theirs::Duration(cel_core::Duration::from_nanos(*nanos)),
        Datum::Time(seconds) => Theirs::timestamp(*seconds, 0),
        Datum::List(items) => Theirs::List(items.iter().map(their_value).collect()),
        Datum::Map(entries) => {
            let key = |key: &Datum| MapKey::from_value(&their_value(key)).expect("a key");
            Theirs::map(entries.iter().map(|(k, item)| (key(k), their_value(item))))
        }
        Datum::Json(text) => their_json(&Value::from_json(text).expect("JSON")),
    }
}

fn their_json(value: &Value) -> Theirs {
    match value {
        Value::Null => Theirs::Null,
        Value::Bool(b) => Theirs::Bool(*b),
        Value::Int(n) => Theirs::Int(*n),
        Value::Float(n) => Theirs::Double(*n),
        Value::String(text) => Theirs::String(text.as_str().into()),
        Value::Array(items) => Theirs::List(items.iter().map(their_json).collect()),
        Value::Object(map) => Theirs::map(map.iter().map(|(key, item)| (MapKey::from(key.as_str()), their_json(item)))),
    }
}

fn their_type(kind: &str) -> CelType {
    match kind {
        "bool" => CelType::Bool,
        "int" => CelType::Int,
        "uint" => CelType::UInt,
        "double" => CelType::Double,
        "string" => CelType::String,
        "bytes" => CelType::Bytes,
        "duration" => CelType::Duration,
        "timestamp" => CelType::Timestamp,
        "list(int)" => CelType::list(CelType::Int),
        "list(string)" => CelType::list(CelType::String),
        "map(string, int)" => CelType::map(CelType::String, CelType::Int),
        "map(int, string)" => CelType::map(CelType::Int, CelType::String),
        _ => CelType::Dyn,
    }
}

/// A double by its digits; there is one NaN.
fn double(n: f64) -> String {
    if n.is_nan() { "NaN".into() } else { format!("{n:?}") }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// Entries in the order of their texts, as maps have none.
fn map(entries: impl Iterator<Item = (String, String)>) -> String {
    let mut entries: Vec<String> = entries.map(|(key, item)| format!("{key}: {item}")).collect();
    entries.sort();
    format!("{{{}}}", entries.join(", "))
}

fn instant(seconds: i64, nanos: i64) -> String {
    format!("{seconds}.{nanos:09}")
}

fn our_text(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".into(),
        Val::Bool(b) => b.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => format!("{n}u"),
        Val::Double(n) => double(*n),
        Val::String(text) => format!("{:?}", text.as_str()),
        Val::Bytes(bytes) => format!("b{bytes:?}"),
        Val::List(items) => list(items.iter().map(|item| our_text(&item))),
        Val::Map(entries) => map(entries.entries().map(|(key, item)| (our_text(&key), our_text(&item)))),
        Val::Duration(nanos) => format!("{nanos}ns"),
        Val::Timestamp(time) => instant(time.unix_seconds(), i64::from(time.nanos())),
        Val::Type(kind) => format!("type({})", kind.to_string().split('(').next().unwrap_or_default()),
        other => format!("{other:?}"),
    }
}

fn their_text(value: &Theirs) -> String {
    match value {
        Theirs::Null => "null".into(),
        Theirs::Bool(b) => b.to_string(),
        Theirs::Int(n) => n.to_string(),
        Theirs::UInt(n) => format!("{n}u"),
        Theirs::Double(n) => double(*n),
        Theirs::String(text) => format!("{text:?}"),
        Theirs::Bytes(bytes) => format!("b{bytes:?}"),
        Theirs::List(items) => list(items.iter().map(their_text)),
        Theirs::Map(entries) => map(entries.iter().map(|(key, item)| (their_text(&key.to_value()), their_text(item)))),
        Theirs::Duration(span) => format!("{}ns", i128::from(span.seconds) * 1_000_000_000 + i128::from(span.nanos)),
        Theirs::Timestamp(time) => instant(time.seconds, i64::from(time.nanos)),
        Theirs::Type(kind) => format!("type({})", kind.name),
        other => format!("{other:?}"),
    }
}
