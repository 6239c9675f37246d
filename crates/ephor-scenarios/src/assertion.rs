//! Assertion trees: what a document must be like.
//!
//! Members that a tree does not name may be anything; lists must be as long as in the tree. A key may be an expression
//! `(expr)`, whose value is looked at instead of a member; `~.` before a key means each item of the list (or member of
//! the object) behind it, `~name.` binds its index; `->name` behind a key binds what is looked at; `\key\` is a key
//! that is meant literally. A scalar may be an expression too.

use ephor_expr::Value;

use crate::expression::{Bindings, evaluate, inside};

/// A place where a document is not as it must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Where, as the tree writes it: `spec.(length(rules))`.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// All places where `actual` is not as `tree` says.
pub fn mismatches(tree: &Value, actual: &Value, bindings: &Bindings) -> Vec<Mismatch> {
    let mut found = Vec::new();
    check(tree, actual, bindings, "", &mut found);
    found
}

fn check(tree: &Value, actual: &Value, bindings: &Bindings, path: &str, found: &mut Vec<Mismatch>) {
    let mut complain = |problem: String| found.push(Mismatch { path: path.to_owned(), problem });
    match (tree, actual) {
        (Value::Object(members), _) => {
            for (key, subtree) in members.iter() {
                check_member(key, subtree, actual, bindings, &below(path, key), found);
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            for (index, (item, other)) in items.iter().zip(others.iter()).enumerate() {
                check(item, other, bindings, &format!("{path}[{index}]"), found);
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            let shown = shorten(&actual.to_json());
            complain(format!("expected {} items, found {}: {shown}", items.len(), others.len()));
        }
        (Value::Array(_), _) => complain(format!("expected a list, found {}", show(actual))),
        (Value::String(text), _) if inside(text).is_some() => {
            match evaluate(inside(text).unwrap_or_default(), actual, bindings) {
                Ok(expected) if same(&expected, actual) => {}
                Ok(expected) => complain(differ(&expected, actual)),
                Err(error) => complain(error.to_string()),
            }
        }
        _ if same(tree, actual) => {}
        _ => complain(differ(tree, actual)),
    }
}

fn check_member(key: &str, tree: &Value, actual: &Value, bindings: &Bindings, path: &str, found: &mut Vec<Mismatch>) {
    let key = Key::parse(key);
    let mut complain = |problem: String| found.push(Mismatch { path: path.to_owned(), problem });
    let value = match (key.projection, actual) {
        (Projection::Expression(text), _) => match evaluate(text, actual, bindings) {
            Ok(value) => value,
            Err(error) => return complain(error.to_string()),
        },
        (Projection::Member(name), Value::Object(members)) => match members.get(name) {
            Some(value) => value.clone(),
            None => return complain(format!("is missing, expected {}", show(tree))),
        },
        (Projection::Member(_), Value::Null) => return complain(format!("is missing, expected {}", show(tree))),
        (Projection::Member(_), other) => return complain(format!("is a member of {}", show(other))),
    };
    let bound;
    let bindings = match key.binding {
        Some(name) => {
            bound = bindings.clone().with(name, value.clone());
            &bound
        }
        None => bindings,
    };
    let Some(index_name) = key.each else { return check(tree, &value, bindings, path, found) };
    let each =
        |index: Value| if index_name.is_empty() { bindings.clone() } else { bindings.clone().with(index_name, index) };
    match &value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(tree, item, &each(Value::from(index)), &format!("{path}[{index}]"), found);
            }
        }
        Value::Object(members) => {
            for (name, item) in members.iter() {
                check(tree, item, &each(Value::from(name.clone())), &below(path, name), found);
            }
        }
        other => {
            found.push(Mismatch { path: path.to_owned(), problem: format!("expected a list, found {}", show(other)) });
        }
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A key of a tree, taken apart.
struct Key<'a> {
    /// Whether each item is meant; the name of the index, or empty.
    each: Option<&'a str>,
    projection: Projection<'a>,
    binding: Option<&'a str>,
}

