//! What values have under keys, and how values are named in messages.

use super::super::error::EvalError;
use super::super::library::conversions::double_text;
use super::super::types::Type;
use super::super::value::Val;
use super::Eval;

/// Whether a value is of a type. Of lists and maps only the first entry is looked at, as in the reference.
pub(super) fn is_of(kind: &Type, value: &Val<'_>) -> bool {
    match (kind, value) {
        (Type::Dyn | Type::Any | Type::Param(_) | Type::Var(_) | Type::Error, _)
        | (Type::Null, Val::Null)
        | (Type::Bool, Val::Bool(_))
        | (Type::Int, Val::Int(_))
        | (Type::Uint, Val::Uint(_))
        | (Type::Double, Val::Double(_))
        | (Type::String, Val::String(_))
        | (Type::Bytes, Val::Bytes(_))
        | (Type::Timestamp, Val::Timestamp(_))
        | (Type::Duration, Val::Duration(_))
        | (Type::TypeOf(_), Val::Type(_)) => true,
        (Type::List(of), Val::List(list)) => list.get(0).is_none_or(|item| is_of(of, &item)),
        (Type::Map(of), Val::Map(map)) => {
            map.entries().next().is_none_or(|(key, item)| is_of(&of.0, &key) && is_of(&of.1, &item))
        }
        (Type::Optional(of), Val::Optional(inner)) => inner.as_ref().is_none_or(|inner| is_of(of, inner)),
        (Type::Opaque(name) | Type::Object(name), value) => value.type_name() == name.as_str(),
        _ => false,
    }
}

/// What `value` has under `key`.
pub(super) fn lookup<'v>(value: &Val<'v>, key: &Val<'_>, lenient: bool) -> Eval<Option<Val<'v>>> {
    let missing = |error: EvalError| if lenient { Ok(None) } else { Err(error) };
    match value {
        Val::Map(map) => match map.get(key) {
            Some(found) => Ok(Some(found)),
            None => missing(EvalError::NoSuchKey(show_key(key))),
        },
        Val::List(list) => {
            let index = match key {
                Val::Int(n) => *n,
                Val::Uint(n) => i64::try_from(*n).map_err(|_| EvalError::IntOverflow)?,
                Val::Double(n) if n.fract() == 0.0 => *n as i64,
                Val::Double(n) => {
                    return Err(EvalError::Other(format!("unsupported index value {} in list", double_text(*n))));
                }
                other => {
                    return Err(EvalError::Other(format!("unsupported index type '{}' in list", other.type_name())));
                }
            };
            match usize::try_from(index).ok().and_then(|i| list.get(i)) {
                Some(found) => Ok(Some(found)),
                None => missing(EvalError::IndexOutOfBounds(index)),
            }
        }
        Val::Object(object) => {
            let found = key.as_str().and_then(|name| object.fields.get(name));
            // An empty text is as good as none when it is asked whether a field is set.
            let found = found.filter(|found| !lenient || found.as_str() != Some("")).cloned();
            if found.is_none() && !lenient && object.is_open() && object.name != "Object" {
                return Err(EvalError::NoSuchKey(show_key(key)));
            }
            // A field of the whole object or of a declared type that is not set is null.
            Ok(found.or((!lenient).then_some(Val::Null)))
        }
        _ => missing(EvalError::NoSuchKey(show_key(key))),
    }
}

/// A value as messages print it.
pub(in super::super) fn show_key(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".into(),
        Val::Bool(b) => b.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => n.to_string(),
        Val::Double(n) => crate::scalar::number::format_g(*n),
        Val::String(text) => text.as_str().into(),
        other => other.type_name().into_owned(),
    }
}

/// The name of a value's type in the reference's own language.
pub(super) fn go_type(value: &Val<'_>) -> &'static str {
    match value {
        Val::Null => "types.Null",
        Val::Bool(_) => "types.Bool",
        Val::Int(_) => "types.Int",
        Val::Uint(_) => "types.Uint",
        Val::Double(_) => "types.Double",
        Val::String(_) => "types.String",
        Val::Bytes(_) => "types.Bytes",
        Val::Duration(_) => "types.Duration",
        Val::Timestamp(_) => "types.Timestamp",
        Val::List(_) => "*types.baseList",
        Val::Map(_) => "*types.baseMap",
        Val::Optional(_) => "*types.Optional",
        Val::Type(_) => "*types.Type",
        Val::Object(_) | Val::Opaque(_) => "ref.Val",
    }
}
