//! Lookups in and conversions between arrays and objects.

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
