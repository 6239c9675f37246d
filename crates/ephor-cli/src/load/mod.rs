//! Files into what the engine takes.

mod files;
mod policies;
mod resources;

pub use files::{ReadError, STDIN, expand, read};
pub use policies::{LoadedPolicies, LoadedPolicy, load_file, load_policies};
pub use resources::{ResourceText, normalise, read_resources};
