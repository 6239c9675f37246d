//! What the background controller knows and has to do: watch events and policies in, work out. No cluster, no clock.
//!
//! - `memory`: the state itself, and what it remembers of its own work.
//! - `objects`, `policies`, `requests`: what is seen, and the work that it asks for. `tombstones`: requests that have ended.
//! - `contexts`: requests that rules cannot be judged without.
//! - `given_up`: requests that are tried no more.
//! - `reads`: objects that keys were judged by. `entries`: global context entries that were asked.
//! - `waiting`: copies whose rule names another source.
//! - `failures`: what fails, and for whom. `kinds`: what must be watched. `names`: policies and keys, as labels name them.

mod contexts;
mod entries;
mod failures;
mod given_up;
mod kinds;
mod memory;
mod names;
mod ownership;
mod objects;
mod policies;
mod reads;
mod requests;
mod tombstones;
mod waiting;

pub use failures::Subject;
#[cfg(test)]
pub(crate) use given_up::MAX_GIVEN_UP;
pub use given_up::{GivenUp, LOOK_FOR_TRIGGER};
pub use kinds::Watch;
pub use memory::{Acted, OwnerState, State};
pub use names::{key_of, label_parts, policy_key};
pub use reads::{Dependency, Reading};
pub use requests::Pending;
pub use waiting::Inputs;
