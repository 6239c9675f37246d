//! References `$(…)`: text of a pattern or patch that repeats other text of the same document.
//!
//! They are resolved before variables and know nothing of the resource: `$(<=./../../limits/memory)` becomes `<=`
//! and what the *pattern* says at that place (engine.md 4.2, validate-mutate-autogen.md 1.7). What is read is the
//! document as written, so that references do not chain.

use ephor_expr::scalar::number::format_f6;
use ephor_expr::value::{Path, Segment};
use ephor_expr::{Map, Str, Value};

use super::anchor::strip_anchor;

/// Deeper parts are left as they are; documents are bounded more tightly when they are read.
const MAX_DEPTH: usize = 256;

/// How an integer reads behind an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerText {
    /// `5`: in patterns.
    Plain,
    /// `5.000000`: in patches, where upstream has floats only.
    SixDecimals,
}

/// A reference that cannot be resolved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", describe(.reference, .path, .fault))]
pub struct ReferenceError {
    /// Where the reference stands, from the root of the document.
    pub path: Path,
    /// As written, with `$(` and `)`.
    pub reference: String,
    /// What is wrong with it.
    pub fault: ReferenceFault,
}

/// What is wrong with a reference.
#[derive(Debug, Clone, PartialEq)]
pub enum ReferenceFault {
    /// There is no path in it.
    Empty,
    /// Nothing, null or a list stands there.
    Missing,
    /// The value is no text, as it must be without an operator.
    NotText,
    /// The value cannot stand behind the operator.
    NotComparable {
        /// The operator.
        operator: &'static str,
        /// The value.
        value: Value,
    },
}

fn describe(reference: &str, path: &Path, fault: &ReferenceFault) -> String {
    let path = path.slashed();
    match fault {
        ReferenceFault::Empty => {
            format!("failed to resolve {reference} at path {path}: expected path, found empty reference")
        }
        ReferenceFault::Missing => format!("got nil resolved variable {reference} at path {path}: <nil>"),
        ReferenceFault::NotText => format!("NotResolvedReferenceErr,reference {reference} not resolved at path {path}"),
        ReferenceFault::NotComparable { operator, value } => format!(
            "failed to resolve {reference} at path {path}: \
             incorrect expression: operator {operator} does not match with value {value}"
        ),
    }
}

/// A pattern with its references resolved; the pattern itself is the root of paths. Unchanged parts are shared.
pub fn resolve(pattern: &Value) -> Result<Value, ReferenceError> {
    resolve_in(pattern, &Path::root(), IntegerText::Plain)
}

/// The part at `at` of the document `root`, with its references resolved; null if there is no such part.
pub fn resolve_in(root: &Value, at: &Path, integers: IntegerText) -> Result<Value, ReferenceError> {
    let Some(part) = at.lookup(root) else { return Ok(Value::Null) };
    let mut resolver = Resolver { root, integers, here: at.clone(), errors: Vec::new() };
    let changed = resolver.value(part);
    match resolver.errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(changed.unwrap_or_else(|| part.clone())),
    }
}

/// A strategic merge patch with its references resolved; their root is the whole rule, in which the patch stands at
/// `mutate.patchStrategicMerge`.
pub fn resolve_patch(patch: &Value) -> Result<Value, ReferenceError> {
    let at = Path::root().keys(&["mutate", "patchStrategicMerge"]);
    let rule = Value::from([("mutate", Value::from([("patchStrategicMerge", patch.clone())]))]);
    resolve_in(&rule, &at, IntegerText::SixDecimals)
}

/// A message with its escapes `\\$(` resolved. A message is no part of a document that a reference could read from, so
/// that every other reference in it is an error.
pub fn resolve_message(text: &str) -> Result<Str, ReferenceError> {
    match resolve(&Value::from(text))? {
        Value::String(resolved) => Ok(resolved),
        _ => Ok(Str::new(text)),
    }
}

/// All references in the part at `at` of `root` that cannot be resolved; for the check of a whole rule, which is
/// then the root of absolute paths.
pub fn check(root: &Value, at: &Path) -> Vec<ReferenceError> {
    let Some(part) = at.lookup(root) else { return Vec::new() };
    let mut resolver = Resolver { root, integers: IntegerText::Plain, here: at.clone(), errors: Vec::new() };
    resolver.value(part);
    resolver.errors
}

