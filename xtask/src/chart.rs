//! The chart under Helm: `helm lint`, and the tests that compare Helm's rendering with Ephor's.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

/// The release of Helm that judges.
const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.19.0";

/// Lints the chart and runs its tests.
pub(crate) fn check() -> Result<()> {
    let helm = lint()?;
    let tests = ["test", "--package", "ephor-tests", "--test", "chart", "--", "--ignored"];
    crate::run(Command::new("cargo").args(tests).env("EPHOR_HELM", helm))
}

/// Lints the chart; gives the path of Helm, which is built from its module, once, unless `EPHOR_HELM` names one.
pub(crate) fn lint() -> Result<PathBuf> {
    let helm = match std::env::var_os("EPHOR_HELM") {
        Some(path) => PathBuf::from(path),
        None => built()?,
    };
    crate::run(Command::new(&helm).args(["lint", "--strict", "charts/ephor"]))?;
    Ok(helm)
}

fn built() -> Result<PathBuf> {
    let folder = crate::root()?.join("target/helm");
    let helm = folder.join("helm");
    if !helm.exists() {
        std::fs::create_dir_all(&folder)?;
        crate::run(Command::new("go").args(["install", HELM]).env("GOBIN", &folder).env("GOFLAGS", "-mod=mod"))?;
    }
    Ok(helm)
}
