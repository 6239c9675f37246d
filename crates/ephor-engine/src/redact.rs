//! Values that come from Secrets, kept out of what people read.
//!
//! Messages, events, plans and explanations may quote what a rule looked at. Where that is a `Secret`, its values (as
//! stored, and decoded) are replaced wherever they occur in such a text.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_expr::scalar::duration;
use ephor_expr::{Map, Str, Value};

/// What stands in place of a secret value.
pub const REDACTED: &str = "<redacted>";

/// The values that may not be shown.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a value which contains another goes whole.
    values: Vec<Str>,
}

/// From this length on a value is taken out wherever it stands; a shorter one only as a word, for it also stands in
/// words that have nothing to do with it.
const TELLING: usize = 4;

/// How deep lists within lists are searched for Secrets.
const DEPTH: usize = 4;

/// The Secrets in what an API server or a service answered, known by their kind: the document itself, the items of a
/// list or of an array, the objects of a table or of an event. `None` if there are none.
pub fn secrets_of(answer: &Value) -> Option<Value> {
    let mut found = Vec::new();
    search(answer, DEPTH, &mut found);
    (!found.is_empty()).then(|| Value::array(found))
}

fn search(value: &Value, depth: usize, found: &mut Vec<Value>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if matches!(value.str_at(&["kind"]), Some("Secret" | "SecretList")) {
        return found.push(value.clone());
    }
    let items = value.as_array().or_else(|| value.get("items").and_then(Value::as_array));
    for item in items.unwrap_or_default() {
        search(item, depth, found);
    }
    let rows = value.get("rows").and_then(Value::as_array).unwrap_or_default().iter();
    for object in rows.chain([value]).filter_map(|holder| holder.get("object")) {
        search(object, depth, found);
    }
}

/// How many bytes of texts are looked at for all values together: users write both.
const MAX_LOOKED_AT: usize = 16 << 20;

impl Redactor {
    /// Hides the values of those objects that are Secrets.
    pub fn of<'v>(objects: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut redactor = Self::default();
        for object in objects {
            if object.str_at(&["kind"]) == Some("Secret") && object.str_at(&["apiVersion"]) == Some("v1") {
                redactor.collect(object);
            }
        }
        redactor.sort();
        redactor
    }

    /// Hides the values of a Secret, or of all Secrets in an array or a list.
    pub fn learn(&mut self, secrets: &Value) {
        self.collect(secrets);
        self.sort();
    }

    fn collect(&mut self, secrets: &Value) {
        let mut pending = vec![secrets];
        while let Some(secrets) = pending.pop() {
            if let Some(items) = secrets.as_array().or_else(|| secrets.get("items").and_then(Value::as_array)) {
                pending.extend(items);
            }
            self.collect_one(secrets);
        }
    }

    fn collect_one(&mut self, secrets: &Value) {
        for member in ["data", "stringData"] {
            let values = secrets.get(member).and_then(Value::as_object);
            for text in values.into_iter().flat_map(Map::values).filter_map(Value::as_str) {
                let decoded = STANDARD.decode(text.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                for text in decoded.iter().map(String::as_str).chain([text]) {
                    self.values.extend([text, text.trim()].map(Str::new));
                    // Messages may also quote one line of a value.
                    self.values.extend(text.lines().map(str::trim).filter(|line| line.len() >= TELLING).map(Str::new));
                    // Characters that no one sees are written in many ways, the texts between them in one.
                    self.values.extend(text.split(is_unseen).filter(|part| part.len() >= TELLING).map(Str::new));
                }
            }
        }
        // `kubectl apply` keeps a copy of everything.
        let applied = "kubectl.kubernetes.io/last-applied-configuration";
        self.values.extend(secrets.str_at(&["metadata", "annotations", applied]).map(Str::new));
    }

    fn sort(&mut self) {
        self.values.retain(|value| value.chars().any(char::is_alphanumeric));
        self.values.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.values.dedup();
    }

    /// The text without the hidden values. A text too long for that many values is hidden as a whole.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.values.len().saturating_mul(text.len()) > MAX_LOOKED_AT {
            return Cow::Borrowed(REDACTED);
        }
        // All other ways to write a value have a backslash in them.
        let has_escapes = text.contains('\\');
        let mut shown = Cow::Borrowed(text);
        // However it is written, a value is not shorter than it is.
        for value in self.values.iter().filter(|value| value.len() <= text.len()) {
            if value.len() < TELLING {
                if shown.contains(value.as_str()) {
                    shown = Cow::Owned(replace_words(&shown, value));
                }
                continue;
            }
            if shown.contains(value.as_str()) {
                shown = Cow::Owned(shown.replace(value.as_str(), REDACTED));
            }
            if !has_escapes || value.chars().all(is_written_as_it_is) {
                continue;
            }
            for quoted in quoted(value).iter().filter(|quoted| *quoted != value.as_str()) {
                if shown.contains(quoted) {
                    shown = Cow::Owned(shown.replace(quoted, REDACTED));
                }
            }
        }
        shown
    }

    /// The value without the hidden values, in its texts and in its keys.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            _ if self.is_empty() => value.clone(),
            Value::String(text) => match self.text(text) {
                Cow::Borrowed(_) => value.clone(),
                Cow::Owned(shown) => shown.into(),
            },
            Value::Array(items) => Value::array(items.iter().map(|item| self.value(item)).collect()),
            Value::Object(members) => {
                let shown = members.iter().map(|(key, value)| (Str::from(self.text(key)), self.value(value)));
                Value::object(shown.collect())
            }
            _ => value.clone(),
        }
    }

    /// Whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// How JSON and errors write a value, and JSON that stands in JSON.
