//! The operators of conditions.

use ephor_expr::Str;
use ephor_expr::scalar::nearest::nearest;

/// How a condition compares its key with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `Equals`, also written `Equal`.
    Equals,
    /// `NotEquals`, also written `NotEqual`.
    NotEquals,
    /// `In`; deprecated for `AnyIn` and `AllIn`.
    In,
    /// Some element of the key is in the value.
    AnyIn,
    /// All elements of the key are in the value.
    AllIn,
    /// `NotIn`; deprecated for `AnyNotIn` and `AllNotIn`.
    NotIn,
    /// Some element of the key is not in the value.
    AnyNotIn,
    /// No element of the key is in the value.
    AllNotIn,
    /// Numbers, quantities, durations and versions.
    GreaterThan,
    /// Numbers, quantities, durations and versions.
    GreaterThanOrEquals,
    /// Numbers, quantities, durations and versions.
    LessThan,
    /// Numbers, quantities, durations and versions.
    LessThanOrEquals,
    /// Durations; deprecated for `GreaterThan`.
    DurationGreaterThan,
    /// Durations; deprecated for `GreaterThanOrEquals`.
    DurationGreaterThanOrEquals,
    /// Durations; deprecated for `LessThan`.
    DurationLessThan,
    /// Durations; deprecated for `LessThanOrEquals`.
    DurationLessThanOrEquals,
}

/// A word that names no operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown operator `{word}`")]
pub struct UnknownOperator {
    /// The word.
    pub word: Str,
    /// The operator that was probably meant, if one is near.
    pub nearest: Option<&'static str>,
}

const NAMES: [(&str, Operator); 18] = [
    ("Equals", Operator::Equals),
    ("Equal", Operator::Equals),
    ("NotEquals", Operator::NotEquals),
    ("NotEqual", Operator::NotEquals),
    ("AnyIn", Operator::AnyIn),
    ("AllIn", Operator::AllIn),
    ("AnyNotIn", Operator::AnyNotIn),
    ("AllNotIn", Operator::AllNotIn),
    ("GreaterThan", Operator::GreaterThan),
    ("GreaterThanOrEquals", Operator::GreaterThanOrEquals),
    ("LessThan", Operator::LessThan),
    ("LessThanOrEquals", Operator::LessThanOrEquals),
    ("In", Operator::In),
    ("NotIn", Operator::NotIn),
    ("DurationGreaterThan", Operator::DurationGreaterThan),
    ("DurationGreaterThanOrEquals", Operator::DurationGreaterThanOrEquals),
    ("DurationLessThan", Operator::DurationLessThan),
    ("DurationLessThanOrEquals", Operator::DurationLessThanOrEquals),
];

impl Operator {
    /// The operator with exactly this name.
    pub fn parse(word: &str) -> Result<Self, UnknownOperator> {
        match NAMES.iter().find(|(name, _)| *name == word) {
            Some((_, operator)) => Ok(*operator),
            None => Err(UnknownOperator { word: word.into(), nearest: nearest(word, Self::names()) }),
        }
    }

    /// Its name; of two the current one.
    pub fn as_str(self) -> &'static str {
        NAMES.iter().find(|(_, operator)| *operator == self).map_or("", |(name, _)| name)
    }

    /// All names that [`Operator::parse`] takes, those to prefer first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Whether it holds if something is *not* there or *not* equal.
    pub fn is_negative(self) -> bool {
        self.asks_for_absence() || self == Self::NotEquals
    }

    /// Whether it holds if something is *not* in a list.
    pub(super) fn asks_for_absence(self) -> bool {
        matches!(self, Self::AnyNotIn | Self::AllNotIn | Self::NotIn)
    }

    /// Whether users are told to write another operator instead.
    pub fn is_deprecated(self) -> bool {
        matches!(
            self,
            Self::In
                | Self::NotIn
                | Self::DurationGreaterThan
                | Self::DurationGreaterThanOrEquals
                | Self::DurationLessThan
                | Self::DurationLessThanOrEquals
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact_and_have_one_meaning() {
        for name in Operator::names() {
            let operator = Operator::parse(name).unwrap();
            assert_eq!(Operator::parse(operator.as_str()), Ok(operator));
        }
        assert_eq!(Operator::parse("Equal").unwrap().as_str(), "Equals");
        assert!(Operator::parse("equals").is_err());
    }

    #[test]
    fn a_misspelt_operator_comes_with_the_nearest() {
        for (word, nearest) in [
            ("equals", Some("Equals")),
            ("NotEqal", Some("NotEqual")),
            ("anynotin", Some("AnyNotIn")),
            ("GreaterThanOrEqual", Some("GreaterThanOrEquals")),
            ("LesThan", Some("LessThan")),
            ("in", Some("In")),
            ("==", None),
            ("Matches", None),
            ("", None),
        ] {
            assert_eq!(Operator::parse(word).unwrap_err().nearest, nearest, "{word}");
        }
    }
}
