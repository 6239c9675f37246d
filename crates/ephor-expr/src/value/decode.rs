//! Values into typed Rust data, with the path of what does not fit.
//!
//! [`decode`] is the only way in which policies and other user documents become types: unknown fields, wrong
//! types and missing fields come back with their [`Path`], so that the loader can name line and column.

use std::cell::RefCell;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use super::{Map, Path, Segment, Str, Value};

/// Why a document does not have the expected shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DecodeError {
    /// Where in the document.
    pub path: Path,
    /// What is wrong, lower case, without the path.
    pub message: String,
    /// For an unknown field or variant: the word, and the words that exist there.
    pub unknown: Option<(Str, Vec<&'static str>)>,
}

/// How deep a document may nest: decoding takes the stack for each level, and threads that decode have little of it.
const MAX_LEVELS: usize = 130;

/// How many faults of one document are collected before giving up.
const MAX_FAULTS: usize = 20;

/// Decodes `value` as a `T`; all faults that can be found in one run come together.
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Vec<DecodeError>> {
    match decode_rest(value) {
        (Some(decoded), faults) if faults.is_empty() => Ok(decoded),
        (_, faults) => Err(faults),
    }
}

/// Decodes what can be decoded: after each fault the offending part is taken out of a copy and decoding goes on. Gives
/// the rest, if it has the shape of a `T`, and the faults. A rest with faults serves only to find more faults.
pub fn decode_rest<T: DeserializeOwned>(value: &Value) -> (Option<T>, Vec<DecodeError>) {
    if value.is_deeper_than(MAX_LEVELS) {
        let message = format!("the document has more than {MAX_LEVELS} levels of nesting");
        return (None, vec![DecodeError { path: Path::root(), message, unknown: None }]);
    }
    let mut faults = Vec::new();
    let mut rest: Option<Value> = None;
    loop {
        let current = rest.as_ref().unwrap_or(value);
        let here = RefCell::new(Path::root());
        let error = match T::deserialize(Walker { value: current, here: &here }) {
            Ok(decoded) => return (Some(decoded), faults),
            Err(error) => error,
        };
        let mut path = here.into_inner();
        match &error.0 {
            Fault::UnknownField(field, _) => path = path.key(field.clone()),
            // The field is missing because an earlier round took it out: its own fault is already listed.
            Fault::Missing(field) if faults.iter().any(|f| f.path == path.key(*field)) => return (None, faults),
            _ => {}
        }
        let removable = !path.is_root() && !faults.iter().any(|f: &DecodeError| f.path == path);
        let mut pruned = current.clone();
        let removed =
            removable && !matches!(error.0, Fault::Missing(_) | Fault::Other(_)) && remove_at(&mut pruned, &path);
        faults.push(error.0.located(path));
        if !removed || faults.len() >= MAX_FAULTS {
            return (None, faults);
        }
        rest = Some(pruned);
    }
}

fn remove_at(value: &mut Value, path: &Path) -> bool {
    let Some((Segment::Key(last), parents)) = path.0.split_last() else { return false };
    Path(parents.to_vec())
        .lookup_mut(value)
        .and_then(Value::as_object_mut)
        .is_some_and(|map| map.remove(last).is_some())
}

#[derive(Debug)]
enum Fault {
    UnknownField(Str, Vec<&'static str>),
    UnknownVariant(Str, Vec<&'static str>),
    Misfit(String),
    Missing(&'static str),
    Other(String),
}

impl Fault {
    fn located(self, path: Path) -> DecodeError {
        let (message, unknown) = match self {
            Fault::UnknownField(name, known) => (format!("unknown field `{name}`"), Some((name, known))),
            Fault::UnknownVariant(name, known) => {
                (format!("`{name}` is not one of {}", quoted(&known)), Some((name, known)))
            }
            Fault::Missing(name) => (format!("missing field `{name}`"), None),
            Fault::Misfit(message) | Fault::Other(message) => (message, None),
        };
        DecodeError { path, message, unknown }
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ")
}

#[derive(Debug)]
struct WalkError(Fault);

impl std::fmt::Display for WalkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
impl std::error::Error for WalkError {}

impl de::Error for WalkError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        WalkError(Fault::Other(message.to_string()))
    }
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        WalkError(Fault::UnknownField(field.into(), expected.to_vec()))
    }
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        WalkError(Fault::UnknownVariant(variant.into(), expected.to_vec()))
    }
    fn missing_field(field: &'static str) -> Self {
        WalkError(Fault::Missing(field))
    }
    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match unexpected {
            de::Unexpected::Unit => "null".to_owned(),
            de::Unexpected::Str(s) => format!("the string {s:?}"),
            de::Unexpected::Seq => "an array".to_owned(),
            de::Unexpected::Map => "an object".to_owned(),
            de::Unexpected::Signed(n) => format!("the number {n}"),
            de::Unexpected::Float(n) => format!("the number {n}"),
            de::Unexpected::Bool(b) => format!("the boolean {b}"),
            other => other.to_string(),
        };
        WalkError(Fault::Misfit(format!("expected {}, found {found}", in_words(&expected.to_string()))))
    }
}

