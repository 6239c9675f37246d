//! Values of Secrets, out of everything that is shown.
//!
//! Messages of rules can quote what they looked at. What stands in `data` and `stringData` of a Secret that took part
//! in a request, encoded and decoded, prints as `<redacted>` in denials, Events and logs.

use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::gate::AllowedFetch;
use ephor_expr::{Map, Str, Value};

use crate::facts::Answers;

/// What stands in place of a value.
pub const REDACTED: &str = "<redacted>";

/// From this length on a value is taken out wherever it stands; a shorter one only as a word, for it also stands in
/// words that have nothing to do with it.
const TELLING: usize = 4;

/// Values that must not be told.
#[derive(Debug, Default)]
pub struct Secrets {
    values: Vec<Str>,
    sorted: bool,
}

impl Secrets {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Takes in the values of a Secret, or of all Secrets in a list.
    pub fn learn(&mut self, object: &Value) {
        match object {
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::Object(members) => {
                if let Some(items) = members.get("items") {
                    self.learn(items);
                }
                for key in ["data", "stringData"] {
                    for value in members.get(key).and_then(Value::as_object).into_iter().flat_map(Map::values) {
                        self.learn_value(value);
                    }
                }
            }
            _ => {}
        }
    }

    fn learn_value(&mut self, value: &Value) {
        let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return };
        self.values.push(text.into());
        // Messages may also quote one line of a value.
        let decoded = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        for text in decoded.iter().map(String::as_str).chain([text]) {
            self.values.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Str::new));
        }
        if let Some(decoded) = decoded.filter(|text| !text.is_empty()) {
            self.values.push(decoded.into());
        }
        self.sorted = false;
    }

    /// Takes the values out of a text.
    pub fn redact(&mut self, text: &mut Str) {
        if !self.sorted {
            // Long ones first, for a short one may be part of them.
            self.values.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            self.values.dedup();
            self.sorted = true;
        }
        let mut out: Option<String> = None;
        for value in &self.values {
            let present: &str = out.as_deref().unwrap_or(text);
            if present.contains(value.as_str()) {
                let replaced = if value.len() >= TELLING {
                    present.replace(value.as_str(), REDACTED)
                } else {
                    replace_words(present, value)
                };
                out = Some(replaced);
            }
        }
        if let Some(out) = out {
            *text = out.into();
        }
    }
}

fn replace_words(text: &str, word: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(at) = rest.find(word) {
        let (head, tail) = (&rest[..at], &rest[at + word.len()..]);
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

/// The object without values, if it is a Secret: its keys stay.
pub fn without_values(object: &Value) -> Value {
    let secret = object.str_at(&["kind"]) == Some("Secret") && object.str_at(&["apiVersion"]) == Some("v1");
    if !secret {
        return object.clone();
    }
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        for key in ["data", "stringData"] {
            if let Some(values) = members.get_mut(key).and_then(Value::as_object_mut) {
                for (_, value) in values.iter_mut() {
                    *value = REDACTED.into();
                }
            }
        }
        if let Some(annotations) = members
            .get_mut("metadata")
            .and_then(Value::as_object_mut)
            .and_then(|metadata| metadata.get_mut("annotations"))
            .and_then(Value::as_object_mut)
        {
            // kubectl keeps a copy of all values here.
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    object
}

/// Answers, of which the values of Secrets are learnt.
#[derive(Debug)]
pub struct Learning<'a, A: ?Sized> {
    answers: &'a A,
    secrets: Mutex<Secrets>,
}

impl<'a, A: Answers + ?Sized> Learning<'a, A> {
    /// Listens to `answers`; `secrets` are known already.
    pub fn new(answers: &'a A, secrets: Secrets) -> Self {
        Self { answers, secrets: Mutex::new(secrets) }
    }

    /// Takes the values out of texts.
    pub fn redact<'t>(&self, texts: impl Iterator<Item = &'t mut Str>) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if !secrets.is_empty() {
            for text in texts {
                secrets.redact(text);
            }
        }
    }
}

impl<A: Answers + ?Sized> Answers for Learning<'_, A> {
    fn answer(&self, fetch: &AllowedFetch) -> Fact {
        let fact = self.answers.answer(fetch);
        if let Fact::Found(value) = &fact
            && let Some(secrets) = self.answers.secrets(fetch.fetch(), value)
        {
            self.secrets.lock().unwrap_or_else(PoisonError::into_inner).learn(&secrets);
        }
        fact
    }

    fn context_limit(&self) -> u64 {
        self.answers.context_limit()
    }

    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value> {
        self.answers.secrets(fetch, answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_taken_out_encoded_and_decoded() {
        let mut secrets = Secrets::default();
        // "hunter2" and "ab" in base64.
        let secret = r#"{"data":{"password":"aHVudGVyMg==","x":"YWI="},"stringData":{"k":"line one\nline two"}}"#;
        secrets.learn(&Value::from_json(&format!(r#"{{"items":[{secret}]}}"#)).unwrap());
        for (text, want) in [
            ("value 'hunter2' (aHVudGVyMg==)", "value '<redacted>' (<redacted>)"),
            ("ab is not in about, but in 'ab'", "<redacted> is not in about, but in '<redacted>'"),
            ("only line two", "only <redacted>"),
            ("nothing", "nothing"),
        ] {
            let mut message = Str::new(text);
            secrets.redact(&mut message);
            assert_eq!(message, want);
        }
    }

    #[test]
    fn a_secret_keeps_its_keys_and_loses_its_values() {
        let secret = r#"{"apiVersion":"v1","kind":"Secret","data":{"a":"eA=="},
            "metadata":{"name":"s","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","b":"c"}}}"#;
        let secret = Value::from_json(secret).unwrap();
        assert_eq!(
            without_values(&secret).to_json(),
            r#"{"apiVersion":"v1","data":{"a":"\u003credacted\u003e"},"kind":"Secret","metadata":{"annotations":{"b":"c"},"name":"s"}}"#
        );
        let other = Value::from_json(r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"}}"#).unwrap();
        assert_eq!(without_values(&other), other);
    }
}
