//! The known disagreements of both engines. In all of them Ephor does what Kubernetes' Go implementation does.
//!
//! Every entry pins an example, so that one that no longer disagrees is found and taken off the list.

use super::engines::Verdict;
use super::generate::Case;

/// A disagreement.
pub(crate) struct Known {
    /// Its name.
    pub(crate) name: &'static str,
    /// Why both disagree.
    pub(crate) reason: &'static str,
    /// Where Go is seen to do what Ephor does. If it does not, Ephor is to be changed.
    pub(crate) go: &'static str,
    /// Whether a disagreement is of this kind.
    pub(crate) applies: fn(&Difference<'_>) -> bool,
    /// An expression, what Ephor says and what `cel-core` says: parts of their texts.
    pub(crate) example: (&'static str, &'static str, &'static str),
}

/// What both engines say of the smallest part that they see differently.
pub(crate) struct Difference<'c> {
    pub(crate) case: &'c Case,
    pub(crate) ours: &'c Verdict,
    pub(crate) theirs: &'c Verdict,
}

impl Difference<'_> {
    fn text(&self) -> &str {
        &self.case.text
    }

    fn we_have_a_value(&self) -> bool {
        matches!(self.ours, Verdict::Value(_))
    }

    fn they_have_a_value(&self) -> bool {
        matches!(self.theirs, Verdict::Value(_))
    }

    fn we_fail(&self, error: &str) -> bool {
        matches!(self.ours, Verdict::Fails(text) if text.contains(error))
    }

    fn they_fail(&self, error: &str) -> bool {
        matches!(self.theirs, Verdict::Fails(text) if text.contains(error))
    }

    fn we_reject(&self, error: &str) -> bool {
        matches!(self.ours, Verdict::Rejected(text) if text.contains(error))
    }

    fn they_reject(&self, error: &str) -> bool {
        matches!(self.theirs, Verdict::Rejected(text) if text.contains(error))
    }
}

