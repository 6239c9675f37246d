//! YAML and JSON text: reading ends with a value or an error, and what was read prints as text that reads the same.

#![no_main]

use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_documents, parse_values, to_yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    if let Ok(values) = parse_values(text, &limits) {
        for value in &values {
            let printed = to_yaml(value);
            let again = parse_values(&printed, &limits).expect("printed YAML reads");
            assert_eq!(again.as_slice(), std::slice::from_ref(value), "{printed}");
        }
    }
    // With positions, the same texts are accepted and refused.
    let documents = parse_documents(text, &limits);
    let values = documents.map(|documents| documents.into_iter().map(|d| d.value).collect::<Vec<_>>());
    assert_eq!(values.ok(), parse_values(text, &limits).ok());
    if let Ok(value) = Value::from_json(text) {
        assert_eq!(Value::from_json(&value.to_json()).ok(), Some(value));
    }
});
