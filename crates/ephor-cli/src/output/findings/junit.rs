//! Findings as `JUnit` XML: a suite for each file, a failed case for each finding that counts.

use std::fmt::Write as _;

use super::{level, message};
use crate::locate::Located;
use crate::output::junit::escape;

/// The suites of `files`. Warnings fail their cases only if they `count`; a file without findings is one passed case.
pub fn junit(findings: &[Located], files: &[String], count: bool) -> String {
    let is_of = |finding: &Located, name: &str| finding.file.as_ref().is_some_and(|file| file.name == name);
    let failed = |finding: &&Located| count || finding.is_error();
    let nowhere: Vec<&Located> = findings.iter().filter(|finding| finding.file.is_none()).collect();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let mut suite = |name: &str, found: &[&Located]| {
        let failures = found.iter().filter(|f| failed(f)).count();
        // Writing to a string does not fail.
        let tests = found.len().max(1);
        let _ = writeln!(out, "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\">", escape(name));
        if found.is_empty() {
            let _ = writeln!(out, "    <testcase classname=\"{}\" name=\"check\"/>", escape(name));
        }
        for finding in found {
            let place = finding.place();
            let place = if place.is_empty() { name } else { place.as_str() };
            let _ = write!(out, "    <testcase classname=\"{}\" name=\"{}\"", escape(place), finding.code);
            let text = escape(&message(finding));
            let _ = if failed(finding) {
                writeln!(out, ">\n      <failure type=\"{}\" message=\"{text}\"/>\n    </testcase>", level(finding))
            } else {
                writeln!(out, ">\n      <system-out>{text}</system-out>\n    </testcase>")
            };
        }
        out.push_str("  </testsuite>\n");
    };
    for name in files {
        suite(name, &findings.iter().filter(|finding| is_of(finding, name)).collect::<Vec<_>>());
    }
    if !nowhere.is_empty() {
        suite("ephor", &nowhere);
    }
    out.push_str("</testsuites>\n");
    out
}
