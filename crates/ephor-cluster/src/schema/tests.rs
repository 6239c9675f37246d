//! Reading, filling and judging objects.

use ephor_expr::Value;

use super::conform::conform;
use super::fill::fill;
use super::validate::validate;
use super::{Kind, Schema, kubernetes};

fn json(text: &str) -> Value {
    Value::from_json(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn every_built_in_kind_has_a_schema() {
    let discovery = crate::Discovery::kubernetes();
    let missing: Vec<String> = discovery
        .iter()
        .filter(|r| r.origin == crate::resource::Origin::BuiltIn && r.stored)
        .filter(|r| Schema::built_in(&r.api_version(), &r.kind).is_none())
        .map(|r| format!("{}/{}", r.api_version(), r.kind))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(kubernetes::documented_definitions().as_object().map(|m| m.len() > 700), Some(true));
}

#[test]
fn an_object_is_read_as_its_kind() {
    let pod = Schema::built_in("v1", "Pod").unwrap();
    let read = conform(
        pod,
        &json(
            r#"{"metadata":{"name":"p","labels":{"a":"b"},"colour":1},"spec":{"containers":[{"name":"c","imagee":"x",
            "resources":{"limits":{"cpu":"1000m","memory":1024}},"env":[{"name":"E","value":null}]}],"tty":1}}"#,
        ),
    );
    assert_eq!(read.unknown, ["metadata.colour", "spec.containers[0].imagee", "spec.tty"]);
    assert!(read.misfits.is_empty());
    assert_eq!(
        read.object.get("spec").unwrap().to_json(),
        r#"{"containers":[{"env":[{"name":"E"}],"name":"c","resources":{"limits":{"cpu":"1","memory":"1024"}}}]}"#
    );
    let wrong = conform(pod, &json(r#"{"spec":{"containers":{},"hostNetwork":"yes"}}"#));
    assert_eq!(
        wrong.misfits,
        [
            "json: cannot unmarshal object into field spec.containers of type array",
            "json: cannot unmarshal string into field spec.hostNetwork of type bool"
        ]
    );
}

#[test]
fn bytes_are_base64() {
    let secret = Schema::built_in("v1", "Secret").unwrap();
    assert!(conform(secret, &json(r#"{"data":{"a":"YQ=="}}"#)).misfits.is_empty());
    assert_eq!(
        conform(secret, &json(r#"{"data":{"a":"not base64!"}}"#)).misfits,
        ["illegal base64 data at input byte 3"]
    );
}

#[test]
fn documents_within_objects_stay_as_they_are() {
    for (api_version, kind, object) in [
        ("apps/v1", "ControllerRevision", r#"{"data":{"a":{"b":1}},"revision":1}"#),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            r#"{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"x":{"default":{"q":[1]},"type":"object"}}}}}]}}"#,
        ),
        ("v1", "ConfigMap", r#"{"data":{"any":"key"}}"#),
    ] {
        let schema = Schema::built_in(api_version, kind).unwrap();
        let read = conform(schema, &json(object));
        assert_eq!((read.object.to_json().as_str(), read.unknown.len()), (object, 0), "{kind}");
    }
}

const BOX: &str = r#"{"type":"object","required":["spec"],"properties":{"spec":{"type":"object","required":["size"],
    "properties":{"size":{"type":"integer","minimum":1,"maximum":9},"colour":{"type":"string","enum":["red","blue"],"default":"red"},
    "name":{"type":"string","pattern":"^[a-z]+$"},"parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],
    "items":{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer","default":7}}}},
    "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"port":{"x-kubernetes-int-or-string":true},
    "short":{"type":"string","maxLength":2,"pattern":"^a"},"few":{"type":"array","maxItems":1,"items":{"type":"string"}},
    "when":{"type":"string","format":"date-time"},"maybe":{"type":"string","nullable":true}}}}}"#;

#[test]
fn a_custom_object_is_pruned_and_filled() {
    let document = json(BOX);
    let schema = Schema::custom(&document);
    let read = conform(
        schema,
        &json(
            r#"{"apiVersion":"g/v1","kind":"Box","metadata":{"name":"x","generation":1},"spec":{"size":1,"odd":2,"parts":[{"id":"a"}],"free":{"x":{"y":1}},"maybe":null},"extra":1}"#,
        ),
    );
    assert_eq!(read.unknown, ["extra", "spec.odd"]);
    let mut object = read.object;
    fill(schema, &mut object);
    assert_eq!(
        object.get("spec").unwrap().to_json(),
        r#"{"colour":"red","free":{"x":{"y":1}},"maybe":null,"parts":[{"id":"a","n":7}],"size":1}"#
    );
    assert!(validate(schema, &object).is_empty());
    assert_eq!(schema.member("metadata").map(|m| m.kind()), Some(Kind::Object));
}

#[test]
fn the_rules_of_a_definition_are_kept() {
    let document = json(BOX);
    let schema = Schema::custom(&document);
    for (spec, want) in [
        (r#"{"size":1,"port":"http"}"#, ""),
        (r#"{"size":1,"port":80}"#, ""),
        ("{}", "spec.size: Required value"),
        (r#"{"size":0}"#, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        (
            r#"{"size":"x"}"#,
            r#"spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#,
        ),
        (
            r#"{"size":1,"colour":"green"}"#,
            r#"spec.colour: Unsupported value: "green": supported values: "red", "blue""#,
        ),
        (r#"{"size":1,"name":"A"}"#, r#"spec.name: Invalid value: "A": spec.name in body should match '^[a-z]+$'"#),
        (r#"{"size":1,"short":"xyz"}"#, "spec.short: Too long: may not be more than 2 bytes"),
        (r#"{"size":1,"few":["a","b"]}"#, "spec.few: Too many: 2: must have at most 1 item"),
        (
            r#"{"size":1,"when":"soon"}"#,
            r#"spec.when: Invalid value: "soon": spec.when in body must be of type date-time: "soon""#,
        ),
        (r#"{"size":1,"parts":[{"id":"a"},{"id":"a"}]}"#, r#"spec.parts[1]: Duplicate value: {"id":"a"}"#),
    ] {
        let object = Value::from([("spec", json(spec))]);
        let causes: Vec<String> = validate(schema, &object).iter().map(ToString::to_string).collect();
        assert_eq!(causes.join("; "), want, "{spec}");
    }
}
