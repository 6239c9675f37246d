//! The dialect: what the reference was seen to do with operators, projections and missing members.

use super::check;

#[test]
fn missing_members_are_errors_until_an_operator_swallows_them() {
    check(&[
        ("x", r#"error: Unknown key "x" in path"#),
        ("o.x", r#"error: Unknown key "x" in path"#),
        ("(x).y", r#"error: Unknown key "x" in path"#),
        ("o.p.n.z", "null"),
        ("nul.z", "null"),
        ("ll[9]", "null"),
        ("ll[-9]", "null"),
        ("w[0]", "null"),
        ("x || 'd'", r#""d""#),
        ("x.y.z || 'd'", r#""d""#),
        ("x || x", "null"),
        ("x && 't'", "null"),
        ("t && x", r#"error: Unknown key "x" in path"#),
        ("!x", "true"),
        ("!!x", "false"),
        ("x == nul", "true"),
        ("x != nul", "false"),
        ("x < x", "null"),
        ("x < `1`", "null"),
        ("to_string(x)", r#""null""#),
        ("length(x)", r#"error: Invalid type for: <nil>, expected: []jmespath.JpType{"string", "array", "object"}"#),
        ("[x, w]", r#"[null,"abc"]"#),
        ("{a: x}", r#"{"a":null}"#),
        ("{a: x}.a", "null"),
        ("x | @", "null"),
        ("w | x", "null"),
        ("x.to_string(@)", r#"error: Unknown key "x" in path"#),
        ("nul.to_string(@)", r#""null""#),
        ("x[]", "null"),
        ("x[*].y", "null"),
        ("x[?y]", "null"),
        ("x[0:1]", "null"),
        ("x.*", "null"),
        ("x.*.y", "null"),
        ("x[0]", r#"error: Unknown key "x" in path"#),
        ("x.[y]", r#"error: Unknown key "x" in path"#),
        ("x.{k: a}", r#"error: Unknown key "x" in path"#),
        ("w[0:1]", "null"),
        ("length(x[] || `[]`)", "0"),
        ("(x || w).z", "null"),
        ("(x || o).p.n", r#""x""#),
        ("not_null(x, w)", r#""abc""#),
        ("l[].m.x", "[1]"),
        ("l[1].m", r#"error: Unknown key "m" in path"#),
        ("l[*].{k:k,x:m.x}", r#"[{"k":"p","x":1},{"k":"q","x":null}]"#),
        ("l[].to_string(m)", r#"["{\"x\":1}","null"]"#),
        ("map(&m.x, l)", "[1,null]"),
    ]);
}

#[test]
fn only_objects_miss_members() {
    check(&[
        ("nul.{a: w}", "null"),
        ("nul.[w]", "null"),
        ("w.x.y.z", "null"),
        ("'abc'.x", "null"),
        ("'abc'[0]", "null"),
    ]);
}

#[test]
fn not_binds_tighter_than_the_dot_but_not_than_brackets_and_calls() {
    check(&[
        ("l[?!m].k", r#"["q"]"#),
        ("l[?!m.x].k", "[]"),
        ("l[?!(m.x)].k", r#"["q"]"#),
        ("!t.z", "null"),
        ("!nul.z", "null"),
        ("!l[0]", "false"),
        ("!length(w)", "false"),
        ("!l[?k]", "null"),
        ("!o.*", "null"),
        ("!w == w", "false"),
    ]);
}

#[test]
fn value_projections_take_one_step_and_see_a_null_for_every_member() {
    check(&[
        ("o.*.n", r#"["x","y"]"#),
        ("sort(o.*.n)", r#"["x","y"]"#),
        ("o.*.a.b", "null"),
        ("o.*.a | [].b", "[1,2]"),
        ("o | *.a.b", "[1,2]"),
        ("o.*.s[0]", "[1,7]"),
        ("o.*.s[*]", "[[1,5],[7]]"),
        ("o.*.s[0:1]", "[[1],[7]]"),
        ("o.*.s[]", "[1,5,7]"),
        ("o.*.s[] | [0]", "1"),
        ("o.*.s[?@>`4`]", "[]"),
        (
            "o.*.length(n)",
            r#"error: Invalid type for: <nil>, expected: []jmespath.JpType{"string", "array", "object"}"#,
        ),
        ("o.*.to_string(n)", r#"["null","null","x","y"]"#),
        ("o.*.n.length(@)", "2"),
        ("o.*.n.[@]", r#"[["x","y"]]"#),
        ("length(o.*)", "2"),
        ("e.*", "[]"),
        ("l.*", "null"),
        ("o.*.*", r#"[[{"b":1},"x",[1,5]],[{"b":2},"y",[7]]]"#),
        ("o.*.*.b", "[[1],[2]]"),
        ("o.*[0]", "[]"),
        ("o.*[].n", r#"["x","y"]"#),
        ("o.*[?n=='x']", "[]"),
        ("o.*.p || w", r#""abc""#),
        ("*[0]", r#"[{"k":"p","m":{"x":1}},[1,2]]"#),
        ("*.n", "[]"),
    ]);
}

#[test]
fn list_projections_reach_to_the_next_pipe() {
    check(&[
        ("ll[]", "[1,2,3,[4]]"),
        ("ll[][0]", "[4]"),
        ("ll[*][1]", "[2,[4]]"),
        ("ll[0:1][0]", "[1]"),
        ("ll[0:1] | [0]", "[1,2]"),
        ("ll[*][0:1][0]", "[[],[]]"),
        ("ll[?[0] == `1`]", "[[1,2]]"),
        ("ll[*][?@ == `1`]", "[[1],[]]"),
        ("l[?k=='p'][0]", "[]"),
        ("l[?k=='p'] | [0]", r#"{"k":"p","m":{"x":1}}"#),
        ("l[?k=='p'].m.x | [0]", "1"),
        ("l[*].[k]", r#"[["p"],["q"]]"#),
        ("l[*].m.x", "[1]"),
        ("l[].m.x.y", "[]"),
        ("l[*].k | length(@)", "2"),
        ("l[*].k.length(@)", "[1,1]"),
        ("l[].k.length(@)", "[1,1]"),
        ("l[?k].k.length(@)", "[1,1]"),
        ("l[0:].k.length(@)", "[1,1]"),
        ("l[*].to_string(@).length(@)", "[21,9]"),
        ("l[0].k.length(@)", "1"),
        ("[w, nul][]", r#"["abc"]"#),
        ("[w, nul][*]", r#"["abc"]"#),
        ("[w, nul] | @", r#"["abc",null]"#),
        ("o[?n]", "null"),
        ("o.p[].n", "null"),
        ("l[?x]", "[]"),
        ("l == l[]", "true"),
    ]);
}

#[test]
fn some_projections_swallow_every_failure_of_their_source() {
    let refused = r#"error: Invalid type for: abc, expected: []jmespath.JpType{"number"}"#;
    check(&[
        ("abs(w)[]", "null"),
        ("abs(w).*", "null"),
        ("abs(w)[?a]", "null"),
        ("abs(w)[*]", refused),
        ("abs(w)[0:1]", refused),
        ("abs(w)[0]", refused),
        ("abs(w) || w", refused),
        ("abs(w) | @", refused),
        ("!abs(w)", refused),
        ("[w][?abs(@)]", refused),
        ("[w][].abs(@)", refused),
    ]);
}

#[test]
fn slices_and_indexes_count_from_either_end() {
    check(&[
        ("l[-1].k", r#""q""#),
        ("ll[0][::-1]", "[2,1]"),
        ("ll[-5:10]", "[[1,2],[3,[4]]]"),
        ("ll[::2]", "[[1,2]]"),
        ("ll[:-1]", "[[1,2]]"),
        ("ll[0][-1:]", "[2]"),
        ("ll[5:]", "[]"),
        ("ll[0][5::-1]", "[2,1]"),
        ("ll[ 0 ]", "[1,2]"),
        ("ll [:]", "[[1,2],[3,[4]]]"),
        ("ll[0:1:]", "[[1,2]]"),
        ("[w, x][0]", r#""abc""#),
    ]);
}

#[test]
fn falsy_is_null_false_and_empty_but_not_zero() {
    check(&[
        ("`0` || 'd'", "0"),
        ("e || 'd'", r#""d""#),
        ("`[]` || 'd'", r#""d""#),
        ("'' || 'd'", r#""d""#),
        ("`false` || 'd'", r#""d""#),
        ("e && x", "{}"),
        ("t && w && e", "{}"),
        ("w || x || t", r#""abc""#),
    ]);
}

#[test]
fn comparisons_know_one_number_type_and_order_only_numbers() {
    check(&[
        ("w < 'b'", "null"),
        ("w < `2`", "null"),
        ("`1` < `2`", "true"),
        ("`1` < `2` < `3`", "null"),
        ("`1` <= `1.0`", "true"),
        ("`1` >= `2`", "false"),
        ("`1` == `1.0`", "true"),
        ("`[1]` == `[1.0]`", "true"),
        (r#"`{"a":1}` == `{"a":1.0}`"#, "true"),
        ("length('ab') == `2`", "true"),
        ("x || w == w", "true"),
        ("w == w && t", "true"),
        ("w | @ == w", "false"),
        ("t || w == x", "true"),
    ]);
}

#[test]
fn strings_and_identifiers_keep_their_own_escapes() {
    check(&[
        (r"'a\'b'", r#""a'b""#),
        (r"'\n'", r#""\\n""#),
        (r"'a\\b'", r#""a\\\\b""#),
        (r#"`"a\`b"`"#, r#""a`b""#),
        (r#"o."p"."n""#, r#""x""#),
        (r#"o."\u0070".n"#, r#""x""#),
        (r#""a\tb""#, "error: Unknown key \"a\tb\" in path"),
        (r#"{"a": w}"#, r#"{"a":"abc"}"#),
        ("{a : w , b:t}", r#"{"a":"abc","b":true}"#),
        ("{a: w, a: t}", r#"{"a":true}"#),
        ("{a: w b: t}", r#"{"a":"abc","b":true}"#),
        ("o . p\n.\tn", r#""x""#),
        ("(length)(w)", "3"),
        ("length (w)", "3"),
        ("not_null(x w,)", r#""abc""#),
    ]);
}

#[test]
fn machine_integers_are_no_numbers_to_operators_and_functions() {
    check(&[
        ("elementIndex", "0"),
        ("elementIndex == `0`", "false"),
        ("elementIndex != `0`", "true"),
        ("elementIndex < `1`", "null"),
        ("(elementIndex) == `0`", "false"),
        ("(@ | elementIndex) == `0`", "false"),
        ("({elementIndex: `0`} | elementIndex) == `0`", "true"),
        ("elementIndex | @ == `0`", "false"),
        ("(elementIndex || `5`) == `0`", "false"),
        ("elementIndex1 > elementIndex", "null"),
        ("elementIndex == elementIndex1", "false"),
        ("elementIndex == elementIndex", "true"),
        ("to_string(elementIndex)", r#""0""#),
        ("elementIndex.to_string(@)", r#""0""#),
        ("abs(elementIndex1)", r#"error: Invalid type for: 1, expected: []jmespath.JpType{"number"}"#),
        ("type(elementIndex)", "error: unknown type"),
        ("compare('a','b') == `-1`", "false"),
        ("compare('a','b') < `0`", "null"),
        ("compare('a','b')", "-1"),
        ("to_string(compare('a','b'))", r#""-1""#),
        ("type(compare('a','b'))", "error: unknown type"),
        ("compare('a','b') | type(@)", "error: unknown type"),
        ("to_number(to_string(compare('a','b'))) == `-1`", "true"),
        ("to_number(elementIndex)", "error: unknown type"),
        ("not_null(elementIndex) == `0`", "false"),
        (
            "length(elementIndex)",
            r#"error: Invalid type for: 0, expected: []jmespath.JpType{"string", "array", "object"}"#,
        ),
        (
            "lookup(`[7]`, elementIndex)",
            r#"error: Invalid type for: 0, expected: []jmespath.JpType{"string", "number"}"#,
        ),
        ("elementIndexes", r#"error: Unknown key "elementIndexes" in path"#),
    ]);
}