struct Resolver<'r> {
    root: &'r Value,
    integers: IntegerText,
    here: Path,
    errors: Vec<ReferenceError>,
}

impl Resolver<'_> {
    /// The value with references resolved, if it has any.
    fn value(&mut self, value: &Value) -> Option<Value> {
        if self.here.0.len() > MAX_DEPTH {
            return None;
        }
        match value {
            Value::String(s) => self.text(s).map(Value::from),
            Value::Array(items) => {
                let mut changed: Option<Vec<Value>> = None;
                for (i, item) in items.iter().enumerate() {
                    if let Some(new) = self.below(Segment::Index(i), item)
                        && let Some(slot) = changed.get_or_insert_with(|| items.to_vec()).get_mut(i)
                    {
                        *slot = new;
                    }
                }
                changed.map(Value::array)
            }
            Value::Object(map) => {
                let mut changed: Option<Map> = None;
                for (key, member) in map.iter() {
                    if let Some(new) = self.below(Segment::Key(key.clone()), member) {
                        changed.get_or_insert_with(|| (**map).clone()).insert(key.clone(), new);
                    }
                }
                changed.map(Value::object)
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => None,
        }
    }

    fn below(&mut self, segment: Segment, value: &Value) -> Option<Value> {
        self.here.0.push(segment);
        let new = self.value(value);
        self.here.0.pop();
        new
    }

    fn text(&mut self, text: &str) -> Option<String> {
        if !text.contains("$(") {
            return None;
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, reference, after)) = next_reference(rest) {
            out.push_str(before);
            match self.resolve(reference) {
                Ok(found) => out.push_str(&found),
                Err(fault) => {
                    self.errors.push(ReferenceError {
                        path: self.here.clone(),
                        reference: reference.to_owned(),
                        fault,
                    });
                }
            }
            rest = after;
        }
        out.push_str(rest);
        Some(unescaped(&out))
    }

    fn resolve(&self, reference: &str) -> Result<String, ReferenceFault> {
        let inner = reference.strip_prefix("$(").and_then(|r| r.strip_suffix(')')).unwrap_or_default();
        let operator = [">=", "<=", ">", "<", "!"].into_iter().find(|sign| inner.starts_with(sign)).unwrap_or_default();
        let path = inner.strip_prefix(operator).unwrap_or_default();
        if path.is_empty() {
            return Err(ReferenceFault::Empty);
        }
        let target = self.absolute(path);
        match find(self.root, &target) {
            Some(Value::String(text)) => Ok(format!("{operator}{text}")),
            None | Some(Value::Null) => Err(ReferenceFault::Missing),
            Some(_) if operator.is_empty() => Err(ReferenceFault::NotText),
            Some(Value::Int(n)) if self.integers == IntegerText::Plain => Ok(format!("{operator}{n}")),
            Some(Value::Int(n)) => Ok(format!("{operator}{}", format_f6(n as f64))),
            Some(Value::Float(n)) => Ok(format!("{operator}{}", format_f6(n))),
            Some(value) => Err(ReferenceFault::NotComparable { operator, value }),
        }
    }

    /// The path from the root, without anchors and dots. A relative path starts at the leaf itself. Steps are
    /// between slashes, also those inside keys, as upstream works on the text of paths.
    fn absolute(&self, path: &str) -> String {
        let mut leaf = String::new();
        if !path.starts_with('/') {
            for segment in &self.here.0 {
                leaf.push('/');
                match segment {
                    Segment::Key(key) => leaf.push_str(strip_anchor(key)),
                    Segment::Index(index) => leaf.push_str(&index.to_string()),
                }
            }
        }
        let mut steps: Vec<&str> = Vec::new();
        for step in leaf.split('/').chain(path.split('/').map(strip_anchor)) {
            match step {
                "" | "." => {}
                ".." => {
                    steps.pop();
                }
                name => steps.push(name),
            }
        }
        steps.join("/")
    }
}

