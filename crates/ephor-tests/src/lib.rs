//! What several integration tests share; the tests are in `tests/`.

pub mod contract;
