//! The types of Kubernetes, cut out of its own `OpenAPI` document.
//!
//! Written to `crates/ephor-cluster/data`, twice (and once more the numbers of fields, see [`wire`]): with descriptions for documentation, and without them for
//! everything else. Both are Kubernetes' data (Apache-2.0), unchanged but for what is left out.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use ephor_expr::{Map, Value};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::wire;

/// The release of the Go modules.
const RELEASE: &str = "v0.34.4";

/// Writes the tables from `api/openapi-spec/swagger.json` of a Kubernetes release, and from the directory that its Go
/// modules are in.
pub(crate) fn write(swagger: &Path, modules: &Path) -> Result<()> {
    let text = fs::read_to_string(swagger).with_context(|| format!("cannot read {}", swagger.display()))?;
    let document = Value::from_json(&text)?;
    let definitions = document.get("definitions").context("the document has no definitions")?;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/ephor-cluster/data");
    fs::create_dir_all(&directory)?;
    let numbers = wire::table(modules, RELEASE)?;
    for (name, value) in [
        ("kubernetes-documented", definitions.clone()),
        ("kubernetes", bare(definitions)),
        ("kubernetes-wire", numbers),
    ] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(value.to_json().as_bytes())?;
        fs::write(directory.join(format!("{name}.json.gz")), encoder.finish()?)?;
    }
    Ok(())
}

/// The same without descriptions. A property of that name is an object and stays.
fn bare(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::array(items.iter().map(bare).collect()),
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, value)| *key != "description" || value.as_str().is_none());
            Value::object(kept.map(|(key, value)| (key.clone(), bare(value))).collect::<Map>())
        }
        scalar => scalar.clone(),
    }
}
