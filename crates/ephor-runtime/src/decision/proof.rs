//! How a caller of the admission port proves that it is the API server: by a secret token at the end of the URL path.
//!
//! Ephor registers its webhooks itself, so it can give the API server a path that others do not know. The token is
//! derived from the private key of the serving certificate, which all replicas share. [`split`] takes the token off a
//! path before anything else reads the path, so that no log and no metric contains it.
//!
//! When a webhook does not answer, the API server prints its URL in the error that the user gets. So a token keeps out
//! callers who never saw such an error; a client certificate keeps out all of them.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use ephor_expr::Str;
use sha2::{Digest as _, Sha256};

/// The segment before the token.
const MARK: &str = "/proven/";
/// How many digits a token has.
const DIGITS: usize = 32;
/// How many tokens besides the present one are accepted.
const EARLIER: usize = 2;

/// Who sent a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// The API server, proven by its client certificate or the token in the path; or a caller in the same process.
    ApiServer,
    /// A network client that proved nothing. Its reviews are answered, but nothing is written because of them.
    Unproven,
}

/// The secret at the end of the registered paths.
#[derive(Clone, PartialEq, Eq)]
pub struct PathToken {
    text: Str,
    digest: [u8; 32],
}

impl fmt::Debug for PathToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathToken")
    }
}

impl PathToken {
    /// Derives the token from a private key in PEM.
    pub fn of_key(pem: &[u8]) -> Self {
        let secret = Sha256::new().chain_update("ephor webhook path").chain_update(pem).finalize();
        let half = secret.iter().take(DIGITS / 2).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        Self::of_text(&format!("{half:032x}"))
    }

    /// The token at the end of a registered path or URL, if there is one.
    pub fn of_path(path: &str) -> Option<Self> {
        split(path).1.map(Self::of_text)
    }

    fn of_text(text: &str) -> Self {
        Self { digest: digest(text), text: text.into() }
    }

    /// Whether `given` is this token. It compares digests, so that the time it takes reveals nothing about the token.
    pub fn is(&self, given: &str) -> bool {
        self.digest == digest(given)
    }

    /// `path` with the token at its end.
    pub fn end(&self, path: &str) -> String {
        format!("{path}{MARK}{}", self.text)
    }

    /// `text` without the token, for errors of an API server that may repeat a path.
    pub fn hide(&self, text: &str) -> String {
        text.replace(self.text.as_str(), "…")
    }
}

/// The tokens that a replica accepts. Clones share them.
///
/// The present token follows the serving key. After the key changes, API servers use the registered path until they see
/// the new one, so the tokens that were registered or derived last stay accepted.
#[derive(Debug, Clone, Default)]
pub struct PathTokens(Arc<ArcSwap<Known>>);

#[derive(Debug, Clone, Default)]
struct Known {
    present: Option<PathToken>,
    /// The newest first.
    earlier: Vec<PathToken>,
}

impl PathTokens {
    /// The token to register; `None` while there is no key.
    pub fn present(&self) -> Option<PathToken> {
        self.0.load().present.clone()
    }

    /// Makes `token` the present one.
    pub fn set_present(&self, token: &PathToken) {
        self.0.rcu(|known| {
            let mut known = Known::clone(known);
            if let Some(before) = known.present.replace(token.clone()) {
                known.accept(before);
            }
            known
        });
    }

    /// Accepts a token that stands in a registered webhook.
    pub fn accept(&self, token: &PathToken) {
        self.0.rcu(|known| {
            let mut known = Known::clone(known);
            known.accept(token.clone());
            known
        });
    }

    /// Whether `given` is one of the tokens.
    pub fn prove(&self, given: &str) -> bool {
        let known = self.0.load();
        known.present.iter().chain(&known.earlier).any(|token| token.is(given))
    }
}

impl Known {
    fn accept(&mut self, token: PathToken) {
        self.earlier.retain(|earlier| *earlier != token);
        if self.present.as_ref() != Some(&token) {
            self.earlier.insert(0, token);
            self.earlier.truncate(EARLIER);
        }
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// A path without its token, and what stands in the place of one.
pub fn split(path: &str) -> (&str, Option<&str>) {
    match path.rsplit_once(MARK) {
        Some((path, token)) if is_shaped(token) => (path, Some(token)),
        _ => (path, None),
    }
}

fn is_shaped(token: &str) -> bool {
    token.len() == DIGITS && token.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_loses_only_what_has_the_form_of_a_token() {
        let digits = "0123456789abcdef0123456789abcdef";
        for (path, want) in [
            (format!("/validate/fail/proven/{digits}"), ("/validate/fail", true)),
            (
                format!("https://10.0.0.1:9443/mutate/ignore/proven/{digits}"),
                ("https://10.0.0.1:9443/mutate/ignore", true),
            ),
            (
                format!("/validate/fail/finegrained/proven/{digits}/proven/{digits}"),
                (&*format!("/validate/fail/finegrained/proven/{digits}"), true),
            ),
            (format!("/validate/fail/proven/{digits}/x"), (&*format!("/validate/fail/proven/{digits}/x"), false)),
            (
                format!("/validate/fail/proven/{}", digits.to_uppercase()),
                (&*format!("/validate/fail/proven/{}", digits.to_uppercase()), false),
            ),
            ("/validate/fail/finegrained/proven/p".to_owned(), ("/validate/fail/finegrained/proven/p", false)),
            ("/validate/fail/proven/".to_owned(), ("/validate/fail/proven/", false)),
            ("/validate".to_owned(), ("/validate", false)),
        ] {
            let (rest, token) = split(&path);
            assert_eq!((rest, token.is_some()), want, "{path}");
        }
    }

    #[test]
    fn the_present_token_and_the_two_before_it_prove() {
        let tokens = PathTokens::default();
        let all: Vec<PathToken> = (0..4_u8).map(|key| PathToken::of_key(&[key])).collect();
        let proven = || all.iter().map(|token| tokens.prove(&token.text)).collect::<Vec<_>>();
        assert_eq!((tokens.present(), proven()), (None, vec![false; 4]));
        for token in &all {
            tokens.set_present(token);
            tokens.set_present(token);
        }
        assert_eq!((tokens.present().as_ref(), proven()), (Some(&all[3]), vec![false, true, true, true]));
        // What is registered proves, however it came there, and does not change what is registered next.
        tokens.accept(&all[0]);
        tokens.accept(&all[3]);
        assert_eq!((tokens.present().as_ref(), proven()), (Some(&all[3]), vec![true, false, true, true]));
        assert!(!tokens.prove(""));
    }

    #[test]
    fn no_text_shows_a_token() {
        let token = PathToken::of_key(b"key");
        let path = token.end("https://x/validate/fail");
        assert_eq!(
            token.hide(&format!("Post \"{path}\": refused")),
            "Post \"https://x/validate/fail/proven/…\": refused"
        );
        assert_eq!(format!("{token:?}"), "PathToken");
        assert_eq!(PathToken::of_path(&path), Some(token));
        assert_eq!(PathToken::of_path("/validate/fail"), None);
    }
}
