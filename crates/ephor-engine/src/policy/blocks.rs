//! Empty blocks of rules, which count as absent.
//!
//! Older versions of upstream store every rule with `mutate: {}` and `generate: {clone: {}, cloneList: {}}`, whatever
//! it does, and print the rules of `status.autogen` in this form. API servers with definitions of 1.13 and later add
//! `allowExistingViolations: true` to the `validate: {}` among them.

use serde::{Deserialize, Deserializer};

use super::Validate;

/// Decodes an optional block; one without content is `None`.
pub(super) fn filled<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default + PartialEq,
{
    Ok(Option::<T>::deserialize(deserializer)?.filter(|block| *block != T::default()))
}

/// The same for `validate`, where a default that API servers add is no content either.
pub(super) fn filled_validate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Validate>, D::Error> {
    let defaulted = Validate { allow_existing_violations: Some(true), ..Validate::default() };
    Ok(filled(deserializer)?.filter(|validate| *validate != defaulted))
}
