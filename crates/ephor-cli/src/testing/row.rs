//! What a test says about one expectation and one resource.

use ephor_engine::outcome::Verdict;
use ephor_expr::Str;
use ephor_expr::yaml::Position;

/// Whether one expectation is met for one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The policy, as the test writes it.
    pub policy: Str,
    /// The rule, as the test writes it, or as it is called if the test names none.
    pub rule: Str,
    /// Where the test file asks for it.
    pub at: Position,
    /// The resource: API version, kind, namespace and name.
    pub resource: String,
    /// Whether it is met.
    pub passed: bool,
    /// Why, in a word.
    pub reason: Reason,
    /// The rule's message, or what is wrong with the expectation.
    pub message: String,
    /// How the object differs from the expected one.
    pub diff: Option<String>,
}

/// Why a row passes or fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The verdict is the wanted one, and so are objects that are compared.
    Ok,
    /// The rule does not apply to the resource, and `skip` is wanted.
    Excluded,
    /// Another verdict.
    Want {
        /// What is wanted.
        want: Verdict,
        /// What came.
        got: Verdict,
    },
    /// The policy, rule or resource does not exist.
    NotFound,
    /// The policy was refused.
    InvalidPolicy,
    /// The object after is not the expected one.
    ResourceDiff,
    /// The expected object cannot be had.
    ResourceError,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Ok => f.write_str("Ok"),
            Reason::Excluded => f.write_str("Excluded"),
            Reason::Want { want, got } => write!(f, "Want {}, got {}", want.as_str(), got.as_str()),
            Reason::NotFound => f.write_str("Not found"),
            Reason::InvalidPolicy => f.write_str("Invalid policy"),
            Reason::ResourceDiff => f.write_str("Resource diff"),
            Reason::ResourceError => f.write_str("Resource error"),
        }
    }
}
