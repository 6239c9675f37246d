//! Empty blocks of rules, which count as absent.
//!
//! Older versions of upstream store every rule with `mutate: {}` and `generate: {clone: {}, cloneList: {}}`, whatever
//! it does, and print the rules of `status.autogen` in this form.

use serde::{Deserialize, Deserializer};

/// Decodes an optional block; one without content is `None`.
pub(super) fn filled<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default + PartialEq,
{
    Ok(Option::<T>::deserialize(deserializer)?.filter(|block| *block != T::default()))
}
