//! What the background controller knows and has to do: watch events and policies in, work out. No cluster, no clock.
//!
//! [`State`] joins indexes that know nothing of each other, and enqueues the work that follows from what they are told:
//!
//! - `ownership`: which keys want which objects, and what was written of them.
//! - `dependencies`: objects and answers that keys were judged by; `entries`: answers of global context entries.
//! - `request_index`: `UpdateRequest`s by name and state; `tombstones`: those that have ended.
//! - `contexts`: requests that rules cannot be judged without.
//! - `trigger_events`: what events said about keys.
//!
//! The rest is methods of [`State`], by what they take in: `objects`, `policies`, `requests`, `given_up` (requests that
//! are tried no more), `waiting` (copies whose rule names another source), `failures` (what fails, and for whom),
//! `kinds` (what must be watched). `memory` defines it; `names` has policies and keys as labels name them.

mod contexts;
mod dependencies;
mod entries;
mod failures;
mod given_up;
mod kinds;
mod memory;
mod objects;
mod ownership;
mod policies;
mod request_index;
mod requests;
mod tombstones;
mod trigger_events;
mod waiting;

pub use contexts::is_too_large;
pub use dependencies::{Dependency, Reading};
pub use failures::Subject;
#[cfg(test)]
pub(crate) use given_up::MAX_GIVEN_UP;
pub use given_up::{GivenUp, LOOK_FOR_TRIGGER};
pub use kinds::Watch;
pub use memory::{Acted, OwnerState, State};
pub use request_index::{Kept, Pending};
pub use waiting::Inputs;
