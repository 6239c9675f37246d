//! The engine stays pure, and judging links no web server. The wasm32 target cannot be built everywhere, so its dependency tree is looked at instead:
//! nothing in it may open files or sockets, start threads or bind to an operating system.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::arrows;

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

/// What serves HTTP has no place below these crates: the command line judges files with them.
const WITHOUT_SERVER: [&str; 3] = ["ephor-runtime", "ephor-background", "ephor-reports"];

/// Crates that serve HTTP.
const SERVERS: [&str; 4] = ["axum", "axum-server", "hyper", "tokio"];

/// Fails if a banned crate is below `ephor-expr` or `ephor-engine`, if a crate that judges for the command line serves
/// HTTP, or if an arrow between crates or modules is new.
pub(crate) fn check() -> Result<()> {
    for package in ["ephor-expr", "ephor-engine"] {
        let found = below(package, &BANNED, &["--target", "wasm32-unknown-unknown"])?;
        if !found.is_empty() {
            bail!("{package} must stay pure, but depends on {}", found.join(", "));
        }
    }
    for package in WITHOUT_SERVER {
        let found = below(package, &SERVERS, &[])?;
        if !found.is_empty() {
            bail!("{package} must not serve HTTP, but depends on {}", found.join(", "));
        }
    }
    arrows::check()
}

/// The crates out of `banned` that a package depends on, directly or not.
fn below(package: &str, banned: &[&str], options: &[&str]) -> Result<Vec<String>> {
    let output = Command::new("cargo")
        .args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(options)
        .output()
        .context("cannot run cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let tree = String::from_utf8_lossy(&output.stdout);
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let found: BTreeSet<&str> = names.filter(|name| banned.contains(name)).collect();
    Ok(found.into_iter().map(str::to_owned).collect())
}
