//! The engine stays pure. The wasm32 target cannot be built everywhere, so its dependency tree is looked at instead:
//! nothing in it may open files or sockets, start threads or bind to an operating system.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Crates that have no place below the engine.
const BANNED: [&str; 22] = [
    "async-std",
    "axum",
    "curl",
    "getrandom",
    "hyper",
    "k8s-openapi",
    "kube",
    "kube-client",
    "mio",
    "native-tls",
    "num_cpus",
    "openssl",
    "rayon",
    "reqwest",
    "ring",
    "rustls",
    "smol",
    "socket2",
    "tempfile",
    "tokio",
    "ureq",
    "walkdir",
];

/// Fails if a banned crate is below `ephor-expr` or `ephor-engine`.
pub(crate) fn check() -> Result<()> {
    for package in ["ephor-expr", "ephor-engine"] {
        let output = Command::new("cargo")
            .args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"])
            .args(["--target", "wasm32-unknown-unknown"])
            .output()
            .context("cannot run cargo tree")?;
        if !output.status.success() {
            bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        let tree = String::from_utf8_lossy(&output.stdout);
        let found: Vec<&str> =
            tree.lines().filter_map(|line| line.split(' ').next()).filter(|name| BANNED.contains(name)).collect();
        if !found.is_empty() {
            bail!("{package} must stay pure, but depends on {}", found.join(", "));
        }
    }
    Ok(())
}
