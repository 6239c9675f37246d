//! Findings as a JSON array.

use ephor_expr::{Map, Str, Value};

use super::level;
use crate::locate::Located;
use crate::output::plain;

/// An array with an object for each finding; what is not known about one is left out.
pub fn json(findings: &[Located]) -> String {
    plain::json(&Value::array(findings.iter().map(object).collect())) + "\n"
}

fn object(finding: &Located) -> Value {
    let mut map = Map::new();
    map.insert("code", Str::new_static(finding.code));
    map.insert("severity", Str::new_static(level(finding)));
    map.insert("message", finding.message.as_str());
    if let Some(help) = &finding.help {
        map.insert("help", help.as_str());
    }
    if !finding.path.is_root() {
        map.insert("path", finding.path.to_string());
    }
    if let Some(file) = &finding.file {
        map.insert("file", file.name.as_str());
    }
    if let Some((start, end)) = finding.span {
        for (key, number) in
            [("line", start.line), ("column", start.column), ("endLine", end.line), ("endColumn", end.column)]
        {
            map.insert(key, i64::from(number));
        }
    }
    Value::object(map)
}
