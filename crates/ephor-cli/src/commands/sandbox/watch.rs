//! `--watch`: files that change are applied again while the sandbox runs.
//!
//! The files are polled, which works on every file system, also on those that containers share. An object that leaves
//! the files leaves the sandbox. A file that cannot be read changes nothing; the finding is printed once.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ephor_cluster::Cluster as _;
use ephor_runtime::CancellationToken;
use ephor_sandbox::Sandbox;

use super::files::{self, FileObject};
use crate::ui::Ui;

/// How often the files are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The files of the arguments, with what shows that one was written.
type Stamps = Vec<(PathBuf, Option<SystemTime>, u64)>;

/// Files that are followed, and the objects that they held when they were last read.
pub(super) struct Watched {
    arguments: Vec<String>,
    objects: Vec<FileObject>,
    /// The files as they were read.
    stamps: Stamps,
    /// The files at the last look.
    pending: Option<Stamps>,
}

impl Watched {
    /// Follows the files of the arguments, which held these objects.
    pub(super) fn new(arguments: Vec<String>, objects: Vec<FileObject>) -> Self {
        let stamps = stamps(&arguments);
        Self { arguments, objects, stamps, pending: None }
    }

    /// Applies changes until the stop signal.
    pub(super) fn follow(&mut self, sandbox: &Sandbox, stop: &CancellationToken, ui: &Ui) {
        while !stop.wait(POLL_INTERVAL) {
            if self.settled(stamps(&self.arguments)) {
                self.reload(sandbox, ui);
            }
        }
    }

    /// Whether the files differ from those that were read last, and did not change since the last look. An editor that
    /// empties a file and then writes it shows an empty file for a moment, in which everything seems to be gone.
    fn settled(&mut self, now: Stamps) -> bool {
        let before = self.pending.replace(now);
        if self.pending.as_ref() == Some(&self.stamps) || self.pending != before {
            return false;
        }
        self.stamps = self.pending.take().unwrap_or_default();
        true
    }

    fn reload(&mut self, sandbox: &Sandbox, ui: &Ui) {
        let objects = match files::read(&self.arguments) {
            Ok(objects) => objects,
            Err(finding) => return ui.findings(&[*finding]),
        };
        let changed: Vec<FileObject> =
            objects.iter().filter(|file| !self.objects.iter().any(|old| old.object == file.object)).cloned().collect();
        let named: BTreeSet<[&str; 4]> = objects.iter().map(FileObject::identity).collect();
        let gone = self.objects.iter().filter(|old| !named.contains(&old.identity()));
        let mut removed = 0;
        for old in gone {
            match sandbox.remove(&old.object) {
                Ok(()) => removed += 1,
                Err(error) => ui.say(&format!("error: cannot delete {}: {error}", old.identity().join(" "))),
            }
        }
        let added = sandbox.add(changed.iter().map(|file| file.object.clone()));
        sandbox.settle();
        ui.say(&format!("reloaded: {} applied, {removed} deleted", changed.len() - added.refused.len()));
        if let Ok(served) = sandbox.cluster().discovery() {
            ui.findings(&files::findings(&changed, &added, &served));
        }
        self.objects = objects;
    }
}

fn stamps(arguments: &[String]) -> Stamps {
    let paths = files::paths(arguments).unwrap_or_default();
    let stamp = |path: PathBuf| {
        let metadata = fs::metadata(&path).ok();
        let written = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        (path, written, metadata.map_or(0, |metadata| metadata.len()))
    };
    paths.into_iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_size(size: u64) -> Stamps {
        vec![(PathBuf::from("a.yaml"), None, size)]
    }

    #[test]
    fn files_are_read_when_they_have_stopped_changing() {
        let mut watched = Watched { arguments: Vec::new(), objects: Vec::new(), stamps: of_size(9), pending: None };
        let looks = [9, 9, 0, 12, 12, 12, 0, 12, 7, 7];
        let read: Vec<bool> = looks.iter().map(|size| watched.settled(of_size(*size))).collect();
        assert_eq!(read, [false, false, false, false, true, false, false, false, false, true]);
    }
}
