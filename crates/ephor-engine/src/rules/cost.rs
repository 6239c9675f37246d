//! What loops count for: strangers write the lists as well as the policies.

use ephor_expr::Value;
use ephor_expr::budget::{Budget, BudgetError};

/// What an element counts for, in evaluation steps, beside what is evaluated for it.
const ELEMENT_STEPS: u64 = 50;

/// How many bytes of an object that is looked at as a whole count as one step.
const BYTES_A_STEP: u64 = 64;

/// The largest object that a patch may make, in steps of a walk over it; about 30 MB, far beyond what a cluster takes.
const OBJECT_STEPS: u64 = 2_000_000;

/// Charges for an element whose body looks at that element alone.
pub(crate) fn charge_element(budget: &Budget) -> Result<(), BudgetError> {
    budget.charge_steps(ELEMENT_STEPS)
}

/// Charges for an element whose body looks at or copies all of `object`.
pub(crate) fn charge_object(budget: &Budget, object: &Value) -> Result<(), BudgetError> {
    let size = Budget::new(OBJECT_STEPS, 0).charge_tree(object)?;
    budget.charge_steps(ELEMENT_STEPS + size as u64 / BYTES_A_STEP)
}
