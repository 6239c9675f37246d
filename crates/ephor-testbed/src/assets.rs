//! The executables of a control plane: found where the environment says, or built once from their Go modules.
//!
//! `control-plane/go.mod` pins them. Building takes minutes, so it is asked for (`cargo xtask cluster build`) and never
//! is installed silently.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// The module that pins the versions, as it was when the executables were built.
const MODULE: &str = include_str!("../control-plane/go.mod");
/// The file that says which module a directory of executables was built from.
const STAMP: &str = "built-from.mod";
/// The version of Kubernetes that is built, as its executables report it.
const VERSION: &str = "v1.34.4";

/// Executables and the packages that hold them.
const TOOLS: [(&str, &str); 4] = [
    ("etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
];

/// Where the executables of a control plane are.
#[derive(Clone, Debug)]
pub struct Assets {
    directory: PathBuf,
    /// Whether they were installed beforehand: then they are used as they are.
    given: bool,
}

impl Assets {
    /// The directory that the environment names (`KUBEBUILDER_ASSETS`, whose executables are used as they are, or
    /// `EPHOR_CONTROL_PLANE_DIR`), else `target/control-plane`.
    pub fn locate() -> Self {
        let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(directory) = named("KUBEBUILDER_ASSETS") {
            return Self { directory, given: true };
        }
        let workspace = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let cache = || named("CARGO_TARGET_DIR").unwrap_or_else(workspace).join("control-plane");
        Self { directory: named("EPHOR_CONTROL_PLANE_DIR").unwrap_or_else(cache), given: false }
    }

    /// The directory of the executables.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of one of them.
    pub fn tool(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Fails unless everything is there.
    pub fn check(&self) -> Result<(), Error> {
        let missing: Vec<&str> = self.missing().map(|(name, _)| name).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::NotBuilt { tools: missing.join(", "), directory: self.directory.clone() })
    }

    /// Builds what is missing, with Go; `say` hears about each executable before it is built.
    pub fn build(&self, say: &dyn Fn(&str)) -> Result<(), Error> {
        let missing: Vec<_> = self.missing().collect();
        if missing.is_empty() {
            return Ok(());
        }
        if self.given {
            // Foreign executables and ours would be of different versions.
            return self.check();
        }
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("control-plane");
        fs::create_dir_all(&self.directory).map_err(Error::file(&self.directory))?;
        let directory = self.directory.canonicalize().map_err(Error::file(&self.directory))?;
        for (name, package) in missing {
            say(&format!("building {name} from {package}"));
            // Written aside and renamed: another process may be building or running the same.
            let unfinished = directory.join(format!(".{name}.{}", std::process::id()));
            let status = Command::new("go")
                .args(["build", "-mod=readonly", "-trimpath", "-ldflags", &link_flags(), "-o"])
                .arg(&unfinished)
                .arg(package)
                .current_dir(&module)
                .env("CGO_ENABLED", "0")
                .status()
                .map_err(Error::run("go"))?;
            if !status.success() {
                return Err(Error::Build(name.to_owned()));
            }
            let finished = directory.join(name);
            fs::rename(&unfinished, &finished).map_err(Error::file(finished))?;
        }
        let stamp = directory.join(STAMP);
        fs::write(&stamp, MODULE).map_err(Error::file(stamp))
    }

    fn missing(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        let current = self.given || fs::read_to_string(self.directory.join(STAMP)).is_ok_and(|text| text == MODULE);
        TOOLS.into_iter().filter(move |(name, _)| !current || !self.tool(name).is_file())
    }
}

/// Without these the executables call themselves v0.0.0.
fn link_flags() -> String {
    let mut parts = VERSION.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let base = "k8s.io/component-base/version";
    format!(
        "-s -w -X {base}.gitVersion={VERSION} -X {base}.gitMajor={major} -X {base}.gitMinor={minor} \
         -X {base}.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion={VERSION}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_of_another_module_count_as_missing() {
        let directory = tempfile::tempdir().unwrap();
        let assets = Assets { directory: directory.path().to_owned(), given: false };
        for (name, _) in TOOLS {
            fs::write(assets.tool(name), "").unwrap();
        }
        fs::write(assets.tool(STAMP), MODULE).unwrap();
        assets.check().unwrap();
        fs::write(assets.tool(STAMP), "module other").unwrap();
        let error = assets.check().unwrap_err().to_string();
        assert!(error.starts_with("no etcd, kube-apiserver, kube-controller-manager, kubectl in "), "{error}");
    }

    #[test]
    fn given_executables_are_used_as_they_are_and_not_added_to() {
        let directory = tempfile::tempdir().unwrap();
        let assets = Assets { directory: directory.path().to_owned(), given: true };
        for (name, _) in &TOOLS[1..] {
            fs::write(assets.tool(name), "").unwrap();
        }
        let error = assets.build(&|_| {}).unwrap_err().to_string();
        assert!(error.starts_with("no etcd in "), "{error}");
        fs::write(assets.tool("etcd"), "").unwrap();
        assets.check().unwrap();
    }

    #[test]
    fn the_version_is_the_pinned_one() {
        assert!(MODULE.contains(&format!("\tk8s.io/kubernetes {VERSION} ")));
    }
}
