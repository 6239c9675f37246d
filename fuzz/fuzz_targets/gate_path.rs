//! Paths of API calls: a policy's text with a value in it. The first line is the namespace of a Policy, the second the
//! path, in which `{x}` stands for the value; the rest is the value.

#![no_main]

use ephor_engine::fetch::Fetch;
use ephor_engine::gate::{ApiPath, Asker, ObjectsPath, Piece, allow, assemble};
use ephor_engine::policy::HttpMethod;
use libfuzzer_sys::fuzz_target;

/// A value that fills its place and means nothing.
const PLAIN: &str = "v1";

fn with(template: &str, value: &str) -> Option<ApiPath> {
    let mut pieces = Vec::new();
    for (i, text) in template.split("{x}").enumerate() {
        if i > 0 {
            pieces.push(Piece::Value(value));
        }
        pieces.push(Piece::Policy(text));
    }
    assemble(&pieces).ok()
}

/// How many segments there are, and which parts are there.
fn shape(objects: &ObjectsPath) -> (bool, bool, usize) {
    (objects.namespace.is_some(), objects.name.is_some(), objects.below.len())
}

fuzz_target!(|text: &str| {
    let Some((own, rest)) = text.split_once('\n') else { return };
    let Some((template, value)) = rest.split_once('\n') else { return };
    let Some(path) = with(template, value) else { return };
    // What is rendered is read alike.
    assert_eq!(ApiPath::parse(&path.to_string()).as_ref(), Ok(&path));
    // The value changes no part but those whose text has it.
    if let (Some(objects), Some(plain)) = (path.objects(), with(template, PLAIN)) {
        let plain = plain.objects().expect("the value decides whether the path is about objects");
        assert_eq!(shape(objects), shape(plain));
        if !template.contains("{x}") {
            assert_eq!(objects, plain);
        }
    }
    // What a Policy may read is in its namespace, as the rendered text says too.
    let fetch = Fetch::Api { method: HttpMethod::Get, path: path.clone(), body: None };
    if allow(fetch, Asker { namespace: Some(own), ..Asker::default() }).is_ok() {
        let rendered = path.without_query();
        let mut segments = rendered.trim_start_matches('/').split('/');
        let skipped = if segments.next() == Some("api") { 1 } else { 2 };
        let segments: Vec<&str> = segments.skip(skipped).collect();
        assert_eq!(segments.first(), Some(&"namespaces"));
        assert_eq!(path.objects().and_then(|objects| objects.namespace.as_deref()), Some(own));
        assert!(segments.len() > 2 && !segments.iter().any(|segment| matches!(*segment, "" | "." | "..")));
    }
});
