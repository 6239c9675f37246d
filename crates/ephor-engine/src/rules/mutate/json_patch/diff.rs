//! Patches from differences.

use ephor_expr::{Str, Value};

use super::operation::PatchOp;
use super::pointer::Pointer;
use crate::rules::mutate::limits::MAX_DEPTH;

/// The operations (`add`, `remove`, `replace`) that make `new` of `old`, members in key order. Equal parts are left
/// alone. Of two lists what they have in common at the start and at the end stays; between, items are compared one by
/// one, and what one list has more is added or removed.
pub fn json_patch_between(old: &Value, new: &Value) -> Vec<PatchOp> {
    let mut differ = Differ { steps: Vec::new(), ops: Vec::new() };
    differ.value(old, new);
    differ.ops
}

struct Differ {
    steps: Vec<Str>,
    ops: Vec<PatchOp>,
}

impl Differ {
    fn at(&mut self, step: Str, change: impl FnOnce(&mut Self)) {
        self.steps.push(step);
        change(self);
        self.steps.pop();
    }

    fn add(&mut self, value: &Value) {
        self.ops.push(PatchOp::Add { path: Pointer::from_steps(&self.steps), value: value.clone() });
    }

    fn remove(&mut self) {
        self.ops.push(PatchOp::Remove { path: Pointer::from_steps(&self.steps) });
    }

    fn value(&mut self, old: &Value, new: &Value) {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(old), Value::Object(new)) if self.steps.len() < MAX_DEPTH => {
                for (key, old) in old.iter() {
                    self.at(key.clone(), |differ| match new.get(key) {
                        Some(new) => differ.value(old, new),
                        None => differ.remove(),
                    });
                }
                for (key, new) in new.iter().filter(|(key, _)| !old.contains_key(key)) {
                    self.at(key.clone(), |differ| differ.add(new));
                }
            }
            (Value::Array(old), Value::Array(new)) if self.steps.len() < MAX_DEPTH => self.list(old, new),
            _ => self.ops.push(PatchOp::Replace { path: Pointer::from_steps(&self.steps), value: new.clone() }),
        }
    }

    fn list(&mut self, old: &[Value], new: &[Value]) {
        let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let (old, new) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
        let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        let old = old.get(..old.len() - end).unwrap_or_default();
        let new = new.get(..new.len() - end).unwrap_or_default();
        let index = |i: usize| Str::from((start + i).to_string());
        for (i, (old, new)) in old.iter().zip(new).enumerate() {
            self.at(index(i), |differ| differ.value(old, new));
        }
        for i in (new.len()..old.len()).rev() {
            self.at(index(i), Differ::remove);
        }
        for (i, item) in new.iter().enumerate().skip(old.len()) {
            self.at(index(i), |differ| differ.add(item));
        }
    }
}
