//! JMESPath as `kyverno.io` policies mean it.
//!
//! A dialect of its own: a missing member of an object is an error that most operators swallow, there are about
//! forty extra functions, and a few constructs parse differently from the public specification.
//! An [`Expression`] is compiled once; evaluation reads shared values and returns shared values.

mod error;
pub mod functions;
mod runtime;

pub use error::{CompileError, EvalError};
pub use runtime::{Root, Runtime};
