//! `ephor serve cleanup`.

use ephor_runtime::settings::{CleanupSettings, environment};
use ephor_server::serve;

use super::super::{CommandError, CommandResult};
use super::start::{self, Writes};
use crate::exit::Exit;

/// Runs the role until it is told to stop.
pub(super) fn run(flags: &[String]) -> CommandResult {
    let settings = CleanupSettings::parse(flags, &environment()).map_err(|error| CommandError::Other(error.into()))?;
    start::log(&settings.common.log);
    let stop = start::stop_on_signals()?;
    let cluster = start::connect(&settings.common, "ephor-cleanup-controller", Writes::Once)?;
    serve::cleanup(&cluster, &settings, &stop).map_err(|error| CommandError::Other(error.into()))?;
    Ok(Exit::Clean)
}
