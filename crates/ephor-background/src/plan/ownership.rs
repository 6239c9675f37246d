//! The annotation that Ephor writes on objects it generates.
//!
//! Upstream's labels name the policy, rule and trigger of an object, but every user can copy labels. The annotation
//! also identifies its own object, so that a copy on another object proves nothing. It records how the object was made
//! and whether it may be deleted, because a controller that was down while a policy was deleted cannot read the policy.

use ephor_engine::outcome::Form;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::content::{OWNERSHIP_ANNOTATION, hex, set_entry};

use super::identity::ObjectId;

/// The decoded annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnershipAnnotation {
    /// Where the content comes from.
    pub form: Form,
    /// Whether the rule synchronized the object when it wrote it last.
    pub synchronize: bool,
    /// Whether the object outlives its policy.
    pub orphan: bool,
    /// Fingerprint of the rule's targets and sources. It differs once the author has changed them.
    pub references: Str,
    /// The operation of the request that triggered the rule: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: Str,
    /// The subresource that the request was about; empty for the object itself.
    pub subresource: Str,
    /// The trigger's name, which no label can hold.
    pub trigger: Str,
    /// Whether the object was there before its rule wrote to it. Such an object is never deleted.
    pub adopted: bool,
}

impl OwnershipAnnotation {
    /// Whether an event created the object (a deletion, a CONNECT or a subresource request). Only its rule removes such
    /// an object; its trigger is not observed.
    pub fn is_of_event(&self) -> bool {
        matches!(&*self.operation, "DELETE" | "CONNECT") || !self.subresource.is_empty()
    }

    /// Writes the annotation to an object and replaces an existing one.
    pub fn write_to(&self, object: &mut Value) {
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

    /// Reads the annotation of an object. Returns `None` if it was written for another object.
    pub fn read(object: &Value) -> Option<Self> {
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
