//! Findings as SARIF 2.1.0, for code scanning.

use std::collections::BTreeSet;

use ephor_expr::{Map, Str, Value};

use super::{level, message};
use crate::locate::Located;
use crate::output::sarif::log;

/// One run of `ephor`.
pub fn sarif(findings: &[Located]) -> String {
    let codes: BTreeSet<&'static str> = findings.iter().map(|finding| finding.code).collect();
    let rules = codes.into_iter().map(|code| Value::from([("id", Value::from(code))])).collect();
    log(rules, findings.iter().map(result).collect())
}

fn result(finding: &Located) -> Value {
    let mut result = Map::new();
    result.insert("ruleId", Str::new_static(finding.code));
    result.insert("level", Str::new_static(level(finding)));
    result.insert("message", Value::from([("text", Value::from(message(finding)))]));
    if let Some(file) = &finding.file {
        let mut place = Map::new();
        place.insert("artifactLocation", Value::from([("uri", Value::from(file.name.replace('\\', "/")))]));
        if let Some((start, end)) = finding.span {
            let region = Value::from([
                ("startLine", Value::from(i64::from(start.line))),
                ("startColumn", Value::from(i64::from(start.column))),
                ("endLine", Value::from(i64::from(end.line))),
                ("endColumn", Value::from(i64::from(end.column))),
            ]);
            place.insert("region", region);
        }
        let location = Value::from([("physicalLocation", Value::object(place))]);
        result.insert("locations", Value::array(vec![location]));
    }
    Value::object(result)
}
