//! Typed access to the members of an object, with the path of what does not fit.

use ephor_expr::value::{Path, Segment};
use ephor_expr::{Map, Value};

/// A field that is not of the type the Kubernetes API gives it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} must be of type {expected}, not {found}")]
pub(crate) struct Misfit {
    path: Path,
    expected: &'static str,
    found: &'static str,
}

/// An object being read; missing and null read as an empty one. Knows its way up, so that only a misfit needs to
/// build a path.
pub(super) struct Reader<'r, 'v> {
    map: Option<&'v Map>,
    key: &'static str,
    index: Option<usize>,
    parent: Option<&'r Reader<'r, 'v>>,
}

impl<'v> Reader<'_, 'v> {
    /// Starts at a whole resource.
    pub(super) fn root(value: &'v Value) -> Result<Self, Misfit> {
        let start = Reader { map: None, key: "", index: None, parent: None };
        Ok(Reader { map: start.as_map(Some(value), "", None)?, ..start })
    }

    /// The object as such; `None` if it is missing.
    pub(super) fn map(&self) -> Option<&'v Map> {
        self.map
    }

    /// The object's place in the list it was read from.
    pub(super) fn index(&self) -> usize {
        self.index.unwrap_or_default()
    }

    /// The object at `key`.
    pub(super) fn object<'s>(&'s self, key: &'static str) -> Result<Reader<'s, 'v>, Misfit> {
        let map = self.as_map(self.member(key), key, None)?;
        Ok(Reader { map, key, index: None, parent: Some(self) })
    }

    /// The objects in the list at `key`, each of them shown to `check` first.
    pub(super) fn list(
        &self,
        key: &'static str,
        mut check: impl FnMut(&Reader<'_, 'v>) -> Result<(), Misfit>,
    ) -> Result<&'v [Value], Misfit> {
        let items = self.items(key)?;
        for (index, item) in items.iter().enumerate() {
            let map = self.as_map(Some(item), key, Some(index))?;
            check(&Reader { map, key, index: Some(index), parent: Some(self) })?;
        }
        Ok(items)
    }

    /// How many items the list at `key` has.
    pub(super) fn length(&self, key: &str) -> usize {
        self.member(key).and_then(Value::as_array).map_or(0, <[Value]>::len)
    }

    /// The texts in the list at `key`.
    pub(super) fn texts(&self, key: &'static str) -> Result<&'v [Value], Misfit> {
        let items = self.items(key)?;
        for (index, item) in items.iter().enumerate() {
            if !matches!(item, Value::String(_) | Value::Null) {
                return Err(self.misfit(key, Some(index), "string", item));
            }
        }
        Ok(items)
    }

    /// The text at `key`.
    pub(super) fn text(&self, key: &'static str) -> Result<Option<&'v str>, Misfit> {
        let Some(value) = self.member(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.misfit(key, None, "string", value))
    }

    /// The boolean at `key`.
    pub(super) fn flag(&self, key: &'static str) -> Result<Option<bool>, Misfit> {
        let Some(value) = self.member(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.misfit(key, None, "boolean", value))
    }

    /// The integer at `key`.
    pub(super) fn number(&self, key: &'static str) -> Result<Option<i64>, Misfit> {
        let Some(value) = self.member(key) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| self.misfit(key, None, "integer", value))
    }

    /// Checks that every member is a text.
    pub(super) fn check_texts(&self) -> Result<(), Misfit> {
        for (key, value) in self.map.iter().flat_map(|map| map.iter()) {
            if !matches!(value, Value::String(_) | Value::Null) {
                return Err(Misfit {
                    path: self.path().key(key.clone()),
                    expected: "string",
                    found: value.type_name(),
                });
            }
        }
        Ok(())
    }

    fn member(&self, key: &str) -> Option<&'v Value> {
        self.map?.get(key).filter(|value| !value.is_null())
    }

    fn items(&self, key: &'static str) -> Result<&'v [Value], Misfit> {
        let Some(value) = self.member(key) else { return Ok(&[]) };
        value.as_array().ok_or_else(|| self.misfit(key, None, "array", value))
    }

    fn as_map(
        &self,
        value: Option<&'v Value>,
        key: &'static str,
        index: Option<usize>,
    ) -> Result<Option<&'v Map>, Misfit> {
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(self.misfit(key, index, "object", other)),
        }
    }

    #[cold]
    fn misfit(&self, key: &'static str, index: Option<usize>, expected: &'static str, found: &Value) -> Misfit {
        let mut path = self.path();
        push(&mut path, key, index);
        Misfit { path, expected, found: found.type_name() }
    }

    fn path(&self) -> Path {
        // The way up is at most as long as the paths that `Pod::read` knows.
        let mut steps = Vec::new();
        let mut here = Some(self as &Reader<'_, '_>);
        while let Some(reader) = here {
            steps.push((reader.key, reader.index));
            here = reader.parent;
        }
        let mut path = Path::root();
        for (key, index) in steps.into_iter().rev() {
            push(&mut path, key, index);
        }
        path
    }
}

fn push(path: &mut Path, key: &'static str, index: Option<usize>) {
    if !key.is_empty() {
        path.0.push(Segment::Key(key.into()));
    }
    path.0.extend(index.map(Segment::Index));
}
