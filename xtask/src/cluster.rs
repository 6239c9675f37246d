//! `cargo xtask cluster`: a real control plane to try things on.

use std::convert::Infallible;

use anyhow::Result;
use ephor_testbed::{Assets, ControlPlane, Options};

use crate::say;

/// Builds the executables if they are not there.
pub(crate) fn build() -> Result<()> {
    let assets = Assets::locate();
    assets.build(&|step| say(step))?;
    say(&format!("the executables are in {}", assets.directory().display()));
    Ok(())
}

/// Builds, starts, and waits forever: the end of this process is the end of the control plane.
pub(crate) fn up() -> Result<Infallible> {
    build()?;
    let options = Options { node: Some("kind-control-plane".to_owned()), ..Options::default() };
    let plane = ControlPlane::start(&options)?;
    say(&format!(
        "the API server is at {}, logs in {}\n\n  export KUBECONFIG={}\n\nCtrl-C stops it",
        plane.url(),
        plane.directory().display(),
        plane.kubeconfig().display(),
    ));
    loop {
        std::thread::park();
    }
}
