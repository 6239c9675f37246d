//! The shared libraries that a binary asks for, as the machine's loader finds them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The libraries of `binary` and its loader; none if it is linked statically.
pub(super) fn of(binary: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(binary).output().context("cannot run ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let told = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        // So says ldd of a static binary, with exit code 1.
        return if told.contains("not a dynamic executable") { Ok(Vec::new()) } else { bail!("ldd: {told}") };
    }
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        // `name => /path (address)`, `/path (address)` for the loader, and the kernel's own without a path.
        let place = line.split_once(" => ").map_or(line, |(_, place)| place);
        if place.starts_with("not found") {
            bail!("a library is missing: {line}");
        }
        let path = place.split(" (").next().unwrap_or_default();
        if path.starts_with('/') {
            found.push(PathBuf::from(path));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ldd_are_paths() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x00007f)\n\t/lib64/ld-linux.so.2 (0x0)\n";
        assert_eq!(parse(text).unwrap(), [PathBuf::from("/lib/x/libc.so.6"), PathBuf::from("/lib64/ld-linux.so.2")]);
        assert_eq!(parse("\tstatically linked\n").unwrap(), Vec::<PathBuf>::new());
        assert!(parse("\tlibz.so => not found\n").is_err());
    }
}
