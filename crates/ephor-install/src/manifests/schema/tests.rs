//! What a schema refuses and what it tells of.

use super::*;

fn schema() -> Schema {
    serde_json::from_str(
        r##"{
        "additionalProperties": false, "required": ["on"],
        "properties": {
            "on": {"type": "boolean"},
            "port": {"$ref": "#/definitions/port"},
            "labels": {"type": ["object", "null"], "additionalProperties": {"type": "string"}},
            "name": {"type": "string", "pattern": "^[a-z]+$"},
            "format": {"enum": ["text", "json", null]},
            "names": {"type": "array", "items": {"type": "string", "x-ephor-ignored-if": {"pattern": "^tmpl", "why": "a template"}}},
            "tracing": {"enum": [false], "x-ephor-missing": "there are no traces"},
            "reports": {"x-ephor-ignored": "there are no reports"}
        },
        "definitions": {"port": {"type": "integer", "minimum": 1, "maximum": 65535}}
        }"##,
    )
    .unwrap()
}

fn value(json: &str) -> Value {
    Value::from_json(json).unwrap()
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let table = [
        (r#"{"on":true,"port":80,"labels":{"a":"b"},"name":"x","names":["a"]}"#, ""),
        (r#"{"on":true,"labels":null,"format":null,"tracing":false,"reports":{"any":[1]}}"#, ""),
        (r#"{"on":true,"label":{}}"#, "the chart has no value `label` (did you mean `labels`?)"),
        (r#"{"on":true,"quite-another":{}}"#, "the chart has no value `quite-another`"),
        ("{}", "`on` cannot be null"),
        (r#"{"on":"true"}"#, "`on` is `\"true\"`: expected true or false"),
        (r#"{"on":true,"port":0}"#, "`port` is `0`: expected a whole number from 1 to 65535"),
        (r#"{"on":true,"port":8000.5}"#, "`port` is `8000.5`: expected a whole number from 1 to 65535"),
        (r#"{"on":true,"labels":{"a":1}}"#, "`labels.a` is `1`: expected a text"),
        (r#"{"on":true,"name":"A"}"#, "`name` is `\"A\"`: expected a text that matches `^[a-z]+$`"),
        (r#"{"on":true,"format":"xml"}"#, "`format` is `\"xml\"`: expected \"text\" or \"json\""),
        (r#"{"on":true,"names":["a",{}]}"#, "`names[1]` is a map: expected a text"),
        (r#"{"on":true,"tracing":true}"#, "`tracing` is `true`: there are no traces; only false is accepted"),
    ];
    for (values, expected) in table {
        let faults: Vec<_> = schema().faults(&value(values)).iter().map(ToString::to_string).collect();
        assert_eq!(faults.join("; "), expected, "{values}");
    }
}

#[test]
fn each_setting_without_effect_is_told_of_unless_it_is_switched_off() {
    let table = [
        (
            r#"{"reports":{"replicas":3,"image":{"tag":"v1","registry":null},"args":["a","b"]}}"#,
            "reports.replicas: there are no reports; ignored\nreports.image.tag: there are no reports; ignored\nreports.args: there are no reports; ignored",
        ),
        (r#"{"reports":{"enabled":false,"replicas":3}}"#, ""),
        (r#"{"reports":{"name":"","args":[],"labels":{}}}"#, ""),
        (r#"{"names":["a","tmpl b"]}"#, "names[1]: a template; ignored"),
    ];
    for (values, expected) in table {
        let mut lines: Vec<_> = schema().ignored(&value(values)).iter().map(ToString::to_string).collect();
        let mut expected: Vec<_> = expected.lines().map(str::to_owned).collect();
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected, "{values}");
    }
}

#[test]
fn a_keyword_that_only_helm_knows_is_refused() {
    assert!(serde_json::from_str::<Schema>(r#"{"properties":{"a":{"oneOf":[]}}}"#).is_err());
}
