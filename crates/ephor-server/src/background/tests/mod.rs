//! The controller on a cluster in memory, step by step.

mod actions;
mod bed;
mod behaviour;
mod contest;
mod counted;
mod door;
mod events;
mod exceptions;
mod fenced;
mod late;
mod model;
mod mutate;
mod preview;
mod requests;
