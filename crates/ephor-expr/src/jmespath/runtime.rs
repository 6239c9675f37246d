//! What an evaluation needs from outside.

use std::cell::Cell;
use std::net::IpAddr;

use super::EvalError;
use crate::budget::Budget;
use crate::scalar::go_regex::RegexCache;
use crate::value::{Str, Value};

/// The document that an expression starts from. A scope need not be one value: identifiers at the start of an
/// expression ask for single fields, and only a bare `@` asks for the whole.
pub trait Root {
    /// The top-level member `name`; `Ok(None)` if there is none.
    fn field(&self, name: &str) -> Result<Option<Value>, EvalError>;

    /// Everything, as one value.
    fn whole(&self) -> Result<Value, EvalError>;

    /// Whether everything is null: multi-selects of null are null. Scopes of named things never are.
    fn is_null(&self) -> bool {
        false
    }

    /// The names of the top-level members, for messages.
    fn keys(&self) -> Vec<Str>;
}

impl Root for Value {
    fn field(&self, name: &str) -> Result<Option<Value>, EvalError> {
        match self {
            Value::Object(map) => Ok(map.get(name).cloned()),
            // A field of anything that is no object is null, not missing.
            _ => Ok(Some(Value::Null)),
        }
    }

    fn whole(&self) -> Result<Value, EvalError> {
        Ok(self.clone())
    }

    fn is_null(&self) -> bool {
        Value::is_null(self)
    }

    fn keys(&self) -> Vec<Str> {
        self.as_object().map(|m| m.keys().cloned().collect()).unwrap_or_default()
    }
}

/// Time, randomness, name lookups and limits: an expression has no other way to reach the world.
pub trait Runtime {
    /// The time of the evaluation; the same for the whole of it.
    fn now(&self) -> jiff::Timestamp;

    /// The next seed for `random()`; a fixed sequence for a fixed review.
    fn next_seed(&self) -> u64;

    /// The addresses of a host name. [`EvalError::Pending`] while it is being looked up.
    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, EvalError>;

    /// What this evaluation may spend.
    fn budget(&self) -> &Budget;

    /// The regular expressions that this evaluation has compiled.
    fn regexes(&self) -> &RegexCache;
}

/// A runtime of fixed answers, for expressions outside a review: a given time, seeds in sequence, the default
/// budget, and no name lookups.
#[derive(Debug, Default)]
pub struct FixedRuntime {
    now: jiff::Timestamp,
    seed: Cell<u64>,
    budget: Budget,
    regexes: RegexCache,
}

impl FixedRuntime {
    /// A runtime in which it is `now` and whose first seed is `seed`.
    pub fn new(now: jiff::Timestamp, seed: u64) -> Self {
        Self { now, seed: Cell::new(seed), ..Self::default() }
    }

    /// The same with another budget.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }
}

impl Runtime for FixedRuntime {
    fn now(&self) -> jiff::Timestamp {
        self.now
    }

    fn next_seed(&self) -> u64 {
        let seed = self.seed.get();
        self.seed.set(seed.wrapping_add(1));
        seed
    }

    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, EvalError> {
        Err(EvalError::Other(format!("host names are not looked up here: {host}")))
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn regexes(&self) -> &RegexCache {
        &self.regexes
    }
}
