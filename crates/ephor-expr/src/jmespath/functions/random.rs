//! Random text.

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
