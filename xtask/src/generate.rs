//! Files that are derived from code, and kept in the repository so that charts and people can read them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// The folder of the definitions. Not the chart's `crds/`: what lies there Helm installs once, never upgrades, and
/// cannot be told to leave out.
const DEFINITIONS: &str = "charts/ephor/files/crds";

/// Writes the files.
pub(crate) fn write() -> Result<()> {
    let folder = crate::root()?.join(DEFINITIONS);
    std::fs::create_dir_all(&folder)?;
    let wanted = wanted()?;
    for (path, _) in existing()? {
        if !wanted.contains_key(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    for (path, text) in wanted {
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Fails if the files are not what [`write()`] would write.
pub(crate) fn check() -> Result<()> {
    let (wanted, existing) = (wanted()?, existing()?);
    let differs = |path: &&PathBuf| wanted.get(*path) != existing.get(*path);
    let paths: std::collections::BTreeSet<_> = wanted.keys().chain(existing.keys()).filter(differs).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    bail!("out of date, run `cargo xtask generate`: {}", names.join(", "))
}

fn wanted() -> Result<BTreeMap<PathBuf, String>> {
    let folder = crate::root()?.join(DEFINITIONS);
    let note = "# Made by `cargo xtask generate` from the types of crates/ephor-engine/src/policy and crates/ephor-install/src/crds.\n";
    Ok(ephor_install::crds::files()
        .into_iter()
        .map(|(name, text)| (folder.join(name), format!("{note}{text}")))
        .collect())
}

fn existing() -> Result<BTreeMap<PathBuf, String>> {
    let folder = crate::root()?.join(DEFINITIONS);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(BTreeMap::new()) };
    entries
        .map(|entry| {
            let path = entry?.path();
            let text = std::fs::read_to_string(&path)?;
            Ok((path, text))
        })
        .collect()
}
