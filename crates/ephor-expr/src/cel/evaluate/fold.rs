//! Folds: what macros over lists and maps become. Accumulators that only grow are changed in place.

use std::sync::Arc;

use super::super::error::EvalError;
use super::super::node::{Fold, Node};
use super::super::value::{self, Dict, List, Val};
use super::lookup::{go_type, show_key};
use super::{Eval, Evaluator, LIST_COST, Slot};

impl<'n, 'v> Evaluator<'n, '_, '_, 'v> {
    pub(super) fn fold(&mut self, fold: &'n Fold) -> Eval<Val<'v>> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        self.set(fold.accumulator, init);
        match &range {
            Val::List(List::Json(items)) => {
                for (i, item) in items.iter().enumerate() {
                    if !self.iterate(fold, Val::Int(i as i64), Val::from_json(item))? {
                        break;
                    }
                }
            }
            Val::List(List::Built(items)) => {
                for (i, item) in items.iter().enumerate() {
                    if !self.iterate(fold, Val::Int(i as i64), item.clone())? {
                        break;
                    }
                }
            }
            Val::List(List::Associative(list)) => {
                for (i, item) in list.items.iter().enumerate() {
                    if !self.iterate(fold, Val::Int(i as i64), item.clone())? {
                        break;
                    }
                }
            }
            Val::Map(map) => {
                for (key, value) in map.entries() {
                    if !self.iterate_map(fold, key, value)? {
                        break;
                    }
                }
            }
            other => return Err(EvalError::Other(format!("got '{}', expected iterable type", go_type(other)))),
        }
        self.eval(&fold.result)
    }

    fn iterate(&mut self, fold: &'n Fold, index: Val<'v>, item: Val<'v>) -> Eval<bool> {
        match fold.second {
            Some(second) => {
                self.set(fold.variable, Ok(index));
                self.set(second, Ok(item));
            }
            None => self.set(fold.variable, Ok(item)),
        }
        self.turn(fold)
    }

    fn iterate_map(&mut self, fold: &'n Fold, key: Val<'v>, value: Val<'v>) -> Eval<bool> {
        self.set(fold.variable, Ok(key));
        if let Some(second) = fold.second {
            self.set(second, Ok(value));
        }
        self.turn(fold)
    }

    /// One turn of a fold; false if the condition ends it.
    fn turn(&mut self, fold: &'n Fold) -> Eval<bool> {
        match self.eval(&fold.condition) {
            Ok(Val::Bool(false)) => return Ok(false),
            Err(error) if error.is_fatal() => return Err(error),
            _ => {}
        }
        let next = self.eval(&fold.step);
        if let Err(error) = &next
            && error.is_fatal()
        {
            return next.map(|_| false);
        }
        self.set(fold.accumulator, next);
        Ok(true)
    }

    pub(super) fn append(&mut self, slot: usize, item: &'n Node) -> Eval<Val<'v>> {
        self.charge(1)?;
        if self.is_head() && matches!(self.slots.get(slot), Some(Slot::Value(Err(_)))) {
            return self.take(slot);
        }
        let constant = matches!(item, Node::Const(_));
        let item = self.eval(item);
        if let Err(error) = &item
            && error.is_fatal()
        {
            return item;
        }
        self.charge(if constant { 1 } else { LIST_COST + 1 })?;
        let list = self.take(slot)?;
        let item = item?;
        self.world.budget.charge_bytes(16)?;
        match list {
            Val::List(List::Built(mut items)) => {
                Arc::make_mut(&mut items).push(item);
                Ok(Val::List(List::Built(items)))
            }
            Val::List(list) => Ok(Val::list(list.iter().chain([item]).collect())),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    pub(super) fn insert(&mut self, slot: usize, args: &'n [Node]) -> Eval<Val<'v>> {
        self.charge(1)?;
        let mut values = Vec::with_capacity(2);
        for node in args {
            values.push(self.eval(node)?);
        }
        self.charge(1)?;
        let Val::Map(Dict::Built(mut map)) = self.take(slot)? else { return Err(EvalError::NoSuchOverload) };
        let entries = match values.as_slice() {
            [key, value] => vec![(key.clone(), value.clone())],
            [Val::Map(more)] => more.entries().collect(),
            _ => return Err(EvalError::NoSuchOverload),
        };
        self.world.budget.charge_bytes(entries.len() * 32)?;
        for (key, value) in entries {
            let entry = value::Key::of(&key)?;
            let grown = Arc::make_mut(&mut map);
            if grown.insert(entry, value).is_some() {
                return Err(EvalError::Other(format!("insert failed: key {} already exists", show_key(&key))));
            }
        }
        Ok(Val::Map(Dict::Built(map)))
    }
}
