//! `cargo xtask load`: what the roles cost, measured from outside. The machine should be idle.
//!
//! - [`admission`]: reviews a second, and what one takes.
//! - [`many`]: how soon many policies hold.
//! - [`reports`]: how soon what exists is reported on, and what that takes.
//! - [`background`]: how soon generated objects are there, and what they take.
//! - [`cleanup`]: how soon objects go whose time comes at once, and what that takes.
//! - [`all`]: what all roles take in one process.

mod admission;
mod all;
mod background;
mod cleanup;
mod many;
mod process;
mod reports;
mod test_env;

use anyhow::{Result, bail};

/// Measures a role.
pub(crate) fn load(arguments: &[&str]) -> Result<()> {
    match arguments {
        [] | ["admission"] => admission::load(),
        ["policies"] => many::policies(1_000),
        ["policies", count] => many::policies(count.parse()?),
        ["reports"] => reports::reports(10_000, &[]),
        ["reports", count, flags @ ..] => reports::reports(count.parse()?, flags),
        ["background"] => {
            background::namespaces(1_000)?;
            background::crash(10_000)
        }
        ["background", "namespaces", count] => background::namespaces(count.parse()?),
        ["background", "crash", count] => background::crash(count.parse()?),
        ["cleanup"] => cleanup::due_at_once(10_000),
        ["cleanup", count] => cleanup::due_at_once(count.parse()?),
        ["all"] => all::all(1_000, &[]),
        ["all", count, flags @ ..] => all::all(count.parse()?, flags),
        other => bail!("unknown: {}", other.join(" ")),
    }
}
