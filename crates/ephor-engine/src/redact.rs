//! Values that come from Secrets, kept out of what people read.
//!
//! Messages, events and explanations may quote the object that a rule judged. Where that is a `Secret`, its values
//! (as stored, and decoded) are replaced wherever they occur in such a text.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_expr::{Str, Value};

/// What stands in place of a secret value.
pub const REDACTED: &str = "<redacted>";

/// The values that may not be shown.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a value which contains another goes whole.
    values: Vec<Str>,
}

/// Shorter values would blot out parts of words, and say nothing.
const SHORTEST: usize = 3;

impl Redactor {
    /// Hides the values of those objects that are Secrets.
    pub fn of<'v>(objects: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut values = Vec::new();
        for object in objects {
            if object.str_at(&["kind"]) != Some("Secret") || object.str_at(&["apiVersion"]) != Some("v1") {
                continue;
            }
            for (member, encoded) in [("data", true), ("stringData", false)] {
                let entries = object.get(member).and_then(Value::as_object);
                for text in entries.into_iter().flat_map(ephor_expr::Map::iter).filter_map(|(_, v)| v.as_str()) {
                    if encoded && let Some(decoded) = decode(text) {
                        values.push(decoded);
                    }
                    values.push(Str::new(text));
                }
            }
            // `kubectl apply` keeps a copy of everything.
            let applied = "kubectl.kubernetes.io/last-applied-configuration";
            values.extend(object.str_at(&["metadata", "annotations", applied]).map(Str::new));
        }
        values.retain(|value| value.trim().len() >= SHORTEST);
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// The text without the hidden values.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(text);
        for value in &self.values {
            if shown.contains(value.as_str()) {
                shown = Cow::Owned(shown.replace(value.as_str(), REDACTED));
            }
            // Inside JSON the value is written with escapes.
            let quoted = Value::from(value.clone()).to_json();
            let quoted = quoted.trim_matches('"');
            if quoted != value.as_str() && shown.contains(quoted) {
                shown = Cow::Owned(shown.replace(quoted, REDACTED));
            }
        }
        shown
    }

    /// Whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

fn decode(text: &str) -> Option<Str> {
    String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok().map(Str::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_and_decoded_values_of_secrets_are_hidden() {
        let secret =
            r#"{"apiVersion":"v1","kind":"Secret","data":{"password":"aHVudGVyMg=="},"stringData":{"q":"a\"b c"}}"#;
        let redactor = Redactor::of([&Value::from_json(secret).unwrap()]);
        for (text, want) in [
            ("the password is hunter2", "the password is <redacted>"),
            ("data aHVudGVyMg== and", "data <redacted> and"),
            (r#"{"q":"a\"b c"}"#, r#"{"q":"<redacted>"}"#),
            ("nothing here", "nothing here"),
        ] {
            assert_eq!(redactor.text(text), want);
        }
    }

    #[test]
    fn other_kinds_are_shown_as_they_are() {
        let map = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"hunter2"}}"#;
        let redactor = Redactor::of([&Value::from_json(map).unwrap()]);
        assert!(redactor.is_empty());
        assert_eq!(redactor.text("hunter2"), "hunter2");
    }
}
