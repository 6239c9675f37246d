//! `ephor plan`: runs the background controller on a cluster whose writes stay in memory, and returns the writes.
//!
//! The controller first reconciles the present cluster, as after a start, then the proposed changes: objects and
//! policies that are applied or deleted. The plan contains the writes of both.
//!
//! - `overlay`: the in-memory writes. `dry_run`: what the API server would store for a write.
//! - `admission_requests`: the `UpdateRequest`s that admission would write for the proposed changes.
//! - `run`: steps the controller until its queue is empty. `recording`: its notifications.

mod admission_requests;
mod dry_run;
mod overlay;
mod recording;
mod run;

use ephor_engine::matching::ResourceFilters;
use ephor_engine::redact::Redactor;
use ephor_expr::{Str, Value};
use ephor_runtime::policies::PolicyId;

use crate::plan::Change;

pub use run::preview;

/// What shall be looked into.
#[derive(Debug, Clone, Default)]
pub struct Proposal {
    /// Objects and policies that are created, or laid over those that exist.
    pub applied: Vec<Value>,
    /// Objects and policies that are deleted.
    pub deleted: Vec<Value>,
    /// Whether only policies that are proposed matter, or all.
    pub scope: Scope,
    /// Which namespaces there are.
    pub namespaces: Namespaces,
    /// Where the settings are.
    pub settings: Settings,
}

/// The `ConfigMap` of an installation. Where it is missing, what the chart ships holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its namespace, which is that of the installation.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
}

impl Default for Settings {
    fn default() -> Self {
        Self { namespace: Str::new_static("kyverno"), name: Str::new_static("kyverno") }
    }
}

/// Whose changes matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of all policies.
    #[default]
    All,
    /// Those of policies that are part of the proposal.
    Proposed,
}

/// Which namespaces there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// Those that exist: in others nothing can be created.
    #[default]
    Stored,
    /// All: files are taken out of their context.
    Assumed,
}

/// A change that would be made.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The policy that wants it.
    pub policy: PolicyId,
    /// The rule that wants it.
    pub rule: Str,
    /// What it is made for, in words; empty if that is not known.
    pub trigger: String,
    /// The change.
    pub change: Change,
}

/// Something that would fail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failed {
    /// The policy.
    pub policy: PolicyId,
    /// What it is about, in words.
    pub what: String,
    /// Why.
    pub why: String,
}

/// What would be done.
#[derive(Debug, Clone, Default)]
pub struct Preview {
    /// Changes, in the order in which they would be made.
    pub changes: Vec<Planned>,
    /// What would fail.
    pub failures: Vec<Failed>,
    /// Kinds that may not be read; what depends on them is not planned.
    pub unseen: Vec<String>,
    /// Proposed objects that no policy sees (`resourceFilters`).
    pub hidden: Vec<String>,
    /// The objects that no policy sees.
    pub filters: ResourceFilters,
    /// The values of Secrets that rules have read: they are not for people.
    pub secrets: Redactor,
}
