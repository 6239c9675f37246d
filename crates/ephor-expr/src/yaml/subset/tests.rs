//! What the subset accepts is what the full parser accepts, values and places alike.

use std::sync::Arc;

use proptest::prelude::*;

use crate::Value;
use crate::value::Path;
use crate::yaml::build::{Builder, Built};
use crate::yaml::position::Lines;
use crate::yaml::source_map::{Node, SourceMap};
use crate::yaml::trace::FullTrace;
use crate::yaml::{Options, ScalarStyle, events, subset};

fn with_subset(text: &str, options: &Options) -> Option<Vec<Built<Node>>> {
    subset::build::<FullTrace>(text, options)
}

fn with_full_parser(text: &str, options: &Options) -> Option<Vec<Built<Node>>> {
    let mut builder = Builder::<FullTrace>::new(options);
    events::feed(text, options, &mut builder, false).ok().map(|()| builder.finish())
}

/// The texts of all keys and scalars of a document, with their places.
fn places(value: &Value, path: &Path, map: &SourceMap, out: &mut Vec<String>) {
    let key = map.key_span(path).map(|span| (span.start, span.end));
    match value {
        Value::Object(members) => {
            let start = map.value_span(path).map(|span| span.start);
            out.push(format!("{path} {key:?} {start:?}"));
            for (key, value) in members.iter() {
                places(value, &path.key(key.clone()), map, out);
            }
        }
        Value::Array(items) => {
            out.push(format!("{path} {key:?}"));
            for (i, item) in items.iter().enumerate() {
                places(item, &path.index(i), map, out);
            }
        }
        // Of a null that is not written nobody can tell the place.
        Value::Null => out.push(format!("{path} {key:?}")),
        // The two disagree about the indentation of the line after a block.
        _ if matches!(map.scalar_style(path), Some(ScalarStyle::Literal | ScalarStyle::Folded)) => {
            out.push(format!("{path} {key:?} {:?}", map.value_span(path).map(|span| span.start)));
        }
        _ => out.push(format!("{path} {key:?} {:?} {:?}", map.value_span(path), map.scalar_style(path))),
    }
}

/// Whether the subset takes `text`; if so, both readings must agree.
fn agrees(text: &str) -> Result<bool, TestCaseError> {
    let options = Options::default();
    let Some(quick) = with_subset(text, &options) else { return Ok(false) };
    let full = with_full_parser(text, &options);
    prop_assert!(
        full.is_some(),
        "the full parser refuses {:?}, read as {:?}",
        text,
        quick.first().map(|b| b.value.to_json())
    );
    let full = full.unwrap_or_default();
    prop_assert_eq!(quick.len(), full.len(), "{:?}", text);
    let lines = Arc::new(Lines::new(text, 1));
    for (quick, full) in quick.into_iter().zip(full) {
        prop_assert_eq!(&quick.value, &full.value, "{:?}", text);
        prop_assert_eq!(quick.start, full.start, "{:?}", text);
        let (mut got, mut want) = (Vec::new(), Vec::new());
        places(&quick.value, &Path::root(), &SourceMap::new(lines.clone(), quick.node), &mut got);
        places(&full.value, &Path::root(), &SourceMap::new(lines.clone(), full.node), &mut want);
        prop_assert_eq!(got, want, "{:?}", text);
    }
    Ok(true)
}

