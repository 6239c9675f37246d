//! Names and addresses.

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
