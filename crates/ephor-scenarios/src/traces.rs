//! What an engine left that may say why a scenario failed: requests that did not end well, and warnings.

use ephor_expr::Value;

use crate::api::Api;

/// How many lines of each are told.
const MOST_TOLD: usize = 4;

/// The lines; none if there is nothing to say.
pub fn traces(api: &Api) -> Vec<String> {
    let items = |path: &str| {
        let list = api.read(path).unwrap_or_default();
        list.get("items").and_then(Value::as_array).unwrap_or_default().to_vec()
    };
    let requests = items("/apis/kyverno.io/v2/updaterequests");
    let events = items("/api/v1/events");
    let mut lines: Vec<String> = requests.iter().filter_map(request).take(MOST_TOLD).collect();
    let mut warnings: Vec<String> = events.iter().filter_map(warning).collect();
    warnings.dedup();
    lines.extend(warnings.into_iter().rev().take(MOST_TOLD));
    lines
}

fn request(request: &Value) -> Option<String> {
    let state = request.str_at(&["status", "state"]).unwrap_or("without state");
    if state == "Completed" {
        return None;
    }
    let text = |keys: &[&str]| request.str_at(keys).unwrap_or_default().to_owned();
    let (policy, message) = (text(&["spec", "policy"]), text(&["status", "message"]));
    Some(format!("trace: UpdateRequest of {policy}: {state} {message}"))
}

fn warning(event: &Value) -> Option<String> {
    let engine = event.str_at(&["reportingComponent"]).unwrap_or_default().starts_with("kyverno");
    if event.str_at(&["type"]) != Some("Warning") || !engine {
        return None;
    }
    let text = |keys: &[&str]| event.str_at(keys).unwrap_or_default().to_owned();
    let (reason, message) = (text(&["reason"]), text(&["message"]));
    Some(format!("trace: Event {reason} of {}: {message}", text(&["involvedObject", "name"])))
}
