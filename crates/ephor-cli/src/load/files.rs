//! Paths, directories, globs and standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ephor_expr::scalar::wildcard;

use crate::locate::SourceFile;

/// A path that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// The path.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file is no text.
    #[error("`{path}` is not UTF-8 text: found the byte 0x{byte:02x}")]
    NotText {
        /// The path.
        path: String,
        /// The first bad byte.
        byte: u8,
        /// Where it is, as a byte offset.
        offset: usize,
        /// The file's content, bad bytes replaced.
        text: String,
    },
    /// The file is larger than any sensible one.
    #[error("`{path}` is larger than {limit} MiB", limit = MAX_BYTES >> 20)]
    TooLarge {
        /// The path.
        path: String,
    },
    /// Nothing has that name.
    #[error("no such file or directory: `{path}`")]
    Missing {
        /// The path.
        path: String,
    },
    /// A glob that fits nothing.
    #[error("no file matches `{path}`")]
    NoMatch {
        /// The pattern.
        path: String,
    },
    /// Network addresses are not read.
    #[error("`{path}` is a network address: clone the repository and give its directory")]
    Network {
        /// The address.
        path: String,
    },
}

/// Policies and other small files are read whole, up to this size.
const MAX_BYTES: u64 = 64 << 20;

/// The name of standard input.
pub const STDIN: &str = "-";

/// The YAML files that an argument stands for, sorted: itself, those of a directory and its sub-directories (hidden
/// entries left out), or those that fit a glob.
pub fn expand(argument: &str) -> Result<Vec<PathBuf>, ReadError> {
    if argument == STDIN {
        return Ok(vec![PathBuf::from(STDIN)]);
    }
    if argument.starts_with("http://") || argument.starts_with("https://") {
        return Err(ReadError::Network { path: argument.to_owned() });
    }
    let path = Path::new(argument);
    if path.is_dir() {
        let mut found = Vec::new();
        walk(path, &mut found)?;
        found.sort();
        return Ok(found);
    }
    if path.exists() {
        return Ok(vec![path.to_path_buf()]);
    }
    if wildcard::has_wildcard(argument) {
        return glob(argument);
    }
    Err(ReadError::Missing { path: argument.to_owned() })
}

/// Whether a file name is one of YAML or JSON.
pub fn is_manifest(path: &Path) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| matches!(e, "yaml" | "yml" | "json"))
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), ReadError> {
    let failed = |source| ReadError::Io { path: directory.display().to_string(), source };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let path = entry.path();
        // Links to directories are not followed, so that a circle of links ends.
        let kind = entry.file_type().map_err(failed)?;
        if hidden {
            continue;
        }
        if kind.is_dir() {
            walk(&path, found)?;
        } else if is_manifest(&path) {
            // Opening a pipe blocks until somebody writes to it, and a device may have no end. A file that cannot be
            // inspected gives an error when it is read.
            if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
                let source = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
                return Err(ReadError::Io { path: path.display().to_string(), source });
            }
            found.push(path);
        }
    }
    Ok(())
}

/// `*` and `?` in any part of the path; each part is matched against the entries of the directories found so far.
fn glob(pattern: &str) -> Result<Vec<PathBuf>, ReadError> {
    let mut roots = vec![if pattern.starts_with('/') { PathBuf::from("/") } else { PathBuf::new() }];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for root in roots {
            if !wildcard::has_wildcard(part) {
                let path = root.join(part);
                if path.exists() {
                    next.push(path);
                }
                continue;
            }
            let directory = if root.as_os_str().is_empty() { Path::new(".") } else { root.as_path() };
            let Ok(entries) = std::fs::read_dir(directory) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if !name.starts_with('.') && wildcard::matches(part, &name) {
                    next.push(root.join(name.as_ref()));
                }
            }
        }
        roots = next;
    }
    roots.retain(|path| path.is_file());
    roots.sort();
    if roots.is_empty() { Err(ReadError::NoMatch { path: pattern.to_owned() }) } else { Ok(roots) }
}

/// A file's text, or standard input's.
pub fn read(path: &Path) -> Result<Arc<SourceFile>, ReadError> {
    let name = path.display().to_string();
    let failed = |source| ReadError::Io { path: name.clone(), source };
    let mut bytes = Vec::new();
    if name == STDIN {
        io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let file = File::open(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ReadError::Missing { path: name.clone() },
            _ => failed(source),
        })?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ReadError::TooLarge { path: name });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Arc::new(SourceFile { name, text })),
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            let byte = error.as_bytes().get(offset).copied().unwrap_or_default();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            Err(ReadError::NotText { path: name, byte, offset, text })
        }
    }
}
