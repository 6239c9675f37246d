//! Who owns which field: server-side apply, and what other writes mean for it.
//!
//! The rules are those of Kubernetes' structured merge: a manager that applies owns exactly what it applied last;
//! fields that it leaves out are removed unless they have another owner; it may not change fields of others, or forces
//! by force. Any other write takes what it changes. How far lists and maps are taken apart follows from the schema.

mod fields;
mod managers;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::BTreeSet;

use ephor_expr::{Map, Str, Value};

use self::fields::{FieldSet, member};
use self::managers::{Manager, Operation, Ownership};
pub(super) use self::walk::{Unkeyed, merge, names};
use self::walk::{compare, fields_of, without};
use crate::object;
use crate::schema::Schema;

/// `kubectl apply` without `--server-side` notes here what it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// On whose behalf something is written, and when.
pub(super) struct Writer<'w> {
    /// The field manager.
    pub(super) manager: &'w str,
    /// The API version of what is written.
    pub(super) api_version: &'w str,
    /// The subresource, or nothing.
    pub(super) subresource: &'w str,
    /// Now.
    pub(super) now: &'w str,
}

impl Writer<'_> {
    fn manager(&self, operation: Operation) -> Manager {
        Manager {
            name: self.manager.into(),
            operation,
            api_version: self.api_version.into(),
            subresource: self.subresource.into(),
        }
    }
}

/// Fields that belong to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Whose; of one that updates, with the API version.
    pub(super) owner: String,
    /// The fields: `.spec.replicas`.
    pub(super) fields: Vec<String>,
}

/// Whether an object says who owns it.
pub(super) fn is_tracked(object: &Value) -> bool {
    object.at(&["metadata", "managedFields"]).is_some()
}

/// The object without the server's own fields, which have no owner.
fn substance(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.remove("apiVersion");
        members.remove("kind");
    }
    for key in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "selfLink",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        object::unset(&mut object, key);
    }
    if object.get("metadata").and_then(Value::as_object).is_some_and(Map::is_empty)
        && let Some(members) = object.as_object_mut()
    {
        members.remove("metadata");
    }
    object
}

/// The fields below which nothing is owned because of the reset: of an object its status, of a status the rest.
fn within(part: &FieldSet, subresource: &str, keeps_status_apart: bool) -> FieldSet {
    if !keeps_status_apart {
        return part.clone();
    }
    let status = member("status");
    let mut only_status = FieldSet::default();
    if part.owns(&status) {
        only_status.own(status.clone());
    }
    if let Some(below) = part.below(&status) {
        only_status.put_below(status, below);
    }
    if subresource == "status" {
        return only_status;
    }
    let mut rest = part.clone();
    rest.subtract(&only_status);
    rest
}

/// Notes in `new` who owns what after a write that is no apply.
pub(super) fn record(
    schema: Option<Schema<'_>>,
    live: Option<&Value>,
    new: &mut Value,
    writer: &Writer<'_>,
    keeps_status_apart: bool,
) {
    let empty = Value::object(Map::new());
    // A client that sends one empty entry wants to begin anew; one that sends nothing usable knows nothing of this.
    let sent = managers::read(new);
    let reset = new
        .at(&["metadata", "managedFields"])
        .and_then(Value::as_array)
        .is_some_and(|entries| matches!(entries, [only] if only.as_object().is_some_and(Map::is_empty)));
    let mut owners = match sent {
        _ if reset => Vec::new(),
        Some(owners) if !owners.is_empty() => owners,
        _ => live.and_then(managers::read).unwrap_or_default(),
    };
    if !reset {
        let difference = compare(schema, &live.map_or_else(|| empty.clone(), substance), &substance(new));
        let changed = within(&difference.changed, writer.subresource, keeps_status_apart && live.is_some());
        let me = writer.manager(Operation::Update);
        for owner in &mut owners {
            let mine = owner.manager == me;
            owner.fields.subtract(&difference.removed);
            if !mine {
                owner.fields.subtract(&changed);
            }
        }
        if !changed.is_empty() {
            match owners.iter_mut().find(|owner| owner.manager == me) {
                Some(owner) => {
                    let before = owner.fields.clone();
                    owner.fields.add(&changed);
                    if owner.fields != before {
                        owner.time = writer.now.into();
                    }
                }
                None => owners.push(Ownership { manager: me, time: writer.now.into(), fields: changed }),
            }
        }
    }
    managers::write(new, owners);
}

