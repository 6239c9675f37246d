//! Named formats: names, labels, identifiers, dates.

use std::any::Any;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::super::environment::Edition;
use super::super::super::error::EvalError;
use super::super::super::value::{Opaque, Val};
use super::super::{Call, Overload, global, member};
use super::url;
use crate::scalar::go_time;

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

const TYPE: &str = "kubernetes.NamedFormat";

const fn format(name: &'static str, code: super::super::Code) -> Overload {
    global(name, name, "", TYPE, code)
}

pub(in super::super) const OVERLOADS: &[Overload] = &[
    global("format.named", "format-named", "string", "optional_type(kubernetes.NamedFormat)", |c| {
        let found = FORMATS.iter().find(|format| format.name == c.str(0));
        Ok(found.map_or(Val::Optional(None), |format| Val::some(Val::opaque(*format))))
    }),
    member("validate", "format-validate", "kubernetes.NamedFormat, string", "optional_type(list(string))", validate)
        .cost(validate_cost),
    format("format.dns1123Label", |_| named("dns1123Label")),
    format("format.dns1123Subdomain", |_| named("dns1123Subdomain")),
    format("format.dns1035Label", |_| named("dns1035Label")),
    format("format.qualifiedName", |_| named("qualifiedName")),
    format("format.dns1123LabelPrefix", |_| named("dns1123LabelPrefix")),
    format("format.dns1123SubdomainPrefix", |_| named("dns1123SubdomainPrefix")),
    format("format.dns1035LabelPrefix", |_| named("dns1035LabelPrefix")),
    format("format.labelValue", |_| named("labelValue")),
    format("format.uri", |_| named("uri")),
    format("format.uuid", |_| named("uuid")),
    format("format.byte", |_| named("byte")),
    format("format.date", |_| named("date")),
    format("format.datetime", |_| named("datetime")),
];

/// A format: its name, a check, and what a check costs for each ten characters.
#[derive(Debug, Clone, Copy)]
struct Format {
    name: &'static str,
    problems: fn(Words, &str) -> Vec<String>,
    cost: u64,
}

const FORMATS: [Format; 13] = [
    Format { name: "dns1123Label", problems: |words, text| label(words, text, &LABEL), cost: 8 },
    Format { name: "dns1123Subdomain", problems: subdomain, cost: 15 },
    Format { name: "dns1035Label", problems: |words, text| label(words, text, &LABEL_1035), cost: 8 },
    Format { name: "qualifiedName", problems: qualified_name, cost: 15 },
    Format { name: "dns1123LabelPrefix", problems: |words, text| label(words, &without_dash(text), &LABEL), cost: 8 },
    Format { name: "dns1123SubdomainPrefix", problems: |words, text| subdomain(words, &without_dash(text)), cost: 15 },
    Format {
        name: "dns1035LabelPrefix",
        problems: |words, text| label(words, &without_dash(text), &LABEL_1035),
        cost: 8,
    },
    Format { name: "labelValue", problems: label_value, cost: 10 },
    Format { name: "uri", problems: |_, text| url::parse(text).err().into_iter().collect(), cost: 276 },
    Format { name: "uuid", problems: |_, text| uuid(text), cost: 18 },
    Format { name: "byte", problems: |_, text| bytes(text), cost: 21 },
    Format { name: "date", problems: |_, text| date(text), cost: 18 },
    Format { name: "datetime", problems: |_, text| datetime(text), cost: 18 },
];

impl Opaque for Format {
    fn type_name(&self) -> &str {
        TYPE
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Format>().is_some_and(|other| other.name == self.name)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        String::new()
    }
}

fn named<'v>(name: &str) -> Result<'v> {
    let found = FORMATS.iter().find(|format| format.name == name);
    found.map(|format| Val::opaque(*format)).ok_or(EvalError::NoSuchOverload)
}

fn validate<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let value = call.arg(0);
    let Some(format) = value.downcast::<Format>() else { return Err(call.no_such_overload()) };
    call.charge_steps(call.str(1).len())?;
    let words = Words { later: call.edition > Edition::Kubernetes134 };
    let problems = (format.problems)(words, call.str(1));
    if problems.is_empty() {
        return Ok(Val::Optional(None));
    }
    Ok(Val::some(Val::list(problems.into_iter().map(Val::text).collect())))
}

