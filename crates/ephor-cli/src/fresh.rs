//! Files that are written whole or not at all.
//!
//! Text goes to a new file in the same directory, which takes the place of the old one at the end. A symbolic link is
//! refused: in a directory of a stranger it may lead to any file of the user, and the stranger chooses what is written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The place of a file is taken by a symbolic link.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is a symbolic link, and files are not written through links", path.display())]
struct Link {
    path: PathBuf,
}

/// Refuses a path whose last part is a symbolic link. A directory that is meant to be one is named with a slash at its
/// end.
pub fn refuse_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, Link { path: path.to_path_buf() }))
        }
        _ => Ok(()),
    }
}

/// Gives a file another text; it keeps its permissions.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let fresh = Fresh::create(path)?;
    fresh.append(text)?;
    fresh.commit()
}

/// A file that is being written. Without [`Fresh::commit`] nothing is left of it.
#[derive(Debug)]
pub struct Fresh {
    path: PathBuf,
    /// Where its text is until the end.
    draft: PathBuf,
}

impl Fresh {
    /// Begins a file, or one in place of the one that is there.
    pub fn create(path: &Path) -> io::Result<Self> {
        refuse_link(path)?;
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.new", std::process::id()));
        let draft = path.with_file_name(name);
        // Left by a process that was killed and had the same number.
        let _ = fs::remove_file(&draft);
        OpenOptions::new().write(true).create_new(true).open(&draft)?;
        let fresh = Self { path: path.to_path_buf(), draft };
        if let Ok(old) = fs::metadata(path) {
            fs::set_permissions(&fresh.draft, old.permissions())?;
        }
        Ok(fresh)
    }

    /// Adds text.
    pub fn append(&self, text: &str) -> io::Result<()> {
        OpenOptions::new().append(true).open(&self.draft)?.write_all(text.as_bytes())
    }

    /// Puts the file in its place. A link that took the place meanwhile is replaced, not followed.
    pub fn commit(self) -> io::Result<()> {
        fs::rename(&self.draft, &self.path)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // After a commit there is none.
        let _ = fs::remove_file(&self.draft);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_at_the_end_and_keeps_its_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.yaml");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let fresh = Fresh::create(&path).unwrap();
        fresh.append("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        fresh.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        drop(Fresh::create(&path).unwrap());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn links_are_neither_followed_nor_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("a.yaml"));
        fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        let error = replace(&link, "new").unwrap_err().to_string();
        assert!(error.ends_with("a.yaml` is a symbolic link, and files are not written through links"), "{error}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        // A link that leads nowhere yet.
        fs::remove_file(&target).unwrap();
        assert!(replace(&link, "new").is_err() && !target.exists());
    }
}
