//! Bodies of `validate` rules.
