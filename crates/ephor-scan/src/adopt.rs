//! Results that other roles leave as `EphemeralReport`s: what only a request knew, and what background work did.
//!
//! An `EphemeralReport` names an object in its own namespace, and results of rules that exist. An account that may
//! create one in a namespace can add no other results: those of scanned rules, other objects or unknown rules are
//! dropped.
//!
//! Where reports are stored, the results go into them and the `EphemeralReport` is deleted. Where reports are in
//! memory, each replica needs it, also one that starts later: it stays, and [`crate::prune`] deletes it in time.

use std::collections::BTreeMap;
use std::sync::Arc;

use ephor_cluster::{ErrorKind, object};
use ephor_expr::{Map, Str, Value};
use ephor_reports::merge::{Rule, Stored};
use ephor_reports::report::results;
use ephor_reports::{Scope, ephemeral as ephemeral_report};
use ephor_runtime::queue::{Moment, Settled};

use crate::controller::{Controller, Storage, failed, timestamp};
use crate::judge::text;
use crate::requests::created;
use crate::settle::Failure;

/// How long an object that is not there yet is waited for, and how often it is looked for.
const ORPHANED_AFTER: Moment = 120_000;
const POLL_INTERVAL: Moment = 5_000;

impl Controller {
    /// Takes over the results of an `EphemeralReport`.
    pub(crate) fn adopt(&self, key: &str, now: Moment) -> Settled {
        let Some(ephemeral) = self.lock().ephemeral(key) else { return Settled::Done };
        let adopted = match self.env().options.storage {
            Storage::Cluster => self.try_adopt(&ephemeral, now),
            Storage::Memory => self.try_keep(key, &ephemeral, now),
        };
        match adopted {
            Ok(Settled::Done) => {
                self.lock().adopted(key);
                Settled::Done
            }
            Ok(settled) => settled,
            Err(failure) => failed(&failure, key),
        }
    }

    fn try_adopt(&self, ephemeral: &Value, now: Moment) -> Result<Settled, Failure> {
        let cluster = &self.env().cluster;
        let own = cluster
            .resolve(ephemeral_report::API_VERSION, ephemeral_report::kind(!text(ephemeral, "namespace").is_empty()))?;
        let Some(scope) = self.subject(ephemeral)? else {
            if !is_orphaned(ephemeral, now) {
                return Ok(Settled::Later(POLL_INTERVAL));
            }
            self.remove(&own, ephemeral)?;
            return Ok(Settled::Done);
        };
        let policies = Arc::clone(&self.lock().policies);
        let fresh = ephemeral.get("spec").map(results).unwrap_or_default().iter();
        let fresh: Vec<Value> =
            fresh.filter(|result| policies.fate(&Rule::of(result)) == Stored::Stands).cloned().collect();
        if !fresh.is_empty() {
            self.write(&scope, &fresh, timestamp(now), |rule| match policies.fate(&rule) {
                Stored::Gone => Stored::Gone,
                Stored::Replaced | Stored::Stands => Stored::Stands,
            })?;
        }
        self.remove(&own, ephemeral)?;
        Ok(Settled::Done)
    }

    /// Takes the results of an `EphemeralReport` that stays in the cluster.
    fn try_keep(&self, key: &str, ephemeral: &Value, now: Moment) -> Result<Settled, Failure> {
        let Some(scope) = self.subject(ephemeral)? else {
            return Ok(if is_orphaned(ephemeral, now) { Settled::Done } else { Settled::Later(POLL_INTERVAL) });
        };
        let uid = scope.uid.clone();
        {
            let mut state = self.lock();
            // It was deleted while its object was looked for.
            if state.ephemeral(key).is_none() {
                return Ok(Settled::Done);
            }
            state.requests.insert(&key.into(), ephemeral, scope);
        }
        self.show_requests(&uid, now)
    }

    /// Makes the report about an object show the results of its `EphemeralReport`s, and no results of others.
    pub(crate) fn show_requests(&self, uid: &Str, now: Moment) -> Result<Settled, Failure> {
        let (found, policies) = {
            let state = self.lock();
            (state.requests.of(uid), Arc::clone(&state.policies))
        };
        let Some((scope, mut found)) = found else { return Ok(Settled::Done) };
        found.retain(|result| policies.fate(&Rule::of(result)) == Stored::Stands);
        self.write(&scope, &found, timestamp(now), |rule| match policies.fate(&rule) {
            Stored::Replaced => Stored::Stands,
            Stored::Gone | Stored::Stands => Stored::Gone,
        })?;
        self.lock().requests.forget_empty(uid);
        Ok(Settled::Done)
    }

    /// The object that an `EphemeralReport` is about, if it is there.
    fn subject(&self, ephemeral: &Value) -> Result<Option<Scope>, Failure> {
        let labels = labels(ephemeral);
        let part = |key: &str| labels.get(key).copied().unwrap_or_default();
        let api_version = ephor_cluster::resource::join_api_version(part("group"), part("version"));
        let annotation = |key: &str| ephemeral.str_at(&["metadata", "annotations", key]).unwrap_or_default();
        let (name, namespace) = (annotation("audit.kyverno.io/resource.name"), object::namespace(ephemeral));
        let kind = match self.env().cluster.resolve(&api_version, part("kind")) {
            Ok(kind) if kind.namespaced != namespace.is_empty() => kind,
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match self.env().cluster.get(&kind, kind.namespaced.then_some(namespace), name) {
            Ok(object) => {
                let scope = Scope::of(&object);
                Ok(Some(scope).filter(|scope| part("uid").is_empty() || scope.uid == part("uid")))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the object of an `EphemeralReport` has been waited for long enough.
fn is_orphaned(ephemeral: &Value, now: Moment) -> bool {
    created(ephemeral).is_none_or(|at| now.saturating_sub(at.as_millisecond().max(0).unsigned_abs()) >= ORPHANED_AFTER)
}

/// What the labels `audit.kyverno.io/resource.…` say.
fn labels(ephemeral: &Value) -> BTreeMap<&str, &str> {
    let labels = ephemeral.at(&["metadata", "labels"]).and_then(Value::as_object);
    let labels = labels.into_iter().flat_map(Map::iter);
    labels.filter_map(|(key, value)| Some((key.strip_prefix("audit.kyverno.io/resource.")?, value.as_str()?))).collect()
}

/// The name of an `EphemeralReport` as logs say it.
pub(crate) fn shown(key: &str) -> Str {
    key.trim_start_matches('/').into()
}
