//! Operations as data.

use ephor_expr::{Map, Value};

use super::pointer::Pointer;

/// A sequence of operations, each on what those before it left.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JsonPatch {
    /// The operations.
    pub ops: Vec<PatchOp>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub enum PatchOp {
    /// Puts a value where nothing is, before a list's item, or over a member.
    Add {
        /// Where.
        path: Pointer,
        /// What.
        value: Value,
    },
    /// Takes a value out.
    Remove {
        /// Where.
        path: Pointer,
    },
    /// Puts a value in the place of another.
    Replace {
        /// Where.
        path: Pointer,
        /// What.
        value: Value,
    },
    /// Takes a value from one place to another.
    Move {
        /// From where.
        from: Pointer,
        /// Where to.
        path: Pointer,
    },
    /// Puts a value in a second place.
    Copy {
        /// From where.
        from: Pointer,
        /// Where to.
        path: Pointer,
    },
    /// Fails the patch unless a value is what it should be.
    Test {
        /// Where.
        path: Pointer,
        /// What it should be.
        value: Value,
    },
}

impl PatchOp {
    /// The operation's name.
    pub fn name(&self) -> &'static str {
        match self {
            PatchOp::Add { .. } => "add",
            PatchOp::Remove { .. } => "remove",
            PatchOp::Replace { .. } => "replace",
            PatchOp::Move { .. } => "move",
            PatchOp::Copy { .. } => "copy",
            PatchOp::Test { .. } => "test",
        }
    }

    /// Where it applies.
    pub fn path(&self) -> &Pointer {
        match self {
            PatchOp::Add { path, .. }
            | PatchOp::Remove { path }
            | PatchOp::Replace { path, .. }
            | PatchOp::Move { path, .. }
            | PatchOp::Copy { path, .. }
            | PatchOp::Test { path, .. } => path,
        }
    }

    /// The operation as RFC 6902 writes it: an object with `op`, `path` and so on.
    pub fn to_value(&self) -> Value {
        let mut map = Map::with_capacity(3);
        map.insert("op", self.name());
        map.insert("path", self.path().as_str());
        match self {
            PatchOp::Add { value, .. } | PatchOp::Replace { value, .. } | PatchOp::Test { value, .. } => {
                map.insert("value", value.clone());
            }
            PatchOp::Move { from, .. } | PatchOp::Copy { from, .. } => {
                map.insert("from", from.as_str());
            }
            PatchOp::Remove { .. } => {}
        }
        Value::object(map)
    }
}

impl JsonPatch {
    /// The patch as RFC 6902 writes it: a list of objects.
    pub fn to_value(&self) -> Value {
        Value::array(self.ops.iter().map(PatchOp::to_value).collect())
    }
}
