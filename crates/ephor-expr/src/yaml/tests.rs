//! What texts are taken, as what, and where the others are faulty.

use super::*;
use crate::Value;
use crate::value::Path;

fn json(text: &str) -> String {
    match parse_value(text) {
        Ok(value) => value.to_json(),
        Err(error) => panic!("{text:?}: {error}"),
    }
}

fn fault(text: &str) -> (u32, u32, String) {
    let error = parse_values(text, &Limits::default()).expect_err(text);
    (error.position.line, error.position.column, error.message)
}

#[test]
fn documents_are_read_as_sigs_yaml_reads_them() {
    for (text, want) in [
        ("y: 1", r#"{"true":1}"#),
        ("1: a\n1.5: b", r#"{"1":"a","1.5":"b"}"#),
        ("a: !!str 123\nb: !!str\nc: !foo 12\nd: ! 12", r#"{"a":"123","b":"","c":"12","d":"12"}"#),
        ("a: !!set {x, y: 1}", r#"{"a":{"true":1,"x":null}}"#),
        ("a: !!python/none x\nb: !foo {c: 1}", r#"{"a":"x","b":{"c":1}}"#),
        ("- a\n-\n- - b", r#"["a",null,["b"]]"#),
        ("? a\n: b\n? c", r#"{"a":"b","c":null}"#),
        ("{a, b: c, d: }", r#"{"a":null,"b":"c","d":null}"#),
        ("[a: b]", r#"[{"a":"b"}]"#),
        ("a: {x:1, y: b:c, \"z\":3}", r#"{"a":{"true":"b:c","x:1":null,"z":3}}"#),
        ("a: [\n1,\n2\n]", r#"{"a":[1,2]}"#),
        ("a: \"\\ud83d\\ude00\\x41\"", "{\"a\":\"😀A\"}"),
        ("a: |\n  x\n  y\nb: >\n  x\n  y\n\n  z\n", r#"{"a":"x\ny\n","b":"x y\nz\n"}"#),
        ("a: |\n  x", r#"{"a":"x"}"#),
        ("a: >+\n  x", r#"{"a":"x"}"#),
        ("a: |+\n  x\n\n", r#"{"a":"x\n\n"}"#),
        ("a: x\n  y\n\n  z", r#"{"a":"x y\nz"}"#),
        ("\u{feff}a: 1\r\nb:\t2\r\n", r#"{"a":1,"b":2}"#),
        ("%YAML 1.2\n---\na", r#""a""#),
        ("a: &x 5\nb: *x\n? *x\n: 1", r#"{"5":1,"a":5,"b":5}"#),
        ("&a a: *a", r#"{"a":"a"}"#),
        ("a: &x\nb: *x", r#"{"a":null,"b":null}"#),
        ("- &a 1\n- &a 2\n- *a", "[1,2,2]"),
        ("", "null"),
        ("# nothing\n", "null"),
        ("---\n---\n# c\n---\na: 1\n---\n...\n", r#"{"a":1}"#),
        ("--- ~", "null"),
        ("a: http://x:80/#y", r#"{"a":"http://x:80/#y"}"#),
        (r#"{"a": [1, 2.50, 1e2, "\/", null], "b": true}"#, r#"{"a":[1,2.5,100,"/",null],"b":true}"#),
    ] {
        assert_eq!(json(text), want, "{text:?}");
    }
}

#[test]
fn merge_keys_bring_in_members() {
    let base = "a: &x {b: 1}\nd: &y {b: 2, c: 3}\nz:\n  ";
    let merged = |text: &str, dialect| {
        let options = Options { dialect, ..Options::default() };
        options.values(&format!("{base}{text}")).unwrap().remove(0).get("z").unwrap().to_json()
    };
    for (text, kubernetes, v3) in [
        ("<<: *x\n  d: 2", r#"{"b":1,"d":2}"#, r#"{"b":1,"d":2}"#),
        ("<<: *x\n  b: 5", r#"{"b":5}"#, r#"{"b":5}"#),
        ("b: 5\n  <<: *x", r#"{"b":1}"#, r#"{"b":5}"#),
        ("<<: [*x, *y]", r#"{"b":1,"c":3}"#, r#"{"b":1,"c":3}"#),
        ("<<: *x\n  <<: *y", r#"{"b":2,"c":3}"#, r#"{"b":2,"c":3}"#),
        ("!!merge <<: {q: 1}", r#"{"q":1}"#, r#"{"q":1}"#),
        ("'<<': 1", r#"{"\u003c\u003c":1}"#, r#"{"\u003c\u003c":1}"#),
    ] {
        assert_eq!(merged(text, Dialect::Kubernetes), kubernetes, "{text}");
        assert_eq!(merged(text, Dialect::V3), v3, "{text}");
    }
}

#[test]
fn faults_have_their_place() {
    for (text, line, column, message) in [
        ("a: 1\nb: 2\na: 3", 3, 1, "duplicate key `a`, already defined at line 1"),
        ("x: {a: 1, \"a\": 2}", 1, 11, "duplicate key `a`, already defined at line 1"),
        ("true: 1\nyes: 2", 2, 1, "duplicate key `true`, already defined at line 1"),
        ("b:\n  <<: {a: 1}\n  a: 1\n  a: 2", 4, 3, "duplicate key `a`, already defined at line 3"),
        ("a: b: c", 1, 5, "`:` after a value: expected a new line, or quotes around the text"),
        ("a:\n  - [b\n", 2, 5, "`[` is not closed"),
        ("a: 'x", 1, 4, "expected a closing quote"),
        ("a:\n\tb: c", 2, 2, "expected spaces as indentation, found a tab"),
        ("a: *nope", 1, 4, "alias of an anchor that is not defined before it"),
        ("a: &x\n  - *x", 2, 5, "an anchor's value must not contain an alias of itself"),
        ("é: &x {b: {c: *x}}", 1, 15, "an anchor's value must not contain an alias of itself"),
        ("a: 1\n[1]: a", 2, 1, "expected a string as key, found an array"),
        ("a: &x [1]\n? *x\n: 1", 2, 3, "expected a string as key, found an alias of array"),
        ("? {a: b}\n: c", 1, 3, "expected a string as key, found an object"),
        ("a: 1\n~: b", 2, 1, "expected a string as key, found null"),
        ("a: .inf", 1, 4, "expected a finite number, found `.inf`"),
        ("a: !!int abc", 1, 10, "expected an integer after `!!int`, found `abc`"),
        ("a:\n  <<: 3", 2, 7, "expected an object or a list of objects as the value of `<<`"),
        ("<<: [1]", 1, 5, "expected an object or a list of objects as the value of `<<`"),
        ("a: @x", 1, 4, "unexpected character `@`"),
        ("a: 1\n---\nb: [", 3, 4, "`[` is not closed"),
    ] {
        assert_eq!(fault(text), (line, column, message.to_owned()), "{text:?}");
    }
}

#[test]
fn lines_before_the_text_are_counted() {
    let options = Options { lines_before: 10, ..Options::default() };
    assert_eq!(
        options.values("a: 1\na: 2").unwrap_err().to_string(),
        "duplicate key `a`, already defined at line 11 at line 12 column 1"
    );
    assert_eq!(options.documents("\na: 1").unwrap()[0].start.line, 12);
}

#[test]
fn one_document_means_one() {
    let error = parse_value("a: 1\n---\nb: 2").unwrap_err();
    assert_eq!((error.position.line, error.message.as_str()), (2, "expected one document, found another"));
}

#[test]
fn the_lenient_reader_takes_the_first_document_and_the_last_key() {
    for (text, want) in [
        ("n: on", r#"{"false":true}"#),
        ("014", "12"),
        ("a: 1\na: 2", r#"{"a":2}"#),
        ("a: 1\n---\nb: [", r#"{"a":1}"#),
        ("---\n---\na: 1", "null"),
        ("", "null"),
    ] {
        assert_eq!(parse_first_document_lenient(text).unwrap().to_json(), want, "{text:?}");
    }
    assert!(parse_first_document_lenient("a: [").is_err());
}

#[test]
fn values_and_keys_are_found_in_the_source() {
    let text = "# c\napiVersion: v1\nspec: &s\n  list:\n  - é: \"x\"\n    k: [1, {b: 2}]\nother: *s\n---\nx: y\n";
    let documents = parse_documents(text, &Limits::default()).unwrap();
    assert_eq!(documents.len(), 2);
    let source = &documents[0].source;
    let slice = |span: Option<Span>| span.map(|span| &text[span.start.offset as usize..span.end.offset as usize]);
    let list = Path::root().key("spec").key("list");
    for (path, value, key) in [
        (Path::root().key("apiVersion"), "v1", Some("apiVersion")),
        (list.clone(), "- é: \"x\"\n    k: [1, {b: 2}]", Some("list")),
        (list.index(0), "é: \"x\"\n    k: [1, {b: 2}]", None),
        (list.index(0).key("é"), "\"x\"", Some("é")),
        (list.index(0).key("k"), "[1, {b: 2}]", Some("k")),
        (list.index(0).key("k").index(1), "{b: 2}", None),
        (Path::root().key("other"), "*s", Some("other")),
        (Path::root().keys(&["other", "list"]).index(0).key("é"), "\"x\"", Some("é")),
    ] {
        assert_eq!(slice(source.value_span(&path)), Some(value), "{path}");
        assert_eq!(slice(source.key_span(&path)), key, "{path}");
    }
    let missing = list.index(0).key("k").index(7).key("z");
    assert_eq!(source.value_span(&missing), None);
    assert_eq!(slice(Some(source.nearest_span(&missing))), Some("[1, {b: 2}]"));
    assert_eq!(source.scalar_style(&list.index(0).key("é")), Some(ScalarStyle::DoubleQuoted));
    assert_eq!(source.scalar_style(&list), None);
    let place = source.nearest_span(&list.index(0).key("k").index(1)).start;
    assert_eq!((place.line, place.column), (6, 12));
    assert_eq!(documents[1].start.line, 8);
    assert_eq!(documents[1].source.value_span(&Path::root().key("x")).unwrap().start.line, 9);
}

#[test]
fn merged_members_stand_where_they_are_written() {
    let text = "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n";
    let source = &parse_documents(text, &Limits::default()).unwrap()[0].source;
    let key = source.key_span(&Path::root().keys(&["c", "b"])).unwrap();
    assert_eq!((key.start.line, key.start.column), (1, 8));
    assert_eq!(source.key_span(&Path::root().keys(&["c", "d"])).unwrap().start.line, 4);
}

#[test]
fn sizes_and_depths_over_the_limit_are_refused_with_their_place() {
    let limits = Limits { max_depth: 3, max_bytes: 60, max_nodes: 12 };
    let refused = |text: &str| parse_values(text, &limits).unwrap_err();
    assert!(parse_values("a: {b: [1]}", &limits).is_ok());
    assert_eq!(refused("a: {b: [{}]}").to_string(), "nested deeper than 3 levels at line 1 column 9");
    assert_eq!(refused("a:\n  b:\n    c:\n      d: 1").position.line, 4);
    assert_eq!(refused("a: &x [[1]]\nb: [*x]").to_string(), "nested deeper than 3 levels at line 2 column 5");
    assert_eq!(refused("a: &x [1,2,3]\nb: *x\nc: *x\nd: *x").position.line, 3);
    assert_eq!(refused(&"# x\n".repeat(30)).position.line, 16);
}

#[test]
fn hostile_texts_are_refused() {
    // None of these may take more than linear time or stack; a parser that does hangs or dies here.
    let laughs = (1..30).fold("a0: &a0 [lol,lol,lol]\n".to_owned(), |text, i| {
        text + &format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(","))
    });
    let ladder = (1..10_000).fold("a0: &a0 [1]\n".to_owned(), |text, i| text + &format!("a{i}: &a{i} [*a{}]\n", i - 1));
    let stairs: String = (0..10_000).map(|i| " ".repeat(i) + "a:\n").collect();
    for text in [
        "[".repeat(10_000),
        "[".repeat(1_000_000),
        "{a: ".repeat(1_000_000),
        "- ".repeat(1_000_000),
        "? ".repeat(1_000_000),
        "[{".repeat(500_000),
        "- [".repeat(500_000),
        "!!str ".repeat(1_000_000),
        "&a ".repeat(1_000_000),
        "'".repeat(1_000_001),
        "\"\\".repeat(1_000_000),
        stairs,
        laughs,
        ladder,
        "a".repeat(17 << 20),
    ] {
        let start: String = text.chars().take(20).collect();
        let error = parse_values(&text, &Limits::default()).expect_err(&start);
        assert!(error.position.line > 0 && error.position.column > 0);
    }
}

#[test]
fn large_objects_are_not_quadratic() {
    let text = (0..50_000).rev().fold(String::new(), |text, i| text + &format!("k{i}: {i}\n"));
    let value = parse_value(&text).unwrap();
    assert_eq!(value.get("k777"), Some(&Value::Int(777)));
}
