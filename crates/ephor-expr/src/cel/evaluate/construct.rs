//! Construction of lists, maps and objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::error::EvalError;
use super::super::library::operators::in_range;
use super::super::node::{Entry, Item, Object};
use super::super::types::Type;
use super::super::value::{self, Val};
use super::lookup::show_key;
use super::{Eval, Evaluator, LIST_COST, MAP_COST, OBJECT_COST};
use crate::Str;
use crate::scalar::go_time::Time;

impl<'n, 'v> Evaluator<'n, '_, '_, 'v> {
    pub(super) fn list(&mut self, items: &'n [Item]) -> Eval<Val<'v>> {
        let values = self.items(items);
        self.charge(LIST_COST)?;
        let values = values?;
        self.world.budget.charge_bytes(values.len() * 16)?;
        Ok(Val::list(values))
    }

    fn items(&mut self, items: &'n [Item]) -> Eval<Vec<Val<'v>>> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.eval(&item.value)?;
            if item.optional {
                match value {
                    Val::Optional(None) => {}
                    Val::Optional(Some(inner)) => values.push(inner.as_ref().clone()),
                    other => return Err(bad_optional(&other)),
                }
            } else {
                values.push(value);
            }
        }
        Ok(values)
    }

    pub(super) fn map(&mut self, entries: &'n [Entry]) -> Eval<Val<'v>> {
        let map = self.entries(entries);
        self.charge(MAP_COST)?;
        let map = map?;
        self.world.budget.charge_bytes(map.len() * 32)?;
        Ok(Val::map(map))
    }

    fn entries(&mut self, entries: &'n [Entry]) -> Eval<BTreeMap<value::Key, Val<'v>>> {
        let mut map = BTreeMap::new();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            let value = self.eval(&entry.value)?;
            let key = value::Key::of(&key)?;
            match value {
                Val::Optional(None) if entry.optional => {
                    map.remove(&key);
                }
                Val::Optional(Some(inner)) if entry.optional => {
                    map.insert(key, inner.as_ref().clone());
                }
                other if entry.optional => {
                    let message = format!(
                        "cannot initialize optional entry '{}' from non-optional value {}",
                        show_key(&key.to_val()),
                        show_key(&other)
                    );
                    return Err(EvalError::Other(message));
                }
                other => {
                    map.insert(key, other);
                }
            }
        }
        Ok(map)
    }

    pub(super) fn object(&mut self, object: &'n Object) -> Eval<Val<'v>> {
        let fields = self.fields(object);
        self.charge(OBJECT_COST)?;
        let fields = fields?;
        if matches!(object.kind, Type::Object(_)) {
            return Ok(Val::Object(Arc::new(value::Object { name: object.name.clone(), fields })));
        }
        well_known(object, &fields)
    }

    fn fields(&mut self, object: &'n Object) -> Eval<BTreeMap<Str, Val<'v>>> {
        let mut fields = BTreeMap::new();
        for (name, node, optional) in &object.fields {
            match self.eval(node)? {
                Val::Optional(None) if *optional => {}
                Val::Optional(Some(inner)) if *optional => {
                    fields.insert(name.clone(), inner.as_ref().clone());
                }
                value => {
                    fields.insert(name.clone(), value);
                }
            }
        }
        Ok(fields)
    }
}

fn bad_optional(value: &Val<'_>) -> EvalError {
    EvalError::Other(format!("cannot initialize optional list element from non-optional value {}", show_key(value)))
}

/// The value that a message of the language itself stands for.
fn well_known<'v>(object: &Object, fields: &BTreeMap<Str, Val<'v>>) -> Eval<Val<'v>> {
    let int = |name: &str| match fields.get(name) {
        Some(Val::Int(n)) => *n,
        _ => 0,
    };
    let first = || fields.values().next().cloned();
    let (seconds, nanos) = (int("seconds"), int("nanos"));
    Ok(match &object.kind {
        Type::Timestamp => {
            let time = Time::from_unix(seconds, u32::try_from(nanos).unwrap_or_default());
            if !in_range(&time) {
                return Err(EvalError::other("timestamp overflow"));
            }
            Val::Timestamp(time)
        }
        Type::Duration => Val::Duration(
            seconds.checked_mul(1_000_000_000).and_then(|n| n.checked_add(nanos)).ok_or(EvalError::IntOverflow)?,
        ),
        Type::Wrapper(of) => {
            let value = first().unwrap_or_else(|| zero(of));
            let narrow = match (object.name.as_str(), &value) {
                ("google.protobuf.Int32Value", Val::Int(n)) => i32::try_from(*n).is_ok(),
                ("google.protobuf.UInt32Value", Val::Uint(n)) => u32::try_from(*n).is_ok(),
                _ => true,
            };
            if !narrow {
                let message = format!(
                    "field type conversion error for {}.value value type: {} overflow",
                    object.name,
                    if matches!(value, Val::Int(_)) { "integer" } else { "unsigned integer" }
                );
                return Err(EvalError::Other(message));
            }
            match value {
                Val::Double(n) if object.name.ends_with("FloatValue") => Val::Double(f64::from(n as f32)),
                other => other,
            }
        }
        Type::List(_) => first().unwrap_or_else(|| Val::list(Vec::new())),
        Type::Map(_) => first().unwrap_or_else(|| Val::map(BTreeMap::new())),
        Type::Any => return Err(EvalError::other("unsupported conversion to ref.Val: (*dynamicpb.Message)")),
        _ => first().unwrap_or(Val::Null),
    })
}

fn zero<'v>(kind: &Type) -> Val<'v> {
    match kind {
        Type::Bool => Val::Bool(false),
        Type::Int => Val::Int(0),
        Type::Uint => Val::Uint(0),
        Type::Double => Val::Double(0.0),
        Type::Bytes => Val::Bytes(Arc::from([])),
        _ => Val::text(""),
    }
}
