//! Texts to documents.

use std::sync::Arc;

use super::build::{Builder, Built};
use super::error::{Fault, YamlError};
use super::events;
use super::options::{DuplicateKeys, Limits, Options};
use super::position::{Lines, Position};
use super::source_map::SourceMap;
use super::subset;
use super::trace::{FullTrace, NoTrace, Trace};
use crate::Value;

/// One document of a text.
#[derive(Debug, Clone)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// Where it says so.
    pub source: SourceMap,
    /// Where it starts: its `---` or its first value.
    pub start: Position,
}

/// All documents of `text` with their source maps, by the rules of Kubernetes; repeated keys are an error. Documents
/// without any value (nothing but comments) are left out.
pub fn parse_documents(text: &str, limits: &Limits) -> Result<Vec<Document>, YamlError> {
    Options::with_limits(limits).documents(text)
}

/// As [`parse_documents`] without source maps: faster.
pub fn parse_values(text: &str, limits: &Limits) -> Result<Vec<Value>, YamlError> {
    Options::with_limits(limits).values(text)
}

/// The one document of `text` within the default limits, null when it has none. A second document is an error.
pub fn parse_value(text: &str) -> Result<Value, YamlError> {
    let options = Options::default();
    let mut documents = build::<NoTrace>(text, &options)?.into_iter();
    let first = documents.next();
    match documents.next() {
        Some(second) => Err(Fault::new(second.start, "expected one document, found another").located(text, 1)),
        None => Ok(first.map_or(Value::Null, |document| document.value)),
    }
}

/// The first document of `text` as the reference's `parse_yaml()` reads it: the rules of Kubernetes, but of repeated
/// keys the last counts. Null when the text has no document. Later documents need not even be YAML.
pub fn parse_first_document_lenient(text: &str) -> Result<Value, YamlError> {
    let options = Options { duplicate_keys: DuplicateKeys::LastWins, ..Options::default() };
    check_size(text, &options)?;
    let mut builder = Builder::<NoTrace>::new(&options);
    events::feed(text, &options, &mut builder, true).map_err(|fault| fault.located(text, 1))?;
    Ok(builder.finish().into_iter().next().map_or(Value::Null, |document| document.value))
}

pub(super) fn documents(text: &str, options: &Options) -> Result<Vec<Document>, YamlError> {
    let built = build::<FullTrace>(text, options)?;
    let lines = Arc::new(Lines::new(text, options.first_line()));
    let document = |built: Built<_>| Document {
        value: built.value,
        start: lines.position(built.start),
        source: SourceMap::new(lines.clone(), built.node),
    };
    Ok(built.into_iter().map(document).collect())
}

pub(super) fn values(text: &str, options: &Options) -> Result<Vec<Value>, YamlError> {
    Ok(build::<NoTrace>(text, options)?.into_iter().map(|built| built.value).collect())
}

fn build<T: Trace>(text: &str, options: &Options) -> Result<Vec<Built<T::Node>>, YamlError> {
    check_size(text, options)?;
    if let Some(built) = subset::build::<T>(text, options) {
        return Ok(built);
    }
    let mut builder = Builder::<T>::new(options);
    events::feed(text, options, &mut builder, false).map_err(|fault| fault.located(text, options.first_line()))?;
    Ok(builder.finish())
}

fn check_size(text: &str, options: &Options) -> Result<(), YamlError> {
    // Offsets are 32 bits wide.
    let max = options.limits.max_bytes.min(u32::MAX as usize - 1);
    if text.len() <= max {
        return Ok(());
    }
    let message = format!("expected at most {max} bytes in one text, found {}", text.len());
    Err(Fault::new(max as u32, message).located(text, options.first_line()))
}
