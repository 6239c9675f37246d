//! Strings: case, replacement, regular expressions, wildcards, comparison.

use super::{Call, Function, Param};
use crate::jmespath::EvalError;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "compare",
        params: &[Param::STRING, Param::STRING],
        returns: "number",
        doc: "-1, 0 or 1, as the first text sorts before, with or after the second (by bytes).",
        examples: &[("compare('a','c')", "-1"), ("compare('a','a')", "0"), ("compare('b','a')", "1")],
        call: |call| Ok(Value::Int(call.str(0).cmp(call.str(1)) as i64)),
    },
    Function {
        name: "equal_fold",
        params: &[Param::STRING, Param::STRING],
        returns: "boolean",
        doc: "Whether two texts are equal but for upper and lower case, character by character.",
        examples: &[("equal_fold('Env','ENV')", "true"), ("equal_fold('ß','SS')", "false")],
        call: |call| Ok(folded(call.str(0)).eq(folded(call.str(1))).into()),
    },
    Function {
        name: "replace",
        params: &[Param::STRING, Param::STRING, Param::STRING, Param::NUMBER],
        returns: "string",
        doc: "The first text with the first n places of the second replaced by the third; all of them for a negative \
              n.",
        examples: &[
            ("replace('aaa','a','b',`2`)", "\"bba\""),
            ("replace('aaa','a','b',`-1`)", "\"bbb\""),
            ("replace('aaa','a','b',`1.9`)", "\"baa\""),
        ],
        call: |call| {
            // A fraction is cut off, an out-of-range count is bounded.
            let count = call.number(3) as i64;
            replaced(call, usize::try_from(count).unwrap_or(usize::MAX))
        },
    },
    Function {
        name: "replace_all",
        params: &[Param::STRING, Param::STRING, Param::STRING],
        returns: "string",
        doc: "The first text with every place of the second replaced by the third.",
        examples: &[("replace_all('a-b-c','-','.')", "\"a.b.c\""), ("replace_all('ab','','-')", "\"-a-b-\"")],
        call: |call| replaced(call, usize::MAX),
    },
    Function {
        name: "to_upper",
        params: &[Param::STRING],
        returns: "string",
        doc: "The text in upper case, character by character: those without a single upper-case form stay.",
        examples: &[("to_upper('ab1')", "\"AB1\""), ("to_upper('ß')", "\"ß\"")],
        call: |call| Ok(call.str(0).chars().map(upper).collect::<String>().into()),
    },
    Function {
        name: "to_lower",
        params: &[Param::STRING],
        returns: "string",
        doc: "The text in lower case, character by character.",
        examples: &[("to_lower('AB1')", "\"ab1\"")],
        call: |call| Ok(call.str(0).chars().map(lower).collect::<String>().into()),
    },
    Function {
        name: "trim",
        params: &[Param::STRING, Param::STRING],
        returns: "string",
        doc: "The first text without the characters of the second at both ends.",
        examples: &[("trim('xxhixx','x')", "\"hi\""), ("trim('abcba','ab')", "\"c\"")],
        call: |call| Ok(call.str(0).trim_matches(|c| call.str(1).contains(c)).into()),
    },
    Function {
        name: "trim_prefix",
        params: &[Param::STRING, Param::STRING],
        returns: "string",
        doc: "The first text without the second at its start, once.",
        examples: &[("trim_prefix('a://b','a://')", "\"b\""), ("trim_prefix('aab','a')", "\"ab\"")],
        call: |call| Ok(call.str(0).strip_prefix(call.str(1)).unwrap_or(call.str(0)).into()),
    },
    Function {
        name: "split",
        params: &[Param::STRING, Param::STRING],
        returns: "array",
        doc: "The parts of the first text between the places of the second; its characters if the second is empty.",
        examples: &[
            ("split('a,b',',')", r#"["a","b"]"#),
            ("split('',',')", r#"[""]"#),
            ("split('żó','')", r#"["ż","ó"]"#),
        ],
        call: split,
    },
    Function {
        name: "truncate",
        params: &[Param::STRING, Param::NUMBER],
        returns: "string",
        doc: "The first n characters of the text; a fraction of n is cut off.",
        examples: &[
            ("truncate('kyverno',`3`)", "\"kyv\""),
            ("truncate('żółw',`2.9`)", "\"żó\""),
            ("truncate('abc',`-1`)", "\"\""),
        ],
        call: |call| Ok(truncated(call.str(0), call.number(1) as usize).into()),
    },
    Function {
        name: "to_boolean",
        params: &[Param::STRING],
        returns: "boolean",
        doc: "The boolean that the text names, in any case.",
        examples: &[
            ("to_boolean('TRUE')", "true"),
            (
                "to_boolean('1')",
                "error: JMESPath function 'to_boolean': lowercase argument must be 'true' or 'false' (provided: '1')",
            ),
        ],
        call: to_boolean,
    },
];

/// What is the same for characters that differ in case alone.
fn folded(text: &str) -> impl Iterator<Item = char> {
    // Dotless i is no case of i, although its upper case is I.
    text.chars().map(|c| if c == 'ı' { c } else { single(c, single(c, c.to_uppercase()).to_lowercase()) })
}

/// The character that `mapped` consists of, or `c` if there are several.
fn single(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn upper(c: char) -> char {
    match c {
        // Greek letters with a subscript iota: their full upper case is two letters, their simple one is the form
        // of titles.
        '\u{1f80}'..='\u{1faf}' => char::from_u32(c as u32 | 8).unwrap_or(c),
        'ᾳ' => 'ᾼ',
        'ῃ' => 'ῌ',
        'ῳ' => 'ῼ',
        c => single(c, c.to_uppercase()),
    }
}

fn lower(c: char) -> char {
    // The only character with a longer lower case.
    if c == 'İ' { 'i' } else { single(c, c.to_lowercase()) }
}

fn replaced(call: &Call<'_>, count: usize) -> Result<Value, EvalError> {
    let (text, old, new) = (call.str(0), call.str(1), call.str(2));
    let places = text.matches(old).take(count).count();
    call.charge(text.len().saturating_add(places.saturating_mul(new.len())))?;
    Ok(text.replacen(old, new, count).into())
}

fn split(call: &Call<'_>) -> Result<Value, EvalError> {
    let (text, separator) = (call.str(0), call.str(1));
    let parts: Vec<Value> = if separator.is_empty() {
        call.charge(text.len().saturating_mul(size_of::<Value>()))?;
        text.char_indices().filter_map(|(i, c)| text.get(i..i + c.len_utf8())).map(Value::from).collect()
    } else {
        let places = text.matches(separator).count();
        call.charge(text.len().saturating_add(places.saturating_mul(size_of::<Value>())))?;
        text.split(separator).map(Value::from).collect()
    };
    Ok(Value::array(parts))
}

fn truncated(text: &str, length: usize) -> &str {
    let end = text.char_indices().nth(length).map_or(text.len(), |(i, _)| i);
    text.get(..end).unwrap_or_default()
}

fn to_boolean(call: &Call<'_>) -> Result<Value, EvalError> {
    let text = call.str(0);
    match text {
        _ if text.eq_ignore_ascii_case("true") => Ok(true.into()),
        _ if text.eq_ignore_ascii_case("false") => Ok(false.into()),
        _ => Err(call.error(format!("lowercase argument must be 'true' or 'false' (provided: '{text}')"))),
    }
}
