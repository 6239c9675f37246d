//! The small languages inside strings, one file each; nothing here knows values or policies.
//!
//! - [`wildcard`]: `*` and `?`.
//! - [`quantity`], [`duration`], [`number`]: Kubernetes quantities, Go durations, Go number texts; [`compare`] puts
//!   the first two behind one comparison and [`range`] reads `a-b`.
//! - [`semver`]: versions and version ranges.
//! - [`go_regex`]: Go's regular expressions on top of `regex`.
//! - [`go_time`]: moments with an offset, RFC 3339 and Go layouts.
//! - [`go_url`]: URLs as Go reads them.
//! - [`image_ref`]: container image references.
//! - [`percent`]: escapes in URLs.
//! - [`nearest`]: "did you mean".
//! - [`unseen`]: characters that a reader does not see.
//! - [`zone`]: time zones by name.
//!
//! Everything takes arbitrary text without panicking.

pub mod compare;
pub mod duration;
pub mod go_regex;
pub mod go_time;
pub mod go_url;
pub mod image_ref;
pub mod nearest;
pub mod networks;
pub mod number;
pub mod percent;
pub mod quantity;
pub mod range;
pub mod semver;
pub mod unseen;
pub mod wildcard;
pub mod zone;
