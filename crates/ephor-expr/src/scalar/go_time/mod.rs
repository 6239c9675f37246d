//! Moments as Go's `time` package reads them: RFC 3339 and layouts such as `Jan 2, 2006 at 3:04pm (MST)`.
//!
//! - `time`: the [`Time`] and its arithmetic.
//! - `layout`: the elements of a layout.
//! - `parse`: a text read by a layout.

mod layout;
mod parse;
#[cfg(test)]
mod tests;
mod time;

pub use parse::{ParseTimeError, parse_layout, parse_rfc3339};
pub use time::{Civil, Time, format_rfc3339};
