//! Strings: case, replacement, regular expressions, wildcards, versions.

use regex::Captures;

use super::{Call, Function, Param};
use crate::jmespath::EvalError;
use crate::scalar::{go_regex, semver, wildcard};
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
        call: |call| mapped(call, upper),
    },
    Function {
        name: "to_lower",
        params: &[Param::STRING],
        returns: "string",
        doc: "The text in lower case, character by character.",
        examples: &[("to_lower('AB1')", "\"ab1\"")],
        call: |call| mapped(call, lower),
    },
    Function {
        name: "trim",
        params: &[Param::STRING, Param::STRING],
        returns: "string",
        doc: "The first text without the characters of the second at both ends.",
        examples: &[("trim('xxhixx','x')", "\"hi\""), ("trim('abcba','ab')", "\"c\"")],
        call: trim,
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
    Function {
        name: "regex_match",
        params: &[Param::STRING, Param::TEXT],
        returns: "boolean",
        doc: "Whether a regular expression (RE2 syntax) matches anywhere in a text or number.",
        examples: &[
            ("regex_match('^v[0-9]+$','v12')", "true"),
            ("regex_match('1',`314`)", "true"),
            ("regex_match('(','a')", "error: error parsing regexp: missing closing ): `(`"),
        ],
        call: regex_match,
    },
    Function {
        name: "regex_replace_all",
        params: &[Param::STRING, Param::TEXT, Param::TEXT],
        returns: "string",
        doc: "The text with every match of a regular expression replaced. In the replacement `$1` and `${name}` stand \
              for groups, `$$` for a dollar sign; names are as long as possible, so write `${1}x`.",
        examples: &[
            ("regex_replace_all('(a)(b)','ab','${2}${1}')", "\"ba\""),
            ("regex_replace_all('(a)','xay','$1z')", "\"xy\""),
            ("regex_replace_all('a','xay','$$')", "\"x$y\""),
        ],
        call: |call| regex_replaced(call, push_expanded),
    },
    Function {
        name: "regex_replace_all_literal",
        params: &[Param::STRING, Param::TEXT, Param::TEXT],
        returns: "string",
        doc: "The text with every match of a regular expression replaced by another text as it stands.",
        examples: &[("regex_replace_all_literal('a+','caat','$1')", "\"c$1t\"")],
        call: |call| regex_replaced(call, push_literal),
    },
    Function {
        name: "pattern_match",
        params: &[Param::STRING, Param::TEXT],
        returns: "boolean",
        doc: "Whether a wildcard pattern matches the whole of a text or number: `*` is any run of characters, `?` \
              exactly one.",
        examples: &[
            ("pattern_match('prod-*','prod-eu')", "true"),
            ("pattern_match('a?c','ac')", "false"),
            ("pattern_match('1*',`123`)", "true"),
        ],
        call: pattern_match,
    },
    Function {
        name: "semver_compare",
        params: &[Param::STRING, Param::STRING],
        returns: "boolean",
        doc: "Whether a version is in a range such as `>=1.2.0 <2.0.0 || 3.1.x`. A text that is no full version, such \
              as `v1.2.3`, counts as 0.0.0.",
        examples: &[
            ("semver_compare('1.4.2','>=1.4.x')", "true"),
            ("semver_compare('1.3.0-b','>1.2.0')", "true"),
            ("semver_compare('v2.0.0','<1.0.0')", "true"),
        ],
        call: semver_compare,
    },
];

fn mapped(call: &Call<'_>, change: fn(char) -> char) -> Result<Value, EvalError> {
    call.charge(call.str(0).len())?;
    Ok(call.str(0).chars().map(change).collect::<String>().into())
}

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

fn trim(call: &Call<'_>) -> Result<Value, EvalError> {
    let (text, cut) = (call.str(0), call.str(1));
    // Each character of the one is looked for in the other.
    call.charge_steps((text.len() as u64).saturating_mul(1 + cut.len() as u64 / 16))?;
    Ok(text.trim_matches(|c| cut.contains(c)).into())
}

fn regex_match(call: &Call<'_>) -> Result<Value, EvalError> {
    let text = call.text(1);
    call.with_regex(|regex| {
        let regex = regex.map_err(|e| EvalError::Other(e.to_string()))?;
        call.charge_steps(regex.cost(text.len()))?;
        Ok(regex.is_match(&text).into())
    })
}

/// Appends a replacement for one match.
type Push = fn(&Call<'_>, &Captures<'_>, &str, &mut String) -> Result<(), EvalError>;

/// How many bytes behind a match count as one step: finding the end of a short match may take a look at all of the
/// rest.
const BYTES_LOOKED_AHEAD: usize = 256;

/// From this length on a result grows by this much.
const LARGE: usize = 4 << 20;

fn regex_replaced(call: &Call<'_>, push: Push) -> Result<Value, EvalError> {
    let (text, replacement) = (call.text(1), call.text(2));
    call.with_regex(|regex| {
        // The reference words this failure like its own, unlike that of `regex_match`.
        let regex = regex.map_err(|e| call.error(e.to_string()))?;
        call.charge_steps(regex.cost(text.len()))?;
        call.charge(text.len())?;
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for captures in regex.captures_iter(&text) {
            let Some(whole) = captures.get(0) else { continue };
            call.charge_steps(regex.cost(whole.len()) + ((text.len() - whole.end()) / BYTES_LOOKED_AHEAD) as u64)?;
            out.push_str(text.get(done..whole.start()).unwrap_or_default());
            // Grown in bounded steps: a string that doubles would take several times what the budget allows.
            if out.len() > LARGE && out.capacity() - out.len() < replacement.len() {
                out.reserve_exact(replacement.len().max(LARGE));
            }
            push(call, &captures, &replacement, &mut out)?;
            done = whole.end();
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Ok(out.into())
    })
}

fn push_expanded(call: &Call<'_>, captures: &Captures<'_>, template: &str, out: &mut String) -> Result<(), EvalError> {
    // No group is longer than the match, so this is the most that the template can become.
    let longest = captures.get(0).map_or(0, |whole| whole.len());
    let references = template.bytes().filter(|&b| b == b'$').count();
    call.charge(template.len().saturating_add(references.saturating_mul(longest)))?;
    go_regex::expand_replacement(captures, template, out);
    Ok(())
}

fn push_literal(call: &Call<'_>, _: &Captures<'_>, text: &str, out: &mut String) -> Result<(), EvalError> {
    call.charge(text.len())?;
    out.push_str(text);
    Ok(())
}

fn pattern_match(call: &Call<'_>) -> Result<Value, EvalError> {
    Ok(wildcard::matches_within(call.str(0), &call.text(1), call.runtime.budget())?.into())
}

fn semver_compare(call: &Call<'_>) -> Result<Value, EvalError> {
    let version = semver::parse_strict(call.str(0)).unwrap_or(semver::Version::new(0, 0, 0));
    let range = semver::Range::parse(call.str(1)).map_err(|e| EvalError::Other(e.to_string()))?;
    Ok(range.contains(&version).into())
}
