//! The controller on a cluster in memory, step by step.

mod actions;
mod adopted;
mod bed;
mod behaviour;
mod clone_source;
mod counted;
mod door;
mod entries;
mod events;
mod exceptions;
mod fenced;
mod filters;
mod kept;
mod late;
mod model;
mod mutate;
mod namespace_labels;
mod preview;
mod reads;
mod remembered;
mod requests;
mod settings;
mod statuses;
mod subresources;
mod tenancy;
mod write_limit;
