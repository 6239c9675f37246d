//! Rows of validate-mutate-autogen.md 6.4 and engine.md 8.8, and the standards themselves.

mod checks;
mod exclusions;
mod fixtures;
