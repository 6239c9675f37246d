//! Events, which two groups show in two forms.

use ephor_expr::{Map, Value};

use crate::resource::Resource;

/// The names of a field in the core group and in `events.k8s.io`.
const NAMES: [(&str, &str); 8] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

pub(super) fn is_event(resource: &Resource) -> bool {
    resource.plural == "events" && matches!(resource.group.as_str(), "" | "events.k8s.io")
}

/// Gives an event of the other group the form of this one.
pub(super) fn convert(event: &mut Value, to: &Resource) {
    let Some(members) = event.as_object_mut() else { return };
    let renamed = members.iter().map(|(key, value)| {
        let pair = NAMES.iter().find(|(core, other)| key == if to.group.is_empty() { other } else { core });
        let name = pair.map_or(key.clone(), |(core, other)| {
            ephor_expr::Str::new_static(if to.group.is_empty() { core } else { other })
        });
        (name, value.clone())
    });
    let renamed: Map = renamed.collect();
    *members = renamed;
}
