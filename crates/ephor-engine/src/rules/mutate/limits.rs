//! Bounds on patches: strangers write them, and small ones can describe much.

use ephor_expr::Value;

/// The deepest nesting that patches are followed into and may produce. Documents read from text are bounded more
/// tightly ([`ephor_expr::yaml::Limits`]).
pub(super) const MAX_DEPTH: usize = 256;

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
