//! Static types of expressions, and the text form in which declarations name them.

use std::fmt;
use std::sync::Arc;

use crate::Str;

/// The static type of an expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// The type of an expression that has no type; the checker has reported why.
    Error,
    /// Known only at run time.
    Dyn,
    /// `google.protobuf.Any`: as `dyn`, under its own name.
    Any,
    /// The type of `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// An unsigned 64-bit integer.
    Uint,
    /// A 64-bit floating point number.
    Double,
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A span of time.
    Duration,
    /// A scalar or null.
    Wrapper(Arc<Type>),
    /// A list and its element type.
    List(Arc<Type>),
    /// A map: key type and value type.
    Map(Arc<(Type, Type)>),
    /// A value that may be absent.
    Optional(Arc<Type>),
    /// The type of a type, and which one if known.
    TypeOf(Option<Arc<Type>>),
    /// A type without fields that only functions understand, for example `net.IP`.
    Opaque(Str),
    /// A type with declared fields.
    Object(Str),
    /// A type parameter of a declaration: `<A>`.
    Param(Str),
    /// A type variable of the checker.
    Var(u32),
}

/// Names of scalar types and of the message types that stand for them.
const NAMED: [(&str, Type); 26] = [
    ("dyn", Type::Dyn),
    ("any", Type::Any),
    ("google.protobuf.Any", Type::Any),
    ("google.protobuf.Value", Type::Dyn),
    ("null_type", Type::Null),
    ("null", Type::Null),
    ("bool", Type::Bool),
    ("int", Type::Int),
    ("uint", Type::Uint),
    ("double", Type::Double),
    ("string", Type::String),
    ("bytes", Type::Bytes),
    ("timestamp", Type::Timestamp),
    ("google.protobuf.Timestamp", Type::Timestamp),
    ("duration", Type::Duration),
    ("google.protobuf.Duration", Type::Duration),
    ("type", Type::TypeOf(None)),
    ("google.protobuf.BoolValue", Type::Error),
    ("google.protobuf.BytesValue", Type::Error),
    ("google.protobuf.DoubleValue", Type::Error),
    ("google.protobuf.FloatValue", Type::Error),
    ("google.protobuf.Int32Value", Type::Error),
    ("google.protobuf.Int64Value", Type::Error),
    ("google.protobuf.StringValue", Type::Error),
    ("google.protobuf.UInt32Value", Type::Error),
    ("google.protobuf.UInt64Value", Type::Error),
];

impl Type {
    /// A list of `item`.
    pub fn list(item: Type) -> Self {
        Type::List(Arc::new(item))
    }

    /// A map from `key` to `value`.
    pub fn map(key: Type, value: Type) -> Self {
        Type::Map(Arc::new((key, value)))
    }

    /// An optional `inner`.
    pub fn optional(inner: Type) -> Self {
        Type::Optional(Arc::new(inner))
    }

    /// The type whose only value is the type `of`.
    pub fn type_of(of: Type) -> Self {
        Type::TypeOf(Some(Arc::new(of)))
    }

    /// A nullable `scalar`.
    pub fn wrapper(scalar: Type) -> Self {
        Type::Wrapper(Arc::new(scalar))
    }

    /// The scalar that the wrapper message `name` holds.
    pub(super) fn wrapped(name: &str) -> Option<Type> {
        Some(match name.strip_prefix("google.protobuf.")? {
            "BoolValue" => Type::Bool,
            "BytesValue" => Type::Bytes,
            "DoubleValue" | "FloatValue" => Type::Double,
            "Int32Value" | "Int64Value" => Type::Int,
            "StringValue" => Type::String,
            "UInt32Value" | "UInt64Value" => Type::Uint,
            _ => return None,
        })
    }

