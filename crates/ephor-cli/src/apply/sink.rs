//! `--output`: changed and created objects in files.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::judge::file_name;

/// An object to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Name of its file in a directory, without `.yaml`.
    pub name: String,
    /// The object as YAML.
    pub text: String,
}

/// Where objects go.
#[derive(Debug)]
pub enum Sink {
    /// All into one file.
    File(BufWriter<File>),
    /// Into files of a directory, several objects of the same name one after another.
    Directory {
        /// The directory.
        path: PathBuf,
        /// The files that this run began.
        begun: BTreeSet<String>,
    },
}

impl Sink {
    /// Opens the place: a path that ends in `.yaml` or `.yml` is a file, begun anew; any other is a directory, made
    /// if it is not there.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.extension().is_some_and(|e| e == "yaml" || e == "yml") && !path.is_dir() {
            if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
                fs::create_dir_all(parent)?;
            }
            return Ok(Self::File(BufWriter::new(File::create(path)?)));
        }
        fs::create_dir_all(path)?;
        Ok(Self::Directory { path: path.to_path_buf(), begun: BTreeSet::new() })
    }

    /// Writes one object.
    pub fn write(&mut self, object: &Write) -> io::Result<()> {
        match self {
            Self::File(file) => writeln!(file, "{}---", object.text),
            Self::Directory { path, begun } => {
                let name = format!("{}.yaml", file_name(&object.name));
                let again = !begun.insert(name.clone());
                let path = path.join(name);
                let mut options = OpenOptions::new();
                options.create(true).write(true).append(again).truncate(!again);
                writeln!(options.open(path)?, "{}---", object.text)
            }
        }
    }

    /// Ends the writing.
    pub fn close(self) -> io::Result<()> {
        match self {
            Self::File(mut file) => file.flush(),
            Self::Directory { .. } => Ok(()),
        }
    }
}
