//! The bodies of rules: what each rule type does to one resource.
//!
//! - [`admission`]: what admission policies of Kubernetes have in common.
//! - [`anchor`]: the decorated keys that `validate` patterns and strategic merge patches share.
//! - [`references`]: `$(…)`, text of a pattern or patch that repeats other text of it.
//! - [`validate`]: verdicts on a resource.
//! - [`mutate`]: changes to a resource.
//! - `generate`: the objects that should exist for a trigger.
//! - [`delete`]: whether an object is to go.

pub mod admission;
pub mod anchor;
pub(crate) mod conditions;
pub(crate) mod cost;
pub mod delete;
pub(crate) mod generate;
pub(crate) mod judgement;
pub mod mutate;
pub mod references;
pub mod validate;
