//! Semantic versions.

use std::any::Any;
use std::borrow::Cow;
use std::cmp::Ordering;

use super::super::super::error::EvalError;
use super::super::super::value::{Opaque, Val};
use super::super::{Call, Overload, cost, global, member};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

const TYPE: &str = "kubernetes.Semver";
const TWO: &str = "kubernetes.Semver, kubernetes.Semver";

pub(in super::super) const OVERLOADS: &[Overload] = &[
    global("semver", "string_to_semver", "string", TYPE, |c| parsed(c).map(Val::opaque)).cost_by_name(cost::traverse),
    global("semver", "string_bool_to_semver", "string, bool", TYPE, |c| parsed(c).map(Val::opaque))
        .cost_by_name(cost::traverse),
    global("isSemver", "is_semver_string", "string", "bool", |c| Ok(Val::Bool(parsed(c).is_ok())))
        .cost_by_name(cost::traverse),
    global("isSemver", "is_semver_string_bool", "string, bool", "bool", |c| Ok(Val::Bool(parsed(c).is_ok())))
        .cost_by_name(cost::traverse),
    member("compareTo", "semver_compare_to", TWO, "int", |c| {
        two(c, |a, b| {
            Val::Int(match a.compare(b) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            })
        })
    }),
    member("isGreaterThan", "semver_is_greater_than", TWO, "bool", |c| two(c, |a, b| Val::Bool(a.compare(b).is_gt()))),
    member("isLessThan", "semver_is_less_than", TWO, "bool", |c| two(c, |a, b| Val::Bool(a.compare(b).is_lt()))),
    member("major", "semver_major", TYPE, "int", |c| part(c, |v| v.major)),
    member("minor", "semver_minor", TYPE, "int", |c| part(c, |v| v.minor)),
    member("patch", "semver_patch", TYPE, "int", |c| part(c, |v| v.patch)),
];

#[derive(Debug)]
struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<String>,
    build: Vec<String>,
}

impl Version {
    fn compare(&self, other: &Version) -> Ordering {
        let numbers = |v: &Version| (v.major, v.minor, v.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => {
                let pairs = self.pre.iter().zip(&other.pre).map(|(a, b)| compare_identifiers(a, b));
                pairs.into_iter().find(|order| order.is_ne()).unwrap_or(self.pre.len().cmp(&other.pre.len()))
            }
        })
    }
}

/// Numbers compare as numbers and come before texts.
fn compare_identifiers(a: &str, b: &str) -> Ordering {
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match (number(a), number(b)) {
        (true, true) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
    }
}

impl Opaque for Version {
    fn type_name(&self) -> &str {
        TYPE
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Version>().is_some_and(|other| self.compare(other).is_eq())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        let mut text = format!("{}.{}.{}", self.major, self.minor, self.patch);
        for (mark, parts) in [('-', &self.pre), ('+', &self.build)] {
            if !parts.is_empty() {
                text.push(mark);
                text.push_str(&parts.join("."));
            }
        }
        text
    }
}

fn parsed(call: &Call<'_, '_>) -> std::result::Result<Version, EvalError> {
    call.charge(call.str(0).len() * 8)?;
    let text = if matches!(call.args.get(1), Some(Val::Bool(true))) {
        normalized(call.str(0)).map_err(EvalError::Other)?
    } else {
        Cow::Borrowed(call.str(0))
    };
    parse(&text).map_err(EvalError::Other)
}

/// Without a leading `v`, with all three numbers, these without leading zeros.
fn normalized(text: &str) -> std::result::Result<Cow<'_, str>, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
    for part in &mut parts {
        let digits = part.trim_start_matches('0');
        if part.len() > 1 && digits.len() < part.len() {
            let keep = digits.starts_with(|c: char| c.is_ascii_digit());
            *part = if keep { digits.to_owned() } else { format!("0{digits}") };
        }
    }
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".into());
        }
        parts.resize(3, "0".into());
    }
    if let Some(first) = parts.first_mut()
        && first.starts_with(|c: char| !c.is_ascii_digit())
    {
        first.insert(0, '0');
    }
    Ok(Cow::Owned(parts.join(".")))
}

fn parse(text: &str) -> std::result::Result<Version, String> {
    if text.is_empty() {
        return Err("Version string empty".into());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, rest] = parts.as_slice() else { return Err("No Major.Minor.Patch elements found".into()) };
    let (rest, build) = rest.split_once('+').map_or((*rest, None), |(rest, build)| (rest, Some(build)));
    let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
    let (major, minor) = (number("major", major)?, number("minor", minor)?);
    let identifiers =
        |parts: Option<&str>| parts.map(|p| p.split('.').map(str::to_owned).collect()).unwrap_or_default();
    let patch = number("patch", patch)?;
    let (pre, build): (Vec<String>, Vec<String>) = (identifiers(pre), identifiers(build));
    let word = |part: &String| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    for part in &pre {
        if part.is_empty() {
            return Err("Prerelease is empty".into());
        }
        if !word(part) {
            return Err(format!("Invalid character(s) found in prerelease {part:?}"));
        }
        if part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {part:?}"));
        }
    }
    for part in &build {
        if part.is_empty() {
            return Err("Build meta data is empty".into());
        }
        if !word(part) {
            return Err(format!("Invalid character(s) found in build meta data {part:?}"));
        }
    }
    Ok(Version { major, minor, patch, pre, build })
}

fn number(name: &str, text: &str) -> std::result::Result<u64, String> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {text:?}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        let capital: String = name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)).collect();
        return Err(format!("{capital} number must not contain leading zeroes {text:?}"));
    }
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {text:?}: {why}"))
}

fn two<'v>(call: &Call<'_, 'v>, relation: fn(&Version, &Version) -> Val<'v>) -> Result<'v> {
    let (a, b) = (call.arg(0), call.arg(1));
    match (a.downcast::<Version>(), b.downcast::<Version>()) {
        (Some(a), Some(b)) => Ok(relation(a, b)),
        _ => Err(call.no_such_overload()),
    }
}

fn part<'v>(call: &Call<'_, 'v>, part: fn(&Version) -> u64) -> Result<'v> {
    let value = call.arg(0);
    // Numbers beyond a signed integer wrap around, as in the reference.
    value.downcast::<Version>().map(|v| Val::Int(part(v).cast_signed())).ok_or_else(|| call.no_such_overload())
}
