//! Where in the resource the walk stands: a list on the stack, turned into text only when a message needs it.

use std::fmt::{self, Write as _};

/// The steps from the root to the current place, innermost first.
#[derive(Clone, Copy)]
pub(super) enum Trail<'a> {
    /// The root of the pattern.
    Root,
    /// A member of the place before.
    Key(&'a Trail<'a>, &'a str),
    /// An item of the place before.
    Index(&'a Trail<'a>, usize),
}

impl fmt::Display for Trail<'_> {
    /// Begins and ends with `/`: `/spec/containers/0/`. Recursion is as deep as the pattern, which is bounded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trail::Root => f.write_char('/'),
            Trail::Key(before, key) => write!(f, "{before}{key}/"),
            Trail::Index(before, index) => write!(f, "{before}{index}/"),
        }
    }
}
