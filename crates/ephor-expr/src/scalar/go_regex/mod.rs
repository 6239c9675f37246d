//! Go's regular expressions (RE2 syntax with Perl classes) on top of `regex`.
//!
//! - `translate`: the parser of Go's syntax; it writes what it understood in the syntax of `regex`.
//! - `group` and `class`: its parts for `(...)`, and for `[...]`, `\d` and `\p{...}`.
//! - `error`: Go's error texts.
//! - `expand`: replacement templates.
//!
//! Both engines are linear-time and leftmost-first, so only the syntax differs: Go takes `\Q..\E`, `[[a]`, bare `{`,
//! `x{,3}` and `[\w-.]`, has ASCII `\d \w \s \b`, and refuses `a**`, `{1001}` and look-around.

mod class;
mod error;
mod expand;
mod group;
#[cfg(test)]
mod tests;
mod translate;

pub use error::{GoRegexError, GoRegexErrorKind};
pub use expand::expand_replacement;

use regex::{Regex, RegexBuilder};

/// The most memory one compiled expression may take, in bytes.
const SIZE_LIMIT: usize = 10 << 20;

/// The deepest nesting handed to `regex`; deeper expressions are refused (Go stops at 1000).
const NEST_LIMIT: u32 = 250;

/// Compiles a Go regular expression.
///
/// The error prints as Go's, for example ``error parsing regexp: missing closing ]: `[a` ``. A group name that
/// starts with a digit, which only Go allows, is dropped: the group still counts.
pub fn compile(pattern: &str) -> Result<Regex, GoRegexError> {
    let translated = translate::translate(pattern)?;
    RegexBuilder::new(&translated).size_limit(SIZE_LIMIT).nest_limit(NEST_LIMIT).build().map_err(|e| {
        let kind = match e {
            regex::Error::CompiledTooBig(_) => GoRegexErrorKind::Large,
            // Everything else was checked by the translation.
            _ => GoRegexErrorKind::NestingDepth,
        };
        GoRegexError::new(kind, pattern)
    })
}
