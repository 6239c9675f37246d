//! Bodies of `mutate` rules.
