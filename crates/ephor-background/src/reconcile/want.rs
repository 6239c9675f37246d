//! Writes the objects that a rule renders, and removes those that it rendered before.

use std::collections::BTreeSet;

use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};
use ephor_runtime::content::set_meta;
use ephor_runtime::traits::Varying;
use ephor_runtime::update_request::ResourceSpec;

use super::context::ReconcileError;
use super::reconciler::PolicyReconciler;
use crate::index::Seen;
use crate::plan::claim::CLONE_SOURCE;
use crate::plan::{Cause, Claim, ObjectId, Owner, Wanted, plan_annotation};
use crate::queue::WorkKey;
use crate::rules::GenerateInfo;
use crate::state::Inputs;
use crate::trigger::TriggerRef;

impl PolicyReconciler<'_, '_> {
    /// Makes good what a rule renders; `unsourced` are objects that lack their source.
    pub(super) fn want(
        &mut self,
        rule: &GenerateInfo,
        own: &[ObjectId],
        trigger: &TriggerRef,
        (operation, subresource): &(Operation, Str),
        rendered: &[ephor_engine::outcome::Downstream],
        unsourced: &[ObjectId],
    ) -> Result<(), ReconcileError> {
        let WorkKey { policy, trigger: uid } = self.key.clone();
        let owner = Owner { policy, rule: rule.name.clone(), trigger: uid };
        let varying = if own.is_empty() || !rule.terms.synchronize { Varying::Nothing } else { rule.traits.varying };
        let mut objects = Vec::new();
        for downstream in rendered {
            objects.push((downstream, self.complete(&downstream.object)?));
        }
        let others = own.iter().any(|id| objects.iter().all(|(_, object)| ObjectId::of(object) != *id));
        if varying == Varying::Identity && others {
            // Rendered once: another rendering would be other objects.
            for id in self.hold(rule, own)? {
                self.record(&id);
            }
            return Ok(());
        }
        let mut first_failure = None;
        let mut wanted_ids = BTreeSet::new();
        let made_by = (operation.as_str(), &**subresource);
        for (downstream, object) in objects {
            let wanted = Wanted::new(object, downstream.form, owner.clone(), &rule.terms, &trigger.name, made_by);
            // Of elements or rules that render the same object, the first counts.
            let taken = self.rendered.get(&wanted.id).is_some_and(|by| *by != rule.name);
            if !wanted_ids.insert(wanted.id.clone()) || taken {
                continue;
            }
            if rule.terms.synchronize {
                self.rendered.insert(wanted.id.clone(), rule.name.clone());
            }
            if own.contains(&wanted.id) && self.waits(&wanted.id, downstream.source.as_ref()) {
                self.record(&wanted.id);
                continue;
            }
            if varying != Varying::Nothing && own.contains(&wanted.id) {
                self.update_annotation(rule, std::slice::from_ref(&wanted.id))?;
                self.record(&wanted.id);
                continue;
            }
            match self.ensure(rule, &wanted) {
                Ok(()) => {
                    self.record(&wanted.id);
                    if let Some(source) = downstream.source.as_ref().filter(|_| rule.terms.synchronize) {
                        self.mark_source(source);
                    }
                }
                Err(ReconcileError::LostLease) => return Err(ReconcileError::LostLease),
                Err(failure) => {
                    first_failure.get_or_insert(failure);
                }
            }
        }
        for id in own.iter().filter(|id| !wanted_ids.contains(*id)) {
            let cause = if unsourced.contains(id) { Cause::SourceGone } else { Cause::NoLongerRendered };
            if cause == Cause::SourceGone && self.waits(id, None) {
                self.rendered.insert(id.clone(), rule.name.clone());
                continue;
            }
            self.done.changes += self.context.remove(self.key, id, cause, Some(&rule.terms))?;
        }
        first_failure.map_or(Ok(()), Err)
    }

    /// Whether a copy stays as it is because the author named another source, and nothing has changed since.
    fn waits(&self, id: &ObjectId, source: Option<&Value>) -> bool {
        let mut state = self.context.lock();
        state.ownership.may_wait(id) && state.waits(id, source, &Inputs::of(source, &self.object))
    }