/// All of them. The first that applies counts.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        name: "constants are judged while compiling",
        reason: "Kubernetes converts constants while compiling, so those that have no value reject the expression",
        go: "vectors `bool('yes')`, `duration('1')`",
        applies: |it| {
            let read = it.we_reject("invalid duration argument") || it.we_reject("invalid timestamp argument");
            let folded = matches!(it.ours, Verdict::Rejected(text) if !text.starts_with("ERROR"));
            it.case.strict && (read || folded) && !it.they_reject("")
        },
        example: ("!b || int('a') == 1", "rejected: type conversion error", "true"),
    },
    Known {
        name: "types of elements of dyn",
        reason: "cel-core gives an element of a dynamic value a type variable instead of dyn, and finds no overload for it",
        go: "vectors with `object.metadata.ownerReferences[0].kind`",
        applies: |it| it.they_reject("V#"),
        example: ("object.items[0].k", "\"v\"", "rejected: check errors: undefined field"),
    },
    Known {
        name: "minimum of int after a minus sign",
        reason: "of several minus signs none belongs to the number, which is then too large by one",
        go: "vectors `--1` and `---1`: by their costs only the last of three signs is a call",
        applies: |it| it.we_reject("invalid int literal") && it.text().contains("--9223372036854775808"),
        example: ("--9223372036854775808", "rejected: ERROR: <input>:1:3: invalid int literal", "fails: integer"),
    },
    Known {
        name: "comparison across types of numbers",
        reason: "cel-core has no overloads for operands of two types of numbers, but compares them if one is dyn",
        go: "vector `1 < 2u`",
        applies: |it| it.they_reject("matching overload for '_<") || it.they_reject("matching overload for '_>"),
        example: ("1 < u", "false", "rejected: check errors: no matching overload for '_<_'"),
    },
    Known {
        name: "pairs of minus signs",
        reason: "in Go two minus signs cancel out, and the minimum of int is not negated",
        go: "vector `--1`, which costs nothing",
        applies: |it| {
            let negated = it.they_fail("negation overflow") || it.they_reject("matching overload for '-_'");
            it.text().contains("--") && it.we_have_a_value() && negated
        },
        example: ("--dyn(-9223372036854775808)", "-9223372036854775808", "fails: integer negation overflow"),
    },
    Known {
        name: "constant keys that are no keys",
        reason: "Kubernetes refuses constants that can be no key while compiling",
        go: "vector `object[null]`",
        applies: |it| it.we_reject("invalid qualifier type: "),
        example: ("x[b'']", "rejected: invalid qualifier type: types.Bytes", "fails: "),
    },
    Known {
        name: "operands of different types",
        reason: "cel-core takes two types that have nothing in common for dyn: in equality, membership, keys, branches",
        go: "vectors `1 == null`, `null in [1]`",
        applies: |it| matches!(it.ours, Verdict::Rejected(text) if operands_differ(text)) && !it.they_reject(""),
        example: ("b ? i : s", "rejected: ERROR: <input>:1:3: found no matching overload for '_?_:_'", "\""),
    },
    Known {
        name: "elements of different types",
        reason: "in Kubernetes the elements of a list or map literal have one type",
        go: "vector `[dyn(1), 'a']`",
        applies: |it| it.we_reject(": expected type '") && !it.they_reject(""),
        example: ("[1, 'a']", "rejected: ERROR: <input>:1:5: expected type 'int' but found 'string'", "[1, \"a\"]"),
    },
    Known {
        name: "null as an operand",
        reason: "null may stand for a duration, timestamp or optional: in Go the overloads for these take it",
        go: "vector `optional.of(1) == null`",
        applies: |it| {
            ["(null, ", "(duration, ", ", duration)"].iter().any(|types| it.they_reject(types)) && !it.we_reject("")
        },
        example: ("null[0]", "fails: no such key: 0", "rejected: check errors: no matching overload for '_[_]'"),
    },
    Known {
        name: "types of empty literals",
        reason: "the first overload that takes an element of an empty literal gives it a type, and both have other orders",
        go: "vector `[].map(x, x * 2)`, which is a list(int)",
        applies: |it| {
            let empty = it.text().contains("{}") || it.text().contains("[]");
            empty && (it.we_reject("") || it.they_reject("")) && !(it.we_reject("") && it.they_reject(""))
        },
        example: ("[].map(e, 1 / (e % e))", "[]", "rejected: check errors: no matching overload for '_/_'"),
    },
    Known {
        name: "durations beyond 64 bits of nanoseconds",
        reason: "a duration of Go ends there, one of cel-core after ten thousand years",
        go: "vector `duration('9223372037s')`",
        applies: |it| {
            let ours = it.we_fail("integer overflow") || it.we_fail("to 'google.protobuf.Duration'");
            let longest = it.ours.to_string() == "9223372036854775807ns";
            (ours || longest) && matches!(it.theirs, Verdict::Value(text) if text.ends_with("ns"))
        },
        example: ("duration('9223372036s') + duration('9223372036s')", "fails: integer overflow", "18446744072"),
    },
    Known {
        name: "int of a duration",
        reason: "cel-core does not convert durations to nanoseconds",
        go: "vector `int(dyn(duration('1s')))`",
        applies: |it| {
            let refused = it.they_reject("matching overload for 'int' with argument types (duration)");
            refused || it.they_fail("cannot convert duration to int")
        },
        example: ("int(duration('1s'))", "1000000000", "rejected: check errors: no matching overload for 'int'"),
    },
    Known {
        name: "name of the type of optionals",
        reason: "cel-core calls it `optional`",
        go: "vector `optional_type`",
        applies: |it| it.theirs.to_string().contains("type(optional)"),
        example: ("type(object[?'a'])", "type(optional_type)", "type(optional)"),
    },
    Known {
        name: "duration of an int",
        reason: "Kubernetes has an overload for it, which always fails",
        go: "vector `duration(dyn(1))`",
        applies: |it| it.we_fail("from 'int' to 'google.protobuf.Duration'"),
        example: (
            "duration(i)",
            "fails: type conversion error from 'int'",
            "rejected: check errors: no matching overload",
        ),
    },
    Known {
        name: "milliseconds of durations",
        reason: "Go gives the whole duration in milliseconds, as with the other units",
        go: "vector `duration('1h30m45.678s').getMilliseconds()`",
        applies: |it| it.text().contains(".getMilliseconds()") && it.we_have_a_value() && it.they_have_a_value(),
        example: ("duration('-1.5s').getMilliseconds()", "-1500", "-500"),
    },
    Known {
        name: "units of negative durations",
        reason: "cel-core rounds the units of a negative difference down, Go towards zero",
        go: "Go's `time.Duration.Seconds`",
        applies: |it| {
            let units = [".getHours()", ".getMinutes()", ".getSeconds()"];
            units.iter().any(|unit| it.text().contains(unit)) && it.we_have_a_value() && it.they_have_a_value()
        },
        example: ("(duration('1us') - duration('1s')).getSeconds()", "0", "-1"),
    },
    Known {
        name: "branches of which one is dyn",
        reason: "in Go such a ternary is dyn, in cel-core it can be of the other branch's type",
        go: "vector `(true ? object.nope : 1) == 1`",
        applies: |it| it.text().contains(" ? ") && it.text().contains(" : ") && it.they_reject("matching overload"),
        example: ("(b ? dyn(1) : b ? dyn(2) : 7u) + 1", "fails: no such overload", "rejected: "),
    },
    Known {
        name: "zero without a unit",
        reason: "Go reads it as a duration",
        go: "Go's `time.ParseDuration`",
        applies: |it| it.they_fail("missing unit after '0'") && it.we_have_a_value(),
        example: ("duration('0')", "0ns", "fails: invalid duration: missing unit after '0'"),
    },
    Known {
        name: "line breaks in texts",
        reason: "Go reads a carriage return in a long text as a line feed",
        go: "vector `'''\\r'''`",
        applies: |it| it.text().contains('\r') && it.we_have_a_value() && it.they_have_a_value(),
        example: ("'''\r'''", r#""\n""#, r#""\r""#),
    },
    Known {
        name: "classes of patterns",
        reason: "in Go `\\w` is ASCII",
        go: "vector `'é'.matches(`",
        applies: |it| it.text().contains(".matches(") && it.text().contains(r"\w") && it.we_have_a_value(),
        example: (r"'é'.matches('\\w')", "false", "true"),
    },
    Known {
        name: "texts of doubles",
        reason: "Go prints whole doubles without a fraction, and large and small ones with an exponent",
        go: "vector `string(1e22)`",
        applies: |it| it.text().contains("string(") && it.we_have_a_value() && !it.they_reject(""),
        example: ("string(2.0)", "\"2\"", "\"2.0\""),
    },
    Known {
        name: "index of what is no list",
        reason: "cel-core takes characters of texts and numbers of bytes, which Go refuses as missing keys",
        go: "vector `dyn('abc')[0]`",
        applies: |it| it.we_fail("no such key: ") && it.they_have_a_value() && it.text().contains('['),
        example: ("dyn('a')[0]", "fails: no such key: 0", "\"a\""),
    },
    Known {
        name: "optional index of what is no list",
        reason: "the same, with a question mark",
        go: "vector `dyn('a')[?0]`",
        applies: |it| it.text().contains("[?") && it.we_have_a_value() && it.they_have_a_value(),
        example: ("dyn('a')[?0] == dyn('b')[?0]", "true", "false"),
    },
    Known {
        name: "negative index",
        reason: "cel-core counts negative indexes from the end",
        go: "vector `[1,2,3][-1]`",
        applies: |it| it.we_fail("index out of bounds: -") && it.they_have_a_value(),
        example: ("[-1, 0][-2]", "fails: index out of bounds: -2", "-1"),
    },
    Known {
        name: "membership in an empty literal",
        reason: "Go makes a constant of it, whether its left side has a value or not",
        go: "the interpreter of cel-go, `maybeOptimizeSetMembership`",
        applies: |it| it.text().contains(" in []") && it.we_have_a_value() && it.they_fail(""),
        example: ("object.missing in []", "false", "fails: key not found: missing"),
    },
    Known {
        name: "words for bool",
        reason: "Go's conversion also reads one letter, as in `T`",
        go: "vector `bool('F')`",
        applies: |it| it.text().contains("bool(") && it.we_have_a_value() && it.they_fail("convert string to bool"),
        example: ("bool('T')", "true", "fails: cannot convert string to bool"),
    },
    Known {
        name: "has() of a missing parent",
        reason: "only the last field may be missing; cel-core turns every error into false",
        go: "vector `has(object.missing.deeper)`",
        applies: |it| it.text().contains("has(") && it.we_fail("") && it.they_have_a_value(),
        example: ("has(object.missing.b)", "fails: no such key: missing", "false"),
    },
    Known {
        name: "repeated keys",
        reason: "in Go the last of several equal keys of a map literal counts",
        go: "vector `{'a':1,'a':2}`",
        applies: |it| it.they_fail("repeated key"),
        example: ("{s: 0, s: 1}", "1}", "fails: Failed with repeated key"),
    },
    Known {
        name: "sign of texts for uint",
        reason: "Go reads no plus sign",
        go: "Go's `strconv.ParseUint`: a sign is not permitted",
        applies: |it| it.text().contains("uint(") && it.we_fail("from 'string' to 'uint'") && it.they_have_a_value(),
        example: ("uint('+1')", "fails: type conversion error from 'string' to 'uint'", "1u"),
    },
    Known {
        name: "sum of maps",
        reason: "cel-core adds maps, CEL does not",
        go: "vector `{'a':1} + {'b':2}`",
        applies: |it| {
            let refused = it.we_reject("'_+_' applied to '(dyn, map(") || it.we_reject("'_+_' applied to '(map(");
            (refused || it.we_fail("no such overload: _+_")) && !it.they_reject("")
        },
        example: ("object + object", "fails: no such overload: _+_", "{"),
    },
    Known {
        name: "keys that are no keys",
        reason: "Go lets doubles and null be keys of map literals, which are never found",
        go: "vector `{1.0:1}`",
        applies: |it| it.they_fail("valid map key"),
        example: ("size({d: 1})", "1", "fails: expected valid map key"),
    },
    Known {
        name: "ranges of macros",
        reason: "Kubernetes checks while compiling that a macro iterates a list or map",
        go: "vector `(1).all(x, true)`",
        applies: |it| it.we_reject("cannot be range of a comprehension") && !it.they_reject(""),
        example: ("b.map(e, e)", "rejected: ERROR: <input>:1:1: expression of type 'bool' cannot be range", "fails: "),
    },
];

