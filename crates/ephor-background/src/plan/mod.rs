//! What a generate rule changes in a cluster, worked out without one: desired objects and live objects in, a list of
//! [`Change`]s out. The controller applies them, `ephor plan` prints them.
//!
//! - [`identity`]: which object is meant.
//! - [`ownership`]: what Ephor notes on the objects it makes. [`claim`]: whose an object says it is.
//! - [`downstream`]: one wanted object against the live one. [`removal`]: one object that is wanted no more.
//! - [`change`]: what to do, why, and on what proof. [`diff`]: a change as text.

pub mod change;
pub mod claim;
pub mod diff;
pub mod downstream;
pub mod identity;
pub mod ownership;
pub mod removal;
#[cfg(test)]
mod tests;

pub use change::{Action, Change, Proof, Reason};
pub use claim::{Claim, Owner, is_adopted, says_adopted};
pub use downstream::{Terms, Wanted, plan_annotation, plan_downstream};
pub use identity::ObjectId;
pub use ownership::OwnershipAnnotation;
pub use removal::{Cause, Removal, plan_removal};
