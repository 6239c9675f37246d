//! Templates into values.

use ephor_expr::jmespath::{Runtime, embed};
use ephor_expr::scalar::wildcard::has_wildcard;
use ephor_expr::value::{Path, Segment};
use ephor_expr::yaml::plain_value;
use ephor_expr::{Map, Str, Value};

use super::context::Scope;
use super::error::ScopeError;
use super::patch_text::read_scalar;
use super::template::{Key, Part, Template, Variable};
use crate::rules::anchor::parse_anchor;

/// What a resolved template is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Plain data.
    Data,
    /// A pattern: its keys may be anchors.
    Pattern,
    /// A strategic merge patch: its keys may be anchors or directives such as `$patch`, texts in its lists anchors.
    Merge,
    /// What selects objects: its texts may be wildcards.
    Selection,
}

impl Template {
    /// The value of the template in `scope`. Errors name the place in the template.
    pub fn resolve(&self, scope: &mut Scope<'_>) -> Result<Value, ScopeError> {
        self.resolve_as(Shape::Data, scope)
    }

    /// The same for what is read as `shape`. Anchors, directives and wildcards of selections are the policy's: one that
    /// a variable brings in is an error.
    pub(crate) fn resolve_as(&self, shape: Shape, scope: &mut Scope<'_>) -> Result<Value, ScopeError> {
        match self {
            Template::Fixed(value) => Ok(value.clone()),
            Template::Variable(variable) => {
                let value = variable.value(scope)?;
                if matches!(value, Value::Array(_) | Value::Object(_)) {
                    // What holds this one may hold it many times, and be held many times itself.
                    scope.world().budget().charge_tree(&value)?;
                    shape.refuse_directives(&value)?;
                }
                shape.refuse_wildcards(&value)?;
                Ok(value)
            }
            Template::Text(parts) => Ok(Value::String(joined(parts, shape, scope)?)),
            Template::Scalar(parts) => match parts.as_slice() {
                [Part::Variable(variable)] => match variable.value(scope)? {
                    Value::String(text) => Ok(read_scalar(text, scope.world().budget())?),
                    other => {
                        scope.world().budget().charge_tree(&other)?;
                        Ok(other)
                    }
                },
                parts => Ok(plain_value(&joined(parts, shape, scope)?)),
            },
            Template::Pointer(parts) => Ok(Value::String(pointer(parts, scope)?)),
            Template::Array(items) => {
                let mut out = Vec::with_capacity(items.len());
                for (i, item) in items.iter().enumerate() {
                    let value = scope.nested(1, |scope| item.resolve_as(shape, scope));
                    let value = value.and_then(|value| {
                        if !matches!(item, Template::Fixed(_)) {
                            shape.refuse_item(&value)?;
                        }
                        Ok(value)
                    });
                    out.push(value.map_err(|e| e.below(Segment::Index(i)))?);
                }
                Ok(Value::array(out))
            }
            Template::Object(members) => {
                let mut out = Map::with_capacity(members.len());
                for (key, member) in members {
                    let (name, written) = match key {
                        Key::Fixed(name) => (name.clone(), name),
                        Key::Text(written, template) => match template.resolve_as(shape.of_keys(), scope)? {
                            Value::String(name) => (shape.key(name, written)?, written),
                            _ => return Err(ScopeError::KeyNotString { key: written.clone(), path: Path::root() }),
                        },
                    };
                    let value = scope.nested(1, |scope| member.resolve_as(shape, scope));
                    let value = value.map_err(|e| e.below(Segment::Key(written.clone())))?;
                    if out.insert(name.clone(), value).is_some() {
                        return Err(ScopeError::KeyTwice { key: name, written: written.clone(), path: Path::root() });
                    }
                }
                Ok(Value::object(out))
            }
        }
    }
}

impl Shape {
    /// What names of members are read as.
    fn of_keys(self) -> Self {
        if self == Shape::Selection { Shape::Selection } else { Shape::Data }
    }

    /// Refuses a value that came from a variable and has wildcards in it.
    fn refuse_wildcards(self, value: &Value) -> Result<(), ScopeError> {
        match value {
            _ if self != Shape::Selection => Ok(()),
            Value::String(text) => refuse_wildcard(text),
            Value::Array(items) => items.iter().try_for_each(|item| self.refuse_wildcards(item)),
            Value::Object(map) => map.iter().try_for_each(|(key, member)| {
                refuse_wildcard(key)?;
                self.refuse_wildcards(member)
            }),
            _ => Ok(()),
        }
    }

