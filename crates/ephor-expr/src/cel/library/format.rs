//! `string.format`: clauses, and their check for constant formats.

use std::fmt::Write as _;

use super::super::ast::{Ast, Id, Kind};
use super::super::check::Types;
use super::super::error::{EvalError, Issue};
use super::super::types::Type;
use super::super::value::{MAX_WALK, Val};
use super::Call;
use super::conversions::{double_text, duration_text, timestamp_text};

/// The most decimals a clause may ask for.
const MAX_PRECISION: usize = 1_000;

enum Part<'t> {
    Text(&'t str),
    Clause { verb: char, precision: Option<usize> },
}

/// Splits a format into text and clauses, stopping at the first fault.
fn parts<'t>(format: &'t str, mut visit: impl FnMut(Part<'t>) -> Result<(), EvalError>) -> Result<(), EvalError> {
    let mut rest = format;
    while let Some((text, tail)) = rest.split_once('%') {
        visit(Part::Text(text))?;
        if let Some(after) = tail.strip_prefix('%') {
            visit(Part::Text("%"))?;
            rest = after;
            continue;
        }
        let (precision, tail) = match tail.strip_prefix('.') {
            None => (None, tail),
            Some(tail) => {
                let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
                let (digits, after) = tail.split_at_checked(end).unwrap_or((tail, ""));
                let Ok(precision) = digits.parse() else {
                    let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
                    return Err(EvalError::Other(format!(
                        "could not parse formatting clause: error while parsing precision: error while converting \
                         precision to integer: strconv.Atoi: parsing \"{digits}\": {why}"
                    )));
                };
                (Some(precision), after)
            }
        };
        let Some(verb) = tail.chars().next() else {
            return Err(EvalError::other("could not parse formatting clause: unexpected end of string"));
        };
        if !matches!(verb, 's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o') {
            let message = format!("could not parse formatting clause: unrecognized formatting clause \"{verb}\"");
            return Err(EvalError::Other(message));
        }
        visit(Part::Clause { verb, precision })?;
        rest = tail.strip_prefix(verb).unwrap_or_default();
    }
    visit(Part::Text(rest))
}

pub(super) fn call<'v>(call: &Call<'_, 'v>) -> Result<Val<'v>, EvalError> {
    let Some(Val::List(args)) = call.args.get(1) else { return Err(call.no_such_overload()) };
    let (mut out, mut used) = (String::new(), 0);
    let result = parts(call.str(0), |part| {
        let before = out.len();
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Clause { verb, precision } => {
                let Some(value) = args.get(used) else {
                    return Err(EvalError::Other(format!("index {used} out of range")));
                };
                used += 1;
                if precision.is_some_and(|n| n > MAX_PRECISION) {
                    return Err(EvalError::other("error during formatting: precision is too large"));
                }
                clause(call, &mut out, verb, precision, &value)?;
            }
        }
        call.charge(out.len() - before)
    });
    result?;
    Ok(Val::text(out))
}

fn fault(message: &str, value: &str) -> EvalError {
    EvalError::Other(format!("error during formatting: {message}, was given {value}"))
}

/// What a clause does not take, in words.
fn refusal(verb: char) -> &'static str {
    match verb {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        _ => "only integers, byte buffers, and strings can be formatted as hex",
    }
}

fn clause(
    call: &Call<'_, '_>,
    out: &mut String,
    verb: char,
    precision: Option<usize>,
    value: &Val<'_>,
) -> Result<(), EvalError> {
    let refused = || fault(refusal(verb), &value.type_name());
    let integer = match value {
        Val::Int(n) => Some((*n < 0, n.unsigned_abs())),
        Val::Uint(n) => Some((false, *n)),
        Val::Bool(b) if verb == 'b' => Some((false, u64::from(*b))),
        _ => None,
    };
    let sign = if integer.is_some_and(|(negative, _)| negative) { "-" } else { "" };
    let written = match (verb, integer, value) {
        ('s', ..) => {
            text(call, out, value, 0)?;
            Ok(())
        }
        ('d', None, Val::Double(n)) if !n.is_finite() => Err(std::fmt::Error),
        ('d', Some((_, n)), _) => write!(out, "{sign}{n}"),
        ('b', Some((_, n)), _) => write!(out, "{sign}{n:b}"),
        ('o', Some((_, n)), _) => write!(out, "{sign}{n:o}"),
        ('x', Some((_, n)), _) => write!(out, "{sign}{n:x}"),
        ('X', Some((_, n)), _) => write!(out, "{sign}{n:X}"),
        ('x' | 'X', None, Val::String(text)) => {
            hex(out, text.as_str().as_bytes(), verb == 'X');
            Ok(())
        }
        ('x' | 'X', None, Val::Bytes(bytes)) => {
            hex(out, bytes, verb == 'X');
            Ok(())
        }
        ('f' | 'e', None, value) => {
            let number = match value {
                Val::Double(n) => *n,
                Val::String(text) => match text.as_str() {
                    "NaN" => f64::NAN,
                    "Infinity" => f64::INFINITY,
                    "-Infinity" => f64::NEG_INFINITY,
                    _ => return Err(refused()),
                },
                _ => return Err(refused()),
            };
            out.push_str(&if verb == 'f' { fixed(number, precision.unwrap_or(6)) } else { scientific(number) });
            Ok(())
        }
        _ => Err(std::fmt::Error),
    };
    written.map_err(|_| refused())
}

