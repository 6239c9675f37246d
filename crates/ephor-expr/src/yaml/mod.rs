//! YAML and JSON text to values with positions, and values to YAML text.
//!
//! JSON is read as the subset of YAML that it is. Reading is bounded by [`Limits`] in size, depth and alias expansion;
//! every refusal is a [`YamlError`] with its place.
//!
//! - [`parse_documents`] for what a user writes and gets messages about: values with a [`SourceMap`];
//! - [`parse_values`], [`parse_value`] for data: values alone, faster;
//! - [`DocumentStream`] for files of any length: one document's text at a time;
//! - [`to_yaml`], [`PrintStyle`] for output;
//! - [`Options`] where the rules of Kubernetes objects are not the right ones.
//!
//! Inside, two scanners feed one builder: the full parser (`events`) and, tried first, a fast one for the everyday
//! subset of YAML (`subset`). Scalars get their meaning in `resolve`, places are kept in `trace` or not at all.

mod build;
mod document;
mod error;
mod events;
mod options;
mod position;
mod print;
#[cfg(test)]
mod print_tests;
mod quoting;
mod resolve;
#[cfg(test)]
mod resolve_tests;
mod scalar_text;
mod source_map;
mod stream;
mod subset;
#[cfg(test)]
mod tests;
mod trace;

pub use document::{Document, parse_documents, parse_first_document_lenient, parse_value, parse_values};
pub use error::YamlError;
pub use options::{Dialect, DuplicateKeys, Limits, Options};
pub use position::{Position, Span};
pub use print::{PrintStyle, to_yaml};
pub use resolve::plain_value;
pub use source_map::{ScalarStyle, SourceMap};
pub use stream::{DocumentStream, RawDocument, StreamError, text_from_utf8};
