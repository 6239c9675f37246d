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

impl Known {
    /// Whether it depends on the moment: such a scenario may pass.
    pub fn is_unsteady(&self) -> bool {
        self.reason.starts_with("unsteady: ")
    }
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
    /// A line has another form.
    #[error("{0:?} is not `scenario<TAB>passes|fails<TAB>reason`")]
    Difference(String),
    /// What is listed as a difference passes on a real API server too.
    #[error("{0} passes in both: take it off the list of differences")]
    NoDifference(String),
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

/// Where a sandbox differs from a real API server in the outcome of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The scenario's directory.
    pub scenario: String,
    /// Whether it passes in a sandbox.
    pub passes: bool,
    /// Why.
    pub reason: String,
}

/// Reads differences: `scenario<TAB>passes|fails<TAB>reason`, comments after `#`.
pub fn read_differences(path: &Path) -> Result<Vec<Difference>, KnownError> {
    let text = std::fs::read_to_string(path).map_err(|error| KnownError::File(path.display().to_string(), error))?;
    parse_differences(&text)
}

fn parse_differences(text: &str) -> Result<Vec<Difference>, KnownError> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.map(|line| {
        let passes = |word: &str| match word {
            "passes" => Some(true),
            "fails" => Some(false),
            _ => None,
        };
        match line.split('\t').collect::<Vec<_>>().as_slice() {
            [scenario, word, reason] if !reason.trim().is_empty() => passes(word).map(|passes| Difference {
                scenario: (*scenario).to_owned(),
                passes,
                reason: (*reason).to_owned(),
            }),
            _ => None,
        }
        .ok_or_else(|| KnownError::Difference(line.to_owned()))
    });
    entries.collect()
}

/// The failures of a sandbox: those of a real API server, and the differences. What fails in both may be listed with
/// another reason; the first difference that is none is an error.
pub fn in_sandbox(mut known: Vec<Known>, differences: Vec<Difference>) -> Result<Vec<Known>, KnownError> {
    for Difference { scenario, passes, reason } in differences {
        let listed = known.iter().position(|known| known.scenario == scenario);
        match (listed, passes) {
            (Some(listed), true) => drop(known.remove(listed)),
            (None, false) => known.push(Known { scenario, reason }),
            (Some(listed), false) => known[listed].reason = reason,
            (None, true) => return Err(KnownError::NoDifference(scenario)),
        }
    }
    Ok(known)
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

    #[test]
    fn a_sandbox_fails_where_a_server_does_but_for_the_differences() {
        let known = parse("a\tx\nb\tx\n").unwrap();
        let failing = |differences: &str| {
            let failing = in_sandbox(known.clone(), parse_differences(differences).unwrap());
            failing.map(|known| known.into_iter().map(|known| known.scenario).collect::<Vec<_>>())
        };
        assert_eq!(failing("a\tpasses\tno kubelet\nc\tfails\tno kubelet\n").unwrap(), ["b", "c"]);
        assert_eq!(failing("a\tfails\tanother reason").unwrap(), ["a", "b"]);
        assert!(failing("c\tpasses\tx").is_err());
        for bad in ["a\tfails", "a\tperhaps\tx", "a\tfails\t"] {
            assert!(parse_differences(bad).is_err(), "{bad}");
        }
    }
}
