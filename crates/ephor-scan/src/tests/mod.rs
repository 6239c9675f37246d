mod behaviour;
mod harness;
mod model;
