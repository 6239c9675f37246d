//! Auto-gen: a rule on Pods also applies to everything with a Pod template.
//!
//! For each rule on Pods two more are made, one for controllers whose template stands at `spec.template` and one for
//! `CronJobs`, by rewriting the rule's parsed tree. A rule that cannot be rewritten is left out alone (upstream leaves
//! out the policy's others with it; its documentation says the rule).

mod controllers;
mod eligible;
mod expand;
mod policies;
mod rewrite;
mod shown;

pub use controllers::{ANNOTATION, Controllers, Fault, Misnamed, controllers, misnamed};
pub use eligible::{Eligibility, Ineligible};
pub use expand::{Generated, expand};
pub use policies::{Controller, GeneratedSpec, UnknownController, expand_mutation, expand_spec, unknown_controllers};
pub use shown::{Rewritten, shown};
