//! Runs chainsaw scenarios against a control plane and a policy engine.
//!
//! A scenario is a `chainsaw-test.yaml`: steps that write objects, check the results, and run scripts. The
//! ones that count are upstream's, beside the project; `cargo xtask scenarios` runs them.
//!
//! - [`cases`]: which scenarios there are, and why some are not run. [`scenario`]: their form. [`known`]: those that
//!   fail, with reasons.
//! - [`run`]: one scenario, operation by operation (`write`, `look`, `execute`). [`assertion`]: what a document must be
//!   like. [`expression`]: the expressions in both.
//! - [`api`]: the API server. [`stage`]: a control plane made ready. [`engine`]: the engine on it. [`sweep`]: what a
//!   scenario left goes. [`traces`]: what of it says why it failed.

pub mod api;
pub mod assertion;
pub mod cases;
pub mod engine;
mod execute;
pub mod expression;
pub mod known;
mod look;
pub mod run;
pub mod scenario;
pub mod stage;
pub mod sweep;
mod test_env;
pub mod traces;
mod write;