enum Projection<'a> {
    Member(&'a str),
    Expression(&'a str),
}

impl<'a> Key<'a> {
    fn parse(key: &'a str) -> Self {
        let (each, rest) = match key.strip_prefix('~').and_then(|rest| rest.split_once('.')) {
            Some((name, rest)) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => (Some(name), rest),
            _ => (None, key),
        };
        let (rest, binding) = match rest.rsplit_once("->") {
            Some((rest, name)) if !name.trim().is_empty() && name.trim().chars().all(char::is_alphanumeric) => {
                (rest.trim_end(), Some(name.trim()))
            }
            _ => (rest, None),
        };
        let literal = rest.strip_prefix('\\').and_then(|rest| rest.strip_suffix('\\')).filter(|name| !name.is_empty());
        let projection = match (literal, inside(rest)) {
            (Some(name), _) => Projection::Member(name),
            (None, Some(expression)) => Projection::Expression(expression),
            (None, None) => Projection::Member(rest),
        };
        Self { each, projection, binding }
    }
}

/// Scalars are the same if they are of one type; numbers have one type.
fn same(expected: &Value, actual: &Value) -> bool {
    expected == actual
}

fn differ(expected: &Value, actual: &Value) -> String {
    format!("expected {}, found {}", show(expected), show(actual))
}

/// A value for a message: texts of several lines on lines of their own.
fn show(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') || text.len() > 100 => {
            format!("\n      {}\n     ", text.trim_end().replace('\n', "\n      "))
        }
        other => shorten(&other.to_json()),
    }
}

fn shorten(text: &str) -> String {
    const LONGEST: usize = 600;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(tree: &str, actual: &str) -> Vec<String> {
        let parse = |text| ephor_expr::yaml::parse_value(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let bindings = Bindings::default().with("want", 3);
        mismatches(&parse(tree), &parse(actual), &bindings).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn trees_describe_documents() {
        let object = "{a: 1, l: [{t: x, num: 1}, {t: w, num: 2}], m: {p: 3, q: 3}, s: text, z: null, '(odd)': 5}";
        for tree in [
            "{}",
            "a: 1",
            "a: 1.0",
            "s: text",
            "z: null",
            "l: [{t: x}, {num: 2}]",
            "(length(l)): 2",
            "(l[?t == 'w']): [{num: 2}]",
            "(l[?t == 'w'].num | [0]): 2",
            "(missing): null",
            "(missing || 'd'): d",
            "l: {(length(@)): 2}",
            "~.m: 3",
            "~.m: ($want)",
            "~.l: {(num > `0`): true}",
            "~i.l: {\"(num == add($i, `1`))\": true}",
            "~k.m: {\"(contains(['p', 'q'], $k))\": true}",
            "m->both: {p: {($both.q): 3}}",
            "(m.p)->p: {($p): 3}",
            r"\(odd)\: 5",
            "s: (to_string('text'))",
        ] {
            assert_eq!(problems(tree, object), Vec::<String>::new(), "{tree}");
        }
    }

    #[test]
    fn differences_are_told_with_their_place() {
        let object = "{a: 1, l: [{t: x}, {t: w}], s: text, deep: {b: false}}";
        for (tree, want) in [
            ("a: 2", "a: expected 2, found 1"),
            ("a: '1'", r#"a: expected "1", found 1"#),
            ("s: {b: 1}", r#"s.b: is a member of "text""#),
            ("deep: {b: true}", "deep.b: expected true, found false"),
            ("deep: {c: {d: 1}}", r#"deep.c: is missing, expected {"d":1}"#),
            ("deep: []", r#"deep: expected a list, found {"b":false}"#),
            ("l: [{t: x}]", r#"l: expected 1 items, found 2: [{"t":"x"},{"t":"w"}]"#),
            ("l: [{t: x}, {t: z}]", r#"l[1].t: expected "z", found "w""#),
            ("~.l: {t: x}", r#"~.l[1].t: expected "x", found "w""#),
            ("(length(l)): 3", "(length(l)): expected 3, found 2"),
            ("s: ($want)", r#"s: expected 3, found "text""#),
            ("z: null", "z: is missing, expected null"),
            ("a: ($gone)", "a: `$gone`: there is no binding `$gone`"),
        ] {
            assert_eq!(problems(tree, object), [want], "{tree}");
        }
    }

    #[test]
    fn a_tree_that_names_nothing_of_null_holds() {
        assert_eq!(problems("($want): 3", "null"), Vec::<String>::new());
        assert_eq!(problems("a: 3", "null"), ["a: is missing, expected 3"]);
    }
}
