//! The walk through a pattern and a resource side by side (validate-mutate-autogen.md 1.1, 1.3, 1.4).

use std::sync::Arc;

use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::{Map, Value};

use super::compile::{Entry, ListNode, MapNode, Node, Rule};
use super::log::Log;
use super::messages;
use super::trail::Trail;
use super::wildcard_keys::Picks;

static NULL: Value = Value::Null;

/// Why a part of the pattern does not match.
pub(super) enum Stop<T> {
    /// A condition or global anchor does not hold: the part does not apply.
    Skip {
        /// The reason.
        text: T,
        /// Whether this comes from a global anchor with only plain maps between it and here, which makes it count
        /// as a direct skip of the map above (1.4).
        global: bool,
    },
    /// The resource is not as demanded.
    Mismatch {
        /// Where; empty for a list that is too short.
        path: T,
        /// The reason.
        text: T,
        /// Whether a negation anchor says so.
        negation: bool,
    },
    /// The work allowed is used up: nothing can be said of the part, nor of any part around it.
    Spent(BudgetError),
}

impl<T> From<BudgetError> for Stop<T> {
    fn from(error: BudgetError) -> Self {
        Stop::Spent(error)
    }
}

impl<T> Stop<T> {
    /// As the reason why an anchor does not hold; `reason` words it.
    fn unmet(self, global: bool, reason: impl FnOnce(T) -> T) -> Self {
        match self {
            Stop::Skip { text, .. } | Stop::Mismatch { text, .. } => Stop::Skip { text: reason(text), global },
            spent @ Stop::Spent(_) => spent,
        }
    }
}

/// One walk: the state that its parts share.
pub(super) struct Walk<'p, L> {
    picks: Picks<'p>,
    budget: &'p Budget,
    /// What the walk told.
    pub(super) log: L,
}

type Step<L> = Result<(), Stop<<L as Log>::Text>>;

impl<'p, L: Log> Walk<'p, L> {
    pub(super) fn new(picks: Picks<'p>, log: L, budget: &'p Budget) -> Self {
        Walk { picks, budget, log }
    }

    /// Matches `node` against `resource`, which stands at `at`. Recursion is as deep as the pattern, which
    /// compilation bounds.
    pub(super) fn node(&mut self, node: &Node, resource: &Value, at: &Trail<'_>) -> Step<L> {
        self.budget.charge_steps(1)?;
        match node {
            Node::Map(map) => match resource.as_object() {
                Some(members) => self.map(map, members, at),
                None => Err(self.mismatch(at, || messages::structure(resource, at))),
            },
            Node::Block(id) => match (resource.as_object(), self.picks.current(*id)) {
                (Some(members), Some(map)) => self.map(&Arc::clone(map), members, at),
                _ => Err(self.mismatch(at, || messages::structure(resource, at))),
            },
            Node::List(list) => self.list(list, resource, at),
            Node::Scalar(scalar) if scalar.accepts(resource, self.budget)? => Ok(()),
            Node::Scalar(scalar) => Err(self.mismatch(at, || messages::value(resource, scalar.source(), at))),
            Node::TooDeep => Err(self.mismatch(at, || messages::too_deep(at))),
        }
    }

    fn map(&mut self, map: &MapNode, resource: &Map, at: &Trail<'_>) -> Step<L> {
        for block in &map.blocks {
            self.picks.pick(block, resource, self.budget)?;
        }
        for entry in &map.anchored {
            if matches!(entry.rule, Rule::Condition(_) | Rule::Existence(_)) {
                self.log.anchor_key(&entry.key, || resource.contains_key(&entry.name));
            }
        }
        let (mut skips, mut applied, mut direct) = (Vec::new(), false, false);
        for entry in &map.anchored {
            match self.entry(entry, resource, at) {
                Ok(()) => applied = true,
                Err(Stop::Skip { text, global }) => {
                    direct |= global || matches!(entry.rule, Rule::Condition(_));
                    skips.push(text);
                }
                Err(spent @ Stop::Spent(_)) => return Err(spent),
                // A map that will be skipped has nothing more to demand.
                Err(Stop::Mismatch { .. }) if direct => {}
                Err(mismatch) => return Err(mismatch),
            }
        }
        if !skips.is_empty() && (direct || !applied) {
            return Err(Stop::Skip { text: self.log.joined(skips), global: false });
        }
        map.rest.iter().try_for_each(|entry| self.entry(entry, resource, at))
    }

