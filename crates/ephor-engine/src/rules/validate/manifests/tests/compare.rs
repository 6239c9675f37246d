//! What may differ between an object and its signed manifest.

use super::fixtures::{
    ANNA, ARCHIVE, ARCHIVE_BY_ANNA, failure, judge, judge_with, keys, passes, service, signed_by_anna, with,
};
use ephor_expr::Value;
use ephor_expr::yaml::parse_value;

use super::super::compare::differences;
use super::super::ignore::IgnoreFields;

fn anna() -> String {
    format!("[{{entries: [{}]}}]", keys(&[ANNA]))
}

fn places(manifest: &str, object: &str) -> Vec<String> {
    let (manifest, object) = (parse_value(manifest).unwrap(), parse_value(object).unwrap());
    let fields = IgnoreFields::new("cosign.sigstore.dev", &[]);
    differences(&manifest, &object, &fields.for_object(&object)).places
}

#[test]
fn a_tampered_object_fails_and_the_place_is_named() {
    let tampered = with(signed_by_anna(), &["spec", "selector", "app"], "evil");
    assert!(failure(judge(&anna(), &tampered)).ends_with("failed to verify signature. diff found; spec.selector.app"));
    let tampered = with(signed_by_anna(), &["spec", "ports", "0", "port"], "8080");
    assert!(failure(judge(&anna(), &tampered)).ends_with("diff found; spec.ports.0.port"));
    let renamed = with(signed_by_anna(), &["metadata", "name"], "other");
    assert!(failure(judge(&anna(), &renamed)).ends_with("diff found; metadata.name"));
}

#[test]
fn an_object_of_another_kind_is_not_what_was_signed() {
    let other = with(signed_by_anna(), &["kind"], "Secret");
    assert!(failure(judge(&anna(), &other)).ends_with("the signed message has no manifest of this kind"));
    let other = with(signed_by_anna(), &["apiVersion"], "serving.knative.dev/v1");
    assert!(failure(judge(&anna(), &other)).ends_with("the signed message has no manifest of this kind"));
}

#[test]
fn a_message_may_be_an_archive() {
    let archived = service(&[("message", ARCHIVE), ("signature", ARCHIVE_BY_ANNA)]);
    assert!(passes(&judge(&anna(), &archived)));
    let tampered = with(archived, &["spec", "selector", "app"], "evil");
    assert!(!passes(&judge(&anna(), &tampered)));
}

#[test]
fn a_signature_over_another_message_does_not_help() {
    let swapped = service(&[("message", ARCHIVE), ("signature", super::fixtures::BY_ANNA)]);
    assert!(!passes(&judge(&anna(), &swapped)));
}

#[test]
fn what_the_server_sets_may_differ() {
    for (place, value) in [
        (&["metadata", "namespace"][..], "shop"),
        (&["metadata", "uid"], "abc"),
        (&["metadata", "managedFields"], "[{manager: kubectl}]"),
        (&["metadata", "creationTimestamp"], "null"),
        (&["metadata", "labels"], "{}"),
        (&["spec", "clusterIP"], "10.0.0.1"),
        (&["spec", "ports", "0", "nodePort"], "30001"),
        (&["spec", "ipFamilies"], "[IPv4]"),
        (&["status"], "{loadBalancer: {}}"),
    ] {
        assert!(passes(&judge(&anna(), &with(signed_by_anna(), place, value))), "{place:?}");
    }
}

#[test]
fn fields_of_the_policy_are_ignored_for_its_objects() {
    let body = |objects: &str| {
        format!(
            "{{attestors: {}, ignoreFields: [{{objects: [{objects}], fields: [spec.selector, data.*.x]}}]}}",
            anna()
        )
    };
    let tampered = with(signed_by_anna(), &["spec", "selector", "app"], "evil");
    for (objects, ignored) in [
        ("", true),
        ("{kind: Service}", true),
        ("{kind: 'Deployment, Service'}", true),
        ("{kind: Serv*, name: shop, group: '-', version: v1}", true),
        ("{kind: Deployment}", false),
        ("{kind: Service, name: other}", false),
        ("{namespace: prod}", false),
    ] {
        assert_eq!(passes(&judge_with(&body(objects), &tampered)), ignored, "{objects}");
    }
    let beside = with(signed_by_anna(), &["spec", "selectors"], "a");
    assert!(!passes(&judge_with(&body(""), &beside)));
}