/// Whether a refusal names two operands whose types are known and do not fit each other.
fn operands_differ(refusal: &str) -> bool {
    let refused = refusal.split_once("found no matching overload for '").and_then(|(_, rest)| rest.split_once(")'"));
    let Some((function, types)) = refused.and_then(|(refused, _)| refused.split_once("' applied to '(")) else {
        return false;
    };
    let types = split_types(types);
    let [.., a, b] = types.as_slice() else { return false };
    let holds = |kind: &str, part: &str| kind.starts_with(&format!("map({part},")) || kind == format!("list({part})");
    let fits = match function {
        "_==_" | "_!=_" | "_?_:_" => a == b || head(a) == head(b) && (a.contains("dyn") || b.contains("dyn")),
        "@in" => holds(b, a),
        "_[_]" => holds(a, b) || a.starts_with("list(") && b == "int",
        "_+_" => head(a) != "list" || head(b) != "list" || a == b,
        _ => true,
    };
    a != "dyn" && b != "dyn" && !fits
}

/// A type without its parameters.
fn head(kind: &str) -> &str {
    kind.split('(').next().unwrap_or_default()
}

/// Splits at commas that stand in no parentheses.
fn split_types(types: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in types.chars() {
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if let (Some(part), false) = (parts.last_mut(), c == ',' && depth == 0) {
            part.push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}
