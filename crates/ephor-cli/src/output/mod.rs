//! Renderers, one a format.

pub mod diagnostics;
