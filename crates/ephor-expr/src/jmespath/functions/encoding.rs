//! Text formats: base64, hashes, JSON, YAML, paths.

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
