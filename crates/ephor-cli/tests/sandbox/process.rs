//! A sandbox in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ephor_kube::{Access, ConnectOptions, KubeCluster};
use tempfile::TempDir;

/// How long something may take to come true, on a machine that has other work.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A running sandbox. It ends with this value.
pub(crate) struct Sandbox {
    child: Child,
    directory: TempDir,
    /// Kept open, so that the process can write to it.
    _stdout: BufReader<ChildStdout>,
}

impl Sandbox {
    /// Starts it and waits until it says that it is ready.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut child = Command::new(env!("CARGO_BIN_EXE_ephor"))
            .arg("sandbox")
            .args(arguments)
            .arg("--kubeconfig")
            .arg(directory.path().join("kubeconfig"))
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        while !line.starts_with("The sandbox is ready") {
            line.clear();
            let read = stdout.read_line(&mut line).expect("it talks");
            assert!(read > 0, "the sandbox ended before it was ready");
        }
        Self { child, directory, _stdout: stdout }
    }

    /// A directory of its own, gone when it ends.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// A client.
    pub(crate) fn cluster(&self) -> KubeCluster {
        let access = Access::Kubeconfig { path: self.kubeconfig(), context: None };
        KubeCluster::connect(&ConnectOptions { access, ..ConnectOptions::default() }).expect("a kubeconfig")
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill runs");
        assert!(asked.success());
        let ended = self.child.wait().expect("it ends");
        assert!(ended.success(), "{ended}");
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until there is an answer.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < TIMEOUT, "{what}: not after {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
