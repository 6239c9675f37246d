//! `regex.extract`, `regex.extractAll` and `regex.replace`.

use super::super::error::EvalError;
use super::super::value::Val;
use super::{Call, Overload, cost, global};
use crate::scalar::go_regex::{GoRegex, GoRegexError};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

pub(super) const OVERLOADS: &[Overload] = &[
    global("regex.extract", "regex_extract_string_string", "string, string", "optional_type(string)", extract)
        .cost(cost::regex_extract),
    global("regex.extractAll", "regex_extractAll_string_string", "string, string", "list(string)", extract_all)
        .cost(cost::regex_extract_all),
    global("regex.replace", "regex_replace_string_string_string", "string, string, string", "string", replace)
        .cost(cost::regex_replace),
    global("regex.replace", "regex_replace_string_string_string_int", "string, string, string, int", "string", replace)
        .cost(cost::regex_replace),
];

fn refused(error: &GoRegexError) -> EvalError {
    EvalError::other(error.to_string())
}

/// More than one group would make it unclear what is extracted.
fn group(call: &Call<'_, '_>, regex: &GoRegex) -> std::result::Result<usize, EvalError> {
    match regex.captures_len() {
        1 => Ok(0),
        2 => Ok(1),
        _ => Err(EvalError::Other(format!("regular expression has more than one capturing group: {:?}", call.str(1)))),
    }
}

fn extract<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    call.search(
        |regex, text| {
            let group = group(call, regex)?;
            let found = regex.captures(text).and_then(|captures| captures.get(group));
            Ok(found.map_or(Val::Optional(None), |found| Val::some(Val::text(found.as_str()))))
        },
        refused,
    )?
}

fn extract_all<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    call.charge(call.str(0).len() * 24)?;
    call.search(
        |regex, text| {
            let group = group(call, regex)?;
            let found = regex.captures_iter(text).filter_map(|captures| captures.get(group));
            let found = found.map(|found| found.as_str()).filter(|text| group == 0 || !text.is_empty());
            Ok(Val::list(found.map(Val::text).collect()))
        },
        refused,
    )?
}

/// A part of a replacement: text, or the number of a group.
enum Part {
    Text(String),
    Group(usize),
}

fn template(text: &str) -> std::result::Result<Vec<Part>, EvalError> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match rest.next() {
            Some('\\') => plain.push('\\'),
            Some(digit) if digit.is_ascii_digit() => {
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(Part::Group(digit.to_digit(10).unwrap_or_default() as usize));
            }
            Some(_) => {
                let message = format!("invalid replacement string: '{text}' \\ must be followed by a digit or \\");
                return Err(EvalError::Other(message));
            }
            None => {
                let message = format!("invalid replacement string: '{text}' \\ not allowed at end");
                return Err(EvalError::Other(message));
            }
        }
    }
    parts.push(Part::Text(plain));
    Ok(parts)
}

fn replace<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let limit = if call.args.len() == 4 { call.int(3) } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let replacement = call.str(2);
    call.search(
        |regex, text| {
            let parts = template(replacement)?;
            let groups = regex.captures_len();
            if let Some(bad) = parts.iter().find_map(|part| match part {
                Part::Group(n) if *n >= groups => Some(*n),
                _ => None,
            }) {
                let message =
                    format!("replacement string references group {bad} but regex has only {} group(s)", groups - 1);
                return Err(EvalError::Other(message));
            }
            let (mut out, mut last) = (String::new(), 0);
            for captures in regex.captures_iter(text).take(limit) {
                let Some(whole) = captures.get(0) else { continue };
                let before = out.len();
                out.push_str(text.get(last..whole.start()).unwrap_or_default());
                for part in &parts {
                    out.push_str(match part {
                        Part::Text(text) => text,
                        Part::Group(n) => captures.get(*n).map_or("", |found| found.as_str()),
                    });
                }
                last = whole.end();
                call.charge(out.len() - before)?;
            }
            out.push_str(text.get(last..).unwrap_or_default());
            Ok(Val::text(out))
        },
        refused,
    )?
}