#[test]
fn members_and_items_are_compared_one_by_one() {
    for (manifest, object, expected) in [
        ("{a: 1}", "{a: 1.0}", &[][..]),
        ("{a: null}", "{}", &[]),
        ("{a: '1'}", "{a: 1}", &["a"]),
        ("{a: [1, 2]}", "{a: [1]}", &["a.1"]),
        ("{a: [1]}", "{a: [1, null]}", &["a.1"]),
        ("{a: []}", "{}", &["a"]),
        ("{a: []}", "{a: [{}]}", &["a.0"]),
        ("{a: {b: 1}}", "{a: [1]}", &["a"]),
        ("{}", "{a: {b: {c: 1}, d: 2}}", &["a.b.c", "a.d"]),
        ("{a: {b: {c: 1}, d: 2}}", "{}", &["a.b.c", "a.d"]),
        ("{a: 1}", "{status: {x: 1}}", &["a"]),
        ("{}", "{spec: {status: 1}, statuses: 2}", &["spec.status", "statuses"]),
    ] {
        assert_eq!(places(manifest, object), expected, "{manifest} {object}");
    }
}

#[test]
fn an_added_empty_object_is_only_a_default_where_the_server_adds_it() {
    assert_eq!(places("{spec: {a: 1}}", "{spec: {a: 1, securityContext: {}, strategy: {}}}"), [""; 0]);
    assert_eq!(places("{spec: {resources: {}}}", "{spec: {}}"), [""; 0]);
    assert_eq!(
        places("{spec: {from: [{podSelector: {}}]}}", "{spec: {from: [{podSelector: {}, namespaceSelector: {}}]}}"),
        ["spec.from.0.namespaceSelector"]
    );
}

#[test]
fn defaults_of_a_pod_template_are_ignored_as_those_of_a_pod() {
    let deployment =
        |template: &str| format!("{{apiVersion: apps/v1, kind: Deployment, spec: {{template: {template}}}}}");
    let found = places(
        &deployment("{spec: {containers: [{image: nginx}]}}"),
        &deployment(
            "{metadata: {creationTimestamp: null}, spec: {dnsPolicy: ClusterFirst, securityContext: {}, \
             containers: [{image: nginx, imagePullPolicy: Always, resources: {}}]}}",
        ),
    );
    assert_eq!(found, [""; 0]);
    let found = places(
        &deployment("{spec: {containers: [{image: nginx}]}}"),
        &deployment("{spec: {securityContext: {runAsUser: 0}, containers: [{image: nginx}]}}"),
    );
    assert_eq!(found, ["spec.template.spec.securityContext.runAsUser"]);
}

#[test]
fn an_image_may_be_written_out() {
    for (actual, same) in [
        ("nginx", true),
        ("docker.io/nginx", true),
        ("nginx:latest", true),
        ("nginx:1.25", false),
        ("evil.io/nginx", false),
    ] {
        let found = places("{spec: {image: nginx}}", &format!("{{spec: {{image: '{actual}'}}}}"));
        assert_eq!(found.is_empty(), same, "{actual}");
    }
}

#[test]
fn a_long_list_of_differences_is_cut() {
    let object = ('a'..='t').map(|c| format!("{c}: 1")).collect::<Vec<_>>().join("\n");
    let fields = IgnoreFields::new("cosign.sigstore.dev", &[]);
    let object = parse_value(&object).unwrap();
    let found = differences(&Value::object(ephor_expr::Map::new()), &object, &fields.for_object(&object));
    assert_eq!(found.to_string(), "a, b, c, d, e and more");
}
