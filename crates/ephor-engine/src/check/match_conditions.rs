//! `webhookConfiguration.matchConditions`: CEL that the API server evaluates before it calls the webhook.
//!
//! The API server compiles the expressions when the webhook is registered, and has the last word. What can be told
//! without it is told here: the shape of the list, and text that no CEL program can hold.

use std::collections::BTreeSet;

use ephor_expr::Value;
use ephor_expr::value::Path;

use crate::diagnostic::Diagnostic;

/// As many as a webhook may have.
const MAX_CONDITIONS: usize = 64;

/// Checks the list at `path`.
pub(super) fn check(conditions: &[Value], path: &Path, found: &mut Vec<Diagnostic>) {
    if conditions.len() > MAX_CONDITIONS {
        found.push(refusal(path.clone(), format!("more than {MAX_CONDITIONS} match conditions")));
    }
    let mut names = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let at = path.index(i);
        let Some(members) = condition.as_object() else {
            found.push(refusal(at, "a match condition is an object with `name` and `expression`"));
            continue;
        };
        for key in members.keys().filter(|key| !matches!(key.as_str(), "name" | "expression")) {
            let message = format!("unknown field `{key}`; known: name, expression");
            found.push(refusal(at.key(key.clone()), message).at_key());
        }
        match condition.str_at(&["name"]).filter(|name| !name.is_empty()) {
            None => found.push(refusal(at.key("name"), "a match condition needs a name")),
            Some(name) if !names.insert(name) => {
                found.push(refusal(at.key("name"), format!("`{name}` is there twice")));
            }
            Some(_) => {}
        }
        match condition.str_at(&["expression"]).filter(|text| !text.trim().is_empty()) {
            None => found.push(refusal(at.key("expression"), "a match condition needs an expression")),
            Some(text) => {
                if let Err(fault) = scan(text) {
                    found.push(refusal(at.key("expression"), fault.message).at_offset(fault.offset));
                }
            }
        }
    }
}

fn refusal(at: Path, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("match-condition", at, message)
}

struct Fault {
    offset: usize,
    message: String,
}

/// Reads the tokens of a CEL expression: they must exist in the language, and brackets must pair.
fn scan(text: &str) -> Result<(), Fault> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let offset = text.len() - rest.len();
        let fault = |message: String| Fault { offset, message: format!("CEL expression: {message}") };
        let taken = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => string(rest, false).ok_or_else(|| fault("unterminated string".to_owned()))?,
            'r' | 'R' | 'b' | 'B' if quoted(rest).is_some() => {
                let (prefix, raw) = quoted(rest).unwrap_or_default();
                let body = rest.get(prefix..).unwrap_or_default();
                prefix + string(body, raw).ok_or_else(|| fault("unterminated string".to_owned()))?
            }
            '`' => match rest.get(1..).and_then(|body| body.find('`')) {
                Some(end) => end + 2,
                None => return Err(fault("unterminated name".to_owned())),
            },
            '(' | '[' | '{' => {
                open.push((offset, c));
                1
            }
            ')' | ']' | '}' => match open.pop() {
                Some((_, opening)) if matches!((opening, c), ('(', ')') | ('[', ']') | ('{', '}')) => 1,
                _ => return Err(fault(format!("`{c}` closes nothing"))),
            },
            '=' | '&' | '|' => {
                let doubled = match c {
                    '=' => "==",
                    '&' => "&&",
                    _ => "||",
                };
                if !rest.starts_with(doubled) {
                    return Err(fault(format!("`{c}` is no operator; did you mean `{doubled}`?")));
                }
                2
            }
            '!' | '<' | '>' if rest.get(1..2) == Some("=") => 2,
            '!' | '<' | '>' | '+' | '-' | '*' | '/' | '%' | '?' | ':' | '.' | ',' => 1,
            c if c.is_ascii_whitespace() => 1,
            c if c.is_ascii_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            c => return Err(fault(format!("`{c}` is not part of the language"))),
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    match open.pop() {
        Some((offset, c)) => Err(Fault { offset, message: format!("CEL expression: `{c}` is never closed") }),
        None => Ok(()),
    }
}

/// The length of a string's prefix (`r`, `b`, `rb`) and whether it is raw, if a quote follows.
fn quoted(text: &str) -> Option<(usize, bool)> {
    let prefix = text.bytes().take_while(|b| matches!(b, b'r' | b'R' | b'b' | b'B')).count();
    let raw = text.bytes().take(prefix).any(|b| matches!(b, b'r' | b'R'));
    (prefix <= 2 && text.get(prefix..)?.starts_with(['"', '\''])).then_some((prefix, raw))
}

/// The length of the string literal that `text` begins with.
fn string(text: &str, raw: bool) -> Option<usize> {
    let quote = text.get(..1)?;
    let long = quote.repeat(3);
    let end = if text.starts_with(&long) { long.as_str() } else { quote };
    let mut at = end.len();
    loop {
        let rest = text.get(at..)?;
        let next = rest.chars().next()?;
        if rest.starts_with(end) {
            return Some(at + end.len());
        }
        at += next.len_utf8();
        if next == '\\' && !raw {
            at += text.get(at..)?.chars().next()?.len_utf8();
        } else if next == '\n' && end.len() == 1 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_the_language_are_let_through() {
        for text in [
            "true",
            "object.metadata.namespace == 'a' && !(\"x\" in request.userInfo.groups)",
            "has(object.spec) ? object.spec.a[0] > 1.5e3 : {'a': 1u}.size() != 0 // done",
            r#"object.a.matches(r'^\d+\(') || b"\"" == b'x' || """a"b""" == ''"#,
            "object.`a-b`.c",
        ] {
            assert!(scan(text).is_ok(), "{text}: {}", scan(text).err().map(|f| f.message).unwrap_or_default());
        }
    }

    #[test]
    fn what_no_program_can_hold_is_found_with_its_place() {
        for (text, offset, says) in [
            ("a.keys(@)", 7, "`@`"),
            ("a = b", 2, "`==`"),
            ("a & b", 2, "`&&`"),
            ("(a", 0, "never closed"),
            ("a)", 1, "closes nothing"),
            ("[a)", 2, "closes nothing"),
            ("x == 'a", 5, "unterminated"),
            ("{{ request.name }} #", 19, "`#`"),
        ] {
            let fault = scan(text).err().unwrap();
            assert_eq!(fault.offset, offset, "{text}");
            assert!(fault.message.contains(says), "{text}: {}", fault.message);
        }
    }
}
