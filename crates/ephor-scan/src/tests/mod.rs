mod behaviour;
mod cel;
mod harness;
mod model;
