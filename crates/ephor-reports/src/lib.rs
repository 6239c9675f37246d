//! Policy reports: what policies say about the objects that exist, as objects that people and tools read.
//!
//! A report is derived data. It can be computed again from an object and the policies at any time, so everything here
//! compares before it writes, and a report that says the same as before is left alone.
//!
//! - [`entry`]: one result of one rule.
//! - [`report`]: the report of one object, in the dialects `wgpolicyk8s.io` and `openreports.io`.
//! - [`ephemeral`]: results that other roles leave for the one that writes reports.
//! - [`merge`]: new results and a stored report in, the results to store out.
//! - [`served`]: reports that are kept in memory and read through the API, with nothing stored.

pub mod entry;
pub mod ephemeral;
pub mod merge;
pub mod report;
pub mod served;

pub use entry::{Entry, PolicyFacts};
pub use report::{Dialect, Scope};
