//! The Pod as the checks see it: a view that borrows from the resource.
//!
//! Every field a check reads is looked up and its type checked here, once; a field of a wrong type is an error of
//! the rule, not a Pod that passes. Null counts as missing, as for the API server.

mod reader;
mod view;

pub(super) use view::{Container, Group, Home, Pod, SeLinux};
