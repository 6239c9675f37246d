//! Test files under paths.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bounds::Bounds;

/// A file of tests.
#[derive(Debug, Clone)]
pub struct TestFile {
    /// Its path.
    pub path: PathBuf,
    /// What its tests may read.
    pub bounds: Arc<Bounds>,
}

/// The files called `file_name` under `path`, hidden directories included, sorted; `path` itself if it is a file.
/// Links to directories are not followed. Their tests may read what is around `path`.
pub fn find_suites(path: &Path, file_name: &str) -> io::Result<Vec<TestFile>> {
    let mut found = Vec::new();
    let bounds = Arc::new(Bounds::around(path)?);
    if path.metadata()?.is_file() {
        found.push(path.to_path_buf());
    } else {
        walk(path, file_name, &mut found)?;
        found.sort();
    }
    Ok(found.into_iter().map(|path| TestFile { path, bounds: Arc::clone(&bounds) }).collect())
}

fn walk(directory: &Path, file_name: &str, found: &mut Vec<PathBuf>) -> io::Result<()> {
    // A list of directories to visit instead of recursion: trees may be deep.
    let mut open = vec![directory.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else if entry.file_name() == file_name {
                found.push(entry.path());
            }
        }
    }
    Ok(())
}
