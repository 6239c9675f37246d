//! What upstream refuses when a policy is admitted, and what Ephor cannot enforce yet.
//!
//! [`check_policy`] looks at a decoded policy and reports everything it finds, each with its place. Expressions are
//! compiled elsewhere ([`crate::compile`]), which reports those that do not compile. Checks that need the cluster
//! (kinds that exist, permissions) belong to whoever has one.

mod bodies;
mod context;
mod generate;
mod policy;
mod selection;
mod variables;

pub use policy::check_policy;
