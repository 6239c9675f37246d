//! The outside as one rule's evaluation sees it.

use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use ephor_expr::budget::Budget;
use ephor_expr::jmespath::{EvalError, Runtime};
use ephor_expr::scalar::go_regex::RegexCache;
use ephor_expr::{Str, Value};
use rustc_hash::FxHasher;

use crate::fetch::{Fact, Facts, Fetch, Merger};
use crate::gate::{self, AllowedFetch, Asker};
use crate::trace::Note;

/// Facts, time, seed and budget for one rule. Questions without an answer are collected in it.
#[derive(Debug)]
pub struct World<'e> {
    facts: &'e Facts,
    asker: Asker<'e>,
    now: jiff::Timestamp,
    seed: Seed<'e>,
    /// Where the random numbers stand, once one is drawn.
    drawn: Cell<Option<u64>>,
    budget: Budget,
    regexes: RegexCache,
    needs: RefCell<Vec<AllowedFetch>>,
    /// The steps so far, if the evaluation is traced.
    notes: Option<RefCell<Vec<Note>>>,
}

/// What a rule's random numbers follow from: the same rule draws the same ones, whatever runs beside it and however
/// often it starts over.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Seed<'e> {
    /// The key of the policy.
    pub policy: &'e str,
    /// The name of the rule; empty for a policy without rules.
    pub rule: &'e str,
    /// The seed of the review.
    pub review: u64,
}

impl Seed<'_> {
    fn state(self) -> u64 {
        let mut hasher = FxHasher::default();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// The answer to a fetch, as rules see it.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer<'e> {
    /// A fact.
    Known(&'e Fact),
    /// The policy may not ask.
    Refused(String),
    /// Not known yet; the question is noted.
    Pending,
}

impl<'e> World<'e> {
    /// The world of one rule, which spends `budget`.
    pub fn new(facts: &'e Facts, asker: Asker<'e>, now: jiff::Timestamp, seed: Seed<'e>, budget: Budget) -> Self {
        Self {
            facts,
            asker,
            now,
            seed,
            drawn: Cell::new(None),
            budget,
            regexes: RegexCache::default(),
            needs: RefCell::new(Vec::new()),
            notes: None,
        }
    }

    /// From now on keeps a note of every step.
    pub(crate) fn trace(&mut self) {
        self.notes = Some(RefCell::default());
    }

    /// Whether steps are noted.
    pub(crate) fn is_traced(&self) -> bool {
        self.notes.is_some()
    }

    /// Notes a step, if steps are wanted.
    pub(crate) fn note(&self, note: impl FnOnce() -> Note) {
        if let Some(notes) = &self.notes {
            notes.borrow_mut().push(note());
        }
    }

    /// The steps so far, taken out.
    pub(crate) fn take_notes(&self) -> Vec<Note> {
        self.notes.as_ref().map(RefCell::take).unwrap_or_default()
    }

    /// Asks for something on behalf of the policy.
    pub fn ask(&self, fetch: Fetch) -> Answer<'e> {
        match gate::allow(fetch, self.asker) {
            Err(refused) => Answer::Refused(refused.to_string()),
            Ok(allowed) => {
                if let Some(fact) = self.facts.get(allowed.fetch()) {
                    match self.foreign(allowed.fetch(), fact) {
                        Some(reason) => Answer::Refused(reason),
                        None => Answer::Known(fact),
                    }
                } else {
                    let mut needs = self.needs.borrow_mut();
                    if !needs.contains(&allowed) {
                        needs.push(allowed);
                    }
                    Answer::Pending
                }
            }
        }
    }

    /// Why a namespaced policy may not see an answer: an object in it lies outside the policy's namespace. The gate
    /// knows only which namespace was asked for, and a cluster-scoped kind has none.
    fn foreign(&self, fetch: &Fetch, fact: &Fact) -> Option<String> {
        let (own, Fact::Found(found)) = (self.asker.namespace?, fact) else { return None };
        let single = std::slice::from_ref(found);
        let objects = match fetch {
            Fetch::Object { .. } => single,
            Fetch::Objects { .. } | Fetch::Parameters { .. } => found.as_array().unwrap_or(single),
            _ => return None,
        };
        let object = objects.iter().find(|object| object.str_at(&["metadata", "namespace"]) != Some(own))?;
        let kind = object.str_at(&["kind"]).unwrap_or("object");
        // Of a list, even the names are not the policy's to know.
        let name = match fetch {
            Fetch::Object { name, .. } => format!(" `{name}`"),
            _ => String::new(),
        };
        Some(format!("{kind}{name} is not in namespace `{own}`, which is all that a Policy of it may read"))
    }

    /// What merges configurations by the schema of their kind; `None` where no schema is known.
    pub(crate) fn merger(&self) -> Option<&'e dyn Merger> {
        self.facts.merger()
    }

    /// What was asked and not known.
    pub fn into_needs(self) -> Vec<AllowedFetch> {
        self.needs.into_inner()
    }

    /// The namespace that bounds the policy.
    pub fn namespace(&self) -> Option<&'e str> {
        self.asker.namespace
    }
}

impl Runtime for World<'_> {
    fn now(&self) -> jiff::Timestamp {
        self.now
    }

    fn next_seed(&self) -> u64 {
        // SplitMix64: a fixed sequence from a fixed start.
        let last = self.drawn.get().unwrap_or_else(|| self.seed.state());
        let state = last.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.drawn.set(Some(state));
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, EvalError> {
        match self.ask(Fetch::Host { name: Str::new(host) }) {
            Answer::Pending => Err(EvalError::Pending),
            Answer::Known(Fact::Found(Value::Array(addresses))) => {
                Ok(addresses.iter().filter_map(|a| a.as_str()?.parse().ok()).collect())
            }
            Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason) | Fact::Unavailable(reason)) => {
                Err(EvalError::Other(format!("cannot look up host `{host}`: {reason}")))
            }
            Answer::Refused(reason) => Err(EvalError::Other(reason)),
            Answer::Known(Fact::Missing | Fact::Found(_)) => Err(EvalError::Other(format!("no such host `{host}`"))),
        }
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn regexes(&self) -> &RegexCache {
        &self.regexes
    }
}
