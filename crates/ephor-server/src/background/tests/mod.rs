//! The controller on a cluster in memory, step by step.

mod actions;
mod bed;
mod behaviour;
mod contest;
mod counted;
mod fenced;
mod model;
mod preview;
mod requests;
