//! Arithmetic on numbers, quantities and durations.

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
