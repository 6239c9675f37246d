//! What a walk writes down.
//!
//! Matching runs twice when it has to: first with [`Quiet`], which keeps nothing and allocates nothing, and, only
//! if the pattern does not match, again with [`Verbose`], which collects the texts and the facts that decide
//! between failure and error.

use std::collections::BTreeMap;

use ephor_expr::Str;

/// Receives what a walk could tell.
pub(super) trait Log {
    /// A message or path.
    type Text;
    /// Takes a text that is rendered only if the log is read.
    fn text(&self, render: impl FnOnce() -> String) -> Self::Text;
    /// How many bytes a text has.
    fn length(text: &Self::Text) -> usize;
    /// `prefix: text`.
    fn prefixed(&self, prefix: &str, text: Self::Text) -> Self::Text;
    /// Several messages as one.
    fn joined(&self, texts: Vec<Self::Text>) -> Self::Text;
    /// A condition or existence key was visited, and its key is or is not in the resource's map.
    fn anchor_key(&mut self, key: &Str, present: impl FnOnce() -> bool);
}

/// Keeps nothing.
pub(super) struct Quiet;

impl Log for Quiet {
    type Text = ();
    fn text(&self, _: impl FnOnce() -> String) {}
    fn length((): &()) -> usize {
        0
    }
    fn prefixed(&self, _: &str, (): ()) {}
    fn joined(&self, _: Vec<()>) {}
    fn anchor_key(&mut self, _: &Str, _: impl FnOnce() -> bool) {}
}

/// Keeps everything.
#[derive(Default)]
pub(super) struct Verbose {
    /// By the full text of each visited key: was it present anywhere?
    keys: BTreeMap<Str, bool>,
}

impl Verbose {
    /// Whether some visited condition or existence key was never present.
    pub(super) fn keys_are_missing(&self) -> bool {
        self.keys.values().any(|present| !present)
    }
}

impl Log for Verbose {
    type Text = String;
    fn text(&self, render: impl FnOnce() -> String) -> String {
        render()
    }
    fn length(text: &String) -> usize {
        text.len()
    }
    fn prefixed(&self, prefix: &str, text: String) -> String {
        format!("{prefix}: {text}")
    }
    fn joined(&self, texts: Vec<String>) -> String {
        texts.join("; ")
    }
    fn anchor_key(&mut self, key: &Str, present: impl FnOnce() -> bool) {
        *self.keys.entry(key.clone()).or_default() |= present();
    }
}
