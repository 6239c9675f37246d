//! The defaults that a definition gives.

use ephor_expr::Value;

use super::Schema;

/// How deep defaults are looked for; a schema that contains itself ends somewhere.
const MAX_DEPTH: usize = 64;

/// Gives missing fields their default.
pub fn fill(schema: Schema<'_>, object: &mut Value) {
    fill_at(schema, object, MAX_DEPTH);
}

fn fill_at(schema: Schema<'_>, value: &mut Value, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if value.as_object().is_some() {
        for (key, field) in schema.fields() {
            let Some(default) = field.default_value() else { continue };
            let missing = match value.get(key) {
                None => true,
                Some(present) => present.is_null() && !field.is_nullable(),
            };
            if missing && let Some(members) = value.as_object_mut() {
                members.insert(key, default.clone());
            }
        }
        let Some(members) = value.as_object_mut() else { return };
        for (key, value) in members.iter_mut() {
            if let Some(member) = schema.member(key) {
                fill_at(member, value, depth);
            }
        }
    } else if let Some(items) = value.as_array_mut()
        && let Some(item) = schema.items()
    {
        for value in items {
            fill_at(item, value, depth);
        }
    }
}