fn quoted(value: &str) -> Vec<String> {
    let json = |text: &str| inner(&Value::from(text).to_json()).to_owned();
    let once = [
        json(value),
        inner(&format!("{value:?}")).to_owned(),
        value.escape_debug().to_string(),
        inner(&duration::quote(value)).to_owned(),
    ];
    let mut quoted: Vec<String> = once.into_iter().flat_map(|once| [json(&json(&once)), json(&once), once]).collect();
    quoted.dedup();
    quoted
}

/// What stands between the quotes of a quoted text.
fn inner(quoted: &str) -> &str {
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(quoted)
}

/// Whether a character is shown as nothing or as space.
fn is_unseen(c: char) -> bool {
    c.is_control() || (!c.is_ascii() && !c.is_alphanumeric())
}

/// Whether no kind of quoting writes the character in another way.
fn is_written_as_it_is(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '\\' | '<' | '>' | '&') || c == ' '
}

fn replace_words(text: &str, word: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some((head, tail)) = rest.split_once(word) {
        let part_of_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let alone = !part_of_word(head.chars().next_back().or(before)) && !part_of_word(tail.chars().next());
        out.push_str(head);
        out.push_str(if alone { REDACTED } else { word });
        before = word.chars().next_back();
        rest = tail;
    }
    out.push_str(rest);
    out
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
    fn values_are_hidden_however_errors_quote_them() {
        for secret in
            ["it's/Zq9", "bell\u{7}/Zq9", "zw\u{200b}/Zq9", "a\u{a0}Zq9", "del\u{7f}Zq9", "q\"/Zq9", "\"Zq9\""]
        {
            let mut redactor = Redactor::default();
            redactor.learn(&Value::from([("stringData", Value::from([("k", Value::from(secret))]))]));
            for text in [
                format!("as it is: {secret}"),
                format!("{secret:?} is no time"),
                format!("`{}` may not stand", secret.escape_debug()),
                format!("time: invalid duration {}", duration::quote(secret)),
                format!("in JSON {}", Value::from(secret).to_json()),
            ] {
                assert!(!redactor.text(&text).contains("Zq9"), "{text}: {}", redactor.text(&text));
            }
        }
    }

    #[test]
    fn values_are_hidden_in_json_that_stands_in_json() {
        for secret in
            ["Zq9my\tWx7val", "Zq9my\"Wx7val", "Zq9my\\Wx7val", "Zq9my<Wx7val", "Zq9my\u{2028}Wx7val", "Zq9my\u{7}Wx7"]
        {
            let mut redactor = Redactor::default();
            redactor.learn(&Value::from([("stringData", Value::from([("k", Value::from(secret))]))]));
            let mut text = secret.to_owned();
            for _ in 0..3 {
                text = Value::from(text).to_json();
                let shown = redactor.text(&text);
                assert!(!shown.contains("Zq9") && !shown.contains("Wx7"), "{text}: {shown}");
            }
        }
    }

    #[test]
    fn short_values_are_hidden_as_words_and_long_ones_line_by_line() {
        // "hunter2" and "ab" in base64.
        let secret = r#"{"data":{"password":"aHVudGVyMg==","x":"YWI="},"stringData":{"k":"line one\nline two\n}"}}"#;
        let mut redactor = Redactor::default();
        redactor.learn(&Value::from_json(&format!(r#"{{"items":[{secret}]}}"#)).unwrap());
        for (text, want) in [
            ("value 'hunter2' (aHVudGVyMg==)", "value '<redacted>' (<redacted>)"),
            ("ab is not in about, but in 'ab'", "<redacted> is not in about, but in '<redacted>'"),
            ("only line two }", "only <redacted> }"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(redactor.text(text), want);
        }
    }

    #[test]
    fn values_are_hidden_in_texts_and_keys_of_other_objects() {
        let secret = r#"{"apiVersion":"v1","kind":"Secret","data":{"password":"aHVudGVyMg=="}}"#;
        let redactor = Redactor::of([&Value::from_json(secret).unwrap()]);
        let value = Value::from_json(r#"{"a":["x hunter2"],"hunter2":1}"#).unwrap();
        let want = Value::from_json(r#"{"a":["x <redacted>"],"<redacted>":1}"#).unwrap();
        assert_eq!(redactor.value(&value), want);
    }

    #[test]
    fn secrets_are_known_by_their_kind_wherever_an_answer_holds_them() {
        let secret = r#"{"apiVersion":"v1","kind":"Secret","data":{"password":"aHVudGVyMg=="}}"#;
        let part = r#"{"kind":"PartialObjectMetadata","metadata":{"name":"s"}}"#;
        for (answer, hidden) in [
            (secret.to_owned(), true),
            (format!("[{part},{secret}]"), true),
            (format!(r#"{{"kind":"List","items":[{part},{secret}]}}"#), true),
            (r#"{"kind":"SecretList","items":[{"data":{"p":"aHVudGVyMg=="}}]}"#.to_owned(), true),
            (format!(r#"{{"kind":"Table","rows":[{{"cells":["s"],"object":{secret}}}]}}"#), true),
            (format!(r#"{{"type":"ADDED","object":{secret}}}"#), true),
            (r#"{"kind":"ConfigMapList","items":[{"data":{"p":"aHVudGVyMg=="}}]}"#.to_owned(), false),
            (r#""hunter2""#.to_owned(), false),
        ] {
            let mut redactor = Redactor::default();
            if let Some(secrets) = secrets_of(&Value::from_json(&answer).unwrap()) {
                redactor.learn(&secrets);
            }
            assert_eq!(redactor.text("hunter2") == REDACTED, hidden, "{answer}");
        }
    }

    #[test]
    fn texts_that_are_too_long_for_many_values_are_hidden() {
        let lines = (0..20_000).map(|i| format!("line {i}")).collect::<Vec<_>>().join("\\n");
        let mut redactor = Redactor::default();
        redactor.learn(&Value::from_json(&format!(r#"{{"stringData":{{"k":"{lines}"}}}}"#)).unwrap());
        assert_eq!(redactor.text("short"), "short");
        assert_eq!(redactor.text(&"x".repeat(10_000)), REDACTED);
    }

    #[test]
    fn other_kinds_are_shown_as_they_are() {
        let map = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"hunter2"}}"#;
        let redactor = Redactor::of([&Value::from_json(map).unwrap()]);
        assert!(redactor.is_empty());
        assert_eq!(redactor.text("hunter2"), "hunter2");
    }

    #[test]
    fn lists_in_lists_are_learned_at_any_depth() {
        let list = |item: Value| Value::from([("items", Value::array(vec![item]))]);
        let secret = Value::from([("stringData", Value::from([("k", Value::from("hunter2"))]))]);
        let mut redactor = Redactor::default();
        redactor.learn(&(0..10_000).fold(secret, |inner, _| list(inner)));
        assert_eq!(redactor.text("it is hunter2"), "it is <redacted>");
    }
}