    fn entry(&mut self, entry: &Entry, resource: &Map, above: &Trail<'_>) -> Step<L> {
        let found = resource.get(&entry.name);
        let at = &Trail::Key(above, &entry.name);
        match (&entry.rule, found) {
            (Rule::Plain(node), _) => self.node(node, found.unwrap_or(&NULL), at),
            (Rule::Present, Some(value)) if !value.is_null() => Ok(()),
            (Rule::Present, _) => Err(self.mismatch(above, || messages::not_found(above, &entry.name))),
            (Rule::Condition(_), None) => {
                Err(Stop::Skip { text: self.log.text(messages::condition_absent), global: false })
            }
            (Rule::Condition(node), Some(value)) => self
                .node(node, value, at)
                .map_err(|stop| stop.unmet(false, |text| self.log.prefixed(messages::CONDITION, text))),
            (Rule::Global(_) | Rule::Equality(_) | Rule::Existence(_) | Rule::Negation, None) => Ok(()),
            (Rule::Global(node), Some(value)) => self
                .node(node, value, at)
                .map_err(|stop| stop.unmet(true, |text| self.log.prefixed(messages::GLOBAL, text))),
            (Rule::Equality(node), Some(value)) => self.node(node, value, at),
            (Rule::Existence(wanted), Some(Value::Array(items))) => self.existence(wanted, items, at),
            (Rule::Existence(_), Some(other)) => Err(self.mismatch(at, || messages::existence_needs_list(other))),
            (Rule::Negation, Some(_)) => Err(Stop::Mismatch {
                path: self.log.text(|| at.to_string()),
                text: self.log.text(|| messages::negated(at)),
                negation: true,
            }),
        }
    }

    /// Each wanted item must match some item of the resource.
    fn existence(&mut self, wanted: &[Node], items: &[Value], at: &Trail<'_>) -> Step<L> {
        for node in wanted {
            let mut found = false;
            for (i, item) in items.iter().enumerate() {
                match self.node(node, item, &Trail::Index(at, i)) {
                    Ok(()) => {
                        found = true;
                        break;
                    }
                    Err(spent @ Stop::Spent(_)) => return Err(spent),
                    Err(_) => {}
                }
            }
            if !found {
                return Err(self.mismatch(at, || messages::no_such_item(at)));
            }
        }
        Ok(())
    }

    fn list(&mut self, list: &ListNode, resource: &Value, at: &Trail<'_>) -> Step<L> {
        let Some(items) = resource.as_array() else { return Err(self.mismatch(at, || messages::not_a_list(at))) };
        match list {
            ListNode::Empty => Err(self.mismatch(at, messages::empty_list)),
            ListNode::Scalars(scalar) if scalar.accepts(resource, self.budget)? => Ok(()),
            ListNode::Scalars(scalar) => Err(self.mismatch(at, || messages::value(resource, scalar.source(), at))),
            ListNode::Maps(node) => self.items(items.iter().map(|item| (&**node, item)), at),
            ListNode::Positional(nodes) if items.len() < nodes.len() => Err(Stop::Mismatch {
                path: self.log.text(String::new),
                text: self.log.text(|| messages::too_short(items.len(), nodes.len())),
                negation: false,
            }),
            ListNode::Positional(nodes) => self.items(nodes.iter().zip(items), at),
        }
    }

    /// Items that are skipped do not count, unless there is no other.
    fn items<'a>(&mut self, pairs: impl Iterator<Item = (&'a Node, &'a Value)>, at: &Trail<'_>) -> Step<L> {
        let (mut skips, mut applied) = (Vec::new(), false);
        for (i, (node, item)) in pairs.enumerate() {
            match self.node(node, item, &Trail::Index(at, i)) {
                Ok(()) => applied = true,
                Err(Stop::Skip { text, .. }) => skips.push(text),
                Err(mismatch) => return Err(mismatch),
            }
        }
        if applied || skips.is_empty() {
            return Ok(());
        }
        Err(Stop::Skip { text: self.log.joined(skips), global: false })
    }

    fn mismatch(&self, at: &Trail<'_>, text: impl FnOnce() -> String) -> Stop<L::Text> {
        let text = self.log.text(text);
        match self.budget.charge_bytes(L::length(&text)) {
            Ok(()) => Stop::Mismatch { path: self.log.text(|| at.to_string()), text, negation: false },
            Err(error) => Stop::Spent(error),
        }
    }
}
