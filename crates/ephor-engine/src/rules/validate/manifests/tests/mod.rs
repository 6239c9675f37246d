//! Signed manifests: who signed, what was signed, what may differ, and what is refused.

mod attestors;
mod bounds;
mod compare;
mod fixtures;
mod refused;