    /// Holds on to objects that the rule made, as they are, and tells which they are. Others only say that they are
    /// its.
    pub(super) fn hold(&mut self, rule: &GenerateInfo, ids: &[ObjectId]) -> Result<Vec<ObjectId>, ReconcileError> {
        let held: Vec<ObjectId> = {
            let state = self.context.lock();
            let annotated = |id: &ObjectId| {
                state.index.find(id).and_then(|s| s.downstream.as_ref()?.claim.annotation.as_ref()).is_some()
            };
            let rendered = |id: &ObjectId| state.ownership.renders(self.key, id);
            ids.iter().filter(|id| annotated(id) || rendered(id)).cloned().collect()
        };
        self.rendered.extend(held.iter().map(|id| (id.clone(), rule.name.clone())));
        self.update_annotation(rule, &held)?;
        Ok(held)
    }

    /// The object with what only discovery knows: its group, and whether it lives in a namespace.
    pub(super) fn complete(&self, rendered: &Value) -> Result<Value, ReconcileError> {
        let mut object = rendered.clone();
        let text = |key: &str| Str::new(rendered.str_at(&[key]).unwrap_or_default());
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let Some(completed) = self.context.lock().completed(&api_version, &kind) else {
            return Err(ReconcileError::Failed(format!(
                "kind {kind} is served by several groups or none: set `apiVersion`"
            )));
        };
        if api_version.is_empty()
            && let Some(members) = object.as_object_mut()
        {
            members.insert("apiVersion", completed.clone());
        }
        let resource = self.context.env.resource(&completed, &kind)?;
        let namespace = rendered.str_at(&["metadata", "namespace"]).unwrap_or_default();
        let own = self.key.policy.namespace.as_deref();
        if resource.namespaced && namespace.is_empty() {
            set_meta(&mut object, "namespace", Some(own.unwrap_or("default").into()));
        } else if !resource.namespaced {
            set_meta(&mut object, "namespace", None);
        }
        // The writer would refuse it, too; but what a Policy may not write it must not be thought to render, either.
        self.context.env.writer(&self.key.policy).may_write(&resource, &ObjectId::of(&object))?;
        Ok(object)
    }

    /// Tells objects that are not rendered again what their rule says of their fate, such as that they are on their
    /// own.
    pub(super) fn update_annotation(&mut self, rule: &GenerateInfo, own: &[ObjectId]) -> Result<(), ReconcileError> {
        for id in own {
            let (api_version, differs) = {
                let state = self.context.lock();
                let Some(seen) = state.index.find(id) else { continue };
                let annotation = seen.downstream.as_ref().and_then(|d| d.claim.annotation.as_ref());
                (
                    seen.api_version.clone(),
                    annotation
                        .is_some_and(|s| s.synchronize != rule.terms.synchronize || s.orphan != rule.terms.orphan),
                )
            };
            if !differs {
                continue;
            }
            let Some(live) = self.context.env.read(&api_version, id)? else { continue };
            // It may have changed hands.
            let own = |claim: &Claim| claim.owner.key() == *self.key && claim.owner.rule == rule.name;
            let Some(claim) = Claim::of(&live).filter(own) else { continue };
            let change = claim.annotation.and_then(|annotation| plan_annotation(&rule.terms, &annotation, &live));
            if let Some(change) = change {
                if let Some(stored) = self.context.env.writer(&self.key.policy).apply(&change)? {
                    self.context.lock().note(&stored, self.context.now);
                    self.context.tell(self.key, &rule.name, self.trigger.as_ref(), &change, stored);
                }
                self.done.changes += 1;
            }
        }
        Ok(())
    }

    /// Adds an object to what the request made.
    pub(super) fn record(&mut self, id: &ObjectId) {
        let spec = self.met.get(id).cloned().or_else(|| {
            let state = self.context.lock();
            state.index.find(id).map(spec_of)
        });
        self.done.generated.extend(spec);
    }

    /// Marks an object as one that others are copied from, as upstream does: its admission looks for the mark. What is
    /// lost without it is made good by watching, so that a failure is only logged.
    pub(super) fn mark_source(&self, source: &Value) {
        if source.at(&["metadata", "labels", CLONE_SOURCE]).is_some() {
            return;
        }
        match self.context.env.writer(&self.key.policy).label(source, CLONE_SOURCE, "") {
            Ok(stored) => self.context.lock().note(&stored, self.context.now),
            Err(error) => tracing::debug!(source = %ObjectId::of(source), %error, "the source could not be marked"),
        }
    }
}

fn spec_of(seen: &Seen) -> ResourceSpec {
    ResourceSpec {
        api_version: seen.api_version.clone(),
        kind: seen.id.kind.clone(),
        namespace: seen.id.namespace.clone(),
        name: seen.id.name.clone(),
        uid: seen.uid.clone(),
    }
}
