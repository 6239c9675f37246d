//! `ephor serve all`.

use ephor_runtime::settings::{AllSettings, environment};
use ephor_server::serve;

use super::super::{CommandError, CommandResult};
use super::start::{self, Writes};
use crate::exit::Exit;

/// Runs all roles until they are told to stop.
pub(super) fn run(flags: &[String]) -> CommandResult {
    let settings = AllSettings::parse(flags, &environment()).map_err(|error| CommandError::Other(error.into()))?;
    let common = &settings.admission.common;
    start::log(&common.log);
    let stop = start::stop_on_signals()?;
    let cluster = start::connect(common, "ephor", Writes::Repeated)?;
    let writes_once = start::connect(common, "ephor", Writes::Once)?;
    serve::all(&cluster, &writes_once, &settings, &stop).map_err(|error| CommandError::Other(error.into()))?;
    Ok(Exit::Clean)
}
