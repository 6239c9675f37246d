//! The text of a `urlPath`, with values in it, into an [`ApiPath`].
//!
//! The policy's own text says what the path names. A value from outside fills the place where its variable stands and
//! nothing more: one segment, or the value of a parameter. There is one exception: where the policy puts a variable in
//! the place of group and version (`/apis/{{ apiVersion }}/…`), the value may hold the slash between them.

use ephor_expr::Str;
use ephor_expr::scalar::percent;

use super::path::{ApiPath, InvalidPath, Segment};

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// What the policy's author wrote.
    Policy(&'a str),
    /// What a variable stands for.
    Value(&'a str),
}

/// Who wrote a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The policy alone.
    Policy,
    /// A value is part of it.
    Mixed,
    /// One value is all of it.
    Value,
    /// One value is the group and the version.
    ApiVersion,
}

/// A part of the text between two separators, as it grows.
#[derive(Debug, Default)]
struct Part {
    text: String,
    /// How many pieces of the policy's text, and how many values, are in it.
    written: usize,
    values: usize,
}

impl Part {
    fn origin(&self) -> Origin {
        match (self.values, self.written) {
            (0, _) => Origin::Policy,
            (1, 0) => Origin::Value,
            _ => Origin::Mixed,
        }
    }
}

/// A parameter of the query, as it grows.
#[derive(Debug, Default)]
struct Parameter {
    key: Part,
    value: Option<Part>,
}

/// Puts a path together. What the pieces say is read once, as text of a policy or as a value, and never again.
pub fn assemble(pieces: &[Piece<'_>]) -> Result<ApiPath, InvalidPath> {
    let shown = || -> String {
        let texts = pieces.iter().map(|piece| match piece {
            Piece::Policy(text) | Piece::Value(text) => *text,
        });
        texts.collect::<String>().escape_debug().to_string()
    };
    let odd = || InvalidPath::Odd { path: shown() };
    let mut segments = vec![Part::default()];
    let mut parameters: Option<Vec<Parameter>> = None;
    for piece in pieces {
        match *piece {
            Piece::Policy(text) => {
                let (path, query) = match (&parameters, text.split_once('?')) {
                    (Some(_), _) => ("", Some(text)),
                    (None, Some((path, query))) => (path, Some(query)),
                    (None, None) => (text, None),
                };
                for (i, part) in path.split('/').enumerate() {
                    if i > 0 {
                        segments.push(Part::default());
                    }
                    segments.last_mut().and_then(|segment| write(segment, part, false)).ok_or_else(odd)?;
                }
                if let Some(query) = query {
                    write_query(parameters.get_or_insert_with(|| vec![Parameter::default()]), query).ok_or_else(odd)?;
                }
            }
            Piece::Value(value) => {
                let refused = || InvalidPath::NotAName { value: value.escape_debug().to_string(), path: shown() };
                let part = match parameters.as_mut().map(|parameters| parameters.last_mut()) {
                    None => segments.last_mut(),
                    Some(Some(Parameter { value: Some(part), .. })) => Some(part),
                    Some(_) => {
                        let why = "only the policy's own text names parameters";
                        let value = value.escape_debug().to_string();
                        return Err(InvalidPath::Structure { value, path: shown(), why });
                    }
                };
                if value.chars().any(char::is_control) {
                    return Err(refused());
                }
                let part = part.ok_or_else(odd)?;
                part.text.push_str(value);
                part.values += 1;
            }
        }
    }
    let segments = finish(segments, &shown)?;
    let query = parameters.into_iter().flatten().filter(|parameter| !parameter.key.text.is_empty());
    let query = query.map(|parameter| {
        let value = parameter.value.map(|value| value.text).unwrap_or_default();
        (Str::from(parameter.key.text), Str::from(value))
    });
    ApiPath::of_segments(&segments, query.collect(), shown)
}

/// Checks the segments: each is one name. The first is what stands before the first slash.
fn finish(parts: Vec<Part>, shown: &impl Fn() -> String) -> Result<Vec<Segment>, InvalidPath> {
    let odd = || InvalidPath::Odd { path: shown() };
    let mut parts = parts.into_iter();
    if parts.next().is_none_or(|before| before.origin() != Origin::Policy || !before.text.is_empty()) {
        return Err(odd());
    }
    let mut parts: Vec<Part> = parts.collect();
    // A slash at the end, as policies have it, adds nothing.
    if parts.len() > 1 && parts.last().is_some_and(|last| last.text.is_empty() && last.values == 0) {
        parts.pop();
    }
    let mut segments = Vec::with_capacity(parts.len() + 1);
    for (i, part) in parts.into_iter().enumerate() {
        let origin = part.origin();
        let below_apis = i == 1 && segments.first().is_some_and(is_apis);
        if origin == Origin::Value
            && below_apis
            && let Some((group, version)) = part.text.split_once('/')
            && is_name(group)
            && is_name(version)
        {
            segments.extend([group, version].map(|text| Segment { text: Str::new(text), origin: Origin::ApiVersion }));
            continue;
        }
        if !is_name(&part.text) {
            return Err(match origin {
                Origin::Policy => odd(),
                _ => InvalidPath::NotAName { value: part.text.escape_debug().to_string(), path: shown() },
            });
        }
        segments.push(Segment { text: part.text.into(), origin });
    }
    Ok(segments)
}

fn is_apis(segment: &Segment) -> bool {
    segment.origin == Origin::Policy && segment.text == "apis"
}

/// Whether a text is one segment of a path for every reader: those that decode once more, and those that take dots or
/// backslashes for steps. Kubernetes allows no others as names.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !matches!(text, "." | "..")
        && !text.chars().any(|c| matches!(c, '/' | '\\' | '%' | '?' | '#') || c.is_control())
}

/// Adds text of the policy to a part, decoded.
fn write(part: &mut Part, text: &str, plus_is_space: bool) -> Option<()> {
    if !text.is_empty() {
        if text.contains('#') {
            return None;
        }
        part.text.push_str(&decode(text, plus_is_space)?);
        part.written += 1;
    }
    Some(())
}

fn write_query(parameters: &mut Vec<Parameter>, text: &str) -> Option<()> {
    for (i, pair) in text.split('&').enumerate() {
        if i > 0 {
            parameters.push(Parameter::default());
        }
        let parameter = parameters.last_mut()?;
        match (&mut parameter.value, pair.split_once('=')) {
            // A variable interrupted the value.
            (Some(value), _) => write(value, pair, true)?,
            (none, Some((key, value))) => {
                write(&mut parameter.key, key, true)?;
                write(none.insert(Part::default()), value, true)?;
            }
            (None, None) => write(&mut parameter.key, pair, true)?,
        }
    }
    Some(())
}

/// Undoes percent-encoding, and in queries `+` for a space. `None` if the result is no text.
fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let text = String::from_utf8(percent::decode(text, plus_is_space)?).ok()?;
    (!text.contains(char::is_control)).then_some(text)
}
