//! The checks of the standards.
//!
//! Each check is a function that notes what it does not like about a Pod; [`CHECKS`] lists them in the order in
//! which messages report them.

mod host;
mod privileges;
mod profiles;
mod table;
mod user;
mod volumes;

pub(super) use profiles::APPARMOR_ANNOTATION;
pub(super) use table::{CHECKS, Check};
pub(super) use volumes::RESTRICTED_VOLUMES;
