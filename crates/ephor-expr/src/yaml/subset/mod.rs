//! A scanner by hand for the YAML that most documents are written in, several times as fast as the full parser.
//!
//! It knows block mappings and sequences, flow collections, JSON, block scalars, and plain and quoted scalars of one
//! line. Whatever else it meets (anchors, tags, tabs, multi-line plain text, any fault) makes it give up; the full
//! parser then reads the text from the start and has the last word. INVARIANT: what it accepts, the full parser
//! accepts with the same result.

mod block;
mod cursor;
mod flow;
mod scalar;
#[cfg(test)]
mod tests;

pub(super) use block::build;
