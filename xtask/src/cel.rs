//! `cargo xtask cel-vectors`: runs vectors of CEL and prints what differs.

use anyhow::Result;

/// Passes the arguments on to the runner, which is a test of `ephor-expr`. Paths are those of the caller.
pub(crate) fn vectors(arguments: &[&str]) -> Result<()> {
    let mut absolute = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let path = std::path::absolute(argument)?;
        let named = !argument.starts_with("--") && path.exists();
        absolute.push(if named { path.to_string_lossy().into_owned() } else { (*argument).to_owned() });
    }
    let rest: Vec<&str> = absolute.iter().map(String::as_str).collect();
    let command = ["test", "--quiet", "--package", "ephor-expr", "--test", "cel_vectors", "--", "--report"];
    crate::cargo(&[&command[..], &rest].concat())
}
