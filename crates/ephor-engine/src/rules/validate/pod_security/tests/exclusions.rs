//! What exclusions and exceptions let off.

use super::super::{PodSecurityCheck, PodSecurityOutcome, messages};
use super::fixtures::{GOOD, body, checks, compiled, container, failure, fields, ids, pod};

#[test]
fn exclusions_let_off_fields_and_values() {
    let two_missing_seccomp = format!(
        r#""containers":[{{"name":"a","image":"nginx","securityContext":{{{0}}}}},
           {{"name":"b","image":"nginx","securityContext":{{{0}}}}}]"#,
        GOOD.replace(r#","seccompProfile":{"type":"RuntimeDefault"}"#, "")
    );
    let one_missing_seccomp = container("c", &GOOD.replace(r#","seccompProfile":{"type":"RuntimeDefault"}"#, ""));
    let se_linux = container("c", r#""seLinuxOptions":{"type":"foo","user":"u","role":"r"}"#);
    let added = container("c", r#""capabilities":{"add":["SYS_ADMIN","NET_RAW"]}"#);
    let unconfined = format!(
        r#""securityContext":{{"seccompProfile":{{"type":"Unconfined"}}}},{}"#,
        container("c", r#""seccompProfile":{"type":"Unconfined"}"#)
    );
    let add = "spec.containers[*].securityContext.capabilities.add";
    let rows: [(&str, &str, String, &str, &str); 12] = [
        (
            "field and value of the Pod",
            "baseline:latest",
            r#"{"controlName":"Host Namespaces","restrictedField":"spec.hostNetwork","values":["true"]}"#.into(),
            r#""hostNetwork":true,"hostPID":true"#,
            "spec.hostPID is forbidden, forbidden values found: true",
        ),
        (
            "the wrong volume is let off",
            "baseline:latest",
            r#"{"controlName":"HostPath Volumes","restrictedField":"spec.volumes[*].hostPath","values":["/data"]}"#
                .into(),
            r#""volumes":[{"hostPath":{"path":"/"}},{"hostPath":{"path":"/data"}}]"#,
            "spec.volumes[1].hostPath is forbidden, forbidden values found: /data",
        ),
        (
            "the last entry moves into the hole",
            "baseline:latest",
            r#"{"controlName":"SELinux","images":["*"],"values":["foo"],
                "restrictedField":"spec.containers[*].securityContext.seLinuxOptions.type"}"#
                .into(),
            &se_linux,
            "spec.containers[0].securityContext.seLinuxOptions.role is forbidden, forbidden values found: r|\
             spec.containers[0].securityContext.seLinuxOptions.user is forbidden, forbidden values found: u",
        ),
        ("one container", "restricted:latest", r#"{"controlName":"Seccomp"}"#.into(), &one_missing_seccomp, ""),
        (
            "at most one container without images",
            "restricted:latest",
            r#"{"controlName":"Seccomp"}"#.into(),
            &two_missing_seccomp,
            "spec.containers[1].securityContext.seccompProfile.type: Required value",
        ),
        (
            "all containers with images",
            "restricted:latest",
            r#"{"controlName":"Seccomp","images":["ngin?"]}"#.into(),
            &two_missing_seccomp,
            "",
        ),
        (
            "not all values",
            "baseline:latest",
            format!(
                r#"{{"controlName":"Capabilities","images":["*"],"restrictedField":"{add}","values":["SYS_ADMIN"]}}"#
            ),
            &added,
            "spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [NET_RAW SYS_ADMIN]",
        ),
        (
            "all values, by wildcards",
            "baseline:latest",
            format!(
                r#"{{"controlName":"Capabilities","images":["*"],"restrictedField":"{add}","values":["SYS_ADMIN","NET_*"]}}"#
            ),
            &added,
            "",
        ),
        (
            "a field of another list of containers",
            "baseline:latest",
            format!(
                r#"{{"controlName":"Capabilities","images":["*"],"restrictedField":"{}","values":["*"]}}"#,
                add.replace("containers", "initContainers")
            ),
            &added,
            "spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [NET_RAW SYS_ADMIN]",
        ),
        (
            "images are raw texts",
            "baseline:latest",
            r#"{"controlName":"Capabilities","images":["nginx:*","docker.io/nginx*"]}"#.into(),
            &added,
            "spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [NET_RAW SYS_ADMIN]",
        ),
        (
            "images leave the Pod alone",
            "baseline:latest",
            r#"{"controlName":"Seccomp","images":["*"]}"#.into(),
            &unconfined,
            "spec.securityContext.seccompProfile.type is forbidden, forbidden values found: Unconfined",
        ),
        (
            "with and without images",
            "baseline:latest",
            r#"{"controlName":"Seccomp","images":["*"]},{"controlName":"Seccomp"}"#.into(),
            &unconfined,
            "",
        ),
    ];
    for (name, standard, exclude, spec, left) in rows {
        assert_eq!(fields("", &checks(standard, &exclude, &pod(spec))).join("|"), left, "{name}");
    }
}

#[test]
fn a_presence_that_is_forbidden_fits_any_values() {
    let spec = format!(r#""volumes":[{{"name":"v","flexVolume":{{"driver":"d"}}}}],{}"#, container("c", GOOD));
    let exclude = |kind: &str| {
        format!(r#"{{"controlName":"Volume Types","restrictedField":"spec.volumes[*].{kind}","values":["x"]}}"#)
    };
    assert!(checks("restricted:latest", &exclude("flexVolume"), &pod(&spec)).is_empty());
    assert_eq!(ids(&checks("restricted:latest", &exclude("nfs"), &pod(&spec))), ["restrictedVolumes"]);
}

#[test]
fn exclusions_look_at_one_container_of_a_name_at_a_time() {
    let spec = r#""initContainers":[{"name":"i","image":"busybox","securityContext":{"privileged":true}}],
        "containers":[{"name":"a","image":"nginx","securityContext":{"privileged":true}},
                      {"name":"b","image":"redis","securityContext":{"privileged":true}}]"#;
    let exclude = r#"{"controlName":"Privileged Containers","images":["redis","busybox"]}"#;
    assert_eq!(
        fields("", &checks("baseline:latest", exclude, &pod(spec))),
        ["spec.containers[0].securityContext.privileged is forbidden, forbidden values found: true"]
    );
}

#[test]
fn exceptions_apply_to_failures_only() {
    let check = PodSecurityCheck::compile(&body("baseline:latest", "")).unwrap();
    let host = pod(r#""hostNetwork":true"#);
    let namespaces = compiled(r#"{"controlName":"Host Namespaces"}"#);
    let seccomp = compiled(r#"{"controlName":"Seccomp"}"#);

    assert_eq!(check.evaluate(&host, "r", &[&namespaces]), PodSecurityOutcome::Skip);
    assert_eq!(check.evaluate(&host, "r", &[&seccomp, &namespaces]), PodSecurityOutcome::Skip);
    assert_eq!(
        failure(check.evaluate(&host, "r", &[&seccomp])).message,
        "Validation rule 'r' failed. It violates PodSecurity \"baseline:latest\": (Forbidden reason: host namespaces, \
         field error list: [spec.hostNetwork is forbidden, forbidden values found: true])"
    );
    let passing = check.evaluate(&pod(""), "r", &[&namespaces]);
    assert_eq!(passing, PodSecurityOutcome::Pass { message: "Validation rule 'r' passed.".into() });
    assert_eq!(messages::skipped(&["exns/e".into()]), "rule is skipped due to policy exception exns/e");
    assert_eq!(
        messages::violations_excepted(&["exns/e".into(), "exns/f".into()]),
        "rule is skipped due to policy exceptions exns/e, exns/f"
    );
}

#[test]
fn exceptions_add_up() {
    // Upstream: `exceptions/multiple-exceptions-with-pod-security`, and the report it leaves with one of the two.
    let spec = r#""initContainers":[
        {"name":"i","image":"alpine:1","securityContext":{"capabilities":{"add":["NET_RAW","NET_ADMIN"]}}},
        {"name":"j","image":"busybox:1","securityContext":{"capabilities":{"add":["SYS_TIME"]}}}],
        "containers":[{"name":"c","image":"alpine:1"}]"#;
    let exception = |image: &str, values: &str| {
        compiled(&format!(
            r#"{{"controlName":"Capabilities","images":["{image}"],"values":[{values}],
                 "restrictedField":"spec.initContainers[*].securityContext.capabilities.add"}}"#
        ))
    };
    let (one, two) = (exception("alpine:1", r#""NET_ADMIN","NET_RAW""#), exception("busybox:1", r#""SYS_TIME""#));
    let check = PodSecurityCheck::compile(&body("baseline:v1.29", "")).unwrap();
    assert_eq!(check.evaluate(&pod(spec), "r", &[&one, &two]), PodSecurityOutcome::Skip);
    let found = failure(check.evaluate(&pod(spec), "r", &[&two]));
    assert_eq!(
        fields("", &found.checks),
        ["spec.initContainers[0].securityContext.capabilities.add is forbidden, \
         forbidden values found: [NET_ADMIN NET_RAW]"]
    );
    assert_eq!(found.checks[0].images, ["alpine:1", "busybox:1"]);
    assert_eq!((found.version.as_str(), found.checks[0].control), ("v1.29", "Capabilities"));
}
