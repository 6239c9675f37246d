//! `PolicyException`s: objects that rules let off.

mod policies;
mod set;

pub use policies::{PolicyExceptionSpec, PolicyRef, ReportResult};
pub use set::{Exception, ExceptionSet};
