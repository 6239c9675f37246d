//! The functions of the specification where the reference has edges of its own.

use super::check;

#[test]
fn by_functions_want_numbers_or_strings_and_never_look_at_a_single_item() {
    check(&[
        ("sort_by(l,&m.x)", "error: error in sort_by comparison"),
        ("sort_by(l,&x)", "error: invalid type, must be number of string"),
        ("sort_by(`[{}]`,&x)", "[{}]"),
        ("sort_by(`[1]`,&abs('a'))", "[1]"),
        ("sort_by(`[1,2]`,&abs('a'))", r#"error: Invalid type for: a, expected: []jmespath.JpType{"number"}"#),
        (r#"sort_by(`[{"k":1},{"k":"a"}]`,&k)"#, "error: error in sort_by comparison"),
        (r#"sort_by(`[{"k":null},{"k":1}]`,&k)"#, "error: invalid type, must be number of string"),
        ("sort_by(`[3,1,2]`,&@)", "[1,2,3]"),
        (r#"sort_by(`[{"k":2,"i":1},{"k":1,"i":2},{"k":2,"i":3},{"k":1,"i":4}]`,&k)[].i"#, "[2,4,1,3]"),
        ("sort_by(`[]`,&k)", "[]"),
        ("max_by(`[]`,&k)", "null"),
        ("max_by(`[{}]`,&k)", "{}"),
        ("max_by(l,&m)", "error: invalid type, must be number of string"),
        (r#"max_by(`[{"k":1},{}]`,&k)"#, "error: invalid type, must be number"),
        (r#"max_by(`[{"k":"a"},{"k":1}]`,&k)"#, "error: invalid type, must be string"),
        (r#"max_by(`[{"k":1},{"k":3},{"k":3,"z":1}]`,&k)"#, r#"{"k":3}"#),
        (r#"min_by(`[{"k":1},{"k":3},{"k":1,"z":1}]`,&k)"#, r#"{"k":1}"#),
        ("max_by(l,&abs(k))", r#"error: Invalid type for: p, expected: []jmespath.JpType{"number"}"#),
        ("map(&abs(k),l)", r#"error: Invalid type for: p, expected: []jmespath.JpType{"number"}"#),
        ("map(&@,`[1,null]`)", "[1,null]"),
    ]);
}

#[test]
fn wrong_types_name_the_value_and_the_types() {
    check(&[
        ("length(`1`)", r#"error: Invalid type for: 1, expected: []jmespath.JpType{"string", "array", "object"}"#),
        (
            "sort(l)",
            r#"error: Invalid type for: [map[k:p m:map[x:1]] map[k:q]], expected: []jmespath.JpType{"array[string]", "array[number]"}"#,
        ),
        (
            r#"max(`["a",1]`)"#,
            r#"error: Invalid type for: [a 1], expected: []jmespath.JpType{"array[number]", "array[string]"}"#,
        ),
        ("join(',', `[1]`)", r#"error: Invalid type for: [1], expected: []jmespath.JpType{"array[string]"}"#),
        ("contains(nul,w)", r#"error: Invalid type for: <nil>, expected: []jmespath.JpType{"array", "string"}"#),
        ("merge(e, w)", r#"error: Invalid type for: abc, expected: []jmespath.JpType{"object"}"#),
        ("to_upper(nul)", r#"error: Invalid type for: <nil>, expected: []jmespath.JpType{"string"}"#),
        ("keys(w)", r#"error: Invalid type for: abc, expected: []jmespath.JpType{"object"}"#),
    ]);
}

#[test]
fn numbers_are_read_and_written_as_in_the_reference() {
    check(&[
        ("to_number('1_000')", "1000"),
        ("to_number('0x10')", "null"),
        ("to_number('abc')", "null"),
        ("to_number('')", "null"),
        ("to_number('.5')", "0.5"),
        ("to_number('1e400')", "null"),
        ("to_number('Inf') > `1e300`", "true"),
        ("to_number(`true`)", "null"),
        ("to_string(`1e20`)", r#""100000000000000000000""#),
        ("to_string(`1e21`)", r#""1e+21""#),
        ("to_string(`0.0000001`)", r#""1e-7""#),
        (r#"to_string(`["<a>"]`)"#, r#""[\"\\u003ca\\u003e\"]""#),
        ("type(nul)", r#""null""#),
        ("type(x)", r#""null""#),
        ("contains(l, l[0])", "true"),
        ("contains(`[null]`, x)", "true"),
    ]);
}
