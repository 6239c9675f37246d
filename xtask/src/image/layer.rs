//! The files of an image, as an archive that depends on nothing but them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

/// Files by path, without a slash in front.
#[derive(Debug, Default)]
pub(super) struct Layer(BTreeMap<String, (u32, Vec<u8>)>);

impl Layer {
    /// Adds an executable file.
    pub(super) fn executable(&mut self, path: &str, content: Vec<u8>) {
        self.0.insert(path.to_owned(), (0o755, content));
    }

    /// Adds a readable file.
    pub(super) fn file(&mut self, path: &str, content: Vec<u8>) {
        self.0.insert(path.to_owned(), (0o644, content));
    }

    /// The archive, folders before what is in them, owned by root, from the beginning of time.
    pub(super) fn archive(&self) -> Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        let folders: BTreeSet<&str> =
            self.0.keys().flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end])).collect();
        for folder in folders {
            let mut header = header(tar::EntryType::Directory, 0o755, 0);
            builder.append_data(&mut header, format!("{folder}/"), std::io::empty())?;
        }
        for (path, (mode, content)) in &self.0 {
            let mut header = header(tar::EntryType::Regular, *mode, content.len() as u64);
            builder.append_data(&mut header, path, content.as_slice())?;
        }
        Ok(builder.into_inner()?)
    }
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}
