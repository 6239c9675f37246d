//! Bodies of `validate` rules.

pub mod admission;
pub mod cel;
pub mod manifests;
mod messages;
pub mod pattern;
pub mod pod_security;
pub mod policy;
mod run;

pub(crate) use run::{Run, pod_security_judgement};
