//! Objects: vectors of entries sorted by key.

use super::list::{is_container, maps_are_equal, release};
use super::{Str, Value};

/// An object's members, sorted by key, each key once.
///
/// Kubernetes objects have few members each, so a sorted vector beats trees and hash tables in space and time.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: Vec<(Str, Value)>,
    /// The [`mark`]s of all keys, and perhaps of some that were removed. Most optional fields of an object are not
    /// there, and asking for one that has another mark reads no key.
    marks: u64,
}

/// One bit for a key, by its length and first byte.
fn mark(key: &str) -> u64 {
    let first = key.as_bytes().first().copied().unwrap_or_default();
    1 << ((first as usize ^ key.len().wrapping_mul(5)) & 63)
}

#[expect(clippy::indexing_slicing, reason = "positions come from a search of the same entries")]
impl Map {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty map with room for `n` members.
    pub fn with_capacity(n: usize) -> Self {
        Self { entries: Vec::with_capacity(n), marks: 0 }
    }

    /// `entries` have each key once, in order.
    fn of_sorted(entries: Vec<(Str, Value)>) -> Self {
        let marks = entries.iter().fold(0, |marks, (key, _)| marks | mark(key));
        Self { entries, marks }
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(k, _)| k.as_str().cmp(key))
    }

    /// The member `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        if self.marks & mark(key) == 0 {
            return None;
        }
        // Few keys of one map are equally long, so that comparing for equality one by one hardly reads any text.
        if self.entries.len() <= 16 {
            return self.entries.iter().find(|(k, _)| k.as_str() == key).map(|(_, value)| value);
        }
        self.position(key).ok().map(|i| &self.entries[i].1)
    }

    /// The member `key`, for change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        match self.position(key) {
            Ok(i) => Some(&mut self.entries[i].1),
            Err(_) => None,
        }
    }

    /// Whether `key` is a member (its value may be null).
    pub fn contains_key(&self, key: &str) -> bool {
        self.marks & mark(key) != 0 && self.position(key).is_ok()
    }

    /// Sets `key`, giving back what was there.
    pub fn insert(&mut self, key: impl Into<Str>, value: impl Into<Value>) -> Option<Value> {
        let (key, value): (Str, Value) = (key.into(), value.into());
        self.marks |= mark(&key);
        match self.entries.last() {
            Some((last, _)) if last.as_str() < key.as_str() => {
                self.entries.push((key, value));
                None
            }
            _ => match self.position(&key) {
                Ok(i) => Some(std::mem::replace(&mut self.entries[i].1, value)),
                Err(i) => {
                    self.entries.insert(i, (key, value));
                    None
                }
            },
        }
    }

    /// The member `key` for change, created as null when it is missing.
    pub fn entry(&mut self, key: &str) -> &mut Value {
        let i = match self.position(key) {
            Ok(i) => i,
            Err(i) => {
                self.marks |= mark(key);
                self.entries.insert(i, (Str::new(key), Value::Null));
                i
            }
        };
        &mut self.entries[i].1
    }

    /// The members after `changes`, which are in the order of their keys: members that are set, or removed by `None`.
    /// However many there are, each member is looked at once.
    #[must_use]
    pub fn changed(&self, changes: Vec<(Str, Option<Value>)>) -> Self {
        let mut entries = Vec::with_capacity(self.entries.len() + changes.len());
        let mut old = self.entries.iter().peekable();
        for (key, value) in changes {
            while let Some(entry) = old.next_if(|(k, _)| *k < key) {
                entries.push(entry.clone());
            }
            old.next_if(|(k, _)| *k == key);
            entries.extend(value.map(|value| (key, value)));
        }
        entries.extend(old.cloned());
        Self::of_sorted(entries)
    }

    /// Removes `key`, giving back its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).ok().map(|i| self.entries.remove(i).1)
    }

    /// Keeps the members for which `keep` says yes.
    pub fn retain(&mut self, mut keep: impl FnMut(&Str, &mut Value) -> bool) {
        self.entries.retain_mut(|(k, v)| keep(k, v));
    }

    pub(super) fn entries(&self) -> &[(Str, Value)] {
        &self.entries
    }

    /// Takes out all members.
    pub fn clear(&mut self) {
        self.marks = 0;
        self.entries.clear();
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The members in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Str, &Value)> + ExactSizeIterator {
        self.entries.iter().map(|(k, v)| (k, v))
    }

    /// The members in key order, values for change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Str, &mut Value)> {
        self.entries.iter_mut().map(|(k, v)| (&*k, v))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Str> + ExactSizeIterator {
        self.entries.iter().map(|(k, _)| k)
    }

    /// The values in key order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.entries.iter().map(|(_, v)| v)
    }
}

