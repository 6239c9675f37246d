//! The controller on a cluster in memory, step by step.

mod actions;
mod adopted;
mod bed;
mod behaviour;
mod clone_source;
mod contest;
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
mod preview;
mod reads;
mod relabelled;
mod remembered;
mod requests;
mod settings;
mod statuses;
mod subresources;
mod tenancy;
