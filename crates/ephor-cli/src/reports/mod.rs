//! Stored policy reports as people look at them.
//!
//! Report objects of `wgpolicyk8s.io` and `openreports.io` go in. Their results come out, one for each object that a
//! rule judged, together with counts by policy and namespace. `ephor report` prints them.

mod found;
mod overview;
mod source;

pub use found::{Filter, Found, NotReport, Severity, found, of_results};
pub use overview::{Group, Overview, Trend};
pub use source::{kinds, list};