#[expect(clippy::indexing_slicing, reason = "windows of two have two items")]
impl FromIterator<(Str, Value)> for Map {
    /// Collects members; of several with one key the last wins.
    fn from_iter<I: IntoIterator<Item = (Str, Value)>>(iter: I) -> Self {
        let mut entries: Vec<(Str, Value)> = iter.into_iter().collect();
        // Vectors begin with room for four entries, and most objects have fewer.
        if entries.len() <= entries.capacity() / 2 {
            entries.shrink_to_fit();
        }
        if !entries.windows(2).all(|w| w[0].0 < w[1].0) {
            // A stable sort keeps equal keys in order of arrival; dedup drops the earlier of each pair.
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(later, earlier);
                }
                same
            });
        }
        Self::of_sorted(entries)
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        maps_are_equal(self, other, 0)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.values().any(is_container) {
            release(self.entries.iter_mut().map(|(_, value)| value));
        }
    }
}

impl IntoIterator for Map {
    type Item = (Str, Value);
    type IntoIter = std::vec::IntoIter<(Str, Value)>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::mem::take(&mut self.entries).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collecting_sorts_and_the_last_of_equal_keys_wins() {
        let map: Map = [("b", 1), ("a", 2), ("b", 3), ("a", 4), ("b", 5)]
            .into_iter()
            .map(|(k, v)| (Str::new(k), Value::from(v)))
            .collect();
        let got: Vec<_> = map.iter().map(|(k, v)| (k.as_str(), v.as_i64())).collect();
        assert_eq!(got, [("a", Some(4)), ("b", Some(5))]);
    }

    #[test]
    fn members_are_found_however_they_came_in() {
        let keys = ["a", "b", "name", "labels", "kind", "a-key-that-is-longer-than-what-is-stored-in-place", ""];
        let collected: Map = keys.into_iter().map(|k| (Str::new(k), Value::from(k))).collect();
        let (mut inserted, mut entered) = (Map::new(), Map::with_capacity(2));
        for key in keys {
            inserted.insert(key, key);
            *entered.entry(key) = Value::from(key);
        }
        let changed = Map::new().changed(collected.clone().into_iter().map(|(k, v)| (k, Some(v))).collect());
        for map in [&collected, &inserted, &entered, &changed] {
            for key in keys {
                assert_eq!(map.get(key), Some(&Value::from(key)), "{key}");
                assert!(map.contains_key(key));
            }
            assert!(map.get("c").is_none() && map.get("mane").is_none());
        }
        assert!(inserted.remove("b").is_some() && inserted.get("b").is_none());
        inserted.clear();
        inserted.insert("name", 1);
        assert_eq!((inserted.get("name"), inserted.get("kind")), (Some(&Value::Int(1)), None));
    }

    #[test]
    fn changes_set_and_remove_members_in_order() {
        let map: Map = ["b", "d", "f"].into_iter().map(|k| (Str::new(k), Value::from(k))).collect();
        let set = |k: &str| (Str::new(k), Some(Value::from("new")));
        let changed = map.changed(vec![set("a"), set("b"), (Str::new("d"), None), (Str::new("e"), None), set("g")]);
        assert_eq!(Value::object(changed).to_json(), r#"{"a":"new","b":"new","f":"f","g":"new"}"#);
    }

    #[test]
    fn insert_keeps_order_and_returns_the_old_value() {
        let mut map = Map::new();
        for k in ["m", "a", "z", "c"] {
            assert!(map.insert(k, 0).is_none());
        }
        assert_eq!(map.insert("c", 1), Some(Value::Int(0)));
        assert_eq!(map.keys().map(Str::as_str).collect::<Vec<_>>(), ["a", "c", "m", "z"]);
    }
}