/// What stands at `path` (steps joined by slashes, no anchors): a scalar, or for a map the name of its first key.
fn find(value: &Value, path: &str) -> Option<Value> {
    match value {
        Value::Object(map) if path.is_empty() => map.keys().next().map(|key| Value::String(key.clone())),
        Value::Object(map) => map.iter().find_map(|(key, member)| {
            let name = strip_anchor(key);
            let rest = path.strip_prefix(name).filter(|_| !name.is_empty())?;
            match rest.strip_prefix('/') {
                Some(below) => find(member, below),
                None if rest.is_empty() => find(member, rest),
                None => None,
            }
        }),
        Value::Array(items) => {
            let (index, below) = path.split_once('/').unwrap_or((path, ""));
            find(items.get(index.parse::<usize>().ok()?)?, below)
        }
        scalar => path.is_empty().then(|| scalar.clone()),
    }
}

/// Splits a text at its first reference: `$(`, one character more, and all up to the last `)` before a space. One
/// behind a backslash is none.
fn next_reference(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices("$(").find_map(|(start, open)| {
        let (before, from) = text.split_at_checked(start)?;
        let body = from.strip_prefix(open)?;
        let first = body.chars().next().filter(|&c| c != '\n')?.len_utf8();
        let run = body.get(first..)?.split(' ').next()?;
        let length = open.len() + first + run.rfind(')')? + 1;
        let (reference, after) = from.split_at_checked(length)?;
        (!before.ends_with('\\')).then_some((before, reference, after))
    })
}

