//! The list of scenarios that are known to fail, and why.

use std::path::Path;

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The scenario's directory.
    pub scenario: String,
    /// Why it fails.
    pub reason: String,
}

/// What is wrong with the list.
#[derive(Debug, thiserror::Error)]
pub enum KnownError {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    /// A line has another form.
    #[error("{0:?} is not `scenario<TAB>reason`")]
    Line(String),
}

/// Reads the list: `scenario<TAB>reason`, comments after `#`.
pub fn read(path: &Path) -> Result<Vec<Known>, KnownError> {
    let text = std::fs::read_to_string(path).map_err(|error| KnownError::File(path.display().to_string(), error))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Known>, KnownError> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.map(|line| match line.split_once('\t') {
        Some((scenario, reason)) if !reason.trim().is_empty() && !reason.contains('\t') => {
            Ok(Known { scenario: scenario.to_owned(), reason: reason.to_owned() })
        }
        _ => Err(KnownError::Line(line.to_owned())),
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_reason() {
        let known = parse("# comment\nchainsaw/a\tneeds a kubelet\n").unwrap();
        assert_eq!(known, [Known { scenario: "chainsaw/a".to_owned(), reason: "needs a kubelet".to_owned() }]);
        for bad in ["chainsaw/a", "chainsaw/a\t", "chainsaw/a\tb\tc"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
