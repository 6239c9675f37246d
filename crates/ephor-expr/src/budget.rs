//! Bounds on the work and memory of evaluation.

use std::cell::Cell;

use crate::value::Value;

/// What a stranger's expression may spend. Charged by every evaluator step and for every byte a function builds,
/// so that no expression loops long or grows a string without end (lessons 25).
#[derive(Debug)]
pub struct Budget {
    steps: Cell<u64>,
    bytes: Cell<u64>,
}

/// The budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// Too many evaluation steps.
    #[error("evaluation takes too many steps")]
    Steps,
    /// Too much data built.
    #[error("evaluation builds too much data")]
    Bytes,
    /// A value nested too deeply was built.
    #[error("evaluation nests data too deeply")]
    Depth,
}

impl Budget {
    /// Steps a single rule evaluation may take.
    pub const DEFAULT_STEPS: u64 = 10_000_000;
    /// Bytes a single rule evaluation may build.
    pub const DEFAULT_BYTES: u64 = 64 << 20;

    /// How deep a value may nest; beyond what texts can say, by what expressions can add.
    const MAX_DEPTH: usize = 512;

    /// A budget of `steps` evaluation steps and `bytes` built bytes.
    pub fn new(steps: u64, bytes: u64) -> Self {
        Self { steps: Cell::new(steps), bytes: Cell::new(bytes) }
    }

    /// Takes `n` steps. Once they do not suffice none are left, so that what comes after fails as well.
    pub fn charge_steps(&self, n: u64) -> Result<(), BudgetError> {
        take(&self.steps, n).ok_or(BudgetError::Steps)
    }

    /// Takes `n` bytes. Once they do not suffice none are left.
    pub fn charge_bytes(&self, n: usize) -> Result<(), BudgetError> {
        take(&self.bytes, n as u64).ok_or(BudgetError::Bytes)
    }

    /// Walks all of `value`, a step for every node and every 16 bytes of text, and gives about the length of its
    /// JSON. To be called before a value is copied out, for example as text, and when a value is built that may
    /// hold another several times: shared parts take no memory but count in full here, so that doubling again
    /// and again ends at the budget.
    pub fn charge_tree(&self, value: &Value) -> Result<usize, BudgetError> {
        self.walk(value, Self::MAX_DEPTH)
    }

    fn walk(&self, value: &Value, depth: usize) -> Result<usize, BudgetError> {
        let inner = depth.checked_sub(1).ok_or(BudgetError::Depth)?;
        let size = match value {
            Value::Null | Value::Bool(_) => 5,
            Value::Int(_) | Value::Float(_) => 20,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => {
                self.charge_steps(1)?;
                return items.iter().try_fold(2_usize, |sum, item| Ok(sum.saturating_add(self.walk(item, inner)? + 1)));
            }
            Value::Object(map) => {
                self.charge_steps(1)?;
                return map.iter().try_fold(2_usize, |sum, (key, item)| {
                    Ok(sum.saturating_add(key.len() + 4 + self.walk(item, inner)?))
                });
            }
        };
        self.charge_steps(1 + size as u64 / 16)?;
        Ok(size)
    }
}

fn take(left: &Cell<u64>, n: u64) -> Option<()> {
    let rest = left.get().checked_sub(n);
    left.set(rest.unwrap_or(0));
    rest.map(drop)
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_STEPS, Self::DEFAULT_BYTES)
    }
}