/// What serde expects, in words of the document rather than of Rust.
fn in_words(expected: &str) -> &str {
    match expected {
        "a sequence" => "an array",
        "a map" => "an object",
        "i64" | "u64" | "i32" | "u32" | "u16" | "u8" | "usize" => "an integer",
        "f64" | "f32" => "a number",
        text if text.starts_with("struct ") => "an object",
        text if text.starts_with("enum ") => "a string",
        text => text,
    }
}

/// Walks a value for serde, keeping `here` at the place of the fault when an error comes back up.
struct Walker<'v> {
    value: &'v Value,
    here: &'v RefCell<Path>,
}

impl<'v> Walker<'v> {
    fn child(&self, value: &'v Value) -> Self {
        Walker { value, here: self.here }
    }
}

/// Runs `f` one step deeper; the step is taken back only on success, so that a fault keeps its place.
fn step<T>(here: &RefCell<Path>, segment: Segment, f: impl FnOnce() -> Result<T, WalkError>) -> Result<T, WalkError> {
    here.borrow_mut().0.push(segment);
    let out = f()?;
    here.borrow_mut().0.pop();
    Ok(out)
}

impl<'v> Deserializer<'v> for Walker<'v> {
    type Error = WalkError;

    fn deserialize_any<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, WalkError> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Int(n) => visitor.visit_i64(*n),
            Value::Float(f) => visitor.visit_f64(*f),
            Value::String(s) => visitor.visit_borrowed_str(s),
            Value::Array(items) => visitor.visit_seq(Sequence { parent: &self, items, next: 0 }),
            Value::Object(map) => visitor.visit_map(Members { parent: &self, map, next: 0 }),
        }
    }

    fn deserialize_option<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, WalkError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'v>>(self, _: &'static str, visitor: V) -> Result<V::Value, WalkError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'v>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WalkError> {
        match self.value {
            Value::String(s) => visitor.visit_enum(s.as_str().into_deserializer()),
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        <W: Visitor<'v>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Sequence<'p, 'v> {
    parent: &'p Walker<'v>,
    items: &'v [Value],
    next: usize,
}

impl<'v> de::SeqAccess<'v> for Sequence<'_, 'v> {
    type Error = WalkError;

    fn next_element_seed<T: DeserializeSeed<'v>>(&mut self, seed: T) -> Result<Option<T::Value>, WalkError> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let segment = Segment::Index(self.next);
        self.next += 1;
        step(self.parent.here, segment, || seed.deserialize(self.parent.child(item))).map(Some)
    }
}

struct Members<'p, 'v> {
    parent: &'p Walker<'v>,
    map: &'v Map,
    next: usize,
}

impl<'v> de::MapAccess<'v> for Members<'_, 'v> {
    type Error = WalkError;

    fn next_key_seed<K: DeserializeSeed<'v>>(&mut self, seed: K) -> Result<Option<K::Value>, WalkError> {
        let Some(key) = self.map.entries().get(self.next).map(|(key, _)| key) else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(key.as_str())).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'v>>(&mut self, seed: T) -> Result<T::Value, WalkError> {
        let Some((key, value)) = self.map.entries().get(self.next) else {
            return Err(de::Error::custom("value without a key"));
        };
        self.next += 1;
        step(self.parent.here, Segment::Key(key.clone()), || seed.deserialize(self.parent.child(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    #[expect(dead_code, reason = "only decoded")]
    struct Sample {
        name: String,
        #[serde(default)]
        items: Vec<Inner>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only decoded")]
    struct Inner {
        n: i64,
        any: Option<Value>,
    }

    #[test]
    fn all_faults_come_with_their_paths() {
        let value =
            Value::from_json(r#"{"name":"a","itmes":1,"items":[{"n":1},{"n":2,"x":3},{"n":"three","any":{"k":[1]}}]}"#)
                .unwrap();
        let faults = decode::<Sample>(&value).unwrap_err();
        let got: Vec<_> = faults.iter().map(|f| format!("{}: {}", f.path, f.message)).collect();
        assert_eq!(
            got,
            ["items[1].x: unknown field `x`", "items[2].n: expected an integer, found the string \"three\"",]
        );
    }

    #[test]
    fn what_nests_too_deep_for_the_stack_is_one_fault() {
        #[derive(Debug, serde::Deserialize)]
        struct Holder {
            rest: Value,
        }
        let nested =
            |levels| Value::from([("rest", (1..levels).fold(Value::Null, |inner, _| Value::array(vec![inner])))]);
        let told = |levels| match decode::<Holder>(&nested(levels)) {
            Ok(holder) => holder.rest.is_deeper_than(levels - 2).to_string(),
            Err(faults) => faults.iter().map(|fault| format!("{}: {fault}", fault.path)).collect::<Vec<_>>().join("; "),
        };
        assert_eq!(told(MAX_LEVELS), "true");
        for levels in [MAX_LEVELS + 1, 10_000] {
            assert_eq!(told(levels), ": the document has more than 130 levels of nesting");
        }
    }
}
