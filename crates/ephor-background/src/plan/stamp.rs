//! What Ephor notes on the objects it makes.
//!
//! Upstream's labels say which policy, rule and trigger an object belongs to, but anybody can copy them. The stamp is
//! one more annotation; it names the object it stands on, so that a copy under another name proves nothing, and it
//! carries what must be known once the policy is gone: how the object was made and whether it may be deleted. So a
//! controller that was down when a policy was deleted still knows what to do.

use ephor_engine::outcome::Form;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::content::{OWNERSHIP_ANNOTATION, hex, set_entry};

use super::identity::ObjectId;

/// The note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Where the content comes from.
    pub form: Form,
    /// Whether the rule synchronized when the object was last looked after.
    pub synchronize: bool,
    /// Whether the object outlives its policy.
    pub orphan: bool,
    /// Fingerprint of what the rule says about targets and sources; another one means that the author moved them.
    pub references: Str,
    /// What the trigger's request was; `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: Str,
    /// The subresource that the request was about; empty for the object itself.
    pub subresource: Str,
    /// The trigger's name, which no label can hold.
    pub trigger: Str,
    /// Whether the object was there before its rule wrote to it. Such an object is never deleted.
    pub adopted: bool,
}

impl Stamp {
    /// Whether an event made the object, and no trigger that is looked after: nothing but its rule lets it go.
    pub fn is_of_event(&self) -> bool {
        matches!(&*self.operation, "DELETE" | "CONNECT") || !self.subresource.is_empty()
    }

    /// Puts the note on an object, in place of one that is there.
    pub fn put(&self, object: &mut Value) {
        let text = self.text(&ObjectId::of(object));
        set_entry(object, "annotations", OWNERSHIP_ANNOTATION, Some(&text));
    }

    fn text(&self, id: &ObjectId) -> String {
        let form = match self.form {
            Form::Data => "data",
            Form::Clone => "clone",
            Form::CloneList => "cloneList",
        };
        let mut members = Map::new();
        if self.adopted {
            members.insert("adopted", true);
        }
        members.insert("form", form);
        members.insert("operation", self.operation.clone());
        if self.orphan {
            members.insert("orphan", true);
        }
        members.insert("references", self.references.clone());
        members.insert("self", bound(id));
        if !self.subresource.is_empty() {
            members.insert("subresource", self.subresource.clone());
        }
        if self.synchronize {
            members.insert("synchronize", true);
        }
        members.insert("trigger", self.trigger.clone());
        Value::object(members).to_json()
    }

    /// The note on an object, if it was written for that very object.
    pub fn on(object: &Value) -> Option<Self> {
        let text = object.str_at(&["metadata", "annotations", OWNERSHIP_ANNOTATION])?;
        let note = Value::from_json(text).ok()?;
        if note.str_at(&["self"])? != bound(&ObjectId::of(object)) {
            return None;
        }
        let text = |key: &str| Str::new(note.str_at(&[key]).unwrap_or_default());
        let flag = |key: &str| note.get(key).and_then(Value::as_bool).unwrap_or(false);
        Some(Self {
            form: match note.str_at(&["form"])? {
                "data" => Form::Data,
                "clone" => Form::Clone,
                "cloneList" => Form::CloneList,
                _ => return None,
            },
            synchronize: flag("synchronize"),
            orphan: flag("orphan"),
            references: text("references"),
            operation: text("operation"),
            subresource: text("subresource"),
            trigger: text("trigger"),
            adopted: flag("adopted"),
        })
    }
}

fn bound(id: &ObjectId) -> String {
    hex(format!("{}|{}|{}|{}", id.group, id.kind, id.namespace, id.name).as_bytes())
}
