//! `ephor apply`: policies over resources.
//!
//! A [`Plan`] is all that a run needs, loaded and compiled. [`pipeline::run`] reads resources as a stream: one thread
//! splits files into documents, the others parse and judge them, and what they find comes back in input order. Only
//! findings are kept, so that memory does not grow with the resources.

mod at_hand;
mod existing;
mod inputs;
mod judge;
pub mod pipeline;
mod plan;
mod results;
mod row;
mod run;
mod sink;

pub use existing::{Existing, Extent};
pub use inputs::{Inputs, Selected};
pub use judge::{Judged, Place};
pub use plan::{Keep, Plan, PolicyBatch, PolicySummary};
pub use results::Results;
pub use row::{Action, Row, Subject};
pub use run::{OutputError, run};
pub use sink::{Sink, Write as Written};