    /// Reads a type as declarations write it: `list(<A>)`, `map(string, dyn)`, `net.IP`. A name that is no type of
    /// the language is an opaque type. None if the text is malformed.
    pub fn parse(text: &str) -> Option<Type> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix('<') {
            return Some(Type::Param(name.strip_suffix('>')?.into()));
        }
        let Some((name, rest)) = text.split_once('(') else {
            if let Some(scalar) = Type::wrapped(text) {
                return Some(Type::wrapper(scalar));
            }
            return Some(match text {
                "" => return None,
                "list" | "google.protobuf.ListValue" => Type::list(Type::Dyn),
                "map" => Type::map(Type::Dyn, Type::Dyn),
                "google.protobuf.Struct" => Type::map(Type::String, Type::Dyn),
                "optional_type" => Type::optional(Type::Dyn),
                _ => NAMED
                    .iter()
                    .find(|(name, _)| *name == text)
                    .map_or_else(|| Type::Opaque(text.into()), |(_, kind)| kind.clone()),
            });
        };
        let inner = rest.strip_suffix(')')?;
        let arguments: Vec<Type> = split_arguments(inner).into_iter().map(Type::parse).collect::<Option<_>>()?;
        Some(match (name, arguments.as_slice()) {
            ("list", [item]) => Type::list(item.clone()),
            ("map", [key, value]) => Type::map(key.clone(), value.clone()),
            ("optional_type" | "optional", [inner]) => Type::optional(inner.clone()),
            ("type", [of]) => Type::type_of(of.clone()),
            ("wrapper", [of]) => Type::wrapper(of.clone()),
            _ => return None,
        })
    }

    /// The type as the checker's messages print it: short names for time types and `null`.
    pub fn message(&self) -> Message<'_> {
        Message(self)
    }

    /// Whether it says nothing before run time.
    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn)
    }

    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// The inner type of an optional, and whether it is one.
    pub(super) fn unwrap_optional(&self) -> (&Type, bool) {
        match self {
            Type::Optional(inner) => (inner, true),
            other => (other, false),
        }
    }

    /// The name of its values' run-time type.
    pub fn runtime_name(&self) -> &str {
        match self {
            Type::Error => "!error!",
            Type::Dyn => "dyn",
            Type::Any => "google.protobuf.Any",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Duration => "google.protobuf.Duration",
            Type::Wrapper(of) => of.runtime_name(),
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Optional(_) => "optional_type",
            Type::TypeOf(_) => "type",
            Type::Opaque(name) | Type::Object(name) | Type::Param(name) => name,
            Type::Var(_) => "var",
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, message: bool) -> fmt::Result {
        match self {
            Type::Any if message => f.write_str("any"),
            Type::Null if message => f.write_str("null"),
            Type::Timestamp if message => f.write_str("timestamp"),
            Type::Duration if message => f.write_str("duration"),
            Type::Wrapper(of) => nested(f, "wrapper", &[of], message),
            Type::List(item) => nested(f, "list", &[item], message),
            Type::Map(pair) => nested(f, "map", &[&pair.0, &pair.1], message),
            Type::Optional(inner) => nested(f, "optional_type", &[inner], message),
            Type::TypeOf(Some(of)) => nested(f, "type", &[of], message),
            Type::Var(n) => write!(f, "_var{n}"),
            other => f.write_str(other.runtime_name()),
        }
    }
}

fn nested(f: &mut fmt::Formatter<'_>, name: &str, inner: &[&Type], message: bool) -> fmt::Result {
    write!(f, "{name}(")?;
    for (i, kind) in inner.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { ", " })?;
        kind.print(f, message)?;
    }
    f.write_str(")")
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f, false)
    }
}

/// Prints a type for a message; see [`Type::message`].
pub struct Message<'a>(&'a Type);

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.print(f, true)
    }
}

/// Splits at the commas that stand outside of parentheses.
pub(super) fn split_arguments(text: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.trim().is_empty() {
        let mut depth = 0_usize;
        let end = rest.find(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        let (part, tail) = end.and_then(|i| rest.split_at_checked(i)).unwrap_or((rest, ""));
        parts.push(part.trim());
        rest = tail.strip_prefix(',').unwrap_or(tail);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_as_they_parse() {
        for text in ["list(int)", "map(string, list(dyn))", "optional_type(google.protobuf.Any)", "net.IP", "type(int)"]
        {
            assert_eq!(Type::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Type::parse("map(string, null_type)").unwrap().message().to_string(), "map(string, null)");
        assert_eq!(Type::parse("google.protobuf.Timestamp").unwrap().message().to_string(), "timestamp");
        assert_eq!(Type::parse("list(int"), None);
    }
}
