//! Generate rules: the objects that should exist for a trigger.

mod labels;
pub(crate) mod policy;
mod run;

pub(crate) use run::Run;
