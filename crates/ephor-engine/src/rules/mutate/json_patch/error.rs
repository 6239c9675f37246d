//! Why a JSON patch cannot be read or applied. The texts are those of the reference.

use ephor_expr::budget::BudgetError;
use ephor_expr::yaml::YamlError;

use crate::rules::mutate::limits::MAX_LEVELS;

/// Why a JSON patch cannot be read or applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// The text is neither YAML nor JSON.
    #[error("failed to convert patchesJSON6902 to JSON: {0}")]
    Text(#[from] YamlError),
    /// The patch is no list.
    #[error("failed to decode patches: json: cannot unmarshal {0} into Go value of type jsonpatch.Patch")]
    NotAList(&'static str),
    /// An item of the patch is no object.
    #[error("failed to decode patches: json: cannot unmarshal {0} into Go value of type jsonpatch.Operation")]
    NotAnOperation(&'static str),
    /// An item of the patch is no operation.
    #[error("failed to decode patches: invalid operation {operation}: {fault}")]
    InvalidOperation {
        /// The item, as JSON.
        operation: String,
        /// What is wrong with it.
        fault: OperationFault,
    },
    /// The patch has too many operations.
    #[error("the patch has more than {max} operations")]
    TooManyOperations {
        /// How many are allowed.
        max: usize,
    },
    /// The copies of the patch are too large together.
    #[error("the `copy` operations of the patch add more than {max} bytes")]
    CopiesTooMuch {
        /// How many bytes are allowed.
        max: usize,
    },
    /// The work allowed is used up.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// `add` cannot get to its place.
    #[error("add operation does not apply: doc is missing path: {0:?}: missing value")]
    AddMissingPath(String),
    /// The parent of what should be removed is missing.
    #[error("remove operation does not apply: doc is missing path: {0:?}: missing value")]
    RemoveMissingPath(String),
    /// Something on the way to a place of `add` is neither a map nor a list.
    #[error("invalid state detected")]
    ScalarParent,
    /// `add` would have to create a list for a negative index other than -1.
    #[error("Unable to ensure path for negative index other than -1: {0}: invalid index referenced")]
    NegativeIndexInNewList(i64),
    /// The parent of what should be replaced is missing.
    #[error("replace operation does not apply: doc is missing path: {0}: missing value")]
    ReplaceMissingPath(String),
    /// What should be replaced is missing.
    #[error("replace operation does not apply: doc is missing key: {0}: missing value")]
    ReplaceMissingKey(String),
    /// The parent of what should be tested is missing.
    #[error("test operation does not apply: is missing path: {0}: missing value")]
    TestMissingPath(String),
    /// A tested value is another.
    #[error("testing value {0} failed: test failed")]
    TestFailed(String),
    /// The parent of what should be moved is missing.
    #[error("move operation does not apply: doc is missing from path: {0}: missing value")]
    MoveMissingFrom(String),
    /// The document itself cannot be moved.
    #[error("unable to move entire document to another path: invalid state detected")]
    MoveRoot,
    /// The parent of what should be copied is missing.
    #[error("copy operation does not apply: doc is missing from path: {0:?}: missing value")]
    CopyMissingFrom(String),
    /// What should be copied is missing.
    #[error("error in copy for from: '{from}': {fault}")]
    CopyFrom {
        /// The pointer.
        from: String,
        /// What is wrong there.
        fault: PlaceFault,
    },
    /// The copy has no place.
    #[error("error while adding value during copy: {0}")]
    CopyTo(PlaceFault),
    /// The parent of the place to move or copy to is missing.
    #[error("{op} operation does not apply: doc is missing destination path: {path}: missing value")]
    MissingDestination {
        /// `move` or `copy`.
        op: &'static str,
        /// The pointer.
        path: String,
    },
    /// An index or key does not fit the value it applies to.
    #[error("error in {op} for path: '{path}': {fault}")]
    Place {
        /// The operation.
        op: &'static str,
        /// The pointer or its last step.
        path: String,
        /// What is wrong there.
        fault: PlaceFault,
    },
    /// The document itself can only become a map or a list.
    #[error("{op} operation value must be object or array")]
    ScalarRoot {
        /// The operation.
        op: &'static str,
    },
    /// The patched document would nest too deeply.
    #[error("the patched document nests deeper than {MAX_LEVELS} levels")]
    TooDeep,
    /// The patch copies too much, or fills lists with too many nulls.
    #[error("the patch builds too large a document")]
    TooLarge,
}

/// What is wrong with an item of a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperationFault {
    /// `op` is none of the six.
    #[error("unsupported operation")]
    Unsupported,
    /// No `path`.
    #[error("failed to decode 'path': operation missing path field: missing value")]
    MissingPath,
    /// No `from`.
    #[error("failed to decode 'from': operation, missing from field: missing value")]
    MissingFrom,
    /// No `value`.
    #[error("failed to decode 'value': operation, missing value field: missing value")]
    MissingValue,
    /// `path` or `from` is no string.
    #[error("failed to decode '{field}': json: cannot unmarshal {found} into Go value of type string")]
    NotAString {
        /// The field.
        field: &'static str,
        /// The type of its value.
        found: &'static str,
    },
}

/// Why a pointer's last step does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceFault {
    /// A step into a list is no number.
    #[error("strconv.Atoi: parsing {0:?}: invalid syntax")]
    NotANumber(String),
    /// A step into a list is a number beyond 64 bits.
    #[error("strconv.Atoi: parsing {0:?}: value out of range")]
    NumberOutOfRange(String),
    /// The same of a step where something is to be added.
    #[error("value was not a proper array index: '{step}': {fault}")]
    NotAnIndex {
        /// The step.
        step: String,
        /// What is wrong with it.
        fault: Box<PlaceFault>,
    },
    /// An index beyond either end.
    #[error("Unable to access invalid index: {0}: invalid index referenced")]
    OutOfBounds(i64),
    /// A member that is not there.
    #[error("unable to get nonexistent key: {0}: missing value")]
    MissingKey(String),
    /// The same of a member that should be removed.
    #[error("Unable to remove nonexistent key: {0}: missing value")]
    NothingToRemove(String),
}
