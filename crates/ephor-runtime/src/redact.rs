//! Removes values of Secrets from everything that is shown.
//!
//! Messages of rules can quote what they looked at. What stands in `data` and `stringData` of a Secret that took part
//! in a request, encoded and decoded, prints as `<redacted>` in denials, Events, `UpdateRequest`s and logs.

use std::borrow::Cow;
use std::sync::Arc;

use ephor_engine::fetch::{Fact, Fetch, Merger};
use ephor_engine::gate::AllowedFetch;
use ephor_engine::outcome::{Detail, Outcome};
use ephor_engine::redact::{REDACTED, Redactor};
use ephor_expr::{Str, Value};
use parking_lot::Mutex;

use crate::facts::Answers;

/// The object without values, if it is a Secret: its keys stay.
pub fn without_values(object: &Value) -> Value {
    if !is_secret(object) {
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

fn is_secret(object: &Value) -> bool {
    object.str_at(&["kind"]) == Some("Secret") && object.str_at(&["apiVersion"]) == Some("v1")
}

/// Answers, of which the values of Secrets are learnt.
#[derive(Debug)]
pub struct Learning<'a, A: ?Sized> {
    answers: &'a A,
    secrets: Mutex<Redactor>,
}

impl<'a, A: Answers + ?Sized> Learning<'a, A> {
    /// Listens to `answers`; `secrets` are known already.
    pub fn new(answers: &'a A, secrets: Redactor) -> Self {
        Self { answers, secrets: Mutex::new(secrets) }
    }

    /// Hides the values of these objects too, as far as they are Secrets.
    pub fn learn<'v>(&self, objects: impl IntoIterator<Item = &'v Value>) {
        let mut secrets = self.secrets.lock();
        for object in objects.into_iter().filter(|object| is_secret(object)) {
            secrets.learn(object);
        }
    }

    /// What is known so far.
    pub fn secrets(&self) -> Redactor {
        self.secrets.lock().clone()
    }

    /// What was learnt, for texts that come later.
    pub fn into_secrets(self) -> Redactor {
        self.secrets.into_inner()
    }

    /// The object as it may be shown: a Secret without its values, any other object without values of Secrets.
    pub fn shown(&self, object: &Value) -> Value {
        self.secrets.lock().value(&without_values(object))
    }

    /// Takes the values out of everything in a result that people read: its message and its properties.
    pub fn redact_result(&self, message: &mut Str, detail: Option<&mut Detail>) {
        let properties = detail.into_iter().flat_map(|detail| detail.properties.iter_mut()).map(|(_, value)| value);
        let secrets = self.secrets.lock();
        if secrets.is_empty() {
            return;
        }
        if let Cow::Owned(redacted) = secrets.text(message) {
            *message = redacted.into();
        }
        for value in properties {
            // Reports carry texts. As one, a value is searched without a walk into its depth.
            let text = value.as_str().map_or_else(|| value.to_json(), str::to_owned);
            if let Cow::Owned(redacted) = secrets.text(&text) {
                *value = redacted.into();
            }
        }
    }

    /// Takes the values out of the results of rules.
    pub fn redact_outcomes(&self, outcomes: &mut [Outcome]) {
        for outcome in outcomes {
            self.redact_result(&mut outcome.message, outcome.detail.as_deref_mut());
        }
    }

    /// Takes the values out of texts.
    pub fn redact<'t>(&self, texts: impl Iterator<Item = &'t mut Str>) {
        let secrets = self.secrets.lock();
        if !secrets.is_empty() {
            for text in texts {
                if let Cow::Owned(redacted) = secrets.text(text) {
                    *text = redacted.into();
                }
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
            self.secrets.lock().learn(&secrets);
        }
        fact
    }

    fn context_limit(&self) -> u64 {
        self.answers.context_limit()
    }

    fn merger(&self) -> Option<Arc<dyn Merger>> {
        self.answers.merger()
    }

    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value> {
        self.answers.secrets(fetch, answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
