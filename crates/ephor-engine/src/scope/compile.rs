//! Values into templates.

use ephor_expr::jmespath::{CompileError, Expression, HOLE, RootKind};
use ephor_expr::value::{Path, Segment};
use ephor_expr::{Str, Value};

use super::scan::{needs_resolving, variables};
use super::template::{Expr, Key, Part, Template, Variable};
use crate::diagnostic::Diagnostic;

/// How deep variables nest in each other.
pub(super) const MAX_NESTING: usize = 32;

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
        let Some(holed) = self.holed(text, base, inner) else { return Template::Fixed(Value::Null) };
        let (text, holes) = holed.split();
        if text.strip_prefix(HOLE).is_some_and(str::is_empty) {
            return holes.into_iter().next().map_or(Template::Fixed(Value::Null), |v| Template::Variable(Box::new(v)));
        }
        if holes.is_empty() {
            return Template::Fixed(Value::String(text.into()));
        }
        let mut parts = Vec::with_capacity(holes.len() * 2 + 1);
        let mut variables = holes.into_iter();
        for (i, plain) in text.split(HOLE).enumerate() {
            if i > 0 {
                parts.extend(variables.next().map(Part::Variable));
            }
            if !plain.is_empty() {
                parts.push(Part::Plain(plain.into()));
            }
        }
        Template::Text(parts)
    }

    /// A text with a hole for each of its outermost variables, escapes taken away. Innermost variables are found
    /// first, then those around them, as upstream does; what a variable will hold has no part in it. `None` if
    /// something is wrong, which is reported.
    pub(super) fn holed(&mut self, text: &str, base: &Path, inner: &[Segment]) -> Option<Holed> {
        let path = || inner.iter().fold(base.clone(), |path, segment| below(&path, segment));
        if text.contains(HOLE) {
            let message = format!("the character U+{:X} cannot stand beside variables", HOLE as u32);
            self.report(Diagnostic::error("invalid-expression", path(), message));
            return None;
        }
        let mut holed = Holed { text: text.to_owned(), holes: Vec::new() };
        for _ in 0..MAX_NESTING {
            let found = variables(&holed.text);
            if found.is_empty() {
                if holed.text.contains("\\{{") {
                    holed.text = holed.text.replace("\\{{", "{{");
                }
                return Some(holed);
            }
            let mut next = Holed { text: String::with_capacity(holed.text.len()), holes: Vec::new() };
            let mut holes = holed.holes.into_iter();
            // `start` is how long the policy's own text is up to `from`.
            let (mut from, mut start) = (0, 0);
            for place in found {
                let part = |from: usize, to: usize| holed.text.get(from..to).unwrap_or_default();
                let plain = part(from, place.start);
                next.text.push_str(plain);
                let filled = next.holes.len();
                next.holes.extend(holes.by_ref().take(holes_in(plain)));
                start += written(plain, next.holes.get(filled..).unwrap_or_default()).len();
                let own: Vec<Hole> = holes.by_ref().take(holes_in(place.body(&holed.text))).collect();
                let source = written(part(place.start, place.end), &own);
                let body = at_expression(place.body(&holed.text), self.at, inner);
                let offset = start + place.body_start - place.start;
                match Expr::compile(&body) {
                    Ok(expr) => {
                        let written = written(&body, &own).into();
                        let holes = own.into_iter().map(|hole| hole.variable).collect();
                        start += source.len();
                        next.holes.push(Hole { variable: Variable { expr, holes, written, offset }, source });
                    }
                    Err(error) => {
                        let before = written(body.get(..error.offset).unwrap_or(&body), &own).len();
                        let error = CompileError { offset: before, ..error };
                        self.found.push(expression_diagnostic(&error, path(), offset));
                        return None;
                    }
                }
                next.text.push(HOLE);
                from = place.end;
            }
            next.text.push_str(holed.text.get(from..).unwrap_or_default());
            next.holes.extend(holes);
            holed = next;
        }
        self.report(Diagnostic::error("invalid-expression", path(), "variables nest too deep"));
        None
    }
}

/// A text with holes in it and what fills them, in order.
pub(super) struct Holed {
    pub(super) text: String,
    holes: Vec<Hole>,
}

/// A variable and its `{{ }}` as the policy has it.
struct Hole {
    variable: Variable,
    source: String,
}

impl Holed {
    /// The text, and the variable for each of its holes.
    pub(super) fn split(self) -> (String, Vec<Variable>) {
        (self.text, self.holes.into_iter().map(|hole| hole.variable).collect())
    }
}

fn below(path: &Path, segment: &Segment) -> Path {
    match segment {
        Segment::Key(key) => path.key(key.clone()),
        Segment::Index(i) => path.index(*i),
    }
}

fn holes_in(text: &str) -> usize {
    text.matches(HOLE).count()
}

/// A text as the policy has it, holes filled with their source.
fn written(text: &str, holes: &[Hole]) -> String {
    let mut holes = holes.iter();
    let mut out = String::with_capacity(text.len());
    for (i, plain) in text.split(HOLE).enumerate() {
        if i > 0 {
            out.extend(holes.next().map(|hole| hole.source.as_str()));
        }
        out.push_str(plain);
    }
    out
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
    /// Compiles an expression with holes, in both readings.
    fn compile(text: &str) -> Result<Self, CompileError> {
        let normal = Expression::compile_with_holes(text, RootKind::Names)?;
        let on_delete = if text.contains("request.object") {
            Some(Expression::compile_with_holes(&text.replace("request.object", "request.oldObject"), RootKind::Names)?)
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
