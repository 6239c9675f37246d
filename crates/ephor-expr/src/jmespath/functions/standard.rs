//! The functions of the public specification that take values.

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