/// What an object becomes when `config` is applied to it.
pub(super) fn apply(
    schema: Option<Schema<'_>>,
    live: Option<&Value>,
    config: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, Vec<Conflict>> {
    let me = writer.manager(Operation::Apply);
    let empty = Value::object(Map::new());
    let live_object = live.cloned().unwrap_or_else(|| empty.clone());
    let mut owners = live.and_then(managers::read).unwrap_or_default();
    if owners.is_empty() && live.is_some() {
        let manager = Manager { name: "before-first-apply".into(), ..writer.manager(Operation::Update) };
        let fields = fields_of(schema, &substance(&live_object));
        owners.push(Ownership { manager, time: writer.now.into(), fields });
    }
    let wanted = fields_of(schema, &substance(config));
    let last = owners.iter().position(|owner| owner.manager == me).map(|place| owners.remove(place));
    let mut merged = merge(schema, &live_object, config);

    // Fields that were applied before, are not applied now, and have no other owner.
    if let Some(last) = &last {
        let mut owned = wanted.clone();
        for owner in &owners {
            owned.add(&owner.fields);
        }
        let mut gone = last.fields.with_parents();
        gone.subtract(&owned.with_parents());
        merged = without(schema, &merged, &gone).into_owned();
    }

    let difference = compare(schema, &substance(&live_object), &substance(&merged));
    let mut conflicts = Vec::new();
    let own_before = applied_by_client(schema, &live_object, writer);
    for owner in &mut owners {
        let contested = owner.fields.common(&difference.changed);
        let mut foreign = contested.clone();
        foreign.subtract(&own_before);
        if force || foreign.is_empty() {
            owner.fields.subtract(&contested);
        } else {
            conflicts.push(Conflict { owner: described(&owner.manager), fields: foreign.paths() });
        }
        owner.fields.subtract(&difference.removed);
    }
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let time = last.filter(|last| last.fields == wanted).map_or_else(|| Str::new(writer.now), |last| last.time);
    owners.push(Ownership { manager: me, time, fields: wanted });
    note_last_applied(&live_object, config, writer, &mut merged);
    managers::write(&mut merged, owners);
    Ok(merged)
}

/// The fields that `kubectl apply` wrote last and that are still so: kubectl takes them over from itself without
/// force when it begins to apply on the server side.
fn applied_by_client(schema: Option<Schema<'_>>, live: &Value, writer: &Writer<'_>) -> FieldSet {
    let noted = live.at(&["metadata", "annotations", LAST_APPLIED]).and_then(Value::as_str);
    let Some(applied) = noted.filter(|_| writer.manager == "kubectl").and_then(|text| Value::from_json(text).ok())
    else {
        return FieldSet::default();
    };
    let (applied, live) = (substance(&applied), substance(live));
    let mut fields = fields_of(schema, &applied);
    let since = compare(schema, &applied, &live);
    fields.subtract(&since.changed);
    fields.subtract(&since.removed);
    fields
}

/// Keeps what `kubectl apply` noted true, for users who go from one kind of apply to the other and back.
fn note_last_applied(live: &Value, config: &Value, writer: &Writer<'_>, merged: &mut Value) {
    if writer.manager != "kubectl" || live.at(&["metadata", "annotations", LAST_APPLIED]).is_none() {
        return;
    }
    if let Some(annotations) =
        object::metadata_mut(merged).and_then(|m| m.get_mut("annotations")).and_then(Value::as_object_mut)
    {
        annotations.insert(LAST_APPLIED, config.to_json());
    }
}

fn described(manager: &Manager) -> String {
    let subresource = if manager.subresource.is_empty() {
        String::new()
    } else {
        format!(" with subresource {:?}", manager.subresource)
    };
    let version = match manager.operation {
        Operation::Apply => String::new(),
        Operation::Update => format!(" using {}", manager.api_version),
    };
    format!("{:?}{subresource}{version}", manager.name)
}

/// The sentence for conflicts.
pub(super) fn conflict_message(conflicts: &[Conflict]) -> String {
    let count: usize = conflicts.iter().map(|c| c.fields.len()).sum();
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    let mut parts: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for conflict in conflicts {
        if !seen.insert(&conflict.owner) {
            continue;
        }
        let fields: Vec<&str> = conflict.fields.iter().map(String::as_str).collect();
        parts.push(match fields.as_slice() {
            [one] => format!("conflict with {}: {one}", conflict.owner),
            more => format!("conflicts with {}:\n- {}", conflict.owner, more.join("\n- ")),
        });
    }
    format!("Apply failed with {count} conflict{}: {}", plural(count), parts.join("\n"))
}
