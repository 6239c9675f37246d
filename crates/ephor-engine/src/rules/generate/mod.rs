//! Generate rules: the objects that should exist for a trigger.

mod labels;
mod run;

pub(crate) use run::Run;
