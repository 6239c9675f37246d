//! Text formats: base64, hashes, JSON, YAML, paths.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use sha2::Digest;

use super::{Call, Function, Param};
use crate::jmespath::{EvalError, json_text};
use crate::value::Value;
use crate::yaml::parse_first_document_lenient;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "base64_encode",
        params: &[Param::STRING],
        returns: "string",
        doc: "The text in base64 with padding.",
        examples: &[("base64_encode('hi')", "\"aGk=\""), ("base64_encode('')", "\"\"")],
        call: base64_encode,
    },
    Function {
        name: "base64_decode",
        params: &[Param::STRING],
        returns: "string",
        doc: "The text that was encoded in base64. Padding is required, line breaks are ignored; bytes that are no \
              UTF-8 become U+FFFD.",
        examples: &[
            ("base64_decode('aGk=')", "\"hi\""),
            ("base64_decode('aGk')", "error: illegal base64 data at input byte 0"),
        ],
        call: base64_decode,
    },
    Function {
        name: "sha256",
        params: &[Param::STRING],
        returns: "string",
        doc: "The SHA-256 digest of the text in lower-case hexadecimal digits.",
        examples: &[("sha256('a')", "\"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb\"")],
        call: digest::<sha2::Sha256>,
    },
    Function {
        name: "sha1",
        params: &[Param::STRING],
        returns: "string",
        doc: "The SHA-1 digest of the text in lower-case hexadecimal digits.",
        examples: &[("sha1('a')", "\"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8\"")],
        call: digest::<sha1::Sha1>,
    },
    Function {
        name: "md5",
        params: &[Param::STRING],
        returns: "string",
        doc: "The MD5 digest of the text in lower-case hexadecimal digits.",
        examples: &[("md5('a')", "\"0cc175b9c0f1b6a831c399e269772661\"")],
        call: digest::<md5::Md5>,
    },
    Function {
        name: "parse_json",
        params: &[Param::STRING],
        returns: "any",
        doc: "The value of a JSON text.",
        examples: &[
            (r#"parse_json('{"a":[1]}').a[0]"#, "1"),
            ("parse_json('1 2')", "error: invalid character '2' after top-level value"),
            ("parse_json('')", "error: unexpected end of JSON input"),
        ],
        call: parse_json,
    },
    Function {
        name: "parse_yaml",
        params: &[Param::STRING],
        returns: "any",
        doc: "The value of the first document of a YAML text. YAML 1.1: `y` and `on` are true, `014` is octal; keys \
              become strings, and of equal keys the last wins.",
        examples: &[
            ("parse_yaml('a: [1]').a[0]", "1"),
            ("parse_yaml('n: on')", r#"{"false":true}"#),
            ("parse_yaml('014')", "12"),
        ],
        call: parse_yaml,
    },
    Function {
        name: "path_canonicalize",
        params: &[Param::STRING],
        returns: "string",
        doc: "The shortest path that means the same, by its text alone: `.`, `..` and repeated slashes are resolved. \
              Nothing is looked up on a disk.",
        examples: &[
            ("path_canonicalize('/run/../etc//x')", "\"/etc/x\""),
            ("path_canonicalize('a//b/../c')", "\"a/c\""),
            ("path_canonicalize('/..')", "\"/\""),
            ("path_canonicalize('')", "\"\""),
        ],
        call: |call| Ok(canonical_path(call.str(0)).into()),
    },
];

fn base64_encode(call: &Call<'_>) -> Result<Value, EvalError> {
    let text = call.str(0);
    call.charge(text.len().saturating_add(text.len() / 3))?;
    Ok(STANDARD.encode(text).into())
}

/// The reference does not mind stray bits in the last character.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

fn base64_decode(call: &Call<'_>) -> Result<Value, EvalError> {
    let text = call.str(0);
    call.charge(text.len())?;
    let one_line = text.replace(['\r', '\n'], "");
    let bytes = LENIENT.decode(&one_line).map_err(|_| {
        EvalError::Other(format!("illegal base64 data at input byte {}", illegal_base64_byte(text.as_bytes())))
    })?;
    Ok(lossy_text(bytes).into())
}

/// Where the reference says that the fault is: at the first character out of place, or at the start of a last
/// group that is cut off.
fn illegal_base64_byte(text: &[u8]) -> usize {
    let mut in_group = 0;
    let mut rest = text.iter().enumerate().filter(|&(_, b)| !matches!(b, b'\r' | b'\n'));
    while let Some((at, &byte)) = rest.next() {
        match byte {
            b'=' if in_group == 2 => {
                return match rest.next() {
                    Some((_, b'=')) => rest.next().map_or(text.len(), |(at, _)| at),
                    Some(_) => at,
                    None => text.len(),
                };
            }
            b'=' if in_group == 3 => return rest.next().map_or(text.len(), |(at, _)| at),
            b'+' | b'/' => {}
            b if b.is_ascii_alphanumeric() => {}
            _ => return at,
        }
        in_group = (in_group + 1) % 4;
    }
    text.len() - in_group
}

/// `bytes` as text, with one U+FFFD for each byte that is no UTF-8.
fn lossy_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| {
        let mut text = String::new();
        for chunk in e.as_bytes().utf8_chunks() {
            text.push_str(chunk.valid());
            text.extend(std::iter::repeat_n(char::REPLACEMENT_CHARACTER, chunk.invalid().len()));
        }
        text
    })
}

fn digest<D: Digest>(call: &Call<'_>) -> Result<Value, EvalError> {
    call.charge_reading(call.str(0).len())?;
    let mut text = String::new();
    for byte in D::digest(call.str(0)) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text.into())
}

fn parse_json(call: &Call<'_>) -> Result<Value, EvalError> {
    call.charge(call.str(0).len())?;
    call.charge_steps(call.str(0).len() as u64 / 4)?;
    json_text::parse(call.str(0)).map_err(|e| EvalError::Other(e.message))
}

fn parse_yaml(call: &Call<'_>) -> Result<Value, EvalError> {
    call.charge(call.str(0).len())?;
    call.charge_steps(call.str(0).len() as u64)?;
    parse_first_document_lenient(call.str(0)).map_err(|e| EvalError::Other(format!("yaml: {e}")))
}

fn canonical_path(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|&last| last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, rest) => format!("/{rest}"),
        (false, rest) if rest.is_empty() => ".".to_owned(),
        (false, rest) => rest,
    }
}
