//! Rows as data: one list in JSON or YAML, whatever the number of suites.

use ephor_expr::yaml::to_yaml;
use ephor_expr::{Map, Value};

use super::{Style, result};
use crate::output::plain;
use crate::testing::SuiteReport;

/// The rows as a JSON array.
pub fn json(reports: &[SuiteReport], style: Style) -> String {
    format!("{}\n", plain::json(&rows(reports, style)))
}

/// The rows as a YAML list.
pub fn yaml(reports: &[SuiteReport], style: Style) -> String {
    to_yaml(&rows(reports, style))
}

fn rows(reports: &[SuiteReport], style: Style) -> Value {
    let all = reports.iter().flat_map(|report| report.rows.iter().map(move |row| (report, row)));
    let shown = all.filter(|(_, row)| style.shows(row)).enumerate();
    let records = shown.map(|(i, (report, row))| {
        let mut record = Map::new();
        record.insert("ID", i + 1);
        record.insert("TEST", report.path.display().to_string());
        record.insert("LINE", i64::from(row.at.line));
        record.insert("POLICY", row.policy.clone());
        record.insert("RULE", row.rule.clone());
        record.insert("RESOURCE", row.resource.as_str());
        record.insert("RESULT", result(row));
        record.insert("REASON", row.reason.to_string());
        if style.detailed || !row.passed {
            record.insert("Message", row.message.as_str());
        }
        if let Some(diff) = &row.diff {
            record.insert("Diff", diff.as_str());
        }
        Value::object(record)
    });
    Value::array(records.collect())
}
