//! JSON patches that a policy writes as YAML text with variables in it.
//!
//! The text is parsed once, when the policy is compiled, with a mark where each variable stands. So variables fill
//! single values, keys, parts of texts and steps of paths; what they hold cannot add operations, members or steps.

use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::value::{Path, Segment};
use ephor_expr::yaml::{Options, ScalarStyle, SourceMap, parse_value, plain_value};
use ephor_expr::{Str, Value};

use super::compile::Compiler;
use super::template::{Key, Part, Template, Variable};
use crate::diagnostic::Diagnostic;

/// Encloses the number of a variable.
const MARK: char = ephor_expr::jmespath::HOLE;

impl Compiler<'_> {
    /// Compiles the JSON patch at `path`. A text without variables stays text.
    pub fn patch_text(&mut self, text: &Str, path: &Path) -> Template {
        let Some(holed) = self.holed(text, path, &[]) else { return Template::Fixed(Value::Null) };
        let (text, holes) = holed.split();
        if holes.is_empty() {
            return Template::Fixed(Value::String(text.into()));
        }
        let mut pieces = text.split(MARK);
        let mut marked = String::from(pieces.next().unwrap_or_default());
        for (number, plain) in pieces.enumerate() {
            marked.extend([&format!("{MARK}{number}{MARK}"), plain]);
        }
        let document = match Options::default().documents(&marked) {
            Ok(mut documents) if documents.len() <= 1 => documents.pop(),
            Ok(_) => {
                self.report(Diagnostic::error("json-patch", path.clone(), "expected one document, found another"));
                return Template::Fixed(Value::Null);
            }
            Err(error) => {
                self.report(Diagnostic::error("json-patch", path.clone(), error.to_string()));
                return Template::Fixed(Value::Null);
            }
        };
        let Some(document) = document else { return Template::Fixed(Value::Null) };
        let reader = Reader { holes: &holes, source: &document.source };
        reader.value(&document.value, &mut Path::root())
    }
}

struct Reader<'r> {
    holes: &'r [Variable],
    source: &'r SourceMap,
}

impl Reader<'_> {
    fn value(&self, value: &Value, at: &mut Path) -> Template {
        match value {
            Value::String(text) if text.contains(MARK) => {
                let parts = self.parts(text);
                if let [Segment::Index(_), Segment::Key(member)] = at.0.as_slice()
                    && matches!(member.as_str(), "path" | "from")
                {
                    return Template::Pointer(parts);
                }
                match self.source.scalar_style(at) {
                    Some(ScalarStyle::Plain) => Template::Scalar(parts),
                    _ => Template::Text(parts),
                }
            }
            Value::Array(items) => {
                let parts = items.iter().enumerate();
                Template::Array(parts.map(|(i, item)| self.below(Segment::Index(i), item, at)).collect())
            }
            Value::Object(map) => {
                let members = map.iter();
                let members = members.map(|(key, member)| {
                    let part = self.below(Segment::Key(key.clone()), member, at);
                    if key.contains(MARK) {
                        (Key::Text(key.clone(), Template::Text(self.parts(key))), part)
                    } else {
                        (Key::Fixed(key.clone()), part)
                    }
                });
                Template::Object(members.collect())
            }
            _ => Template::Fixed(value.clone()),
        }
    }

    fn below(&self, segment: Segment, value: &Value, at: &mut Path) -> Template {
        at.0.push(segment);
        let template = self.value(value, at);
        at.0.pop();
        template
    }

    fn parts(&self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        for (i, part) in text.split(MARK).enumerate() {
            let variable = if i % 2 == 1 { part.parse().ok().and_then(|n: usize| self.holes.get(n)) } else { None };
            match variable {
                Some(variable) => parts.push(Part::Variable(variable.clone())),
                None if part.is_empty() => {}
                None => parts.push(Part::Plain(part.into())),
            }
        }
        parts
    }
}

/// What a text is as a value without quotes: a number, a boolean, null, a list or an object in brackets, or itself.
pub(super) fn read_scalar(text: Str, budget: &Budget) -> Result<Value, BudgetError> {
    let structured = text.starts_with(['{', '[']);
    let text = Value::String(text);
    let size = budget.charge_tree(&text)?;
    let Value::String(text) = text else { return Ok(text) };
    if structured {
        budget.charge_bytes(size)?;
        return Ok(parse_value(&text).unwrap_or(Value::String(text)));
    }
    Ok(plain_value(&text))
}