#[test]
fn everyday_documents_are_in_the_subset() {
    for text in [
        "",
        "# c\n",
        "a: 1\n",
        "a: 1",
        "# c\n---\n# d\napiVersion: v1 # e\nkind: \"Pod\"\nmetadata: {name: a, labels: {app.kubernetes.io/name: 'it''s'}}\n---\nb: 2\n",
        "spec:\n  containers:\n  - name: c\n    image: r.example.com:5000/a/b:1.0\n    ports: [{containerPort: 80}]\n  - name: d\n  volumes:\n    - emptyDir: {}\n    -\n      name: x\n",
        "a:\n- - 1\n  - 2\n-\n- - - x: y\n      z:\n\nb:\n",
        "a: |\n  x\n\n    y # z\nb: >-\n\n  one\n  two\n\n  three\n\n\nc: |+\n  k\n\nd:\n- |-\n x\n- >\n y\n",
        "{\"a\": [1, -2.5, true, null, \"x\\\"\\u00e9\\n\"],\n \"b\":{\"c\":\"d\"} , \"e\" : [] }",
        "[\n  {a: b}, # c\n  'x',\n]\n",
        "a: [\n1,\n2\n]\nb: x - y # z\nc: a#b\nd: -1\ne: http://x:80\n'f g' : é中\n",
        "message: \"{{ request.object }} : # x\"\n",
    ] {
        assert!(agrees(text).unwrap(), "{text:?} is left to the full parser");
    }
}

#[test]
fn other_documents_are_left_to_the_full_parser() {
    for text in [
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "a: x\n  y\n",
        "a: 'x\n  y'\n",
        "a:\tb\n",
        "a: 1\r\n",
        "? a\n",
        "%YAML 1.2\n---\na\n",
        "a: 1\na: 2\n",
        "a: b: c\n",
        "a: [1\n",
        "a: |\n  x",
        "a: |2\n  x\n",
        "x\n",
        "\u{feff}a: 1\n",
        "a: 1\n...\n",
        "a: {b}\n",
        "a: [b: c]\n",
        "a: \"\\x41\"\n",
        "a: \u{1}\n",
        "# \u{7}\n",
        "a: [1,,2]\n",
        "a: 'x'y\n",
        "a:\n  b\n c: d\n",
        "- a\nb: c\n",
        "--- a\n",
        "a: >\n  x\n    y\n",
        "a: \u{2028}\n",
    ] {
        assert!(!agrees(text).unwrap(), "{text:?}");
    }
}

/// Texts that look like YAML: lines of pieces that matter to a parser.
fn lines() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "key", "1", "yes", "~", "é", "'q'", "\"q\"", "\"a\\n\"", "'it''s'", ": ", ":", " :", "- ", "-", "? ",
        "#", " #c", " ", "  ", ",", ", ", "[", "]", "{", "}", "{a: 1}", "[1, 2]", "[]", "{}", "|", ">", "|-", ">+",
        "&x ", "*x", "!!str ", "<<", "%", "@", "\t", "\r", "---", "...", "\"", "'", "\\", "x y", "a: b", "- a",
        "\"k\":", "\u{85}", "\u{a0}", "{{ x }}",
    ]);
    let line = (0_usize..7, prop::collection::vec(piece, 0..5))
        .prop_map(|(indent, pieces)| " ".repeat(indent) + &pieces.concat());
    (prop::collection::vec(line, 0..7), any::<bool>())
        .prop_map(|(lines, end)| lines.join("\n") + if end { "\n" } else { "" })
}

/// Texts that are mostly well formed: a random tree of keys, dashes and values, with some noise.
fn outline() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec![
        "x",
        "1",
        "x y",
        "\"q\" ",
        "'q' # c",
        "{a: b, \"c\":1}",
        "[1, {k: v}]",
        "|",
        ">",
        "|-",
        ">-",
        ">+",
        "|+",
        "",
        "",
        "# c",
        "-1",
        "a:b",
    ]);
    let line = (0_usize..4, prop::sample::select(vec!["", "- ", "- - ", "-   "]), prop::option::of("[a-e]"), value);
    let line = line.prop_map(|(indent, dashes, key, value)| match key {
        Some(key) => format!("{}{dashes}{key}: {value}", "  ".repeat(indent)),
        None => format!("{}{dashes}{value}", "  ".repeat(indent)),
    });
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n") + "\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn random_lines_are_read_alike(text in lines()) {
        agrees(&text)?;
    }

    #[test]
    fn random_outlines_are_read_alike(text in outline()) {
        agrees(&text)?;
    }
}
