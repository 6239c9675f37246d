//! The project's own commands. `cargo xtask check` is what a commit must pass, `cargo xtask ci` what CI runs.
fn main() {}
