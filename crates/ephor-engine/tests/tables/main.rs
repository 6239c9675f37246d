//! Tables of observed behaviour, row by row through the whole engine: policy text, program, set, evaluation, outcome.

#[path = "../support/mod.rs"]
mod support;

mod actions;
mod blocks;
mod bounds;
mod cel_bounds;
mod check;
mod context;
mod deleting_policies;
mod generate;
mod generating_policies;
mod injection;
mod manifests;
mod properties;
mod selection;
mod substitution;
mod work;
