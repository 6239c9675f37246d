//! `--output`: changed and created objects in files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ephor_expr::scalar::unseen::is_unseen;

use crate::fresh::{Fresh, refuse_link};

/// An object to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Name of its file in a directory, without `.yaml`, as objects and policies give it.
    pub name: String,
    /// The object as YAML.
    pub text: String,
}

/// Where objects go. Files appear when the writing ends well.
#[derive(Debug)]
pub enum Sink {
    /// All into one file.
    File(Fresh),
    /// Into files of a directory, several objects of the same name one after another.
    Directory {
        /// The directory.
        path: PathBuf,
        /// The files that this run began, by name.
        begun: BTreeMap<String, Fresh>,
    },
}

impl Sink {
    /// Opens the place: a path that ends in `.yaml` or `.yml` is a file, begun anew; any other is a directory, made
    /// if it is not there. Neither may be a symbolic link.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.extension().is_some_and(|e| e == "yaml" || e == "yml") && !path.is_dir() {
            if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
                fs::create_dir_all(parent)?;
            }
            return Ok(Self::File(Fresh::create(path)?));
        }
        refuse_link(path)?;
        fs::create_dir_all(path)?;
        Ok(Self::Directory { path: path.to_path_buf(), begun: BTreeMap::new() })
    }

    /// Writes one object.
    pub fn write(&mut self, object: &Write) -> io::Result<()> {
        let text = format!("{}---\n", object.text);
        match self {
            Self::File(file) => file.append(&text),
            Self::Directory { path, begun } => {
                let name = format!("{}.yaml", file_name(&object.name));
                if !begun.contains_key(&name) {
                    begun.insert(name.clone(), Fresh::create(&path.join(&name))?);
                }
                begun.get(&name).map_or(Ok(()), |file| file.append(&text))
            }
        }
    }

    /// Ends the writing.
    pub fn close(self) -> io::Result<()> {
        match self {
            Self::File(file) => file.commit(),
            Self::Directory { begun, .. } => begun.into_values().try_for_each(Fresh::commit),
        }
    }
}

/// File systems take names of 255 bytes; endings and drafts need some of them.
const LONGEST: usize = 200;

/// Names of files come from strangers: nothing in them leads out of the user's directory, hides a file or is read as
/// something else.
fn file_name(name: &str) -> String {
    let odd = |c: char| matches!(c, '/' | '\\' | ':') || is_unseen(c);
    let clean: String = name.chars().map(|c| if odd(c) { '_' } else { c }).collect();
    let clean = clean.trim_start_matches('.');
    clean.get(..clean.floor_char_boundary(LONGEST)).unwrap_or(clean).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        for (name, want) in [
            ("web-mutated", "web-mutated"),
            ("../../up", "_.._up"),
            (".bashrc", "bashrc"),
            ("a\0\n\u{1b}[31m\u{202e}b\\c:d", "a___[31m_b_c_d"),
        ] {
            assert_eq!(file_name(name), want, "{name:?}");
        }
        assert_eq!(file_name(&"é".repeat(200)).len(), LONGEST);
    }
}
