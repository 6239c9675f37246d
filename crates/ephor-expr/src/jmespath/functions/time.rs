//! Times and durations.

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
