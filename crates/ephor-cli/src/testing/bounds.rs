//! Which files a test may read.
//!
//! People run tests of strangers, in CI with secrets around. Paths in a test lead to policies and objects of the same
//! repository, and to nothing else: not by `..`, not by symbolic links, and not to files that are no manifests by their
//! names, whose lines messages would quote.

use std::io;
use std::path::{Path, PathBuf};

use crate::load::{expand, is_manifest};

/// The directory tree that a test may read.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Without links.
    root: PathBuf,
}

impl Bounds {
    /// Around what the user names: its git repository if it is in one, else the directory, or that of the file.
    pub fn around(named: &Path) -> io::Result<Self> {
        let real = named.canonicalize()?;
        let directory = if real.is_dir() { real.as_path() } else { real.parent().unwrap_or(&real) };
        let repository = directory.ancestors().find(|above| above.join(".git").exists());
        Ok(Self { root: repository.unwrap_or(directory).to_path_buf() })
    }

    /// Why a test may not read what it names (a file, directory or glob), if it may not.
    pub fn refusal(&self, named: &str) -> Option<String> {
        // What does not exist has no content; the loader says that it is missing.
        let files = expand(named).unwrap_or_default();
        files.iter().find_map(|file| {
            let real = file.canonicalize().ok()?;
            self.outside(file, &real).or_else(|| (!is_manifest(&real)).then(|| no_manifest(file)))
        })
    }

    /// Why a test file may not be read, if it may not.
    pub fn refusal_of_test(&self, file: &Path) -> Option<String> {
        let real = file.canonicalize().ok()?;
        let renamed = real.file_name() != file.file_name() && !is_manifest(&real);
        self.outside(file, &real).or_else(|| renamed.then(|| no_manifest(file)))
    }

    fn outside(&self, file: &Path, real: &Path) -> Option<String> {
        let (file, root) = (file.display(), self.root.display());
        (!real.starts_with(&self.root))
            .then(|| format!("`{file}` is not under `{root}`: a test reads nothing outside of its repository"))
    }
}

fn no_manifest(file: &Path) -> String {
    format!("`{}` is no `.yaml`, `.yml` or `.json` file", file.display())
}
