//! Values into templates.

use ephor_expr::jmespath::{CompileError, Expression};
use ephor_expr::value::{Path, Segment};
use ephor_expr::{Str, Value};

use super::scan::{Found, needs_resolving, variables};
use super::template::{Expr, Key, Part, Template, Text, Variable};
use crate::diagnostic::Diagnostic;

/// What a lone `{{ @ }}` stands for: the field at the same place of this object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtBase {
    /// `request.object`, in patches of the trigger.
    Object,
    /// `target`, in patches of existing objects.
    Target,
}

/// Compiles the values of one rule; findings are collected, so that all faults of a policy come at once.
#[derive(Debug)]
pub struct Compiler<'d> {
    at: AtBase,
    found: &'d mut Vec<Diagnostic>,
}

impl<'d> Compiler<'d> {
    /// A compiler that reports into `found`.
    pub fn new(at: AtBase, found: &'d mut Vec<Diagnostic>) -> Self {
        Self { at, found }
    }

    /// Reports a finding.
    pub fn report(&mut self, finding: Diagnostic) {
        self.found.push(finding);
    }

    /// The findings so far, for parts that report by themselves.
    pub fn findings(&mut self) -> &mut Vec<Diagnostic> {
        self.found
    }

    /// Compiles the value at `path` of the policy document.
    pub fn template(&mut self, value: &Value, path: &Path) -> Template {
        self.within(value, path, &mut Vec::new())
    }

    /// Compiles an optional text.
    pub fn text(&mut self, text: &Str, path: &Path) -> Template {
        self.string(text, path, &[])
    }

    fn within(&mut self, value: &Value, base: &Path, inner: &mut Vec<Segment>) -> Template {
        match value {
            Value::String(text) => self.string(text, base, inner),
            Value::Array(items) => {
                let parts: Vec<Template> = items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| {
                        inner.push(Segment::Index(i));
                        let part = self.within(item, base, inner);
                        inner.pop();
                        part
                    })
                    .collect();
                if parts.iter().zip(items.iter()).all(|(part, item)| is_same(part, item)) {
                    return Template::Fixed(value.clone());
                }
                Template::Array(parts)
            }
            Value::Object(map) => {
                let members: Vec<(Key, Template)> = map
                    .iter()
                    .map(|(key, member)| {
                        inner.push(Segment::Key(key.clone()));
                        let name = self.key(key, base, inner);
                        let part = self.within(member, base, inner);
                        inner.pop();
                        (name, part)
                    })
                    .collect();
                let fixed = members
                    .iter()
                    .zip(map.values())
                    .all(|((name, part), member)| matches!(name, Key::Fixed(_)) && is_same(part, member));
                if fixed {
                    return Template::Fixed(value.clone());
                }
                Template::Object(members)
            }
            _ => Template::Fixed(value.clone()),
        }
    }

    fn key(&mut self, key: &Str, base: &Path, inner: &[Segment]) -> Key {
        if !needs_resolving(key) {
            return Key::Fixed(key.clone());
        }
        match self.string(key, base, inner) {
            Template::Fixed(Value::String(text)) => Key::Fixed(text),
            template => Key::Text(key.clone(), template),
        }
    }

    fn string(&mut self, text: &Str, base: &Path, inner: &[Segment]) -> Template {
        if !needs_resolving(text) {
            return Template::Fixed(Value::String(text.clone()));
        }
        let found = variables(text);
        if found.is_empty() {
            return Template::Fixed(Value::String(text.replace("\\{{", "{{").into()));
        }
        let mut compiled = Vec::with_capacity(found.len());
        for place in &found {
            match Expr::compile(&at_expression(place.body(text), self.at, inner)) {
                Ok(expr) => {
                    compiled.push(Variable { expr, offset: place.body_start, protected: place.protected });
                }
                Err(error) => {
                    let path = inner.iter().fold(base.clone(), |path, segment| match segment {
                        Segment::Key(key) => path.key(key.clone()),
                        Segment::Index(i) => path.index(*i),
                    });
                    self.found.push(expression_diagnostic(&error, path, place.body_start));
                }
            }
        }
        if compiled.len() != found.len() {
            return Template::Fixed(Value::Null);
        }
        if let ([place], true) = (found.as_slice(), compiled.len() == 1)
            && place.start == 0
            && place.end == text.len()
        {
            return compiled.pop().map_or(Template::Fixed(Value::Null), |v| Template::Variable(Box::new(v)));
        }
        let mut parts = Vec::with_capacity(found.len() * 2 + 1);
        let mut from = 0;
        for (place, variable) in found.iter().zip(compiled) {
            push_plain(&mut parts, text, from, place.start);
            parts.push(Part::Variable(variable));
            from = place.end;
        }
        push_plain(&mut parts, text, from, text.len());
        // An unescaped opening that no variable accounts for belongs to an outer one: `{{ a.{{ b }} }}`.
        let nested = parts.iter().any(|part| matches!(part, Part::Plain(plain) if has_bare_opening(plain)));
        // What is resolved as text later does not know its place any more, so `@` is spelt out here.
        let source = if nested { self.spelt_out(text, &found, inner) } else { text.clone() };
        Template::Text(Box::new(Text { source, parts: (!nested).then_some(parts) }))
    }

    /// The text with every lone `@` replaced by the field it means.
    fn spelt_out(&self, text: &str, found: &[Found], inner: &[Segment]) -> Str {
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for place in found {
            out.push_str(text.get(from..place.body_start).unwrap_or_default());
            out.push_str(&at_expression(place.body(text), self.at, inner));
            from = place.body_end;
        }
        out.push_str(text.get(from..).unwrap_or_default());
        out.into()
    }
}

