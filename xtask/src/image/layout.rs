//! An image as a folder: the OCI image layout.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Writes the image that consists of one layer; gives the digest of its manifest.
pub(super) fn write(archive: &[u8], version: &str, output: &Path) -> Result<String> {
    if output.exists() {
        std::fs::remove_dir_all(output)?;
    }
    let blobs = output.join("blobs/sha256");
    std::fs::create_dir_all(&blobs)?;
    let blob = |content: &[u8]| -> Result<(String, usize)> {
        let digest = digest(content);
        std::fs::write(blobs.join(&digest), content)?;
        Ok((format!("sha256:{digest}"), content.len()))
    };

    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    packed.write_all(archive)?;
    let (layer, layer_size) = blob(&packed.finish()?)?;
    let (config, config_size) = blob(&to_bytes(&json!({
        "architecture": architecture(),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "Entrypoint": ["/usr/bin/ephor"],
            "User": super::USER,
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": "ephor",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
                "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", digest(archive))] },
        "history": [{ "created": "1970-01-01T00:00:00Z", "created_by": "cargo xtask image" }],
    }))?)?;
    let (manifest, manifest_size) = blob(&to_bytes(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": config_size,
        },
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": layer, "size": layer_size,
        }],
    }))?)?;
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": manifest,
            "size": manifest_size,
            "platform": { "architecture": architecture(), "os": "linux" },
            "annotations": { "org.opencontainers.image.ref.name": version },
        }],
    });
    std::fs::write(output.join("index.json"), to_bytes(&index)?)?;
    std::fs::write(output.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    Ok(manifest)
}

fn to_bytes(document: &Value) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(document)?)
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// The machine's own architecture under the name that images have for it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