/// `\$(x)` becomes `$(x)`.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\$(") {
        out.push_str(before);
        let mut body = after.chars();
        let closed = body.next().is_some_and(|c| c != '\n') && body.find(|c| matches!(c, ' ' | ')')) == Some(')');
        out.push_str(if closed { "$(" } else { "\\$(" });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> Value {
        Value::from_json(text).unwrap()
    }

    /// One line per row: the pattern, and either the resolved pattern or the error.
    fn resolved(pattern: &str) -> String {
        match resolve(&json(pattern)) {
            Ok(value) => value.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn references_read_the_pattern() {
        for (pattern, want) in [
            // Operators are kept, numbers become text behind them.
            (r#"{"limits":5,"requests":"$(<=./../limits)"}"#, r#"{"limits":5,"requests":"\u003c=5"}"#),
            (r#"{"l":0.5,"r":"$(>./../l)"}"#, r#"{"l":0.5,"r":"\u003e0.500000"}"#),
            (
                r#"{"limits":{"m":"?*"},"requests":{"m":"$(<=./../../limits/m)"}}"#,
                r#"{"limits":{"m":"?*"},"requests":{"m":"\u003c=?*"}}"#,
            ),
            // Anchors are ignored on both sides.
            (r#"{"=(x)":"foo","y":"$(./../x)"}"#, r#"{"=(x)":"foo","y":"foo"}"#),
            (r#"{"x":"foo","=(y)":{"(z)":"$(./../../(x))"}}"#, r#"{"=(y)":{"(z)":"foo"},"x":"foo"}"#),
            // Through lists, and absolute from the pattern.
            (r#"{"c":[{"a":"1","b":"$(./../a)"}]}"#, r#"{"c":[{"a":"1","b":"1"}]}"#),
            (r#"{"c":["x","$(./../0)"]}"#, r#"{"c":["x","x"]}"#),
            (r#"{"a":{"b":"x"},"y":"$(/a/b)"}"#, r#"{"a":{"b":"x"},"y":"x"}"#),
            // Keys with slashes count as several steps, as their path text does.
            (r#"{"l":{"a/b":"x","c":"$(./../a/b)"}}"#, r#"{"l":{"a/b":"x","c":"x"}}"#),
            (r#"{"l":{"c":"x","a/b":"$(./../../c)"}}"#, r#"{"l":{"a/b":"x","c":"x"}}"#),
            // Embedded, several, no chaining.
            (r#"{"a":"x","b":"-$(./../a) $(./../a)-"}"#, r#"{"a":"x","b":"-x x-"}"#),
            (r#"{"m":"1","n":"$(./../m)","o":"$(./../n)"}"#, r#"{"m":"1","n":"1","o":"$(./../m)"}"#),
            // A map gives the name of a key.
            (r#"{"a":{"k":1,"q":2},"b":"$(./../a)"}"#, r#"{"a":{"k":1,"q":2},"b":"k"}"#),
            // Escaped, or no reference at all.
            (r#"{"n":"\\$(x)"}"#, r#"{"n":"$(x)"}"#),
            (r#"{"n":"\\$(x y)"}"#, r#"{"n":"\\$(x y)"}"#),
            (r#"{"n":"$()"}"#, r#"{"n":"$()"}"#),
            (r#"{"n":"$(x"}"#, r#"{"n":"$(x"}"#),
            (r#"{"n":"$(date +%s)"}"#, r#"{"n":"$(date +%s)"}"#),
        ] {
            assert_eq!(resolved(pattern), want, "{pattern}");
        }
    }

    #[test]
    fn unresolvable_references_are_errors() {
        for (pattern, want) in [
            (
                r#"{"spec":{"x":"foo","y":"$(/validate/pattern/spec/x)"}}"#,
                "got nil resolved variable $(/validate/pattern/spec/x) at path /spec/y: <nil>",
            ),
            (r#"{"y":"$(./../zz)"}"#, "got nil resolved variable $(./../zz) at path /y: <nil>"),
            (r#"{"x":"a","y":"$(x)"}"#, "got nil resolved variable $(x) at path /y: <nil>"),
            (r#"{"x":null,"y":"$(./../x)"}"#, "got nil resolved variable $(./../x) at path /y: <nil>"),
            (r#"{"x":["a"],"y":"$(./../x)"}"#, "got nil resolved variable $(./../x) at path /y: <nil>"),
            (r#"{"x":5,"y":"$(./../x)"}"#, "NotResolvedReferenceErr,reference $(./../x) not resolved at path /y"),
            (
                r#"{"x":true,"y":"$(>./../x)"}"#,
                "failed to resolve $(>./../x) at path /y: incorrect expression: operator > does not match with value true",
            ),
            (r#"{"y":"$(>=)"}"#, "failed to resolve $(>=) at path /y: expected path, found empty reference"),
            // Without a space between them, two are read as one.
            (r#"{"x":"a","y":"$(/x)$(/x)"}"#, "got nil resolved variable $(/x)$(/x) at path /y: <nil>"),
        ] {
            assert_eq!(resolved(pattern), format!("error: {want}"), "{pattern}");
        }
    }

    #[test]
    fn patches_are_resolved_in_their_rule() {
        let rule = |labels: &str| {
            json(&format!(
                r#"{{"mutate":{{"patchStrategicMerge":{{"metadata":{{"labels":{labels}}},"spec":{{"y":5}}}}}}}}"#
            ))
        };
        let patch = Path::root().keys(&["mutate", "patchStrategicMerge"]);
        for (labels, want) in [
            (r#"{"m":"1","n":"$(./../m)","o":"$(./../n)"}"#, r#"{"m":"1","n":"1","o":"$(./../m)"}"#),
            (r#"{"n":"$(>./../../../spec/y)"}"#, r#"{"n":"\u003e5.000000"}"#),
            (r#"{"m":"1","n":"$(/mutate/patchStrategicMerge/metadata/labels/m)"}"#, r#"{"m":"1","n":"1"}"#),
            (r#"{"n":"\\$(x)"}"#, r#"{"n":"$(x)"}"#),
        ] {
            let resolved = resolve_in(&rule(labels), &patch, IntegerText::SixDecimals).unwrap();
            assert_eq!(resolved.at(&["metadata", "labels"]).unwrap().to_string(), want, "{labels}");
        }
    }

    #[test]
    fn the_check_lists_all_faults_with_their_places() {
        let rule = json(
            r#"{"name":"r","validate":{"pattern":{"spec":{
                "a":"$(/spec/x)","b":["$(./../../zz)","$(./../../x)"],"c":"$(/validate/pattern/spec/x)","x":"foo"}}}}"#,
        );
        let faults = check(&rule, &Path::root().keys(&["validate", "pattern"]));
        let got: Vec<_> = faults.iter().map(|e| format!("{} {}", e.path, e.reference)).collect();
        assert_eq!(got, ["validate.pattern.spec.a $(/spec/x)", "validate.pattern.spec.b[0] $(./../../zz)"]);
        assert!(check(&rule, &Path::root().key("nothing")).is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_resolved_or_refused(a in r"[$()\\./<>=!a é0]{0,24}", b in ".{0,12}") {
            let _ = resolve(&Value::from([("a", Value::from(a)), ("b", Value::from(b)), ("c", Value::from(1))]));
        }

        #[test]
        fn text_without_references_stays(text in "[^$]*") {
            let value = Value::from([("a", Value::from(text))]);
            prop_assert_eq!(resolve(&value).unwrap(), value);
        }
    }
}
