//! Bounds on patches: strangers write them, and small ones can describe much.

use ephor_expr::Value;

/// The deepest nesting that patches are followed into, and that merges may produce. Documents read from text are
/// bounded more tightly ([`ephor_expr::yaml::Limits`]).
pub(super) const MAX_DEPTH: usize = 256;

/// The deepest document that a JSON patch may make. An API server reads 10,000 levels and refuses what is deeper, so a
/// patch can move all that an object holds, and a document that becomes too deep is refused by the API server. An error
/// here would let the object pass as it is, where failures are ignored.
pub(super) const MAX_LEVELS: usize = 20_000;

/// How many values one application of a patch may build or look at again. A patch can multiply with the resource
/// (conditions in nested lists) or with itself (copies of copies); real ones stay in the hundreds.
pub(super) const MAX_PARTS: usize = 200_000;

/// What one patch may still build beyond what its own text and the resource hold.
#[derive(Debug)]
pub(super) struct Allowance(usize);

impl Allowance {
    /// [`MAX_PARTS`] values.
    pub(super) fn new() -> Self {
        Self(MAX_PARTS)
    }

    /// Takes `parts` values; `None` if that is more than is left.
    pub(super) fn take(&mut self, parts: usize) -> Option<()> {
        self.0 = self.0.checked_sub(parts)?;
        Some(())
    }
}

/// How many values `value` consists of, itself included; parts that nest too deeply are not counted.
pub(super) fn parts_of(value: &Value) -> usize {
    fn count(value: &Value, depth: usize) -> usize {
        let Some(depth) = depth.checked_sub(1) else { return 0 };
        match value {
            Value::Array(items) => items.iter().fold(1, |sum: usize, item| sum.saturating_add(count(item, depth))),
            Value::Object(map) => map.values().fold(1, |sum: usize, member| sum.saturating_add(count(member, depth))),
            _ => 1,
        }
    }
    count(value, MAX_DEPTH)
}
