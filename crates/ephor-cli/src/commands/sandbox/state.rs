//! The file of `--state`: read and locked at the start, written while the sandbox runs and once more at its end.
//!
//! A write replaces the file at once (a new file, then a rename), so that a crash leaves the state before it or after
//! it. The process keeps a lock on the file, so that two sandboxes cannot overwrite each other's state.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use ephor_cluster::MemoryCluster;
use ephor_expr::Value;
use ephor_runtime::CancellationToken;
use ephor_sandbox::state::{Identity, State};

use crate::ui::Ui;

/// A change is on disk this long after it was made, plus the time of the write.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// A state file that this process has locked.
pub(super) struct StateFile {
    path: PathBuf,
    /// The file at `path`. Holding it open holds the lock.
    locked: File,
}

impl StateFile {
    /// Locks the file, which is made if it does not exist, and reads it. The error says what keeps the sandbox from
    /// writing there.
    pub(super) fn open(path: &Path) -> anyhow::Result<(Self, Option<State>)> {
        let path = &resolved(path)?;
        let mut locked = lock(path)?;
        let metadata = locked.metadata().with_context(|| format!("cannot read `{}`", path.display()))?;
        anyhow::ensure!(metadata.is_file(), "`{}` is not a regular file", path.display());
        let mut text = String::new();
        locked.read_to_string(&mut text).with_context(|| format!("cannot read `{}`", path.display()))?;
        let state = if text.is_empty() {
            None
        } else {
            Some(State::parse(&text).with_context(|| format!("`{}` is not a state file", path.display()))?)
        };
        Ok((Self { path: path.to_owned(), locked }, state))
    }

    /// Replaces the state.
    pub(super) fn save(&mut self, identity: &Identity, objects: Vec<Value>) -> io::Result<()> {
        let text = State::text(identity, objects);
        let fresh = beside(&self.path);
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&fresh)?;
        let written = file.try_lock().map_err(io::Error::from).and_then(|()| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&fresh, &self.path)
        });
        if written.is_err() {
            let _ = fs::remove_file(&fresh);
        }
        written?;
        self.locked = file;
        Ok(())
    }

    /// Saves what changes until the stop signal. A write that fails is told once and tried again.
    pub(super) fn follow(&mut self, identity: &Identity, cluster: &MemoryCluster, stop: &CancellationToken, ui: &Ui) {
        let mut saved = 0;
        let mut told = false;
        while !stop.wait(SAVE_INTERVAL) {
            let revision = cluster.revision();
            if revision == saved {
                continue;
            }
            match self.save(identity, cluster.objects()) {
                Ok(()) => (saved, told) = (revision, false),
                Err(error) if !told => {
                    ui.say(&format!("warning: cannot write `{}`: {error}; trying again", self.path.display()));
                    told = true;
                }
                Err(_) => {}
            }
        }
    }
}

/// Opens the file at `path`, which is made if it does not exist.
fn opened(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).with_context(|| format!("cannot write `{}`", path.display()))
}

/// The file that `path` leads to through symbolic links, which a rename would replace.
fn resolved(path: &Path) -> anyhow::Result<PathBuf> {
    if path.is_symlink() {
        // What it leads to may not exist yet.
        opened(path)?;
        return fs::canonicalize(path).with_context(|| format!("cannot read `{}`", path.display()));
    }
    Ok(path.to_owned())
}

/// Opens the file at `path` and locks it.
fn lock(path: &Path) -> anyhow::Result<File> {
    loop {
        let file = opened(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another sandbox uses `{}`", path.display()),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock `{}`", path.display()));
            }
        }
        // The sandbox that held the lock may have replaced the file in between.
        let current = fs::metadata(path).ok();
        if current.is_some_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino())) {
            return Ok(file);
        }
    }
}

/// The name of the file that replaces the state.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(path: &Path) -> String {
        format!("{:#}", StateFile::open(path).err().expect("it is refused"))
    }

    #[test]
    fn a_state_that_cannot_be_written_is_refused_at_the_start() {
        let directory = tempfile::tempdir().unwrap();
        assert!(error(&directory.path().join("missing/state.json")).contains("cannot write"));
        assert!(error(directory.path()).contains("cannot write"));
    }

    #[test]
    fn other_files_are_refused_and_stay_as_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        fs::write(&path, "my notes").unwrap();
        assert!(error(&path).contains("is not a state file"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "my notes");
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (link, target) = (directory.path().join("link.json"), directory.path().join("real/state.json"));
        fs::create_dir(directory.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real/state.json", &link).unwrap();
        let certificate = ephor_sandbox::tls::Certificate::new().unwrap();
        let identity = Identity { token: "t".into(), certificate, port: 1 };
        for expected in [0, 1] {
            let (mut file, state) = StateFile::open(&link).unwrap();
            assert_eq!(state.map_or(0, |state| state.objects.len()), expected);
            assert!(error(&target).contains("another sandbox uses"));
            file.save(&identity, vec![Value::Null]).unwrap();
            assert!(link.is_symlink());
            assert!(fs::read_to_string(&target).unwrap().contains("objects"));
        }
    }

    #[test]
    fn two_sandboxes_cannot_share_a_state() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let (first, state) = StateFile::open(&path).unwrap();
        assert!(state.is_none());
        assert!(error(&path).contains("another sandbox uses"));
        drop(first);
        assert!(StateFile::open(&path).is_ok());
    }
}
