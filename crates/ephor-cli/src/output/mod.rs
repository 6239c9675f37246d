//! Renderers, one a format.

pub mod diagnostics;
pub mod text;
