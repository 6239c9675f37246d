//! The kinds that must be followed.

use std::collections::BTreeMap;

use ephor_expr::Str;

use super::memory::State;
use crate::background::index::GroupKind;
use crate::background::rules::{is_for_any_kind, only_version, trigger_kinds};

/// A kind to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// The `apiVersion` to read it in.
    pub api_version: Str,
    /// The kind.
    pub kind: Str,
    /// Whether all objects matter; else those that say they are downstreams.
    pub wide: bool,
}

impl State {
    /// Begins to follow a kind that turned up.
    pub fn learn(&mut self, api_version: &str, kind: &str, wide: bool) {
        let watch = Watch { api_version: api_version.into(), kind: kind.into(), wide };
        let known = self.learned.entry(GroupKind::new(api_version, kind)).or_insert_with(|| watch);
        known.wide |= wide;
    }

    /// The kinds to follow.
    pub fn watches(&self) -> BTreeMap<GroupKind, Watch> {
        let mut watches = BTreeMap::new();
        let mut add = |api_version: &Str, kind: &Str, wide: bool| {
            let watch = Watch { api_version: api_version.clone(), kind: kind.clone(), wide };
            watches.entry(GroupKind::new(api_version, kind)).or_insert_with(|| watch).wide |= wide;
        };
        for info in self.infos.values() {
            for rule in info.generate.iter().filter(|rule| rule.terms.synchronize) {
                let kinds = rule.kinds.as_deref().filter(|kinds| !is_for_any_kind(Some(kinds)));
                for (api_version, kind) in kinds.map(|k| trigger_kinds(Some(k), &self.discovery)).unwrap_or_default() {
                    add(&api_version, &kind, true);
                }
                for (api_version, kind) in &rule.downstream_kinds {
                    if let Some(api_version) = self.completed(api_version, kind) {
                        add(&api_version, kind, rule.copies);
                    }
                }
            }
        }
        if !self.infos.is_empty() {
            // Rules select by their labels, and requests end with them.
            add(&Str::new_static("v1"), &Str::new_static("Namespace"), true);
        }
        for watch in self.learned.values() {
            add(&watch.api_version, &watch.kind, watch.wide);
        }
        watches
    }

    /// The version of a kind that is written without, if only one group serves it.
    pub fn completed(&self, api_version: &Str, kind: &str) -> Option<Str> {
        if !api_version.is_empty() {
            return Some(api_version.clone());
        }
        only_version(kind, &self.discovery)
    }
}
