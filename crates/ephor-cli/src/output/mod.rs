//! Renderers, one a format.

pub mod diagnostics;
pub mod findings;
pub mod test_text;
pub mod text;
