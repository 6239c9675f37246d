//! Typed Rust data as values: the way back from [`super::decode`].

use std::fmt::Display;

use serde::ser::{
    self, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple, SerializeTupleStruct,
    Serializer,
};

use super::{Map, Str, Value};

/// Why data cannot be written as a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EncodeError(String);

impl ser::Error for EncodeError {
    fn custom<T: Display>(message: T) -> Self {
        EncodeError(message.to_string())
    }
}

/// Writes `data` as a value, as JSON would have it. Enums without content become strings; bytes, keys that are no
/// strings, and variants with content are errors.
pub fn encode<T: Serialize + ?Sized>(data: &T) -> Result<Value, EncodeError> {
    data.serialize(Encoder)
}

fn unsupported<T>(what: &str) -> Result<T, EncodeError> {
    Err(EncodeError(format!("{what} cannot be written as a value")))
}

struct Encoder;

impl Serializer for Encoder {
    type Ok = Value;
    type Error = EncodeError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Impossible<Value, EncodeError>;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Impossible<Value, EncodeError>;

    fn serialize_bool(self, b: bool) -> Result<Value, EncodeError> {
        Ok(Value::Bool(b))
    }
    fn serialize_i8(self, n: i8) -> Result<Value, EncodeError> {
        Ok(Value::Int(n.into()))
    }
    fn serialize_i16(self, n: i16) -> Result<Value, EncodeError> {
        Ok(Value::Int(n.into()))
    }
    fn serialize_i32(self, n: i32) -> Result<Value, EncodeError> {
        Ok(Value::Int(n.into()))
    }
    fn serialize_i64(self, n: i64) -> Result<Value, EncodeError> {
        Ok(Value::Int(n))
    }
    fn serialize_u8(self, n: u8) -> Result<Value, EncodeError> {
        Ok(Value::Int(n.into()))
    }
    fn serialize_u16(self, n: u16) -> Result<Value, EncodeError> {
        Ok(Value::Int(n.into()))
    }
    fn serialize_u32(self, n: u32) -> Result<Value, EncodeError> {
        Ok(Value::Int(n.into()))
    }
    fn serialize_u64(self, n: u64) -> Result<Value, EncodeError> {
        Ok(i64::try_from(n).map_or(Value::Float(n as f64), Value::Int))
    }
    fn serialize_f32(self, n: f32) -> Result<Value, EncodeError> {
        self.serialize_f64(n.into())
    }
    fn serialize_f64(self, n: f64) -> Result<Value, EncodeError> {
        if n.is_finite() { Ok(Value::Float(n)) } else { unsupported("a number that is not finite") }
    }
    fn serialize_char(self, c: char) -> Result<Value, EncodeError> {
        Ok(Value::from(c.to_string()))
    }
    fn serialize_str(self, s: &str) -> Result<Value, EncodeError> {
        Ok(Value::from(s))
    }
    fn serialize_bytes(self, _: &[u8]) -> Result<Value, EncodeError> {
        unsupported("a string of bytes")
    }
    fn serialize_none(self) -> Result<Value, EncodeError> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, inner: &T) -> Result<Value, EncodeError> {
        inner.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, EncodeError> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, EncodeError> {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, EncodeError> {
        Ok(Value::from(variant))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, inner: &T) -> Result<Value, EncodeError> {
        inner.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Value, EncodeError> {
        unsupported("a variant with content")
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Items, EncodeError> {
        Ok(Items(Vec::with_capacity(len.unwrap_or(0))))
    }
    fn serialize_tuple(self, len: usize) -> Result<Items, EncodeError> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Items, EncodeError> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, EncodeError> {
        unsupported("a variant with content")
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Members, EncodeError> {
        Ok(Members { map: Map::with_capacity(len.unwrap_or(0)), key: None })
    }
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Members, EncodeError> {
        self.serialize_map(Some(len))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, EncodeError> {
        unsupported("a variant with content")
    }
}

struct Items(Vec<Value>);

impl SerializeSeq for Items {
    type Ok = Value;
    type Error = EncodeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), EncodeError> {
        self.0.push(encode(item)?);
        Ok(())
    }
    fn end(self) -> Result<Value, EncodeError> {
        Ok(Value::array(self.0))
    }
}

impl SerializeTuple for Items {
    type Ok = Value;
    type Error = EncodeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), EncodeError> {
        SerializeSeq::serialize_element(self, item)
    }
    fn end(self) -> Result<Value, EncodeError> {
        SerializeSeq::end(self)
    }
}

impl SerializeTupleStruct for Items {
    type Ok = Value;
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), EncodeError> {
        SerializeSeq::serialize_element(self, item)
    }
    fn end(self) -> Result<Value, EncodeError> {
        SerializeSeq::end(self)
    }
}

struct Members {
    map: Map,
    key: Option<Str>,
}

impl SerializeMap for Members {
    type Ok = Value;
    type Error = EncodeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        match encode(key)? {
            Value::String(key) => {
                self.key = Some(key);
                Ok(())
            }
            _ => unsupported("a key that is no string"),
        }
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        let Some(key) = self.key.take() else { return unsupported("a member without a key") };
        self.map.insert(key, encode(value)?);
        Ok(())
    }
    fn end(self) -> Result<Value, EncodeError> {
        Ok(Value::object(self.map))
    }
}

impl SerializeStruct for Members {
    type Ok = Value;
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), EncodeError> {
        self.map.insert(key, encode(value)?);
        Ok(())
    }
    fn end(self) -> Result<Value, EncodeError> {
        Ok(Value::object(self.map))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::decode;
    use super::*;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Sample {
        first_name: String,
        size: Option<u8>,
        kind: Kind,
        pairs: BTreeMap<String, Vec<i64>>,
        rest: Value,
    }

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    enum Kind {
        Small,
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same() {
        let json = r#"{"firstName":"a","kind":"SMALL","pairs":{"x":[1,2]},"rest":{"b":[true,null,1.5]},"size":3}"#;
        let value = Value::from_json(json).unwrap();
        let sample: Sample = decode(&value).unwrap();
        assert_eq!(encode(&sample).unwrap().to_json(), json);
    }

    #[test]
    fn what_json_cannot_say_is_an_error() {
        assert_eq!(
            encode(&BTreeMap::from([(1, "a")])).unwrap_err().to_string(),
            "a key that is no string cannot be written as a value"
        );
        assert!(encode(&f64::NAN).is_err());
    }
}