/// The finding for an expression at `offset` of the string at `path`.
pub(crate) fn expression_diagnostic(error: &CompileError, path: Path, offset: usize) -> Diagnostic {
    let mut finding = Diagnostic::error("invalid-expression", path, error.message.clone());
    finding.help.clone_from(&error.help);
    finding.at_offset(offset + error.offset)
}

fn is_same(template: &Template, value: &Value) -> bool {
    match (template, value) {
        (Template::Fixed(Value::String(a)), Value::String(b)) => a == b,
        (Template::Fixed(_), _) => true,
        _ => false,
    }
}

fn push_plain(parts: &mut Vec<Part>, text: &str, from: usize, to: usize) {
    if let Some(plain) = text.get(from..to).filter(|plain| !plain.is_empty()) {
        parts.push(Part::Plain(plain.into()));
    }
}

fn has_bare_opening(plain: &str) -> bool {
    plain.match_indices("{{").any(|(i, _)| i == 0 || plain.as_bytes().get(i - 1) != Some(&b'\\'))
}

/// A lone `@` means the field at this place of the object.
fn at_expression(body: &str, at: AtBase, inner: &[Segment]) -> String {
    if body != "@" {
        return body.to_owned();
    }
    let mut text = match at {
        AtBase::Object => "request.object".to_owned(),
        AtBase::Target => "target".to_owned(),
    };
    for segment in inner {
        match segment {
            Segment::Key(key) => {
                let bare = key.trim_start_matches(['+', '(', '<', '=', '^', 'X']).trim_end_matches(')');
                text.push('.');
                text.push_str(&Value::from(bare).to_json());
            }
            Segment::Index(i) => {
                text.push('[');
                text.push_str(&i.to_string());
                text.push(']');
            }
        }
    }
    text
}

impl Expr {
    /// Compiles an expression in both readings.
    pub fn compile(text: &str) -> Result<Self, CompileError> {
        let normal = Expression::compile(text)?;
        let on_delete = if text.contains("request.object") {
            Some(Expression::compile(&text.replace("request.object", "request.oldObject"))?)
        } else {
            None
        };
        Ok(Self { normal, on_delete })
    }

    /// Compiles an expression that is not inside `{{ }}` and so has one reading.
    pub fn bare(text: &str) -> Result<Self, CompileError> {
        Ok(Self { normal: Expression::compile(text)?, on_delete: None })
    }

    /// As written.
    pub fn text(&self) -> &str {
        self.normal.text()
    }
}
