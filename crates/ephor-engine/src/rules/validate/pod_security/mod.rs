//! `validate.podSecurity`: the Kubernetes Pod Security Standards.
//!
//! The way of one evaluation: `pod` reads the Pod (or the Pod template of a workload) into a borrowed view,
//! `checks` finds violations in it, `exclusions` takes away what the policy and its exceptions let off, and
//! [`messages`] writes what is left.
//!
//! The checks are those of the standards from v1.19 on, in their newest revision that is not newer than the version
//! asked for; a check younger than that version applies all the same (validate-mutate-autogen.md 2.3).

mod checks;
mod control;
mod evaluate;
mod exclusions;
pub mod messages;
mod pod;
mod problems;
mod standard;
mod violation;

#[cfg(test)]
mod tests;

pub use control::{Control, ImageRule};
pub use evaluate::{CompileError, FailedCheck, PodSecurityCheck, PodSecurityFailure, PodSecurityOutcome};
pub use exclusions::Exclusion;
pub use problems::{ExclusionFault, ExclusionProblem, check_exclusions};
pub use standard::{Level, UnknownLevel, UnknownVersion, Version};
pub use violation::{BadValue, FieldError, FieldFault};
