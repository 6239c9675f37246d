//! The live view: a page that shows policies, decisions as they happen with their reasons, and generated objects with
//! their lineage.
//!
//! A [`Live`] holds what is shown: the latest state of the lists and the last decisions. A browser that opens the page
//! gets all of it first and every change after, as server-sent events. The page needs no network beyond this server.

mod decision;
#[cfg(test)]
mod feed_tests;
mod http;
mod stream;

pub use decision::{Decision, Ended};
pub(crate) use http::same;
pub use http::{Lookup, router};
pub use stream::{Live, Topic};
