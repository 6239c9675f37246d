mod behaviour;
mod harness;
mod lifetimes;
mod model;
