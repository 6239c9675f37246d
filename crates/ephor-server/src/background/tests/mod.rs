//! The controller on a cluster in memory, step by step.

mod actions;
mod bed;
mod behaviour;
mod contest;
mod counted;
mod door;
mod events;
mod fenced;
mod model;
mod mutate;
mod preview;
mod remembered;
mod requests;
mod subresources;