fn validate_cost(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    let pattern = args.first().and_then(|value| value.downcast::<Format>()).map_or(1, |format| format.cost);
    (1 + args.get(1).map_or(1, Val::size)).div_ceil(10) * pattern
}

/// A prefix may end with a dash, which is read as a letter.
fn without_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if text.len() > 1 => format!("{rest}a"),
        _ => text.to_owned(),
    }
}

struct LabelRule {
    first: fn(u8) -> bool,
    message: &'static str,
    /// Whether dots have a message of their own.
    names_dots: bool,
}

fn lower(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

const LABEL: LabelRule = LabelRule {
    first: lower,
    message: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
              end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    names_dots: true,
};

const LABEL_1035: LabelRule = LabelRule {
    first: |b| b.is_ascii_lowercase(),
    message: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
              character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
              validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    names_dots: false,
};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// The words of problems, which change between versions.
#[derive(Debug, Clone, Copy)]
struct Words {
    /// Those of Kubernetes 1.35 and later.
    later: bool,
}

impl Words {
    fn too_long(self, limit: usize) -> String {
        format!("must be no more than {limit} {}", if self.later { "bytes" } else { "characters" })
    }
}

/// Whether the characters of `text` are those, at its ends those of `end`.
fn consists(text: &str, inside: impl Fn(u8) -> bool, first: impl Fn(u8) -> bool, last: impl Fn(u8) -> bool) -> bool {
    text.bytes().all(inside) && text.bytes().next().is_some_and(first) && text.bytes().last().is_some_and(last)
}

fn label(words: Words, text: &str, rule: &LabelRule) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(words.too_long(63));
    }
    if !consists(text, |b| lower(b) || b == b'-', rule.first, lower) {
        let only_dots = rule.names_dots && is_subdomain(text);
        problems.push(if only_dots { "must not contain dots".to_owned() } else { rule.message.to_owned() });
    }
    problems
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|part| consists(part, |b| lower(b) || b == b'-', lower, lower))
}

fn subdomain(words: Words, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push(words.too_long(253));
    }
    if !is_subdomain(text) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

fn is_word(text: &str) -> bool {
    let ends = |b: u8| b.is_ascii_alphanumeric();
    consists(text, |b| b.is_ascii_alphanumeric() || b"-_.".contains(&b), ends, ends)
}

fn qualified_name(words: Words, text: &str) -> Vec<String> {
    const MESSAGE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
         with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let mut problems = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(subdomain(words, prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            }
            *name
        }
        _ => {
            let subject = if words.later { "valid label key" } else { "qualified name" };
            let problem = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
                 and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                 validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and \
                 '/' (e.g. 'example.com/MyName')";
            return vec![format!("a {subject} {problem}")];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push(format!("name part {}", words.too_long(63)));
    }
    if !is_word(name) {
        problems.push(MESSAGE.to_owned());
    }
    problems
}

fn label_value(words: Words, text: &str) -> Vec<String> {
    const MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
         '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
         regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(words.too_long(63));
    }
    if !text.is_empty() && !is_word(text) {
        problems.push(MESSAGE.to_owned());
    }
    problems
}

fn unless(good: bool, problem: &str) -> Vec<String> {
    if good { Vec::new() } else { vec![problem.to_owned()] }
}

fn uuid(text: &str) -> Vec<String> {
    let hex: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = hex.iter().map(|part| part.len()).collect();
    let shape = lengths == [8, 4, 4, 4, 12] || lengths == [32];
    unless(
        shape && hex.iter().all(|part| part.bytes().all(|b| b.is_ascii_hexdigit())),
        "does not match the UUID format",
    )
}

fn bytes(text: &str) -> Vec<String> {
    unless(!text.is_empty() && STANDARD.decode(text).is_ok(), "invalid base64")
}

fn date(text: &str) -> Vec<String> {
    unless(text.len() == 10 && go_time::parse_layout("2006-01-02", text).is_ok(), "invalid date")
}

fn datetime(text: &str) -> Vec<String> {
    unless(go_time::parse_rfc3339(&text.to_ascii_uppercase()).is_ok(), "invalid datetime")
}
