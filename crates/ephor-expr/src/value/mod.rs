//! The value tree.
//!
//! A [`Value`] is what JSON can say, with integers and floats kept apart. Strings, arrays and objects are
//! shared: a clone costs a reference count, so sub-trees move between resources, contexts and results
//! without being copied. Objects are sorted by key, the order in which the reference prints them.

mod convert;
mod decode;
mod deep;
mod encode;
mod json;
mod list;
mod map;
mod path;
#[cfg(feature = "schema")]
mod schema;
mod tree;

pub use decode::{DecodeError, decode, decode_rest};
pub use encode::{EncodeError, encode};
pub use json::JsonError;
pub use list::List;
pub use map::Map;
pub use path::{Path, Segment};
pub use tree::{Str, Value};
