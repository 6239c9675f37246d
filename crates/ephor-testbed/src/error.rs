//! What can go wrong with a control plane.

use std::path::PathBuf;

/// Why there is no control plane, or no longer one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A program could not be started.
    #[error("cannot run `{program}`: {source}")]
    Run {
        /// As it was called.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Executables are missing.
    #[error("no {tools} in `{}`: run `cargo xtask cluster build`", directory.display())]
    NotBuilt {
        /// What is missing.
        tools: String,
        /// Where it should be.
        directory: PathBuf,
    },
    /// The Go compiler refused.
    #[error("cannot build `{0}`: the output of go is above")]
    Build(String),
    /// A certificate could not be made.
    #[error("cannot make certificates: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A part of the control plane ended or does not get ready.
    #[error("{part} {what}; the end of its log:\n{log}")]
    Part {
        /// The executable.
        part: String,
        /// What it does instead.
        what: &'static str,
        /// The last lines of its log.
        log: String,
    },
    /// kubectl failed.
    #[error("`kubectl {arguments}` failed: {message}")]
    Kubectl {
        /// What it was called with.
        arguments: String,
        /// What it said.
        message: String,
    },
}

impl Error {
    /// A closure for `map_err` that says which file is meant.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// A closure for `map_err` that says which program is meant.
    pub(crate) fn run(program: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let program = program.into();
        move |source| Self::Run { program, source }
    }
}
