//! Files, and policies of a cluster, into what the engine takes.

mod context;
mod exceptions;
mod files;
mod lists;
mod objects;
mod policies;
mod resources;
mod stored;
mod strays;
mod typed;
mod userinfo;
mod values;

pub use context::{ContextFile, Images, read_context};
pub use exceptions::{LoadedExceptions, load_exceptions, pick_exceptions, pick_exceptions_in};
pub use files::{ReadError, STDIN, expand, is_manifest, read};
pub use lists::expand_lists;
pub use objects::{LoadedObject, read_objects};
pub use policies::{LoadedException, LoadedPolicies, LoadedPolicy, Refused, check_document, load_file, load_policies};
pub use resources::{ResourceText, normalise, read_resources};
pub use stored::load_stored;
pub use strays::{STRAY_EXCEPTION, strays, unknown_names};
pub use typed::{FREE, Shape, Typed, read_one, read_typed};
pub use userinfo::read_user;
pub use values::{
    ApiResource, LabelledNamespace, NamedValues, PolicyValues, Subresource, VALUES, Values, ValuesError, misspelt,
    parse_operation, read_values,
};
