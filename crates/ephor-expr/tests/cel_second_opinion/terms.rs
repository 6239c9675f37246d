//! Types of expressions, and texts with the level they bind at.

/// The types that expressions are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Span,
    Time,
    Dyn,
    /// `list(int)`
    Ints,
    /// `list(string)`
    Texts,
    /// `map(string, int)`
    Counts,
    /// `map(int, string)`
    Names,
}

impl Kind {
    /// Bool is there more than once, as it has the most operators.
    pub(crate) const ALL: [Kind; 15] = [
        Kind::Bool,
        Kind::Bool,
        Kind::Bool,
        Kind::Int,
        Kind::Uint,
        Kind::Double,
        Kind::Text,
        Kind::Bytes,
        Kind::Span,
        Kind::Time,
        Kind::Dyn,
        Kind::Ints,
        Kind::Texts,
        Kind::Counts,
        Kind::Names,
    ];
    pub(crate) const SCALARS: [Kind; 8] =
        [Kind::Int, Kind::Text, Kind::Bool, Kind::Uint, Kind::Double, Kind::Bytes, Kind::Span, Kind::Time];
    pub(crate) const NUMBERS: [Kind; 3] = [Kind::Int, Kind::Uint, Kind::Double];
    pub(crate) const SIZED: [Kind; 6] = [Kind::Text, Kind::Ints, Kind::Texts, Kind::Counts, Kind::Names, Kind::Bytes];
    /// What macros iterate, with the type of the variable.
    pub(crate) const RANGES: [(Kind, Kind); 4] =
        [(Kind::Ints, Kind::Int), (Kind::Texts, Kind::Text), (Kind::Counts, Kind::Text), (Kind::Names, Kind::Int)];

    pub(crate) fn variables(self) -> &'static [&'static str] {
        match self {
            Kind::Bool => &["b"],
            Kind::Int => &["i", "j"],
            Kind::Uint => &["u"],
            Kind::Double => &["d"],
            Kind::Text => &["s", "t"],
            Kind::Bytes => &["y"],
            Kind::Span => &["span"],
            Kind::Time => &["time"],
            Kind::Dyn => &["x", "object"],
            Kind::Ints => &["ints"],
            Kind::Texts => &["texts"],
            Kind::Counts => &["counts"],
            Kind::Names => &["names"],
        }
    }
}

/// How tightly operators bind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Ternary,
    Or,
    And,
    Relation,
    Sum,
    Product,
    Unary,
    Primary,
}

/// A part of an expression.
pub(crate) struct Term {
    pub(crate) text: String,
    pub(crate) level: Level,
}

impl Term {
    pub(crate) fn new(text: impl Into<String>, level: Level) -> Self {
        Self { text: text.into(), level }
    }

    pub(crate) fn primary(text: impl Into<String>) -> Self {
        Self::new(text, Level::Primary)
    }

    /// Its text as an operand of an operator of that level: in parentheses only where they are needed, so that both
    /// engines have to agree how operators bind.
    pub(crate) fn at(&self, level: Level) -> String {
        if self.level < level { format!("({})", self.text) } else { self.text.clone() }
    }
}
