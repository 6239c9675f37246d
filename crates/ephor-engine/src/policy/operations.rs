//! Sets of operations.

use ephor_expr::Value;

use super::Operation;

/// A set of operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operations(u8);

/// In the order of their words.
const ORDER: [Operation; 4] = [Operation::Connect, Operation::Create, Operation::Delete, Operation::Update];

fn bit(operation: Operation) -> u8 {
    match operation {
        Operation::Connect => 1,
        Operation::Create => 2,
        Operation::Delete => 4,
        Operation::Update => 8,
    }
}

impl Operations {
    /// No operation.
    pub const NONE: Self = Self(0);
    /// Every operation.
    pub const ALL: Self = Self(15);
    /// What changes an object or makes one.
    pub const WRITES: Self = Self(2 | 8);
    /// Everything but connecting.
    pub const CHANGES: Self = Self(2 | 4 | 8);

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those that `other` does not have.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The words, sorted.
    pub fn words(self) -> Value {
        ORDER.iter().filter(|o| self.0 & bit(**o) != 0).map(|o| o.as_str()).collect::<Vec<_>>().into()
    }
}

impl FromIterator<Operation> for Operations {
    fn from_iter<I: IntoIterator<Item = Operation>>(operations: I) -> Self {
        Self(operations.into_iter().fold(0, |set, operation| set | bit(operation)))
    }
}
