//! Files of kind `Context`: objects and images that functions in CEL find offline.

use std::path::Path;
use std::sync::Arc;

use ephor_engine::fetch::{Fact, Fetch};
use ephor_expr::{Str, Value};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::typed::{FREE, Shape, read_one};
use crate::host::Source;
use crate::locate::Located;

const SPEC: Shape = Shape(&[("resources", &FREE), ("images", &FREE)]);
const CONTEXT: Shape = Shape(&[("apiVersion", &FREE), ("kind", &FREE), ("metadata", &FREE), ("spec", &SPEC)]);

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Document {
    #[serde(rename = "apiVersion")]
    _api_version: Str,
    #[serde(rename = "kind")]
    _kind: Str,
    #[serde(rename = "metadata")]
    _metadata: Option<Value>,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Spec {
    resources: Option<Vec<Value>>,
    images: Option<Vec<Value>>,
}

/// What a file of kind `Context` holds.
#[derive(Debug, Clone, Default)]
pub struct ContextFile {
    /// Objects of the cluster.
    pub resources: Vec<Value>,
    /// Data of images.
    pub images: Images,
}

/// Data of images, by the reference that names them.
#[derive(Debug, Clone, Default)]
pub struct Images(Arc<FxHashMap<Str, Value>>);

impl Source for Images {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        match fetch {
            Fetch::Image { reference, .. } => self.0.get(reference).cloned().map(Fact::Found),
            _ => None,
        }
    }
}

/// Reads a file of kind `Context`.
pub fn read_context(path: &Path) -> Result<ContextFile, Vec<Located>> {
    let document = read_one::<Document>(path, &CONTEXT)?.value;
    let images = document.spec.images.into_iter().flatten();
    let named = images.map(|image| (Str::new(image.str_at(&["image"]).unwrap_or_default()), image));
    Ok(ContextFile {
        resources: document.spec.resources.unwrap_or_default(),
        images: Images(Arc::new(named.collect())),
    })
}
