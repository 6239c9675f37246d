//! The [`Value`] enum and its accessors.

use std::sync::Arc;

use super::Map;
use super::list::{List, are_equal};

/// A shared immutable string; short ones are stored in place.
pub type Str = smol_str::SmolStr;

/// A JSON-like value. Cloning is cheap: arrays, objects and long strings are reference counted.
///
/// Equality is structural, with `1` equal to `1.0` (JSON knows one number type).
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// JSON `null`.
    #[default]
    Null,
    /// JSON `true` or `false`.
    Bool(bool),
    /// A number written without fraction or exponent that fits 64 bits.
    Int(i64),
    /// Any other number; never NaN or infinite when it comes from text.
    Float(f64),
    /// A string.
    String(Str),
    /// An array.
    Array(Arc<List>),
    /// An object, sorted by key.
    Object(Arc<Map>),
}

impl Value {
    /// Wraps a list.
    pub fn array(items: Vec<Value>) -> Self {
        Value::Array(Arc::new(items.into()))
    }

    /// Wraps a map.
    pub fn object(map: Map) -> Self {
        Value::Object(Arc::new(map))
    }

    /// The number `n` in its simplest form: [`Value::Int`] when it is integral and exactly representable.
    pub fn number(n: f64) -> Self {
        if n.fract() == 0.0 && n.abs() < 9_007_199_254_740_992.0 { Value::Int(n as i64) } else { Value::Float(n) }
    }

    /// The Kubernetes-side name of the type: `null`, `boolean`, `number`, `string`, `array` or `object`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) | Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    /// Itself and all values within, at any depth, in no particular order. The stack is on the heap.
    fn within(&self) -> impl Iterator<Item = &Value> {
        let mut rest = vec![self];
        std::iter::from_fn(move || {
            let value = rest.pop()?;
            match value {
                Value::Array(items) => rest.extend(items.iter()),
                Value::Object(map) => rest.extend(map.values()),
                _ => {}
            }
            Some(value)
        })
    }

    /// Roughly how many bytes it takes in memory. What is shared with other values counts in each of them.
    pub fn memory(&self) -> usize {
        let heap = |text: &Str| if text.is_heap_allocated() { text.len() } else { 0 };
        let own = |value: &Value| match value {
            Value::String(text) => heap(text),
            Value::Object(map) => map.keys().map(|key| size_of::<Str>() + heap(key)).sum(),
            _ => 0,
        };
        self.within().map(|value| size_of::<Value>() + own(value)).sum()
    }

    /// Whether it holds more than `most` values, itself and those within counted.
    pub fn has_more_values_than(&self, most: usize) -> bool {
        self.within().nth(most).is_some()
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The integer, also of a float without fraction that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            Value::Float(f) if f.fract() == 0.0 && f.abs() < 9.2e18 => Some(*f as i64),
            _ => None,
        }
    }

    /// The number as a float.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(f) => Some(*f),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s.as_str()),
            _ => None,
        }
    }

    /// The items, if it is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(a) => Some(a),
            _ => None,
        }
    }

    /// The map, if it is an object.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(o) => Some(o),
            _ => None,
        }
    }

    /// The map for change, if it is an object; a shared one is copied one level deep first.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Object(o) => Some(Arc::make_mut(o)),
            _ => None,
        }
    }

    /// The items for change, if it is an array; a shared one is copied one level deep first.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(a) => Some(&mut **Arc::make_mut(a)),
            _ => None,
        }
    }

    /// The member `key` of an object; `None` also for anything that is no object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Follows object keys from here, for example `value.at(&["metadata", "name"])`.
    pub fn at(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(self, |v, k| v.get(k))
    }

    /// This value with the members of `over`, objects merged member by member; anything else is replaced.
    ///
    /// Objects are merged 64 levels deep, and replaced below.
    #[must_use]
    pub fn overlaid(&self, over: &Value) -> Value {
        overlay(self, over, 64)
    }

    /// The string at `keys`, if there is one.
    pub fn str_at(&self, keys: &[&str]) -> Option<&str> {
        self.at(keys)?.as_str()
    }
}

fn overlay(base: &Value, over: &Value, depth: usize) -> Value {
    match (base, over) {
        (Value::Object(below), Value::Object(above)) if depth > 0 => {
            let mut merged = (**below).clone();
            for (key, value) in above.iter() {
                let value = match merged.get(key) {
                    Some(old) => overlay(old, value, depth - 1),
                    None => value.clone(),
                };
                merged.insert(key.clone(), value);
            }
            Value::object(merged)
        }
        _ => over.clone(),
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        are_equal(self, other, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_counts_long_texts_and_each_member() {
        let text = |length: usize| Value::String("x".repeat(length).into());
        assert_eq!(text(1).memory(), Value::Null.memory());
        assert!(text(1000).memory() >= 1000);
        let of = |text| Value::from_json(text).unwrap().memory();
        assert!(of(r#"{"a":1,"b":[2]}"#) > of(r#"{"a":1,"b":2}"#));
        assert!(of(r#"{"a":1,"b":2}"#) > of(r#"{"a":1}"#));
    }

    #[test]
    fn values_are_counted_at_any_depth() {
        let value = Value::from_json(r#"{"a":[1,2],"b":{"c":null}}"#).unwrap();
        assert!(value.has_more_values_than(5));
        assert!(!value.has_more_values_than(6));
        assert!(Value::Null.has_more_values_than(0));
    }

    #[test]
    fn an_overlay_merges_objects_and_replaces_the_rest() {
        let value = |json| Value::from_json(json).unwrap();
        let base = value(r#"{"a":{"b":1,"c":[1,2]},"d":"x"}"#);
        let over = value(r#"{"a":{"c":[3],"e":null},"d":{"f":1}}"#);
        assert_eq!(base.overlaid(&over), value(r#"{"a":{"b":1,"c":[3],"e":null},"d":{"f":1}}"#));
    }
}
