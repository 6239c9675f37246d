//! Lists, and what values of any depth need: comparing and freeing them without deep recursion.
//!
//! An API server accepts objects that nest 10,000 deep. The code that the compiler derives recurses as deep as a value
//! nests and would overflow the stack of a thread. The functions here recurse a little and then keep their place on
//! the heap.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{Map, Value};

/// From this depth on the place in a value is kept on the heap.
pub(super) const MAX_RECURSION: usize = 64;

/// The items of an array: a `Vec` that is freed without deep recursion.
#[derive(Debug, Clone, Default)]
pub struct List(Vec<Value>);

impl List {
    /// The items alone.
    pub fn into_vec(mut self) -> Vec<Value> {
        std::mem::take(&mut self.0)
    }
}

impl From<Vec<Value>> for List {
    fn from(mut items: Vec<Value>) -> Self {
        if items.len() <= items.capacity() / 2 {
            items.shrink_to_fit();
        }
        Self(items)
    }
}

impl Deref for List {
    type Target = Vec<Value>;

    fn deref(&self) -> &Vec<Value> {
        &self.0
    }
}

impl DerefMut for List {
    fn deref_mut(&mut self) -> &mut Vec<Value> {
        &mut self.0
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.0.iter().any(is_container) {
            release(self.0.iter_mut());
        }
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        lists_are_equal(self, other, 0)
    }
}

pub(super) fn is_container(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// Empties the containers among `children` that nothing else shares, the innermost first, so that freeing them
/// afterwards does not recurse.
pub(super) fn release<'v>(children: impl Iterator<Item = &'v mut Value>) {
    let mut pending = Vec::new();
    for child in children {
        empty(child, 0, &mut pending);
    }
    while let Some(mut value) = pending.pop() {
        empty(&mut value, 0, &mut pending);
    }
}

/// Empties `value`; what is too deep for recursion moves to `pending`.
fn empty(value: &mut Value, depth: usize, pending: &mut Vec<Value>) {
    match value {
        Value::Array(items) if Arc::strong_count(items) == 1 => {
            let Some(items) = Arc::get_mut(items) else { return };
            if depth < MAX_RECURSION {
                items.0.iter_mut().for_each(|item| empty(item, depth + 1, pending));
                items.0.clear();
            } else {
                pending.extend(std::mem::take(&mut items.0).into_iter().filter(is_container));
            }
        }
        Value::Object(map) if Arc::strong_count(map) == 1 => {
            let Some(map) = Arc::get_mut(map) else { return };
            if depth < MAX_RECURSION {
                map.iter_mut().for_each(|(_, member)| empty(member, depth + 1, pending));
                map.clear();
            } else {
                pending.extend(std::mem::take(map).into_iter().map(|(_, member)| member).filter(is_container));
            }
        }
        _ => {}
    }
}

/// Whether two values are the same; `depth` says how deep in others they stand.
pub(super) fn are_equal(a: &Value, b: &Value, depth: usize) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => Arc::ptr_eq(a, b) || lists_are_equal(a, b, depth),
        (Value::Object(a), Value::Object(b)) => Arc::ptr_eq(a, b) || maps_are_equal(a, b, depth),
        (a, b) => scalars_are_equal(a, b),
    }
}

fn scalars_are_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (a, b) => matches!((a.as_f64(), b.as_f64()), (Some(x), Some(y)) if x == y),
    }
}

fn lists_are_equal(a: &[Value], b: &[Value], depth: usize) -> bool {
    a.len() == b.len()
        && if depth < MAX_RECURSION {
            a.iter().zip(b).all(|(a, b)| are_equal(a, b, depth + 1))
        } else {
            all_are_equal(a.iter().zip(b).collect())
        }
}

/// [`are_equal`] for the members of two maps.
pub(super) fn maps_are_equal(a: &Map, b: &Map, depth: usize) -> bool {
    a.len() == b.len()
        && if depth < MAX_RECURSION {
            a.iter().zip(b.iter()).all(|((k, a), (l, b))| k == l && are_equal(a, b, depth + 1))
        } else {
            a.keys().eq(b.keys()) && all_are_equal(a.values().zip(b.values()).collect())
        }
}

/// Whether the values of each pair are the same, without recursion.
fn all_are_equal(mut pairs: Vec<(&Value, &Value)>) -> bool {
    while let Some(pair) = pairs.pop() {
        let same = match pair {
            (Value::Array(a), Value::Array(b)) if Arc::ptr_eq(a, b) => true,
            (Value::Object(a), Value::Object(b)) if Arc::ptr_eq(a, b) => true,
            (Value::Array(a), Value::Array(b)) => {
                pairs.extend(a.iter().zip(b.iter()));
                a.len() == b.len()
            }
            (Value::Object(a), Value::Object(b)) => {
                pairs.extend(a.values().zip(b.values()));
                a.keys().eq(b.keys())
            }
            (a, b) => scalars_are_equal(a, b),
        };
        if !same {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an API server accepts, with objects and arrays in turn.
    fn nested(depth: usize, innermost: i64) -> Value {
        (0..depth).fold(Value::Int(innermost), |inner, level| {
            if level % 2 == 0 { Value::array(vec![inner]) } else { Value::from([("a", inner)]) }
        })
    }

    #[test]
    fn deep_values_are_compared_and_freed_on_a_small_stack() {
        let work = || {
            let (a, b, c) = (nested(100_000, 1), nested(100_000, 1), nested(100_000, 2));
            assert!(a == b && a != c && b != nested(99_999, 1));
        };
        std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn freeing_leaves_shared_parts_alone() {
        let shared = nested(200, 1);
        drop(Value::array(vec![shared.clone(), Value::from([("a", shared.clone())])]));
        assert_eq!(shared, nested(200, 1));
    }
}
