//! A container image without a container engine: an OCI layout with one layer, which holds the binary, the libraries
//! it asks for, and the few files that a process expects. The same input gives the same bytes.

mod layer;
mod layout;
mod libraries;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use layer::Layer;

/// Where the image goes.
const OUTPUT: &str = "target/image";

/// Whom the process runs as, unless a pod says otherwise.
const USER: &str = "65532:65532";

const PASSWD: &str = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nnonroot:x:65532:\n";
/// Names come from the pod's hosts file and from the cluster's DNS.
const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

/// `cargo xtask image`: builds the release binary and packs it, or packs the binary at a path.
pub(crate) fn build(arguments: &[&str]) -> Result<()> {
    let mut binary = None;
    let mut roots = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--ca-certificates" => roots = Some(PathBuf::from(words.next().context("--ca-certificates needs a file")?)),
            path if !path.starts_with('-') && binary.is_none() => binary = Some(PathBuf::from(path)),
            other => bail!("unexpected argument `{other}`"),
        }
    }
    let root = crate::root()?;
    let binary = if let Some(binary) = binary {
        binary
    } else {
        crate::cargo(&["build", "--release", "--locked", "--package", "ephor-cli"])?;
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("release/ephor")
    };
    let output = root.join(OUTPUT);
    let digest = pack(&binary, roots.as_deref(), env!("CARGO_PKG_VERSION"), &output)?;
    crate::say(&format!("{} {digest}", output.display()));
    Ok(())
}

/// Writes the image to the folder `output` and gives the digest of its manifest.
fn pack(binary: &Path, roots: Option<&Path>, version: &str, output: &Path) -> Result<String> {
    let mut layer = Layer::default();
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    layer.executable("usr/bin/ephor", read(binary)?);
    for library in libraries::of(binary)? {
        let place = library.strip_prefix("/").with_context(|| format!("{} is no full path", library.display()))?;
        layer.executable(place.to_str().context("a library's path is not text")?, read(&library)?);
    }
    layer.file("etc/passwd", PASSWD.into());
    layer.file("etc/group", GROUP.into());
    layer.file("etc/nsswitch.conf", NSSWITCH.into());
    if let Some(roots) = roots {
        layer.file("etc/ssl/certs/ca-certificates.crt", read(roots)?);
    }
    layout::write(&layer.archive()?, version, output)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Unpacks the only layer of an image.
    fn unpacked(image: &Path, into: &Path) {
        let json =
            |path: PathBuf| -> serde_json::Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
        let blob = |digest: &serde_json::Value| image.join("blobs").join(digest.as_str().unwrap().replace(':', "/"));
        let index = json(image.join("index.json"));
        let manifest = json(blob(&index["manifests"][0]["digest"]));
        let layer = std::fs::File::open(blob(&manifest["layers"][0]["digest"])).unwrap();
        tar::Archive::new(flate2::read::GzDecoder::new(layer)).unpack(into).unwrap();
    }

    /// A small program that is everywhere and asks for libraries stands for the binary.
    fn program() -> PathBuf {
        std::fs::canonicalize("/bin/cat").unwrap()
    }

    #[test]
    fn the_binary_runs_on_nothing_but_what_the_image_holds() {
        let folder = tempfile::tempdir().unwrap();
        let (image, root) = (folder.path().join("image"), folder.path().join("root"));
        let this = program();
        pack(&this, None, "1.2.3", &image).unwrap();
        unpacked(&image, &root);

        let binary = root.join("usr/bin/ephor");
        let held: Vec<PathBuf> =
            libraries::of(&this).unwrap().iter().map(|path| root.join(path.strip_prefix("/").unwrap())).collect();
        let loader = held.iter().find(|path| path.to_str().unwrap().contains("/ld-")).unwrap();
        let folders: Vec<&str> = held.iter().map(|path| path.parent().unwrap().to_str().unwrap()).collect();
        let load = |mode: &[&str]| {
            let mut command = Command::new(loader);
            command.args(["--inhibit-cache", "--library-path", &folders.join(":")]).args(mode).arg(&binary);
            command
        };
        // The loader falls back to the machine's own folders; what it finds must all be the image's.
        let resolved = String::from_utf8(load(&["--list"]).output().unwrap().stdout).unwrap();
        let found: Vec<&str> = resolved.lines().filter_map(|line| line.split("=> ").nth(1)).collect();
        assert!(!found.is_empty(), "{resolved}");
        assert!(found.iter().all(|path| path.starts_with(root.to_str().unwrap())), "{resolved}");

        let text = folder.path().join("text");
        std::fs::write(&text, "it runs").unwrap();
        assert_eq!(load(&[]).arg(&text).output().unwrap().stdout, b"it runs");
        assert!(std::fs::read_to_string(root.join("etc/passwd")).unwrap().contains("65532"));
    }

    #[test]
    fn the_same_input_gives_the_same_image() {
        let folder = tempfile::tempdir().unwrap();
        let this = program();
        let pack = |name: &str, version: &str| pack(&this, None, version, &folder.path().join(name)).unwrap();
        assert_eq!(pack("a", "1"), pack("b", "1"));
        assert_ne!(pack("a", "1"), pack("b", "2"));
    }
}
