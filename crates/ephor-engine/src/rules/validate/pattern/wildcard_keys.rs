//! Wildcards in the keys of `metadata.labels` and `metadata.annotations` (validate-mutate-autogen.md 1.6).
//!
//! When the walk enters a map whose resource has such a block, each wildcard key is replaced by a key of the
//! resource that fits: the first one in sorted order. Upstream changes the pattern in place, so that a key picked
//! for the first item of a list stays for the items after it; here the changed block lives in the walk.

use std::sync::Arc;

use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::{Map, Value};

use super::compile::{BlockRef, Entry, MapNode};

/// The blocks with wildcard keys of one pattern, as they stand in one walk.
pub(super) struct Picks<'p> {
    written: &'p [Arc<MapNode>],
    /// By block; empty until the first pick.
    changed: Vec<Option<Arc<MapNode>>>,
}

impl<'p> Picks<'p> {
    pub(super) fn new(written: &'p [Arc<MapNode>]) -> Self {
        Picks { written, changed: Vec::new() }
    }

    /// The block as it stands now.
    pub(super) fn current(&self, id: usize) -> Option<&Arc<MapNode>> {
        self.changed.get(id).and_then(Option::as_ref).or_else(|| self.written.get(id))
    }

    /// Replaces the wildcard keys of a block of `holder`'s metadata, as far as `holder` has keys that fit.
    pub(super) fn pick(&mut self, block: &BlockRef, holder: &Map, budget: &Budget) -> Result<(), BudgetError> {
        let Some(found) = holder.get("metadata").and_then(|m| m.get(block.tag)).and_then(Value::as_object) else {
            return Ok(());
        };
        let Some(now) = self.current(block.id) else { return Ok(()) };
        let Some(picked) = picked(now, found, budget)? else { return Ok(()) };
        if self.changed.is_empty() {
            self.changed.resize(self.written.len(), None);
        }
        if let Some(slot) = self.changed.get_mut(block.id) {
            *slot = Some(Arc::new(picked));
        }
        Ok(())
    }
}

/// The block with its wildcard keys replaced; `None` if nothing fits.
fn picked(block: &MapNode, resource: &Map, budget: &Budget) -> Result<Option<MapNode>, BudgetError> {
    let mut any = false;
    let mut entries: Vec<Entry> = Vec::with_capacity(block.anchored.len() + block.rest.len());
    for entry in block.anchored.iter().chain(&block.rest) {
        let mut fits = None;
        if let Some(wildcard) = &entry.wildcard {
            for key in resource.keys() {
                if wildcard.matches_within(key, budget)? {
                    fits = Some(key);
                    break;
                }
            }
        }
        any |= fits.is_some();
        entries.push(fits.map_or_else(|| entry.clone(), |key| entry.renamed(key)));
    }
    Ok(any.then(|| MapNode::arranged(entries, Vec::new())))
}
