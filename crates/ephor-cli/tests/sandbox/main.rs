//! `ephor sandbox` as others see it: kubectl, a controller that knows nothing of Ephor, and itself after a restart.

mod controller;
mod files;
mod hostile;
mod kubectl;
mod process;
mod state;