fn hex(out: &mut String, bytes: &[u8], upper: bool) {
    for byte in bytes {
        let _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
    }
}

/// Digits in groups of three, as English writes them.
fn fixed(n: f64, precision: usize) -> String {
    if !n.is_finite() {
        return if n.is_nan() {
            "NaN".into()
        } else if n > 0.0 {
            "∞".into()
        } else {
            "-∞".into()
        };
    }
    let plain = format!("{:.precision$}", n.abs());
    let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), None), |(w, f)| (w, Some(f)));
    let mut out = String::from(if n.is_sign_negative() { "-" } else { "" });
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Six decimals and a power of ten in superscripts; the precision of the clause is not heeded.
fn scientific(n: f64) -> String {
    if !n.is_finite() {
        return format!("{:>6}", fixed(n, 0));
    }
    let text = format!("{n:.6e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let superscript = |c: char| c.to_digit(10).and_then(|d| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(d as usize)).unwrap_or(c);
    format!("{mantissa}×10{sign}{}", format!("{digits:0>2}").chars().map(superscript).collect::<String>())
}

/// A value as text. Inside lists and maps, `depth` levels down, texts are quoted and numbers have six decimals.
fn text(call: &Call<'_, '_>, out: &mut String, value: &Val<'_>, depth: usize) -> Result<(), EvalError> {
    call.charge_steps(1)?;
    if depth > MAX_WALK {
        return Err(EvalError::other("error during formatting: the value nests too deep"));
    }
    let top = depth == 0;
    if top && value.is_composite() {
        call.charge(value.charge(call.budget)?)?;
    }
    let _ = match value {
        Val::Null => write!(out, "null"),
        Val::Bool(b) => write!(out, "{b}"),
        Val::Int(n) => write!(out, "{n}"),
        Val::Uint(n) => write!(out, "{n}"),
        Val::Double(n) if top => write!(out, "{}", double_text(*n)),
        Val::Double(n) if !n.is_finite() => write!(out, "\"{}\"", double_text(*n)),
        Val::Double(n) => write!(out, "{n:.6}"),
        Val::String(text) if top => write!(out, "{}", text.as_str()),
        Val::String(text) => write!(out, "{:?}", text.as_str()),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if top => write!(out, "{text}"),
            Ok(text) => write!(out, "b{text:?}"),
            Err(_) => {
                return Err(EvalError::other(
                    "error during formatting: could not convert argument \"invalid UTF-8 in bytes, cannot convert to \
                     string\" to string",
                ));
            }
        },
        Val::Duration(n) if top => write!(out, "{}", duration_text(*n)),
        Val::Duration(n) => write!(out, "duration(\"{}\")", duration_text(*n)),
        Val::Timestamp(time) if top => write!(out, "{}", timestamp_text(time)),
        Val::Timestamp(time) => write!(out, "timestamp(\"{}\")", timestamp_text(time)),
        Val::Type(kind) => write!(out, "{}", kind.runtime_name()),
        Val::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                text(call, out, &item, depth + 1)?;
            }
            write!(out, "]")
        }
        Val::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, item) in map.entries() {
                let mut entry = String::new();
                text(call, &mut entry, &key, depth + 1)?;
                entry.push(':');
                text(call, &mut entry, &item, depth + 1)?;
                call.charge(entry.len())?;
                entries.push(entry);
            }
            entries.sort();
            write!(out, "{{{}}}", entries.join(", "))
        }
        other => {
            let message = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                           durations, and timestamps";
            return Err(fault(message, &other.type_name()));
        }
    };
    Ok(())
}

/// The faults of a constant format with a list literal as arguments.
pub(in super::super) fn check_literal(
    ast: &Ast,
    types: &Types,
    call: Id,
    format: &str,
    arguments: Id,
    issues: &mut Vec<Issue>,
) {
    let Kind::List(items) = ast.kind(arguments) else { return };
    let mut used = 0;
    let result = parts(format, |part| {
        let Part::Clause { verb, .. } = part else { return Ok(()) };
        let Some(item) = items.get(used) else {
            return Err(EvalError::Other(format!("index {used} out of range")));
        };
        used += 1;
        let kind = types.kind(item.value);
        let fits = matches!(
            (verb, kind),
            (_, Type::Dyn)
                | ('s', _)
                | ('b', Type::Bool)
                | ('d' | 'b' | 'o' | 'x' | 'X', Type::Int | Type::Uint)
                | ('x' | 'X', Type::String | Type::Bytes)
                | ('f' | 'e', Type::Double | Type::String)
        );
        if !fits {
            let message = fault(refusal(verb), kind.runtime_name()).to_string();
            issues.push(Issue { offset: Some(ast.offset(item.value)), message });
        }
        Ok(())
    });
    let offset = Some(ast.offset(call));
    match result {
        Err(error) => issues.push(Issue { offset, message: error.to_string() }),
        Ok(()) if used < items.len() => {
            let message =
                format!("too many arguments supplied to string.format (expected {used}, got {})", items.len());
            issues.push(Issue { offset, message });
        }
        Ok(()) => {}
    }
}
