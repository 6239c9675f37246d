//! A plan over its resources, into results.

use std::io;
use std::path::{Path, PathBuf};

use super::inputs::Inputs;
use super::judge::Judged;
use super::pipeline;
use super::results::Results;
use super::sink::Sink;
use crate::locate::Located;
use crate::ui::Ui;

/// Objects that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to `{}`: {source}", path.display())]
pub struct OutputError {
    /// The user's place.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// More faults than these are only counted: the file most likely holds something else.
const MOST_FAULTS: usize = 100;

/// Judges all resources. Objects go to `output` if it is given. A `lenient` run takes documents that are no resources
/// as warnings.
pub fn run(inputs: Inputs, output: Option<&Path>, lenient: bool, ui: &Ui) -> Result<Results, OutputError> {
    let failed = |source| OutputError { path: output.map(Path::to_path_buf).unwrap_or_default(), source };
    let mut sink = output.map(Sink::open).transpose().map_err(failed)?;
    let mut results = Results {
        could_not: inputs.findings.iter().any(Located::is_error),
        exceptions: inputs.exception_count,
        refused: inputs.refused,
        findings: inputs.findings,
        ..Results::of(inputs.plan)
    };
    results.tally.error += results.refused.len() as u64;
    let bar = ui.progress(None, "resources");
    let mut faults = 0;
    // Taken apart, so that the plan is shared while the rest changes.
    let Results { plan, resources, tally, rows, changes, findings, could_not, .. } = &mut results;
    pipeline::run(plan, &inputs.resources, |judged: Judged| {
        bar.inc(judged.resources);
        for mut fault in judged.faults {
            faults += 1;
            if lenient {
                fault.severity = ephor_engine::diagnostic::Severity::Warning;
            } else {
                *could_not = true;
            }
            if faults <= MOST_FAULTS {
                findings.push(fault);
            }
        }
        if let Some(sink) = &mut sink {
            for write in &judged.writes {
                sink.write(write)?;
            }
        }
        *resources += judged.resources;
        tally.merge(&judged.tally);
        rows.extend(judged.rows);
        changes.push_str(&judged.changes);
        io::Result::Ok(())
    })
    .map_err(failed)?;
    if faults > MOST_FAULTS {
        let message = format!("{} more documents are no resources", faults - MOST_FAULTS);
        findings.push(Located::plain("not-a-resource", message));
    }
    if let Some(sink) = sink {
        sink.close().map_err(failed)?;
    }
    bar.finish_and_clear();
    Ok(results)
}
