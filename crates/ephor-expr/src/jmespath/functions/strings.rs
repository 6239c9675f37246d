//! Strings: case, replacement, regular expressions, wildcards, comparison.

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
