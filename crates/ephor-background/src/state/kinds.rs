//! The kinds to watch.

use std::collections::BTreeMap;

use ephor_expr::Str;
use ephor_runtime::kinds::{GroupKind, is_for_any_kind, only_version, trigger_kinds};

use super::memory::State;
use crate::index::Seen;
use crate::plan::ObjectId;

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
    /// Begins to follow the downstreams of a kind, of which there are some.
    pub fn learn(&mut self, api_version: &str, kind: &str) {
        self.learned.insert(GroupKind::new(api_version, kind), api_version.into());
        self.follow();
    }

    /// Begins to follow the kind of an object that is to be looked after, where the rules do not say it beforehand.
    pub fn look_after(&mut self, api_version: &str, id: &ObjectId) {
        if !self.followed.contains_key(&id.group_kind()) {
            self.learn(api_version, &id.kind);
        }
    }

    /// The kinds to follow.
    pub fn watches(&mut self) -> BTreeMap<GroupKind, Watch> {
        self.follow();
        self.followed.clone()
    }

    /// Whether a watcher tells of an object, so that it will also tell when the object is gone.
    pub(super) fn is_followed(&self, seen: &Seen) -> bool {
        let watch = self.followed.get(&seen.id.group_kind());
        watch.is_some_and(|watch| watch.wide || seen.downstream.is_some())
    }

    /// Forgets a kind that is not watched any more.
    pub fn forget_kind(&mut self, kind: &GroupKind) {
        self.index.forget(kind);
        self.ownership.forget_kind(kind);
    }

    /// Finds out which kinds are to be followed now.
    pub(super) fn follow(&mut self) {
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
        for (kind, api_version) in self.dependencies.kinds() {
            add(api_version, &kind.kind, true);
        }
        for (kind, api_version) in &self.learned {
            add(api_version, &kind.kind, false);
        }
        // What a rule made is looked after also when no rule makes such things any more.
        let left = self.followed.iter().filter(|(kind, _)| self.index.has_downstreams(kind));
        for (_, watch) in left {
            add(&watch.api_version, &watch.kind, false);
        }
        let followed = std::mem::replace(&mut self.followed, watches);
        // A kind that no watcher has told of yet has no watcher to stop, so its objects go here.
        let left = followed.into_keys().filter(|kind| !self.followed.contains_key(kind) && !self.index.is_synced(kind));
        for kind in left.collect::<Vec<_>>() {
            self.forget_kind(&kind);
        }
    }

    /// The version of a kind that is written without, if only one group serves it.
    pub fn completed(&self, api_version: &Str, kind: &str) -> Option<Str> {
        if !api_version.is_empty() {
            return Some(api_version.clone());
        }
        only_version(kind, &self.discovery)
    }
}
