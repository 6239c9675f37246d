//! `metadata.managedFields`: who wants what to be as it is.

use ephor_expr::{Str, Value};

use super::fields::FieldSet;
use crate::object;

/// How a manager writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// A field manager with its operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manager {
    pub(super) name: Str,
    pub(super) operation: Operation,
    pub(super) api_version: Str,
    pub(super) subresource: Str,
}

/// What one manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ownership {
    pub(super) manager: Manager,
    pub(super) time: Str,
    pub(super) fields: FieldSet,
}

/// So many managers that update are told apart; the oldest ones are put together.
const MAX_UPDATERS: usize = 10;

/// Reads the list of an object; `None` if it is none, or unreadable.
pub(super) fn read(object: &Value) -> Option<Vec<Ownership>> {
    let entries = object.at(&["metadata", "managedFields"])?.as_array()?;
    entries
        .iter()
        .map(|entry| {
            let text = |key: &str| Str::new(entry.str_at(&[key]).unwrap_or_default());
            let operation = match entry.str_at(&["operation"])? {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            let fields = match entry.get("fieldsV1") {
                Some(fields) => FieldSet::from_value(fields)?,
                None => FieldSet::default(),
            };
            let (name, api_version, subresource) = (text("manager"), text("apiVersion"), text("subresource"));
            let manager = Manager { name, operation, api_version, subresource };
            Some(Ownership { manager, time: text("time"), fields })
        })
        .collect()
}

/// Writes the list into an object.
pub(super) fn write(object: &mut Value, mut owners: Vec<Ownership>) {
    owners.retain(|owner| !owner.fields.is_empty());
    cap(&mut owners);
    // Those who apply first, then by time.
    owners.sort_by(|a, b| {
        let order = |o: &Ownership| (o.manager.operation != Operation::Apply, o.time.clone(), o.manager.name.clone());
        order(a).cmp(&order(b))
    });
    if owners.is_empty() {
        object::unset(object, "managedFields");
        return;
    }
    let entries: Vec<Value> = owners.into_iter().map(|owner| entry(&owner)).collect();
    object::set(object, "managedFields", entries);
}

fn entry(owner: &Ownership) -> Value {
    let mut members = ephor_expr::Map::from_iter([
        ("apiVersion".into(), Value::from(owner.manager.api_version.clone())),
        ("fieldsType".into(), Value::from("FieldsV1")),
        ("fieldsV1".into(), owner.fields.to_value()),
        ("manager".into(), Value::from(owner.manager.name.clone())),
        ("operation".into(), Value::from(owner.manager.operation.text())),
        ("time".into(), Value::from(owner.time.clone())),
    ]);
    if !owner.manager.subresource.is_empty() {
        members.insert("subresource", owner.manager.subresource.clone());
    }
    Value::object(members)
}

fn cap(owners: &mut Vec<Ownership>) {
    let updaters = |owners: &[Ownership]| owners.iter().filter(|o| o.manager.operation == Operation::Update).count();
    while updaters(owners) > MAX_UPDATERS {
        let oldest = owners
            .iter()
            .enumerate()
            .filter(|(_, o)| o.manager.operation == Operation::Update && o.manager.name != "ancient-changes")
            .min_by(|(_, a), (_, b)| a.time.cmp(&b.time))
            .map(|(place, _)| place);
        let Some(place) = oldest else { return };
        let old = owners.remove(place);
        match owners.iter_mut().find(|o| o.manager.name == "ancient-changes") {
            Some(ancient) => ancient.fields.add(&old.fields),
            None => {
                owners.push(Ownership { manager: Manager { name: "ancient-changes".into(), ..old.manager }, ..old });
            }
        }
    }
}
