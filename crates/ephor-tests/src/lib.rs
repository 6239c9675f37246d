//! Holds only integration tests: see `tests/`.
