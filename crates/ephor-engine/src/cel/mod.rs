//! Bodies of admission policies in CEL: match conditions, variables, validations, audit annotations, mutations.
//!
//! A [`Body`] is compiled once, from `validate.cel` of a rule, from a policy of Kubernetes or from the match conditions
//! of a webhook. An [`Evaluator`] reads it over one request ([`Inputs`]) and one parameter object, and says what
//! Kubernetes would say, in its words and within its cost budgets. It asks for what the request does not hold (the
//! Namespace, permissions of the user, parameters) through the gate, as all rules do: a question without an answer is
//! [`Stop::Pending`].

mod body;
mod evaluate;
mod inputs;
mod params;
mod patch;
mod questions;
mod reads;
mod template;
mod watch;

pub use body::{Body, Fault, Listed, PatchKind, PatchSource, Place, Source};
pub use evaluate::{Annotation, Applied, Evaluator, Matched, PatchValue, Ruling, Stop};
pub use inputs::Inputs;
pub(crate) use inputs::plural;
pub use params::{Params, ParamsError};
pub use questions::Functions;
pub use reads::Reads;
