//! The `ephor` binary.
fn main() {}
