//! What upstream refuses when a policy is admitted, and what Ephor cannot enforce yet.
//!
//! [`check_policy`] looks at a decoded policy and reports everything it finds, each with its place. Expressions are
//! compiled elsewhere ([`crate::compile`]), which reports those that do not compile. Checks that need the cluster
//! (kinds that exist, permissions) belong to callers that have one.

mod autogen;
mod bodies;
mod cel;
mod cleanup;
mod context;
mod deprecated;
mod exception;
mod generate;
mod global_context;
mod kinds;
mod match_conditions;
mod policy;
mod selection;
mod size;
mod subresources;
mod update;
mod users;
mod variables;

pub use autogen::AUTOGEN_KIND;
pub use cleanup::check_cleanup;
pub use exception::check_exception;
pub use generate::{MISSING_API_VERSION, check_namespaces};
pub use global_context::check_global_context;
pub(crate) use match_conditions::compile as compile_match_conditions;
pub use policy::check_policy;
pub(crate) use size::check_size;
pub use update::check_update;
pub use users::looks_at_user;
pub use variables::REQUEST_MEMBERS;
