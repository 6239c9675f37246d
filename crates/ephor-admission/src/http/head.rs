//! Reads the UID at the beginning of a review, so that a review that cannot be read whole still gets an answer.
//!
//! The API server takes an answer only with the UID of its question and in the envelope of its question; another one is
//! a failure of the webhook to it, which `failurePolicy: Ignore` lets pass. It writes `kind`, `apiVersion` and
//! `request.uid` before everything that a user has a say in, so the first bytes of a body have them all.

use ephor_runtime::decision::request::ECHOED;

/// What an answer repeats of its question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) uid: String,
}

/// The head of a review that may be cut off or broken anywhere behind; `None` if the UID is not before that.
pub(super) fn of(body: &[u8]) -> Option<Head> {
    let mut scanner = Scanner(body);
    let mut head = Head::default();
    scanner.take(b'{')?;
    loop {
        match scanner.key()?.as_str() {
            "apiVersion" => head.api_version = scanner.string()?,
            "kind" => head.kind = scanner.string()?,
            "request" => {
                scanner.take(b'{')?;
                while scanner.key()? != "uid" {
                    scanner.skip()?;
                    scanner.take(b',')?;
                }
                head.uid = scanner.string()?;
                let texts = [&head.api_version, &head.kind, &head.uid];
                let bounded = texts.iter().all(|text| text.len() <= ECHOED);
                return Some(head).filter(|head| bounded && !head.uid.is_empty());
            }
            _ => scanner.skip()?,
        }
        scanner.take(b',')?;
    }
}

/// Reads JSON from its beginning, without keeping it.
struct Scanner<'b>(&'b [u8]);

impl Scanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        self.0 = self.0.trim_ascii_start();
        self.0.first().copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.0 = self.0.get(1..).unwrap_or_default())
    }

    fn key(&mut self) -> Option<String> {
        let key = self.string()?;
        self.take(b':')?;
        Some(key)
    }

    /// The bytes of a string, with its quotes.
    fn quoted(&mut self) -> Option<&[u8]> {
        if self.peek()? != b'"' {
            return None;
        }
        let mut escaped = false;
        let end = self.0.iter().skip(1).position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })?;
        let (quoted, rest) = self.0.split_at_checked(end + 2)?;
        self.0 = rest;
        Some(quoted)
    }

    fn string(&mut self) -> Option<String> {
        serde_json::from_slice(self.quoted()?).ok()
    }

    /// Passes over one value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => drop(self.quoted()?),
                b'{' | b'[' => {
                    self.0 = self.0.get(1..)?;
                    depth += 1;
                    continue;
                }
                b'}' | b']' => {
                    self.0 = self.0.get(1..)?;
                    depth = depth.checked_sub(1)?;
                }
                b',' | b':' if depth > 0 => {
                    self.0 = self.0.get(1..)?;
                    continue;
                }
                _ => {
                    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                    let end = self.0.iter().position(|byte| !plain(byte)).filter(|end| *end > 0)?;
                    self.0 = self.0.get(end..)?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_review_is_found_whatever_follows() {
        let head =
            |api_version: &str, uid: &str| Head { api_version: api_version.into(), kind: "K".into(), uid: uid.into() };
        for (body, want) in [
            (r#"{"kind":"K","apiVersion":"v","request":{"uid":"u","object":{"a":[[[["#, Some(head("v", "u"))),
            (r#" { "kind" : "K" , "request" : { "uid" : "a\"b" , nonsense"#, Some(head("", "a\"b"))),
            (
                r#"{"kind":"K","x":[1,{"uid":"no"},"]"],"request":{"n":-1.5e3,"b":true,"o":{"uid":"no"},"uid":"u""#,
                Some(head("", "u")),
            ),
            (r#"{"kind":"K","request":{"uid":"u"#, None),
            (r#"{"kind":"K","request":{"uid":"""#, None),
            (r#"{"kind":"K","request":{"uid":7"#, None),
            (r#"{"kind":"K","request":{"object":{"uid":"u"}}}"#, None),
            (r#"{"kind":"K","request":null}"#, None),
            (r#"{"kind":"K"}"#, None),
            ("[1]", None),
            ("{]", None),
            ("", None),
        ] {
            assert_eq!(of(body.as_bytes()), want, "{body}");
        }
    }
}
