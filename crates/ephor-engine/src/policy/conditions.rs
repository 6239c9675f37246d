//! Preconditions and deny conditions.

use ephor_expr::{Str, Value};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// A block of conditions: `{any, all}`, or the old flat list, which means all.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Conditions {
    /// The current form.
    AnyAll(AnyAll),
    /// The old form.
    List(Vec<Condition>),
}

/// `any` and `all` must both hold; an absent part holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AnyAll {
    /// At least one must hold; an empty list never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<Condition>>,
    /// All must hold; an empty list does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<Condition>>,
}

/// One comparison. Absent and null are the same here; [`crate::check`] refuses both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    /// The left side; may hold variables.
    pub key: Option<Value>,
    /// The operator's name; see [`crate::conditions::Operator`].
    pub operator: Option<Str>,
    /// The right side; may hold variables.
    pub value: Option<Value>,
    /// Shown when the condition decides; may hold variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Str>,
}

// A list or an object: a structural schema cannot say that of one field, so anything goes; decoding says it.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for Conditions {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Conditions".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!(true)
    }
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Block;
        impl<'de> Visitor<'de> for Block {
            type Value = Conditions;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("`any` and `all`, or a list of conditions")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Conditions, A::Error> {
                AnyAll::deserialize(MapAccessDeserializer::new(map)).map(Conditions::AnyAll)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Conditions, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Conditions::List(items))
            }
        }
        d.deserialize_any(Block)
    }
}
