//! The `ephor` command line as a library.
