//! Prometheus' classic text format, as upstream serves it: counters are declared with their `_total`.

use std::fmt::Write;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;

/// The media type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything in a registry.
pub(super) fn classic(registry: &Registry) -> String {
    let mut lines = Lines::default();
    // Writing into a string fails only if an encoder does, and then what is there still counts.
    if encode_registry(&mut lines, registry).is_err() {
        tracing::error!("metrics cannot be encoded");
    }
    lines.text
}

/// Takes the text of `OpenMetrics` line by line, because there may be megabytes of it.
#[derive(Debug, Default)]
struct Lines {
    text: String,
    /// What there is of the present line.
    line: String,
    /// The line of help that belongs to the next declaration.
    help: String,
}

impl Write for Lines {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        let mut rest = part;
        while let Some((end, after)) = rest.split_once('\n') {
            self.line.push_str(end);
            self.end_line()?;
            rest = after;
        }
        self.line.push_str(rest);
        Ok(())
    }
}

impl Lines {
    fn end_line(&mut self) -> std::fmt::Result {
        let Self { text, line, help } = self;
        if line.starts_with("# HELP ") {
            std::mem::swap(help, line);
        } else if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap_or((declared, ""));
            let suffix = if kind == "counter" { "_total" } else { "" };
            if let Some(words) = help.strip_prefix("# HELP ").and_then(|help| help.strip_prefix(name)) {
                writeln!(text, "# HELP {name}{suffix}{words}")?;
            }
            help.clear();
            writeln!(text, "# TYPE {name}{suffix} {kind}")?;
        } else {
            writeln!(text, "{line}")?;
        }
        line.clear();
        Ok(())
    }
}
