//! The kinds of Kubernetes itself.

use std::io::Read as _;
use std::sync::LazyLock;

use ephor_expr::{Map, Str, Value};
use flate2::read::GzDecoder;
use rustc_hash::FxHashMap;

use super::Schema;
use crate::resource::join_api_version;

/// The definition of quantities.
pub(super) const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
/// The definition of `metadata`.
pub(super) const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The schema of a text.
pub(super) static TEXT: LazyLock<Value> = LazyLock::new(|| Value::from([("type", Value::from("string"))]));

const BARE: &[u8] = include_bytes!("../../data/kubernetes.json.gz");
const DOCUMENTED: &[u8] = include_bytes!("../../data/kubernetes-documented.json.gz");

static DEFINITIONS: LazyLock<Value> = LazyLock::new(|| unpack(BARE));

/// `apiVersion` and `kind` to the name of the definition.
static NAMES: LazyLock<FxHashMap<(Str, Str), Str>> = LazyLock::new(|| {
    let mut names = FxHashMap::default();
    for (name, definition) in DEFINITIONS.as_object().into_iter().flat_map(Map::iter) {
        let kinds = definition.get("x-kubernetes-group-version-kind").and_then(Value::as_array).unwrap_or_default();
        // `DeleteOptions` and `WatchEvent` belong to all groups and are no kinds to be stored.
        if let [kind] = kinds {
            let part = |key| kind.str_at(&[key]).unwrap_or_default();
            names.insert((join_api_version(part("group"), part("version")), part("kind").into()), name.clone());
        }
    }
    names
});

/// The data are part of the program; a test reads them.
pub(super) fn unpack(data: &[u8]) -> Value {
    let mut text = String::new();
    let read = GzDecoder::new(data).read_to_string(&mut text);
    read.ok().and_then(|_| Value::from_json(&text).ok()).unwrap_or_default()
}

/// The definitions by name, without descriptions.
pub fn definitions() -> &'static Value {
    &DEFINITIONS
}

/// The definitions by name with their descriptions. Read anew at each call: they are large and rarely wanted.
pub fn documented_definitions() -> Value {
    unpack(DOCUMENTED)
}

/// The name of a kind's definition.
pub fn definition_name(api_version: &str, kind: &str) -> Option<&'static str> {
    NAMES.get(&(Str::new(api_version), Str::new(kind))).map(Str::as_str)
}

pub(super) fn find(api_version: &str, kind: &str) -> Option<Schema<'static>> {
    let definitions = definitions();
    Some(Schema::new(definitions.get(definition_name(api_version, kind)?)?, definitions))
}

/// The schema of `metadata`, which all kinds share.
pub(crate) fn metadata() -> Option<Schema<'static>> {
    let definitions = definitions();
    definitions.get(METADATA).map(|m| Schema::new(m, definitions))
}
