//! Arguments made of comma-separated parts.

use std::str::FromStr;

use ephor_expr::{Map, Value};

/// `key=value`.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) value: String,
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(format!("`{text}` is not of the form `key=value`")),
        }
    }
}

/// `name,…,key=value,…`: `N` names, then pairs.
#[derive(Debug, Clone)]
pub(super) struct Named<const N: usize> {
    pub(super) names: [String; N],
    pub(super) pairs: Vec<Pair>,
}

impl<const N: usize> FromStr for Named<N> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(str::trim);
        let names: Vec<String> =
            parts.by_ref().take(N).filter(|part| !part.is_empty() && !part.contains('=')).map(str::to_owned).collect();
        let wanted = || format!("`{text}` does not start with {N} name{}", if N == 1 { "" } else { "s" });
        let names = names.try_into().map_err(|_| wanted())?;
        let pairs: Vec<Pair> = parts.map(str::parse).collect::<Result<_, _>>()?;
        if pairs.is_empty() {
            return Err(format!("`{text}` has no `key=value`"));
        }
        Ok(Self { names, pairs })
    }
}

/// The pairs as an object.
pub(super) fn object(pairs: &[Pair]) -> Value {
    let mut map = Map::with_capacity(pairs.len());
    for pair in pairs {
        map.insert(pair.key.as_str(), pair.value.as_str());
    }
    Value::object(map)
}
