//! Answers to admission requests, and the `AdmissionReview` that carries one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_engine::outcome::cut;
use ephor_expr::{Map, Str, Value};

/// How long the message of a denial gets, and all warnings together, in bytes: an API server keeps answers in memory
/// and sends them on, and many rules may have something to say.
const MAX_TEXT: usize = 64 * 1024;

/// The answer to one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Whether the request goes on.
    pub allowed: bool,
    /// Why not; for the user's eyes.
    pub message: Option<String>,
    /// A JSON patch (an array of operations) for the object.
    pub patch: Option<Value>,
    /// Warnings that the client shows.
    pub warnings: Vec<String>,
    /// The HTTP status that the client sees for a denial; the API server's default is 400.
    pub code: Option<u16>,
}

impl Answer {
    /// Go on.
    pub fn allow() -> Self {
        Self { allowed: true, ..Self::default() }
    }

    /// Stop, because of `message`; a very long one is cut.
    pub fn deny(message: impl Into<String>) -> Self {
        Self { message: Some(cut(&message.into(), MAX_TEXT)), ..Self::default() }
    }

    /// The same with warnings added, as far as they are not too long together.
    #[must_use]
    pub fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        let mut left = MAX_TEXT.saturating_sub(self.warnings.iter().map(String::len).sum());
        for warning in warnings {
            if left == 0 {
                break;
            }
            let warning = cut(&warning, left);
            left = left.saturating_sub(warning.len());
            self.warnings.push(warning);
        }
        self
    }

    /// The review that goes back, for a question in an envelope of `api_version` and `kind` (empty: today's).
    pub fn review(&self, api_version: &str, kind: &str, uid: &str) -> Value {
        let mut response = Map::new();
        response.insert("uid", uid);
        response.insert("allowed", self.allowed);
        if let Some(patch) = &self.patch {
            response.insert("patch", STANDARD.encode(patch.to_json()));
            response.insert("patchType", "JSONPatch");
        }
        if self.message.is_some() || self.code.is_some() {
            let mut status = Map::new();
            status.insert("status", if self.allowed { "Success" } else { "Failure" });
            if let Some(message) = &self.message {
                status.insert("message", message.as_str());
            }
            if let Some(code) = self.code {
                status.insert("code", i64::from(code));
            }
            response.insert("status", status);
        }
        if !self.warnings.is_empty() {
            response.insert("warnings", self.warnings.clone());
        }
        let or = |text: &str, default: &'static str| Str::new(if text.is_empty() { default } else { text });
        Value::from([
            ("apiVersion", Value::from(or(api_version, "admission.k8s.io/v1"))),
            ("kind", or(kind, "AdmissionReview").into()),
            ("response", response.into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_travels_in_the_envelope_of_its_question() {
        let patch = Value::from_json(r#"[{"op":"add","path":"/a","value":1}]"#).unwrap();
        let answer = Answer { patch: Some(patch), ..Answer::allow().with_warnings(["w".to_owned()]) };
        assert_eq!(
            answer.review("", "", "u").to_json(),
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d","patchType":"JSONPatch","uid":"u","warnings":["w"]}}"#
        );
        assert_eq!(
            Answer::deny("no").review("v", "k", "u").to_json(),
            r#"{"apiVersion":"v","kind":"k","response":{"allowed":false,"status":{"message":"no","status":"Failure"},"uid":"u"}}"#
        );
    }

    #[test]
    fn what_very_many_rules_say_is_cut() {
        let denied = Answer::deny("ä".repeat(1 << 20)).message.unwrap();
        assert!(denied.len() <= MAX_TEXT && denied.ends_with("ä…"));
        let warned = Answer::allow().with_warnings((0..1_000).map(|_| "w".repeat(1_000)));
        let bytes: usize = warned.warnings.iter().map(String::len).sum();
        assert!(warned.warnings.len() == 66 && bytes <= MAX_TEXT, "{} {bytes}", warned.warnings.len());
    }
}
