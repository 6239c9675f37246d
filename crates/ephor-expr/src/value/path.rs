//! Paths into a value.

use std::fmt;

use super::{Str, Value};

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// An object's member.
    Key(Str),
    /// An array's item.
    Index(usize),
}

/// Where in a document: printed as `spec.rules[0].validate`, empty for the root.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// The root.
    pub fn root() -> Self {
        Self::default()
    }

    /// This path and one member more.
    #[must_use]
    pub fn key(&self, key: impl Into<Str>) -> Self {
        let mut segments = self.0.clone();
        segments.push(Segment::Key(key.into()));
        Self(segments)
    }

    /// This path and one item more.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut segments = self.0.clone();
        segments.push(Segment::Index(index));
        Self(segments)
    }

    /// This path followed by `keys`, for example `path.keys(&["validate", "pattern"])`.
    #[must_use]
    pub fn keys(&self, keys: &[&str]) -> Self {
        let mut segments = self.0.clone();
        segments.extend(keys.iter().map(|k| Segment::Key(Str::new(k))));
        Self(segments)
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// What stands at this path in `value`.
    pub fn lookup<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |v, segment| match segment {
            Segment::Key(k) => v.get(k),
            Segment::Index(i) => v.as_array()?.get(*i),
        })
    }

    /// What stands at this path in `value`, for change.
    pub fn lookup_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.0.iter().try_fold(value, |v, segment| match segment {
            Segment::Key(k) => v.as_object_mut()?.get_mut(k),
            Segment::Index(i) => v.as_array_mut()?.get_mut(*i),
        })
    }

    /// The same place as a JSON pointer, with `/` before each step and no escapes, as messages of the reference
    /// write it (`/spec/containers/0`).
    pub fn slashed(&self) -> String {
        let mut out = String::new();
        for segment in &self.0 {
            out.push('/');
            match segment {
                Segment::Key(k) => out.push_str(k),
                Segment::Index(i) => out.push_str(&i.to_string()),
            }
        }
        out
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(k) if k.is_empty() || k.contains(['.', '[', ' ']) => write!(f, "[{k:?}]")?,
                Segment::Key(k) if i == 0 => f.write_str(k)?,
                Segment::Key(k) => write!(f, ".{k}")?,
                Segment::Index(n) => write!(f, "[{n}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_and_look_up() {
        let value = Value::from_json(r#"{"a":[{"b.c":7}]}"#).unwrap();
        let path = Path::root().key("a").index(0).key("b.c");
        assert_eq!(path.to_string(), r#"a[0]["b.c"]"#);
        assert_eq!(path.slashed(), "/a/0/b.c");
        assert_eq!(path.lookup(&value), Some(&Value::Int(7)));
    }
}
