//! Values at run time.
//!
//! JSON is borrowed: a [`Val`] over an object of a request copies nothing of it. Integers of JSON are `int`, other
//! numbers `double`. Lists and maps that an expression builds are shared.

use std::any::Any;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::error::EvalError;
use super::types::Type;
use crate::budget::{Budget, BudgetError};
use crate::scalar::duration::Duration;
use crate::scalar::go_time::{self, Time};
use crate::value::{Map, Str, Value};

/// How deep values are walked by recursion. What expressions build is less deep; objects of a cluster can be deeper.
pub(super) const MAX_WALK: usize = 300;

/// Text, borrowed from data or built.
#[derive(Debug, Clone)]
pub enum Text<'v> {
    /// Part of the data.
    Borrowed(&'v str),
    /// Built, or of the program.
    Owned(Str),
}

impl Text<'_> {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Owned(text) => text,
        }
    }
}

/// A list.
#[derive(Debug, Clone)]
pub enum List<'v> {
    /// An array of the data.
    Json(&'v [Value]),
    /// A list that was built.
    Built(Arc<Vec<Val<'v>>>),
    /// A set, or a list of objects with keys.
    Associative(Arc<Associative<'v>>),
}

impl<'v> List<'v> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        match self {
            List::Json(items) => items.len(),
            List::Built(items) => items.len(),
            List::Associative(list) => list.items.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `i`.
    pub fn get(&self, i: usize) -> Option<Val<'v>> {
        match self {
            List::Json(items) => items.get(i).map(Val::from_json),
            List::Built(items) => items.get(i).cloned(),
            List::Associative(list) => list.items.get(i).cloned(),
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Val<'v>> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }
}

/// A map.
#[derive(Debug, Clone)]
pub enum Dict<'v> {
    /// An object of the data.
    Json(&'v Map),
    /// A map that was built.
    Built(Arc<BTreeMap<Key, Val<'v>>>),
}

impl<'v> Dict<'v> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self {
            Dict::Json(map) => map.len(),
            Dict::Built(map) => map.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a text key.
    pub fn get_str(&self, key: &str) -> Option<Val<'v>> {
        match self {
            Dict::Json(map) => map.get(key).map(Val::from_json),
            Dict::Built(map) => map.get(&Key::String(key.into())).cloned(),
        }
    }

    /// The value of `key`; numbers of different types are the same key if they are equal.
    pub fn get(&self, key: &Val<'_>) -> Option<Val<'v>> {
        match (self, key) {
            (_, Val::String(text)) => self.get_str(text.as_str()),
            (Dict::Json(_), _) => None,
            (Dict::Built(map), key) => {
                let candidates = match key {
                    Val::Bool(b) => [Some(Key::Bool(*b)), None],
                    Val::Int(n) => [Some(Key::Int(*n)), u64::try_from(*n).ok().map(Key::Uint)],
                    Val::Uint(n) => [Some(Key::Uint(*n)), i64::try_from(*n).ok().map(Key::Int)],
                    Val::Double(n) if n.fract() == 0.0 => [
                        (n.abs() < 9.2e18).then_some(Key::Int(*n as i64)),
                        (*n >= 0.0 && *n < 1.8e19).then_some(Key::Uint(*n as u64)),
                    ],
                    _ => [None, None],
                };
                candidates.into_iter().flatten().find_map(|key| map.get(&key)).cloned()
            }
        }
    }

    /// The entries in order of keys.
    pub fn entries(&self) -> Box<dyn Iterator<Item = (Val<'v>, Val<'v>)> + '_> {
        match self {
            Dict::Json(map) => {
                Box::new(map.iter().map(|(key, value)| (Val::String(Text::Borrowed(key)), Val::from_json(value))))
            }
            Dict::Built(map) => Box::new(map.iter().map(|(key, value)| (key.to_val(), value.clone()))),
        }
    }
}

/// A key of a map that was built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// Text.
    String(Str),
    /// What may be written as a key but is never found: null or a number with a fraction, by its text.
    Other(Str),
}

impl Key {
    /// The key that `value` is.
    pub(super) fn of(value: &Val<'_>) -> Result<Self, EvalError> {
        Ok(match value {
            Val::Bool(b) => Key::Bool(*b),
            Val::Int(n) => Key::Int(*n),
            Val::Uint(n) => Key::Uint(*n),
            Val::String(text) => Key::String(text.as_str().into()),
            Val::Double(n) => Key::Other(n.to_string().into()),
            Val::Duration(n) => Key::Other(Duration(*n).to_string().into()),
            Val::Timestamp(time) => Key::Other(go_time::format_rfc3339(time).into()),
            Val::Null => Key::Other("null".into()),
            other => return Err(EvalError::Other(format!("unsupported key type: {}", other.type_name()))),
        })
    }

    pub(super) fn to_val<'v>(&self) -> Val<'v> {
        match self {
            Key::Bool(b) => Val::Bool(*b),
            Key::Int(n) => Val::Int(*n),
            Key::Uint(n) => Val::Uint(*n),
            Key::String(text) => Val::String(Text::Owned(text.clone())),
            Key::Other(text) => text.parse().map_or(Val::Null, Val::Double),
        }
    }
}

/// A value that only the functions of its library understand.
pub trait Opaque: fmt::Debug + Send + Sync {
    /// The name of its type.
    fn type_name(&self) -> &str;
    /// Whether it equals `other`, which may be of another type.
    fn equals(&self, other: &dyn Opaque) -> bool;
    /// Itself, to be recognized by its library.
    fn as_any(&self) -> &dyn Any;
    /// Its text, for people.
    fn text(&self) -> String;
    /// How many elements it counts for when a function is charged for reading it.
    fn size(&self) -> Option<usize> {
        None
    }
    /// Whether it is what its type has instead of nothing.
    fn is_zero(&self) -> bool {
        false
    }
    /// Whether `==` takes it.
    fn is_comparable(&self) -> bool {
        true
    }
}

/// A constructed object: `Name{field: value}`.
#[derive(Debug, Clone)]
pub struct Object<'v> {
    /// Its type.
    pub name: Str,
    /// Its fields, those that were set.
    pub fields: BTreeMap<Str, Val<'v>>,
}

impl Object<'_> {
    /// Whether its type has any fields: `Object` and those below it.
    pub(super) fn is_open(&self) -> bool {
        self.name.strip_prefix("Object").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// A list that Kubernetes merges by its elements or their keys: order does not matter when it is compared, and adding
/// to it replaces what is there.
#[derive(Debug, Clone)]
pub struct Associative<'v> {
    /// The elements.
    pub items: Vec<Val<'v>>,
    /// The fields that tell elements apart; none if the elements themselves do.
    pub keys: Vec<Str>,
}

impl<'v> Associative<'v> {
    /// Whether both stand for the same element.
    fn same(&self, a: &Val<'_>, b: &Val<'_>, depth: usize) -> bool {
        let field = |value: &Val<'_>, key: &str, wanted: &Val<'_>| match (value, wanted) {
            (Val::Map(map), Val::Map(other)) => match (map.get_str(key), other.get_str(key)) {
                (Some(x), Some(y)) => x.equals_within(&y, depth),
                (None, None) => true,
                _ => false,
            },
            _ => false,
        };
        if self.keys.is_empty() { a.equals_within(b, depth) } else { self.keys.iter().all(|key| field(a, key, b)) }
    }

    fn equals(&self, other: &List<'_>, depth: usize) -> bool {
        let has = |item: &Val<'_>| other.iter().any(|o| self.same(item, &o, depth) && item.equals_within(&o, depth));
        self.items.len() == other.len() && self.items.iter().all(has)
    }

    /// This list with the elements of `other`: those that it has are replaced where they stand.
    pub(super) fn merged(&self, other: &List<'v>) -> Self {
        let mut merged = self.clone();
        for item in other.iter() {
            match merged.items.iter().position(|known| self.same(known, &item, MAX_WALK)) {
                Some(i) => {
                    if let Some(place) = merged.items.get_mut(i) {
                        *place = item;
                    }
                }
                None => merged.items.push(item),
            }
        }
        merged
    }
}

/// A value.
#[derive(Debug, Clone)]
pub enum Val<'v> {
    /// Null.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    String(Text<'v>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A span of time in nanoseconds.
    Duration(i64),
    /// A point in time, with the offset it was written in.
    Timestamp(Time),
    /// A list.
    List(List<'v>),
    /// A map.
    Map(Dict<'v>),
    /// A value that may be absent.
    Optional(Option<Arc<Val<'v>>>),
    /// A type.
    Type(Arc<Type>),
    /// A constructed object.
    Object(Arc<Object<'v>>),
    /// A value of a library.
    Opaque(Arc<dyn Opaque>),
}

impl<'v> Val<'v> {
    /// A view of JSON.
    pub fn from_json(value: &'v Value) -> Self {
        match value {
            Value::Null => Val::Null,
            Value::Bool(b) => Val::Bool(*b),
            Value::Int(n) => Val::Int(*n),
            Value::Float(n) => Val::Double(*n),
            Value::String(text) => Val::String(Text::Borrowed(text)),
            Value::Array(items) => Val::List(List::Json(items)),
            Value::Object(map) => Val::Map(Dict::Json(map)),
        }
    }

    /// A copy of JSON that borrows nothing.
    pub fn owned_json(value: &Value) -> Val<'static> {
        match value {
            Value::Null => Val::Null,
            Value::Bool(b) => Val::Bool(*b),
            Value::Int(n) => Val::Int(*n),
            Value::Float(n) => Val::Double(*n),
            Value::String(text) => Val::String(Text::Owned(text.clone())),
            Value::Array(items) => Val::list(items.iter().map(Val::owned_json).collect()),
            Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| (Key::String(key.clone()), Val::owned_json(value)));
                Val::Map(Dict::Built(Arc::new(entries.collect())))
            }
        }
    }

    /// A text.
    pub fn text(text: impl Into<Str>) -> Self {
        Val::String(Text::Owned(text.into()))
    }

    /// A list.
    pub fn list(items: Vec<Val<'v>>) -> Self {
        Val::List(List::Built(Arc::new(items)))
    }

    /// A map.
    pub fn map(entries: BTreeMap<Key, Val<'v>>) -> Self {
        Val::Map(Dict::Built(Arc::new(entries)))
    }

    /// An optional that holds `value`.
    pub fn some(value: Val<'v>) -> Self {
        Val::Optional(Some(Arc::new(value)))
    }

    /// A value of a library.
    pub fn opaque(value: impl Opaque + 'static) -> Self {
        Val::Opaque(Arc::new(value))
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Val::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The value of a library of type `T`.
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        match self {
            Val::Opaque(opaque) => opaque.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// The name of its type.
    pub fn type_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::String(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::List(_) => "list",
            Val::Map(_) => "map",
            Val::Optional(_) => "optional_type",
            Val::Type(_) => "type",
            Val::Object(object) => &object.name,
            Val::Opaque(opaque) => opaque.type_name(),
        })
    }

    /// Its type, as `type()` gives it.
    pub(super) fn type_of(&self) -> Type {
        match self {
            // The types of constructed objects have no names at run time.
            Val::Object(object) if object.is_open() || object.name == "JSONPatch" => Type::TypeOf(None),
            Val::Object(object) => Type::Object(object.name.clone()),
            Val::Opaque(opaque) => Type::Opaque(opaque.type_name().into()),
            other => Type::parse(&other.type_name()).unwrap_or(Type::Dyn),
        }
    }

    /// How much reading it costs: its length if it has one, else 1.
    pub(super) fn size(&self) -> u64 {
        self.length().unwrap_or(1)
    }

    /// How many bytes or items it holds itself, known without reading it; 0 for what has no length.
    pub(super) fn stored_length(&self) -> usize {
        match self {
            Val::String(text) => text.as_str().len(),
            Val::Bytes(bytes) => bytes.len(),
            Val::List(list) => list.len(),
            _ => 0,
        }
    }

    /// Its length, if it has one.
    pub(super) fn length(&self) -> Option<u64> {
        Some(match self {
            Val::String(text) => text.as_str().chars().count() as u64,
            Val::Bytes(bytes) => bytes.len() as u64,
            Val::List(list) => list.len() as u64,
            Val::Map(map) => map.len() as u64,
            Val::Opaque(opaque) => opaque.size()? as u64,
            _ => return None,
        })
    }

    /// Whether it is what its type has instead of nothing.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Val::Null | Val::Bool(false) | Val::Int(0) | Val::Uint(0) | Val::Duration(0) => true,
            Val::Double(n) => *n == 0.0,
            Val::Timestamp(time) => time.unix_seconds() == -62_135_596_800 && time.nanos() == 0,
            Val::Object(object) => object.fields.is_empty(),
            Val::Opaque(opaque) => opaque.is_zero(),
            other => other.length() == Some(0),
        }
    }

    /// Whether it equals `other`. Numbers compare across types, values of different types are not equal.
    pub fn equals(&self, other: &Val<'_>) -> bool {
        self.equals_within(other, MAX_WALK)
    }

    /// [`Val::equals`], going `depth` levels down. Only data nests deeper, and it compares without recursion.
    fn equals_within(&self, other: &Val<'_>, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return match (self, other) {
                (Val::List(List::Json(a)), Val::List(List::Json(b))) => a == b,
                (Val::Map(Dict::Json(a)), Val::Map(Dict::Json(b))) => a == b,
                (a, b) => a.to_json().is_some_and(|a| Some(a) == b.to_json()),
            };
        };
        match (self, other) {
            (Val::Null, Val::Null) => true,
            (Val::Bool(a), Val::Bool(b)) => a == b,
            (Val::String(a), Val::String(b)) => a.as_str() == b.as_str(),
            (Val::Bytes(a), Val::Bytes(b)) => a == b,
            (Val::Duration(a), Val::Duration(b)) => a == b,
            (Val::Timestamp(a), Val::Timestamp(b)) => (a.unix_seconds(), a.nanos()) == (b.unix_seconds(), b.nanos()),
            (Val::List(List::Associative(a)), Val::List(b)) => a.equals(b, depth),
            (Val::List(a), Val::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| x.equals_within(&y, depth))
            }
            (Val::Map(a), Val::Map(b)) => {
                a.len() == b.len()
                    && a.entries().all(|(key, x)| b.get(&key).is_some_and(|y| x.equals_within(&y, depth)))
            }
            (Val::Optional(a), Val::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => a.equals_within(b, depth),
                _ => false,
            },
            (Val::Type(a), Val::Type(b)) => a.runtime_name() == b.runtime_name(),
            (Val::Object(a), Val::Object(b)) => {
                a.name == b.name
                    && a.fields.len() == b.fields.len()
                    && a.fields.iter().all(|(name, x)| b.fields.get(name).is_some_and(|y| x.equals_within(y, depth)))
            }
            (Val::Opaque(a), Val::Opaque(b)) => a.equals(b.as_ref()),
            (a, b) => compare_numbers(a, b) == Some(Ordering::Equal),
        }
    }

    /// What is wrong with the names of constructed objects in it: Kubernetes wants the type of a field to be called
    /// like the path to it, `Object.spec` for `spec` of an `Object`. Lists and maps between them have no names.
    /// Recurses as deep as an expression can nest objects.
    pub fn misnamed_types(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Val::Object(object) = self {
            self.find_misnamed(&object.name, &mut faults);
        }
        faults
    }

    fn find_misnamed(&self, wanted: &str, faults: &mut Vec<String>) {
        match self {
            Val::List(List::Json(_)) | Val::Map(Dict::Json(_)) => {}
            Val::Object(object) => {
                if object.name != wanted {
                    faults.push(format!(
                        "unexpected type name {:?}, expected {wanted:?}, which matches field name path from root Object \
                         type",
                        object.name
                    ));
                }
                for (field, value) in &object.fields {
                    value.find_misnamed(&format!("{wanted}.{field}"), faults);
                }
            }
            Val::List(list) => list.iter().for_each(|item| item.find_misnamed(wanted, faults)),
            Val::Map(map) => map.entries().for_each(|(_, value)| value.find_misnamed(wanted, faults)),
            _ => {}
        }
    }

    /// Walks all of it, a step for every node and every 16 bytes of text, and gives about the length of its JSON. To be
    /// called before it is compared, copied or written: a list that an expression built may hold another many times,
    /// and those count each time, as in [`Budget::charge_tree`].
    pub fn charge(&self, budget: &Budget) -> Result<usize, BudgetError> {
        self.charge_within(budget, MAX_WALK)
    }

    fn charge_within(&self, budget: &Budget, depth: usize) -> Result<usize, BudgetError> {
        let depth = depth.checked_sub(1).ok_or(BudgetError::Depth)?;
        let add = |sum: usize, size: usize| sum.saturating_add(size).saturating_add(4);
        let size = match self {
            Val::List(List::Json(items)) => {
                items.iter().try_fold(2_usize, |sum, item| Ok(add(sum, budget.charge_tree(item)?)))?
            }
            Val::Map(Dict::Json(map)) => map.iter().try_fold(2_usize, |sum, (key, item)| {
                Ok(add(sum.saturating_add(key.len()), budget.charge_tree(item)?))
            })?,
            Val::List(list) => {
                list.iter().try_fold(2_usize, |sum, item| Ok(add(sum, item.charge_within(budget, depth)?)))?
            }
            Val::Map(map) => map.entries().try_fold(2_usize, |sum, (key, item)| {
                let key = key.as_str().map_or(20, str::len);
                Ok(add(sum.saturating_add(key), item.charge_within(budget, depth)?))
            })?,
            Val::Object(object) => object.fields.iter().try_fold(2_usize, |sum, (name, item)| {
                Ok(add(sum.saturating_add(name.len()), item.charge_within(budget, depth)?))
            })?,
            Val::Optional(Some(inner)) => inner.charge_within(budget, depth)?,
            Val::String(text) => text.as_str().len(),
            Val::Bytes(bytes) => bytes.len(),
            _ => 20,
        };
        let own = if self.is_composite() { 0 } else { size as u64 / 16 };
        budget.charge_steps(1 + own)?;
        Ok(size)
    }

    /// Walks what an expression has built of it, a step for every node: data below is not read. An error if that nests
    /// deeper than values are walked, or if parts that are there many times are too many.
    pub fn charge_built(&self, budget: &Budget) -> Result<(), BudgetError> {
        self.charge_built_within(budget, MAX_WALK)
    }

    fn charge_built_within(&self, budget: &Budget, depth: usize) -> Result<(), BudgetError> {
        let depth = depth.checked_sub(1).ok_or(BudgetError::Depth)?;
        budget.charge_steps(1)?;
        match self {
            Val::List(List::Json(_)) | Val::Map(Dict::Json(_)) => Ok(()),
            Val::List(list) => list.iter().try_for_each(|item| item.charge_built_within(budget, depth)),
            Val::Map(map) => map.entries().try_for_each(|(_, item)| item.charge_built_within(budget, depth)),
            Val::Object(object) => object.fields.values().try_for_each(|item| item.charge_built_within(budget, depth)),
            Val::Optional(Some(inner)) => inner.charge_built_within(budget, depth),
            _ => Ok(()),
        }
    }

    /// Whether it has parts.
    pub(super) fn is_composite(&self) -> bool {
        matches!(self, Val::List(_) | Val::Map(_) | Val::Object(_) | Val::Optional(Some(_)))
    }

    /// [`Val::equals`] within a budget: comparing may read all of the value that is quicker to read.
    pub(super) fn equals_charged(&self, other: &Val<'_>, budget: &Budget) -> Result<bool, BudgetError> {
        if self.is_composite() && other.is_composite() && self.length() == other.length() {
            let is_data = |value: &Val<'_>| matches!(value, Val::List(List::Json(_)) | Val::Map(Dict::Json(_)));
            if is_data(other) {
                other.charge(budget)?
            } else {
                self.charge(budget)?
            };
        }
        Ok(self.equals(other))
    }

    /// The JSON of it, if it has one: what was built of scalars, lists and maps with text keys.
    pub fn to_json(&self) -> Option<Value> {
        Some(match self {
            Val::Null => Value::Null,
            Val::Bool(b) => Value::Bool(*b),
            Val::Int(n) => Value::Int(*n),
            Val::Uint(n) => i64::try_from(*n).map_or(Value::Float(*n as f64), Value::Int),
            Val::Double(n) => Value::Float(*n),
            Val::String(text) => Value::String(text.as_str().into()),
            Val::List(List::Json(items)) => Value::array(items.to_vec()),
            Val::List(list) => Value::array(list.iter().map(|item| item.to_json()).collect::<Option<_>>()?),
            Val::Map(Dict::Json(map)) => Value::object((*map).clone()),
            Val::Map(map) => {
                let entry = |(key, value): (Val<'v>, Val<'v>)| Some((Str::from(key.as_str()?), value.to_json()?));
                Value::object(map.entries().map(entry).collect::<Option<_>>()?)
            }
            Val::Optional(Some(inner)) => inner.to_json()?,
            Val::Object(object) => {
                let entry = |(name, value): (&Str, &Val<'v>)| Some((name.clone(), value.to_json()?));
                Value::object(object.fields.iter().map(entry).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }
}

/// How two numbers compare, whatever their types; none if one is no number or not a number.
pub(super) fn compare_numbers(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    let integer = |v: &Val<'_>| match v {
        Val::Int(n) => Some(i128::from(*n)),
        Val::Uint(n) => Some(i128::from(*n)),
        _ => None,
    };
    match (a, b) {
        (Val::Double(x), Val::Double(y)) => x.partial_cmp(y),
        (Val::Double(x), other) => compare_double(*x, integer(other)?),
        (other, Val::Double(y)) => compare_double(*y, integer(other)?).map(Ordering::reverse),
        _ => Some(integer(a)?.cmp(&integer(b)?)),
    }
}

fn compare_double(x: f64, y: i128) -> Option<Ordering> {
    // The integer is rounded to a double, as in the reference.
    x.partial_cmp(&(y as f64))
}
