//! Bounds on the work and memory of evaluation.

use std::cell::Cell;

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
}

impl Budget {
    /// Steps a single rule evaluation may take.
    pub const DEFAULT_STEPS: u64 = 10_000_000;
    /// Bytes a single rule evaluation may build.
    pub const DEFAULT_BYTES: u64 = 64 << 20;

    /// A budget of `steps` evaluation steps and `bytes` built bytes.
    pub fn new(steps: u64, bytes: u64) -> Self {
        Self { steps: Cell::new(steps), bytes: Cell::new(bytes) }
    }

    /// Takes `n` steps.
    pub fn charge_steps(&self, n: u64) -> Result<(), BudgetError> {
        let left = self.steps.get().checked_sub(n).ok_or(BudgetError::Steps)?;
        self.steps.set(left);
        Ok(())
    }

    /// Takes `n` bytes.
    pub fn charge_bytes(&self, n: usize) -> Result<(), BudgetError> {
        let left = self.bytes.get().checked_sub(n as u64).ok_or(BudgetError::Bytes)?;
        self.bytes.set(left);
        Ok(())
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_STEPS, Self::DEFAULT_BYTES)
    }
}
