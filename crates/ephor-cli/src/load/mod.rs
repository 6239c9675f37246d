//! Files into what the engine takes.

mod files;
mod lists;
mod policies;
mod resources;

pub use files::{ReadError, STDIN, expand, read};
pub use lists::expand_lists;
pub use policies::{LoadedPolicies, LoadedPolicy, Refused, load_file, load_policies};
pub use resources::{ResourceText, normalise, read_resources};
