//! `ephor sandbox` as others see it: kubectl, a controller that knows nothing of Ephor, itself after a restart,
//! and the owner of a namespace who tries to reach beyond it.

mod admission;
mod controller;
mod files;
mod hostile;
mod kubectl;
mod process;
mod rules;
mod state;
mod tenancy;
