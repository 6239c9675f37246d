//! The functions that the reference adds.

use super::{check, outcome};
use crate::jmespath::{Expression, FixedRuntime};
use crate::value::Value;

#[test]
fn text_is_counted_and_changed_by_characters() {
    check(&[
        ("replace('aaa','a','b',`0`)", r#""aaa""#),
        ("replace('aaa','a','b',`-0.5`)", r#""aaa""#),
        ("replace('aaa','a','b',`1e300`)", r#""bbb""#),
        ("replace('abc','','-',`2`)", r#""-a-bc""#),
        ("replace('żó','','-',`-1`)", r#""-ż-ó-""#),
        ("replace_all('','','-')", r#""-""#),
        ("split('','')", "[]"),
        ("split('abc','')", r#"["a","b","c"]"#),
        ("split('a,b,',',')", r#"["a","b",""]"#),
        ("split('a',',')", r#"["a"]"#),
        ("trim('  a ','')", r#""  a ""#),
        ("trim('żaż','ż')", r#""a""#),
        ("truncate('abc',`0`)", r#""""#),
        ("truncate('abc',`0.9`)", r#""""#),
        ("truncate('abc',`9`)", r#""abc""#),
        ("to_boolean('TrUe')", "true"),
        (
            "to_boolean(' True')",
            "error: JMESPath function 'to_boolean': lowercase argument must be 'true' or 'false' (provided: ' True')",
        ),
        ("to_upper(nul)", r#"error: Invalid type for: <nil>, expected: []jmespath.JpType{"string"}"#),
        ("replace('a','b','c','d')", r#"error: Invalid type for: d, expected: []jmespath.JpType{"number"}"#),
    ]);
}

#[test]
fn case_is_changed_character_by_character() {
    check(&[
        ("to_upper('ŉǆıᾳᾀ')", r#""ŉǄIᾼᾈ""#),
        ("to_lower('İΑΣ')", "\"iα\u{3c3}\""),
        ("equal_fold('ſ','S')", "true"),
        ("equal_fold('Σ','ς')", "true"),
        ("equal_fold('\u{212a}','k')", "true"),
        ("equal_fold('ẞ','ß')", "true"),
        ("equal_fold('İ','i')", "false"),
        ("equal_fold('ı','i')", "false"),
        ("equal_fold('a','ab')", "false"),
    ]);
}

#[test]
fn collections_are_taken_apart_and_put_together() {
    check(&[
        ("lookup(x,'a')", r#"error: Invalid type for: <nil>, expected: []jmespath.JpType{"object", "array"}"#),
        ("lookup(`[1]`,`1`)", "null"),
        ("lookup(`{\"a\":1}`,`1`)", "error: JMESPath function 'lookup': argument #2 is not of type String"),
        ("lookup(`[1]`,'a')", "error: JMESPath function 'lookup': argument #2 is not of type Number"),
        ("items(`{}`,'k','v')", "[]"),
        ("items(`[]`,'k','v')", "[]"),
        ("items(`[7]`,'k','k')", r#"[{"k":7}]"#),
        ("object_from_lists(`[]`,`[1]`)", "{}"),
        (r#"object_from_lists(`["a","a"]`,`[1,2]`)"#, r#"{"a":2}"#),
        ("object_from_lists(`[1.5,1e21,true]`,`[]`)", r#"{"1.5":null,"1000000000000000000000":null,"true":null}"#),
        (
            "object_from_lists(`[[1]]`,`[]`)",
            "error: JMESPath function 'object_from_lists': argument #1 is not of type StringArray",
        ),
        ("label_match(`{\"a\":null}`,`{\"b\":1}`)", "false"),
        ("label_match(`{\"a\":1}`,`{\"a\":\"1\"}`)", "false"),
        ("label_match(`{\"a\":[1]}`,`{\"a\":[1]}`)", "true"),
    ]);
}

#[test]
fn base64_is_strict_about_padding_but_not_about_line_breaks_and_stray_bits() {
    check(&[
        ("base64_encode('żó')", r#""xbzDsw==""#),
        ("base64_decode('YR==')", r#""a""#),
        (r#"base64_decode(`"Y\nQ=\r\n="`)"#, r#""a""#),
        ("base64_decode('4oI=')", "\"\u{fffd}\u{fffd}\""),
        ("base64_decode('4oLCoA==')", "\"\u{fffd}\u{fffd}\u{a0}\""),
        ("base64_decode('')", r#""""#),
    ]);
    for (text, at) in [
        ("YQ", 0),
        ("YQ=", 3),
        ("Y Q==", 1),
        ("YQ==YQ==", 4),
        ("YQ=a", 2),
        ("YWE=a", 4),
        ("YWE==", 4),
        ("YWFhY", 4),
        ("YWFhYQ=", 7),
        ("=", 0),
        ("Y===", 1),
        ("YWFhé", 4),
        ("_w==", 0),
    ] {
        let want = format!("error: illegal base64 data at input byte {at}");
        assert_eq!(outcome(&format!("base64_decode('{text}')")), want, "{text}");
    }
}

#[test]
fn texts_are_parsed() {
    check(&[
        ("parse_json('{')", "error: unexpected end of JSON input"),
        ("parse_json('{a}')", "error: invalid character 'a' looking for beginning of object key string"),
        (r#"parse_json('{"a":1,"a":2}')"#, r#"{"a":2}"#),
        (r#"parse_yaml(`"a: 1\na: 2"`)"#, r#"{"a":2}"#),
        (r#"parse_yaml(`"a: 1\n---\n]"`)"#, r#"{"a":1}"#),
        ("parse_yaml('')", "null"),
        ("parse_yaml('y')", "true"),
        ("parse_yaml('1_000')", "1000"),
        ("parse_yaml('{1: 2}')", r#"{"1":2}"#),
        ("path_canonicalize('a/../..')", r#""..""#),
        ("path_canonicalize('a/..')", r#"".""#),
        ("path_canonicalize('//')", r#""/""#),
        ("path_canonicalize('/a/./b/')", r#""/a/b""#),
        (r"path_canonicalize('\a\b')", r#""\\a\\b""#),
    ]);
    assert!(outcome("parse_yaml('a: [')").starts_with("error: yaml: "));
}

#[test]
fn addresses_inside_are_not_external() {
    for (host, want) in [
        ("127.0.0.1", "false"),
        ("172.16.0.1", "false"),
        ("172.32.0.1", "true"),
        ("192.168.1.1", "false"),
        ("169.254.169.254", "false"),
        ("0.0.0.0", "false"),
        ("100.64.0.1", "false"),
        ("[fc00::1]", "false"),
        ("[fe80::1]", "false"),
        ("[::]", "false"),
        ("[::ffff:10.0.0.1]", "false"),
        ("[::127.0.0.1]", "false"),
        ("[::1%25lo]", "false"),
        ("8.8.8.8@10.0.0.1", "false"),
        ("010.0.0.1", "error: lookup 010.0.0.1: no such host"),
        ("2130706433", "error: lookup 2130706433: no such host"),
        ("0x7f.1", "error: lookup 0x7f.1: no such host"),
        ("0x7f.1.", "error: lookup 0x7f.1.: no such host"),
        ("017700000001", "error: lookup 017700000001: no such host"),
        ("10.0.0.1.", "error: lookup 10.0.0.1.: no such host"),
        ("a..b", "error: lookup a..b: no such host"),
        ("h", "error: host names are not looked up here: h"),
    ] {
        assert_eq!(outcome(&format!("is_external_url('http://{host}/')")), want, "{host}");
    }
}

#[test]
fn growing_texts_end_at_the_budget() {
    let long = "x".repeat(20_000);
    for (old, new) in [("", long.as_str()), ("x", long.as_str())] {
        let got = outcome(&format!("replace_all('{long}','{old}','{new}')"));
        assert_eq!(got, "error: evaluation builds too much data");
    }
    for template in ["$0".repeat(5_000), "${1}".repeat(5_000)] {
        let got = outcome(&format!("regex_replace_all('(x+)','{long}','{template}')"));
        assert_eq!(got, "error: evaluation builds too much data");
    }
}

#[test]
fn regular_expressions_are_those_of_go() {
    check(&[
        (r"regex_match('a\d','a1')", "true"),
        ("regex_match('a**','a')", "error: error parsing regexp: invalid nested repetition operator: `**`"),
        ("regex_match('^1e',`1000000`)", "false"),
        ("regex_match('^123456789$',`123456789`)", "false"),
        ("regex_match('^0.1$',`0.1`)", "true"),
        ("regex_match(`1`,'a')", r#"error: Invalid type for: 1, expected: []jmespath.JpType{"string"}"#),
        ("regex_replace_all('a(b)','xabx','<$1>')", r#""x\u003cb\u003ex""#),
        ("regex_replace_all('a(?P<n>b)','xabx','-${n}-')", r#""x-b-x""#),
        ("regex_replace_all('a(b)','xabx','$')", r#""x$x""#),
        ("regex_replace_all('a(b)','xabx','${')", r#""x${x""#),
        ("regex_replace_all('a(b)','xabx','$1_')", r#""xx""#),
        ("regex_replace_all('a(b)','xabx','${1}_')", r#""xb_x""#),
        ("regex_replace_all('','abc','-')", r#""-a-b-c-""#),
        ("regex_replace_all('b*','abc','-')", r#""-a-c-""#),
        ("regex_replace_all('1',`11`,`2`)", r#""22""#),
        ("regex_replace_all('1',`1e21`,`0.5`)", r#""0.5000000000000000000000""#),
        ("regex_replace_all('x',`16777217`,'')", r#""16777216""#),
        (
            "regex_replace_all('(','a','')",
            "error: JMESPath function 'regex_replace_all': error parsing regexp: missing closing ): `(`",
        ),
        (
            "regex_replace_all_literal('(','caat','$1')",
            "error: JMESPath function 'regex_replace_all_literal': error parsing regexp: missing closing ): `(`",
        ),
        ("regex_replace_all_literal('a+',`1`,'$1')", r#""1""#),
    ]);
}

#[test]
fn wildcards_have_two_special_characters() {
    check(&[
        ("pattern_match('?*','')", "false"),
        ("pattern_match('a.c','abc')", "false"),
        ("pattern_match('**','')", "true"),
        ("pattern_match('[a]','a')", "false"),
        ("pattern_match('*',`1e21`)", "true"),
        ("pattern_match('0.1',`0.1`)", "true"),
    ]);
}

#[test]
fn versions_are_compared_with_ranges() {
    check(&[
        ("semver_compare('1.2.3','1.2.3')", "true"),
        ("semver_compare('1.2.3','==1.2.3')", "true"),
        ("semver_compare('1.2.3','!1.2.x')", "false"),
        ("semver_compare('1.2.3','>= 1.2.3')", "true"),
        ("semver_compare('1.2.3','>=1.0.0 <2.0.0')", "true"),
        ("semver_compare('1.2.3','<1.0.0 || >1.2.0')", "true"),
        ("semver_compare('1.2.3','1.x')", "true"),
        ("semver_compare('1.2.3','>1.x')", "false"),
        ("semver_compare('2.0.0','<=1.x')", "false"),
        ("semver_compare('1.2.3','1.2.3-a')", "false"),
        ("semver_compare('1.2.3+x','1.2.3+y')", "true"),
        ("semver_compare('bad','0.0.0')", "true"),
        (
            "semver_compare('1.2.3','^1.0.0')",
            r#"error: Could not parse Range "^1.0.0": Could not parse comparator "^" in "^1.0.0""#,
        ),
    ]);
}

#[test]
fn images_are_completed() {
    check(&[
        ("image_normalize('Reg/b')", r#""Reg/b:latest""#),
        ("image_normalize('localhost/a')", r#""localhost/a:latest""#),
        ("image_normalize('a:5000/b')", r#""a:5000/b:latest""#),
        (
            "image_normalize('a:1@sha256:0000000000000000000000000000000000000000000000000000000000000000')",
            r#""docker.io/a@sha256:0000000000000000000000000000000000000000000000000000000000000000""#,
        ),
        ("image_normalize('a/b/c:x')", r#""docker.io/a/b/c:x""#),
        (
            "image_normalize('')",
            "error: JMESPath function 'image_normalize': bad image: docker.io/, defaultRegistry: docker.io, enableDefaultRegistryMutation: true: invalid reference format",
        ),
        (
            "image_normalize('a:')",
            "error: JMESPath function 'image_normalize': bad image: docker.io/a:, defaultRegistry: docker.io, enableDefaultRegistryMutation: true: invalid reference format",
        ),
        (
            "image_normalize('ghcr.io/B')",
            "error: JMESPath function 'image_normalize': bad image: ghcr.io/B, defaultRegistry: docker.io, enableDefaultRegistryMutation: true: repository name must be lowercase",
        ),
    ]);
}

#[test]
fn a_regular_expression_kept_for_all_calls_answers_each_by_itself() {
    let expression = Expression::compile(r"items[?regex_match('^a\d+$', @)] | join(',', @)").unwrap();
    for (items, want) in [(r#"["a1","b1","a22"]"#, r#""a1,a22""#), (r#"["b","a3"]"#, r#""a3""#)] {
        let root = Value::from_json(&format!("{{\"items\":{items}}}")).unwrap();
        assert_eq!(expression.evaluate(&root, &FixedRuntime::default()).unwrap().to_json(), want);
    }
}
