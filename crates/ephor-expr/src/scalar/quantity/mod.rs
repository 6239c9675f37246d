//! Kubernetes quantities (`500m`, `1.5Gi`, `2e3`): reading, exact arithmetic, canonical printing.
//!
//! - `parse`: text to [`Quantity`].
//! - `arithmetic`: what `add()`, `subtract()`, `multiply()`, `divide()` and `modulo()` do with quantities.
//! - `print`: the canonical form.
//!
//! Semantics are those of `k8s.io/apimachinery/pkg/api/resource`, with a bound: 37 significant digits and exponents
//! up to a million, where upstream goes on until memory ends.

mod arithmetic;
mod parse;
mod print;
#[cfg(test)]
mod tests;
mod value;

pub use arithmetic::ModuloError;
pub use parse::ParseQuantityError;
pub use value::{Format, Quantity};
