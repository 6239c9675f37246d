//! Finding `{{ }}` in text.

use ephor_expr::jmespath::{Expression, HOLE, RootKind};

use super::compile::MAX_NESTING;

/// One `{{ … }}` in a text: byte offsets of the whole and of the trimmed expression inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Where the opening braces are.
    pub start: usize,
    /// Just after the closing braces.
    pub end: usize,
    /// Where the expression starts.
    pub body_start: usize,
    /// Just after the expression.
    pub body_end: usize,
}

impl Found {
    /// The expression in `text`, the text this was found in.
    pub fn body<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.body_start..self.body_end).unwrap_or_default()
    }
}

/// The innermost variables of a text, left to right. A body may hold `{…}` one level deep; an opening preceded by a
/// backslash does not count; what has deeper or unpaired braces is plain text.
pub fn variables(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(next) = find_from(text, from) {
        from = next.end;
        found.push(next);
    }
    found
}

/// The expressions that hold other variables, and the text with a [`HOLE`] for each of its outermost variables.
/// Expressions that do not compile are left out.
pub fn enclosing(text: &str) -> (Vec<Expression>, String) {
    let mut expressions = Vec::new();
    let mut text = text.to_owned();
    // What nests deeper does not compile.
    for _ in 0..MAX_NESTING {
        let found = variables(&text);
        if found.is_empty() {
            break;
        }
        let bodies = found.iter().map(|place| place.body(&text)).filter(|body| body.contains(HOLE));
        expressions.extend(bodies.filter_map(|body| Expression::compile_with_holes(body, RootKind::Names).ok()));
        let mut holed = String::with_capacity(text.len());
        let mut from = 0;
        for place in &found {
            holed.push_str(text.get(from..place.start).unwrap_or_default());
            holed.push(HOLE);
            from = place.end;
        }
        holed.push_str(text.get(from..).unwrap_or_default());
        text = holed;
    }
    (expressions, text)
}

/// Whether a text holds a variable, or an escape that resolving would take away.
pub(super) fn needs_resolving(text: &str) -> bool {
    text.contains("{{")
}

fn find_from(text: &str, from: usize) -> Option<Found> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        at += text.get(at..)?.find("{{")?;
        let escaped = at > 0 && bytes.get(at - 1) == Some(&b'\\');
        if let (false, Some(end)) = (escaped, closing(bytes, at + 2)) {
            return Some(describe(text, at, end));
        }
        at += 1;
    }
}

/// Just after the `}}` that closes a body starting at `at`.
fn closing(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'}' => return (bytes.get(at + 1) == Some(&b'}')).then_some(at + 2),
            b'{' => {
                let inner = bytes.get(at + 1..)?.iter().position(|b| matches!(b, b'{' | b'}'))?;
                let close = at + 1 + inner;
                if bytes.get(close) != Some(&b'}') {
                    return None;
                }
                at = close + 1;
            }
            _ => at += 1,
        }
    }
}

fn describe(text: &str, start: usize, end: usize) -> Found {
    let mut inner = start + 2;
    // `{{- … }}` asks upstream not to read the result again, which is never done here.
    if text.as_bytes().get(inner) == Some(&b'-') {
        inner += 1;
    }
    let body = text.get(inner..end - 2).unwrap_or_default();
    let body_start = inner + (body.len() - body.trim_start().len());
    Found { start, end, body_start, body_end: body_start + body.trim().len() }
}

#[cfg(test)]
mod tests {
    use ephor_expr::value::Path;

    use super::*;
    use crate::scope::compile::{AtBase, Compiler};
    use crate::scope::template::Template;

    #[test]
    fn innermost_variables_are_found() {
        let cases: &[(&str, &[&str])] = &[
            ("{{ a }}", &["a"]),
            ("x{{a}}y{{ b }}", &["a", "b"]),
            ("{{ a.{{ b }} }}", &["b"]),
            ("{{ {a: k} }}", &["{a: k}"]),
            ("{{ {a: {b: k}} }}", &[]),
            ("{{ '}' }}", &[]),
            ("\\{{ a }} {{ k }}", &["k"]),
            ("{ {{ k }} }", &["k"]),
            ("{{ k", &[]),
            ("{{- k }}", &["k"]),
            ("{{}}", &[""]),
            ("{{{{{{", &[]),
            ("{{ é }}{{ż}}", &["é", "ż"]),
        ];
        for (text, want) in cases {
            let got: Vec<_> = variables(text).iter().map(|f| f.body(text)).collect();
            assert_eq!(&got, want, "{text}");
        }
    }

    /// A policy of a megabyte must not keep the threads busy that follow policies: with a step for each pair of
    /// variables this test takes minutes.
    #[test]
    fn texts_with_many_variables_are_read_once() {
        let many = "{{ request.object.metadata.name }}".repeat(50_000);
        let mut found = Vec::new();
        let template = Compiler::new(AtBase::Object, &mut found).text(&many.as_str().into(), &Path::root());
        assert!(matches!(&template, Template::Text(parts) if parts.len() == 50_000));
        assert_eq!(found, []);
        assert_eq!(enclosing(&many).1, HOLE.to_string().repeat(50_000));
        let deep = format!("{}a{}", "{{ ".repeat(100_000), " }}".repeat(100_000));
        assert_eq!(enclosing(&deep).1.matches("{{").count(), 100_000 - MAX_NESTING);
    }

    #[test]
    fn a_finding_is_where_its_variable_stands_whatever_comes_before_it() {
        let text = "é{{ a.{{ b }}.c }}-{{ k }}-{{ d( }}";
        let mut found = Vec::new();
        Compiler::new(AtBase::Object, &mut found).text(&text.into(), &Path::root());
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.offset.is_some_and(|offset| text[..offset].contains("{{ d(")), "{finding:?}");
    }
}