    /// A key that variables of `written` gave.
    fn key(self, key: Str, written: &str) -> Result<Str, ScopeError> {
        let anchor = |text: &str| parse_anchor(text).map(|(anchor, _)| anchor);
        let directive = |text: &str| self == Shape::Merge && text.starts_with('$');
        if matches!(self, Shape::Data | Shape::Selection)
            || (anchor(&key), directive(&key)) == (anchor(written), directive(written))
        {
            return Ok(key);
        }
        Err(ScopeError::Directive { text: key, path: Path::root() })
    }

    /// An item of a list of the policy that has variables in it.
    fn refuse_item(self, item: &Value) -> Result<(), ScopeError> {
        match item {
            Value::String(text) if self == Shape::Merge && parse_anchor(text).is_some() => {
                Err(ScopeError::Directive { text: text.clone(), path: Path::root() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a value that came from a variable and has anchors or directives in it.
    fn refuse_directives(self, value: &Value) -> Result<(), ScopeError> {
        // What is still to look at: values nest deeper than the stack of a thread.
        let mut pending = if self == Shape::Data { Vec::new() } else { vec![value] };
        while let Some(value) = pending.pop() {
            match value {
                Value::Array(items) => {
                    items.iter().try_for_each(|item| self.refuse_item(item))?;
                    pending.extend(items.iter());
                }
                Value::Object(map) => {
                    map.keys().try_for_each(|key| self.key(key.clone(), "").map(drop))?;
                    pending.extend(map.values());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A template as a text.
pub(crate) struct Rendered {
    pub(crate) text: Str,
    /// Whether the template gave a string; anything else is rendered as JSON.
    pub(crate) is_string: bool,
}

impl Template {
    /// The value of the template in `scope`, as a text.
    pub(crate) fn render(&self, scope: &mut Scope<'_>) -> Result<Rendered, ScopeError> {
        Ok(match self.resolve(scope)? {
            Value::String(text) => Rendered { text, is_string: true },
            other => {
                let mut text = String::new();
                embed(&other, scope.world().budget(), &mut text)?;
                Rendered { text: text.into(), is_string: false }
            }
        })
    }
}

impl Variable {
    /// The value of the variable.
    pub(super) fn value(&self, scope: &mut Scope<'_>) -> Result<Value, ScopeError> {
        let holes = filled(&self.holes, scope)?;
        scope.evaluate(&self.expr, &holes).map_err(|cause| {
            // Upstream rewrites the expression on DELETE, and reports what it evaluated.
            let evaluated = scope.is_delete().then(|| self.written.replace("request.object", "request.oldObject"));
            cause.into_error(evaluated.as_deref().unwrap_or(&self.written), Some(self.offset))
        })
    }
}

/// The values of variables inside an expression.
pub(super) fn filled(holes: &[Variable], scope: &mut Scope<'_>) -> Result<Vec<Value>, ScopeError> {
    holes.iter().map(|hole| hole.value(scope)).collect()
}

fn refuse_wildcard(text: &str) -> Result<(), ScopeError> {
    if has_wildcard(text) {
        return Err(ScopeError::Wildcard { text: Str::new(text), path: Path::root() });
    }
    Ok(())
}

fn joined(parts: &[Part], shape: Shape, scope: &mut Scope<'_>) -> Result<Str, ScopeError> {
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Plain(plain) => out.push_str(plain),
            Part::Variable(variable) => {
                let value = variable.value(scope)?;
                shape.refuse_wildcards(&value)?;
                embed(&value, scope.world().budget(), &mut out)?;
            }
        }
    }
    Ok(out.into())
}

/// The parts as a JSON pointer. Where the policy begins the path, it alone says how many steps there are: a slash in a
/// value belongs to the step. A variable that begins the path may be a whole one. The escapes `~0` and `~1` in values
/// stay as they are, as policies write them already.
fn pointer(parts: &[Part], scope: &mut Scope<'_>) -> Result<Str, ScopeError> {
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Plain(plain) => out.push_str(plain),
            Part::Variable(variable) => {
                let value = variable.value(scope)?;
                let begun = out.len();
                embed(&value, scope.world().budget(), &mut out)?;
                if begun > 0 && out.get(begun..).is_some_and(|text| text.contains('/')) {
                    let step = out.split_off(begun).replace('/', "~1");
                    out.push_str(&step);
                }
            }
        }
    }
    Ok(out.into())
}
