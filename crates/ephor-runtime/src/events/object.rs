//! The document of an event, within the limits that the API server sets.

use ephor_expr::{Map, Str, Value};

use super::event::{Event, Reference};

/// The API version and kind of what is written.
pub(super) const API_VERSION: &str = "events.k8s.io/v1";
pub(super) const KIND: &str = "Event";

/// A note is at most so many bytes.
const MAX_NOTE: usize = 1024;
/// `reportingInstance` is at most so many bytes.
const MAX_INSTANCE: usize = 128;
/// A name is at most so many bytes.
const MAX_NAME: usize = 253;

/// Where an event is written: with its object, or in `default`.
pub(super) fn namespace(event: &Event) -> &str {
    if event.regarding.namespace.is_empty() { "default" } else { &event.regarding.namespace }
}

/// The document of an event that happened at `now`.
pub(super) fn document(event: &Event, host: &str, now: jiff::Timestamp) -> Value {
    let controller = event.component.as_str();
    let name = name(&event.regarding.name, now);
    let metadata = [("name", Value::from(name)), ("namespace", Value::from(namespace(event)))];
    let mut document = Map::from_iter([
        (Str::new_static("action"), Value::from(event.action.as_str())),
        (Str::new_static("apiVersion"), Value::from(API_VERSION)),
        (Str::new_static("eventTime"), Value::from(micro_time(now))),
        (Str::new_static("kind"), Value::from(KIND)),
        (Str::new_static("metadata"), Value::from(metadata)),
        (Str::new_static("note"), Value::from(cut(&event.note, MAX_NOTE, "..."))),
        (Str::new_static("reason"), Value::from(event.reason.as_str())),
        (Str::new_static("regarding"), reference(&event.regarding)),
        (Str::new_static("reportingController"), Value::from(controller)),
        (Str::new_static("reportingInstance"), Value::from(cut(&format!("{controller}-{host}"), MAX_INSTANCE, ""))),
        (Str::new_static("type"), Value::from(event.reason.kind())),
    ]);
    if let Some(related) = &event.related {
        document.insert("related", reference(related));
    }
    Value::object(document)
}

/// The patch that makes an event a series of `count`.
pub(super) fn series(count: i64, now: jiff::Timestamp) -> Value {
    let series = [("count", Value::from(count)), ("lastObservedTime", Value::from(micro_time(now)))];
    Value::from([("series", Value::from(series))])
}

fn reference(reference: &Reference) -> Value {
    let Reference { api_version, kind, namespace, name, uid } = reference;
    let members = [("apiVersion", api_version), ("kind", kind), ("name", name), ("namespace", namespace), ("uid", uid)];
    let given = members.into_iter().filter(|(_, text)| !text.is_empty());
    Value::object(given.map(|(key, text)| (Str::new_static(key), Value::from(text.clone()))).collect())
}

/// `<regarding>.<hex nanoseconds>`; what cannot stand in a name of events, such as the `:` of a role's, is replaced.
fn name(regarding: &str, now: jiff::Timestamp) -> String {
    let stamp = format!("{:x}", now.as_nanosecond());
    let fitting: String = regarding
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.') { c } else { '-' })
        .take(MAX_NAME - stamp.len() - 1)
        .collect();
    let fitting = fitting.trim_matches(['-', '.']);
    if fitting.is_empty() { format!("event.{stamp}") } else { format!("{fitting}.{stamp}") }
}

fn micro_time(now: jiff::Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// At most `limit` bytes, `mark` at the end of what was cut.
fn cut(text: &str, limit: usize, mark: &str) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit - mark.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{mark}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Action, Component, Reason};

    const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

    fn event(name: &str, note: &str) -> Event {
        let regarding = Reference { kind: "ClusterRole".into(), name: name.into(), ..Reference::default() };
        Event {
            regarding: regarding.clone(),
            related: Some(regarding),
            reason: Reason::Error,
            action: Action::None,
            component: Component::Generate,
            note: note.into(),
        }
    }

    #[test]
    fn an_event_is_what_the_api_takes() {
        insta::assert_snapshot!(document(&event("a:B", "why"), "host", NOW).to_json_pretty(1));
    }

    #[test]
    fn long_notes_are_cut_between_characters() {
        let text = "ä".repeat(600);
        let note = document(&event("a", &text), "host", NOW);
        let note = note.str_at(&["note"]).unwrap();
        assert_eq!((note.len(), note.ends_with("ä...")), (1023, true));
        assert_eq!(cut("short", 8, "..."), "short");
    }

    #[test]
    fn names_fit() {
        for (regarding, want) in
            [("pod-1", "pod-1.0"), ("system:node", "system-node.0"), ("", "event.0"), ("::", "event.0")]
        {
            assert_eq!(name(regarding, NOW), want);
        }
        assert_eq!(name(&"a".repeat(300), NOW).len(), MAX_NAME);
    }
}
