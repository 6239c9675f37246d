//! Resources: one document after another, so that files of any size take little memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ephor_cluster::Discovery;
use ephor_expr::value::Path as FieldPath;
use ephor_expr::yaml::{DocumentStream, RawDocument};
use ephor_expr::{Str, Value};

use super::files::STDIN;

/// The text of one document and the file it comes from.
pub type ResourceText = RawDocument;

/// Opens a file, or standard input, as a stream of documents.
pub fn read_resources(path: &Path) -> io::Result<DocumentStream<Box<dyn Read + Send>>> {
    let reader: Box<dyn Read + Send> =
        if path.as_os_str() == STDIN { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    Ok(DocumentStream::new(reader))
}

/// Whether a kind of Kubernetes itself has no namespace.
fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    Discovery::kubernetes().find(api_version, kind).is_some_and(|resource| !resource.namespaced)
}

/// A resource as the API server would have it: null maps empty, and the namespace `default` where one is needed and
/// none is written. `cluster_scoped` knows the kinds of loaded CRDs.
pub fn normalise(mut object: Value, cluster_scoped: impl Fn(&str, &str) -> bool) -> Value {
    let kind = Str::new(object.str_at(&["kind"]).unwrap_or_default());
    let api_version = Str::new(object.str_at(&["apiVersion"]).unwrap_or_default());
    for keys in [&["metadata", "labels"][..], &["metadata", "annotations"], &["data"], &["stringData"]] {
        let path = FieldPath::root().keys(keys);
        if path.lookup(&object).is_some_and(Value::is_null)
            && let Some(place) = path.lookup_mut(&mut object)
        {
            *place = Value::object(ephor_expr::Map::new());
        }
    }
    let bare = object.str_at(&["metadata", "namespace"]).unwrap_or_default().is_empty();
    if bare
        && !is_cluster_scoped(&api_version, &kind)
        && !cluster_scoped(&api_version, &kind)
        && let Some(metadata) =
            object.as_object_mut().and_then(|o| o.get_mut("metadata")).and_then(Value::as_object_mut)
    {
        metadata.insert("namespace", "default");
    }
    object
}
