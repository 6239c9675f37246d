//! `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy` objects made from policies, which the API server enforces
//! by itself.
//!
//! A `ClusterPolicy` with one rule whose `validate.cel` says `generate: true` becomes a `ValidatingAdmissionPolicy` and
//! its binding, so that the rule holds while Ephor is down; so does a `ValidatingPolicy` that asks for them
//! (`translate_cel`), and a `MutatingPolicy` becomes a `MutatingAdmissionPolicy`. [`translate`] makes them, purely, and
//! refuses each policy that they cannot express exactly. [`AdmissionPolicyController`] is the leader's thread that
//! writes them and keeps them so; [`GeneratedBoard`](crate::generated::GeneratedBoard) tells the status of policies
//! what became of each.
//!
//! Ephor judges policies that validate itself as well: the API server asks its own policies first, and what they do not
//! cover (controllers of Pods, reports, Events) stays covered. A policy that mutates leaves the webhooks instead, since
//! a patch that is applied twice is another patch.

mod controller;
#[cfg(test)]
mod tests;
mod translate;
mod translate_cel;

pub use controller::{AdmissionPolicyController, AdmissionPolicySources, GeneratedKinds, is_generated};
pub use translate::{Objects, Skip, Surroundings, translate};
