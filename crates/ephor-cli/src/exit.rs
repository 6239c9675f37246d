//! Exit codes.

/// What a run came to, as the shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything was looked at and nothing was found.
    Clean,
    /// Everything was looked at and there are findings: violations, failed tests, bad policies in `check`.
    Findings,
    /// Something could not be done: unreadable input, a policy that cannot be loaded, wrong arguments.
    CouldNot,
    /// A code that the user chose (`--warn-exit-code`).
    Chosen(u8),
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Clean => 0,
            Exit::Findings => 1,
            Exit::CouldNot => 2,
            Exit::Chosen(code) => code,
        }
    }
}
