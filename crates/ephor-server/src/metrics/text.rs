//! Prometheus' classic text format, as upstream serves it: counters are declared with their `_total`.

use std::fmt::Write as _;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;

/// The media type.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything in a registry.
pub(super) fn classic(registry: &Registry) -> String {
    let mut open = String::new();
    // Writing into a string fails only if an encoder does, and then what is there still counts.
    if encode_registry(&mut open, registry).is_err() {
        tracing::error!("metrics cannot be encoded");
    }
    let mut text = String::with_capacity(open.len());
    let mut help: Option<&str> = None;
    for line in open.lines() {
        if line.starts_with("# HELP ") {
            help = Some(line);
            continue;
        }
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap_or((declared, ""));
            let suffix = if kind == "counter" { "_total" } else { "" };
            if let Some(words) = help.take().and_then(|help| help.strip_prefix("# HELP ")?.strip_prefix(name)) {
                let _ = writeln!(text, "# HELP {name}{suffix}{words}");
            }
            let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}
