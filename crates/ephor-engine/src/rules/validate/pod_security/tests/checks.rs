//! What each check finds, and how the rule says it.

use super::super::checks::APPARMOR_ANNOTATION;
use super::super::{CompileError, PodSecurityCheck, PodSecurityOutcome};
use super::fixtures::{GOOD, body, checks, container, failure, fields, ids, json, pod, pod_with_context, run};

#[test]
fn a_failure_lists_reasons_and_fields_in_upstreams_words() {
    let host = pod(r#""hostNetwork":true,"hostPID":true"#);
    let found = failure(run("baseline:latest", "", &host));
    assert_eq!(
        found.message,
        "Validation rule 'r' failed. It violates PodSecurity \"baseline:latest\": (Forbidden reason: host namespaces, \
         field error list: [spec.hostNetwork is forbidden, forbidden values found: true, spec.hostPID is forbidden, \
         forbidden values found: true])"
    );
    assert_eq!((found.level.as_str(), found.version.as_str()), ("baseline", "latest"));
    assert_eq!((found.checks[0].id, found.checks[0].control), ("hostNamespaces", "Host Namespaces"));

    let found = failure(run("baseline:-", "", &pod(r#""hostNetwork":true"#)));
    assert!(found.message.contains("PodSecurity \"baseline:\": (Forbidden"), "{}", found.message);

    let found = failure(run("baseline:v1.29", "", &pod(r#""hostIPC":true,"volumes":[{"hostPath":{"path":"/"}}]"#)));
    assert!(found.message.contains("])(Forbidden reason: hostPath volumes, field"), "{}", found.message);
}

#[test]
fn privileged_is_as_strict_as_restricted() {
    let plain = json(r#"{"kind":"Pod","spec":{"containers":[{"name":"c","image":"nginx"}]}}"#);
    for level in ["restricted:latest", "privileged:latest"] {
        let found = checks(level, "", &plain);
        let reasons: Vec<_> = found.iter().map(|check| check.reason).collect();
        assert_eq!(
            reasons,
            [
                "allowPrivilegeEscalation != false",
                "unrestricted capabilities",
                "runAsNonRoot != true",
                "seccompProfile"
            ]
        );
        assert_eq!(
            fields("", &found),
            ["allowPrivilegeEscalation", "capabilities.drop", "runAsNonRoot", "seccompProfile.type"]
                .map(|tail| format!("spec.containers[0].securityContext.{tail}: Required value"))
        );
    }
    assert!(checks("baseline:latest", "", &plain).is_empty());
    assert!(checks("restricted:latest", "", &pod_with_context(GOOD)).is_empty());
}

#[test]
fn a_check_younger_than_the_version_applies() {
    let no_capabilities = GOOD.replace(r#""capabilities":{"drop":["ALL"]},"#, "");
    let found = checks("restricted:v1.21", "", &pod_with_context(&no_capabilities));
    assert_eq!(ids(&found), ["capabilities_restricted"]);
}

#[test]
fn windows_is_exempt_since_1_25() {
    let windows = pod(&format!(r#""os":{{"name":"windows"}},{}"#, container("c", r#""runAsNonRoot":true"#)));
    assert!(checks("restricted:-", "", &windows).is_empty());
    assert!(checks("restricted:v1.25", "", &windows).is_empty());
    assert_eq!(
        ids(&checks("restricted:v1.24", "", &windows)),
        ["allowPrivilegeEscalation", "capabilities_restricted", "seccompProfile_restricted"]
    );
}

#[test]
fn app_armor_annotations_count_for_the_pod_template() {
    let annotated = r#"{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"unconfined"}}"#;
    let found = checks("baseline:latest", "", &json(&format!(r#"{{"kind":"Pod","metadata":{annotated}}}"#)));
    assert_eq!(
        fields("appArmorProfile", &found),
        ["spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c] is forbidden, \
         forbidden values found: unconfined"]
    );
    let deployment = format!(r#"{{"kind":"Deployment","metadata":{annotated},"spec":{{"template":{{}}}}}}"#);
    assert!(checks("baseline:latest", "", &json(&deployment)).is_empty());
    let deployment = format!(r#"{{"kind":"Deployment","spec":{{"template":{{"metadata":{annotated}}}}}}}"#);
    assert_eq!(ids(&checks("baseline:latest", "", &json(&deployment))), ["appArmorProfile"]);
    // Upstream: the wrong one of the two templates of a CronJob.
    let on_pods = format!(
        r#"{{"kind":"CronJob","spec":{{"jobTemplate":{{"spec":{{"template":{{"metadata":{annotated}}}}}}}}}}}"#
    );
    assert!(checks("baseline:latest", "", &json(&on_pods)).is_empty());
    let on_jobs = format!(r#"{{"kind":"CronJob","spec":{{"jobTemplate":{{"metadata":{annotated}}}}}}}"#);
    assert_eq!(ids(&checks("baseline:latest", "", &json(&on_jobs))), ["appArmorProfile"]);
}

#[test]
fn fields_are_named_as_in_the_resource() {
    for (resource, field) in [
        (r#"{"kind":"Job","spec":{"template":{"spec":{"hostPID":true}}}}"#, "spec.template.spec.hostPID"),
        (
            r#"{"kind":"ReplicationController","spec":{"template":{"spec":{"hostPID":true}}}}"#,
            "spec.template.spec.hostPID",
        ),
        (
            r#"{"kind":"CronJob","spec":{"jobTemplate":{"spec":{"template":{"spec":{"hostPID":true}}}}}}"#,
            "spec.jobTemplate.spec.template.spec.hostPID",
        ),
    ] {
        let want = format!("{field} is forbidden, forbidden values found: true");
        assert_eq!(fields("", &checks("baseline:latest", "", &json(resource))), [want]);
    }
}

#[test]
fn resources_that_cannot_be_judged_are_errors() {
    let message = |resource: &str| match run("baseline:latest", "", &json(resource)) {
        PodSecurityOutcome::Error { message } => message.to_string(),
        other => panic!("{resource}: {other:?}"),
    };
    for kind in [r#"{"kind":"Service"}"#, r#"{"kind":"PodTemplate"}"#, "{}", "[]"] {
        assert_eq!(message(kind), "Error while getting new resource: could not find correct resource type");
    }
    for (resource, cause) in [
        (r#"{"kind":"Pod","spec":{"hostNetwork":"true"}}"#, "spec.hostNetwork must be of type boolean, not string"),
        (r#"{"kind":"Pod","spec":{"containers":{}}}"#, "spec.containers must be of type array, not object"),
        (
            r#"{"kind":"Job","spec":{"template":{"spec":{"containers":[{},{"ports":[{"hostPort":1.5}]}]}}}}"#,
            "spec.template.spec.containers[1].ports[0].hostPort must be of type integer, not number",
        ),
        (
            r#"{"kind":"Pod","spec":{"initContainers":[{"securityContext":{"capabilities":{"add":["A",1]}}}]}}"#,
            "spec.initContainers[0].securityContext.capabilities.add[1] must be of type string, not number",
        ),
        (r#"{"kind":"Pod","spec":[]}"#, "spec must be of type object, not array"),
        (
            r#"{"kind":"Pod","metadata":{"annotations":{"a.b/c":1}}}"#,
            r#"metadata.annotations["a.b/c"] must be of type string, not number"#,
        ),
    ] {
        assert_eq!(message(resource), format!("Error while getting new resource: {cause}"));
    }
    assert!(checks("restricted:latest", "", &json(r#"{"kind":"Pod","spec":null}"#)).is_empty());
}

#[test]
fn each_check_names_its_fields() {
    let all = r#"{"kind":"Pod","spec":{
        "hostIPC":true,
        "securityContext":{"runAsNonRoot":false,"runAsUser":0,"seccompProfile":{"type":"Unconfined"},
            "appArmorProfile":{"type":"Unconfined"},"seLinuxOptions":{"type":"foo","user":"u","role":"r"},
            "windowsOptions":{"hostProcess":true},"sysctls":[{"name":"kernel.shm_rmid_forced"},{"name":"x","value":"1"}]},
        "volumes":[{"name":"a","hostPath":{"path":"/data"}},{"name":"b"}],
        "initContainers":[{"name":"i","image":"busybox","securityContext":{"privileged":true,"procMount":"Unmasked"}}],
        "containers":[{"name":"c","image":"nginx","ports":[{"containerPort":1},{"hostPort":0},{"hostPort":10}],
            "securityContext":{"allowPrivilegeEscalation":true,"runAsUser":0,"runAsNonRoot":false,
            "capabilities":{"add":["SYS_ADMIN","NET_RAW","CHOWN"],"drop":["X","KILL"]},
            "seccompProfile":{"type":"Unconfined"},"windowsOptions":{"hostProcess":true}}}],
        "ephemeralContainers":[{"name":"e","image":"nginx"}]}}"#;
    let found = checks("restricted:latest", "", &json(all));
    for (id, want) in [
        (
            "allowPrivilegeEscalation",
            "spec.initContainers[0].securityContext.allowPrivilegeEscalation is forbidden, forbidden values found: nil|\
             spec.containers[0].securityContext.allowPrivilegeEscalation is forbidden, forbidden values found: true|\
             spec.ephemeralContainers[0].securityContext.allowPrivilegeEscalation: Required value",
        ),
        (
            "appArmorProfile",
            "spec.securityContext.appArmorProfile.type is forbidden, forbidden values found: Unconfined",
        ),
        (
            "capabilities_baseline",
            "spec.containers[0].securityContext.capabilities.add is forbidden, forbidden values found: [NET_RAW SYS_ADMIN]",
        ),
        (
            "capabilities_restricted",
            "spec.initContainers[0].securityContext.capabilities.drop: Required value|\
             spec.containers[0].securityContext.capabilities.drop is forbidden, forbidden values found: [KILL X]|\
             spec.ephemeralContainers[0].securityContext.capabilities.drop: Required value|\
             spec.containers[0].securityContext.capabilities.add is forbidden, \
             forbidden values found: [CHOWN NET_RAW SYS_ADMIN]",
        ),
        ("hostNamespaces", "spec.hostIPC is forbidden, forbidden values found: true"),
        ("hostPathVolumes", "spec.volumes[0].hostPath is forbidden, forbidden values found: /data"),
        ("hostPorts", "spec.containers[0].ports[2].hostPort is forbidden, forbidden values found: 10"),
        ("privileged", "spec.initContainers[0].securityContext.privileged is forbidden, forbidden values found: true"),
        (
            "procMount",
            "spec.initContainers[0].securityContext.procMount is forbidden, forbidden values found: Unmasked",
        ),
        ("restrictedVolumes", "spec.volumes[0].hostPath: Forbidden|spec.volumes[1].unknown: Forbidden"),
        (
            "runAsNonRoot",
            "spec.securityContext.runAsNonRoot is forbidden, forbidden values found: false|\
             spec.containers[0].securityContext.runAsNonRoot is forbidden, forbidden values found: false|\
             spec.initContainers[0].securityContext.runAsNonRoot: Required value|\
             spec.ephemeralContainers[0].securityContext.runAsNonRoot: Required value",
        ),
        (
            "runAsUser",
            "spec.securityContext.runAsUser is forbidden, forbidden values found: 0|\
             spec.containers[0].securityContext.runAsUser is forbidden, forbidden values found: 0",
        ),
        (
            "seLinuxOptions",
            "spec.securityContext.seLinuxOptions.type is forbidden, forbidden values found: foo|\
             spec.securityContext.seLinuxOptions.user is forbidden, forbidden values found: u|\
             spec.securityContext.seLinuxOptions.role is forbidden, forbidden values found: r",
        ),
        (
            "seccompProfile_restricted",
            "spec.securityContext.seccompProfile.type is forbidden, forbidden values found: Unconfined|\
             spec.containers[0].securityContext.seccompProfile.type is forbidden, forbidden values found: Unconfined",
        ),
        ("sysctls", "spec.securityContext.sysctls[1].name is forbidden, forbidden values found: x"),
        (
            "windowsHostProcess",
            "spec.securityContext.windowsOptions.hostProcess is forbidden, forbidden values found: true|\
             spec.containers[0].securityContext.windowsOptions.hostProcess is forbidden, forbidden values found: true",
        ),
    ] {
        assert_eq!(fields(id, &found).join("|"), want, "{id}");
    }
    let escalation = found.iter().find(|check| check.id == "allowPrivilegeEscalation").unwrap();
    assert_eq!(escalation.images, ["busybox", "nginx"]);
}

#[test]
fn volumes_of_restricted_types_are_forbidden_by_presence() {
    let volumes = format!(
        r#""volumes":[{{"name":"a","nfs":{{}}}},{{"name":"b","emptyDir":{{}}}},{{"name":"c","gitRepo":{{}}}},
           {{"name":"d","image":{{}}}}],{}"#,
        container("c", GOOD)
    );
    let found = checks("restricted:latest", "", &pod(&volumes));
    assert_eq!(fields("", &found), ["spec.volumes[0].nfs: Forbidden", "spec.volumes[2].gitRepo: Forbidden"]);
}

#[test]
fn hosts_in_probes_are_forbidden_without_naming_fields() {
    let with = |probe: &str| {
        json(&format!(r#"{{"kind":"Pod","spec":{{"containers":[{{"name":"c","image":"nginx",{probe}}}]}}}}"#))
    };
    for probe in [
        r#""livenessProbe":{"httpGet":{"host":"localhost"}}"#,
        r#""readinessProbe":{"tcpSocket":{"host":"::1"}}"#,
        r#""startupProbe":{"httpGet":{"host":"a"}}"#,
        r#""lifecycle":{"postStart":{"tcpSocket":{"host":"a"}}}"#,
        r#""lifecycle":{"preStop":{"httpGet":{"host":"a"}}}"#,
    ] {
        // No control covers it, whatever else is excluded.
        let message =
            failure(run("baseline:v1.19", r#"{"controlName":"Host Ports","images":["*"]}"#, &with(probe))).message;
        assert!(message.ends_with(": (Forbidden reason: probe or lifecycle host, field error list: [])"), "{message}");
    }
    for probe in [r#""livenessProbe":{"httpGet":{"host":""}}"#, r#""lifecycle":{"preStop":{"exec":{}}}"#] {
        assert!(checks("baseline:latest", "", &with(probe)).is_empty(), "{probe}");
    }
}

#[test]
fn revisions_follow_the_version() {
    let sysctl = |name: &str| pod(&format!(r#""securityContext":{{"sysctls":[{{"name":"{name}"}}]}}"#));
    for (name, since) in [
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_wmem", 32),
    ] {
        assert!(!checks(&format!("baseline:v1.{}", since - 1), "", &sysctl(name)).is_empty(), "{name}");
        assert!(checks(&format!("baseline:v1.{since}"), "", &sysctl(name)).is_empty(), "{name}");
    }
    assert!(checks("baseline:v1.19", "", &sysctl("net.ipv4.ping_group_range")).is_empty());
    let engine = pod_with_context(r#""seLinuxOptions":{"type":"container_engine_t"}"#);
    assert_eq!(ids(&checks("baseline:v1.30", "", &engine)), ["seLinuxOptions"]);
    assert!(checks("baseline:v1.31", "", &engine).is_empty());
}

#[test]
fn several_app_armor_profiles_are_named_in_the_plural() {
    let reason = |pod: &str, container: &str, annotations: &str| {
        let resource = json(&format!(
            r#"{{"kind":"Pod","metadata":{{"annotations":{{{annotations}}}}},"spec":{{
               "securityContext":{{"appArmorProfile":{{"type":"{pod}"}}}},
               "containers":[{{"securityContext":{{"appArmorProfile":{{"type":"{container}"}}}}}}]}}}}"#
        ));
        checks("baseline:latest", "", &resource).first().map(|check| check.reason)
    };
    let annotation = |name: &str, profile: &str| format!(r#""{APPARMOR_ANNOTATION}{name}":"{profile}""#);
    let (one, many) = (Some("forbidden AppArmor profile"), Some("forbidden AppArmor profiles"));
    assert_eq!(reason("Localhost", "RuntimeDefault", &annotation("a", "localhost/x")), None);
    assert_eq!(reason("Localhost", "RuntimeDefault", &annotation("a", "")), None);
    assert_eq!(reason("Unconfined", "Localhost", ""), one);
    assert_eq!(reason("Unconfined", "Unconfined", ""), one);
    assert_eq!(reason("Unconfined", "Other", ""), many);
    assert_eq!(reason("Localhost", "Localhost", &annotation("a", "unconfined")), one);
    assert_eq!(reason("Unconfined", "Localhost", &annotation("a", "unconfined")), many);
}

#[test]
fn missing_settings_of_the_pod_are_made_up_by_containers_and_the_other_way_round() {
    let good =
        GOOD.replace(r#""runAsNonRoot":true,"#, "").replace(r#","seccompProfile":{"type":"RuntimeDefault"}"#, "");
    let on_pod = r#""securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"Localhost"}}"#;
    assert!(checks("restricted:latest", "", &pod(&format!("{on_pod},{}", container("c", &good)))).is_empty());
    assert_eq!(
        ids(&checks("restricted:latest", "", &pod_with_context(&good))),
        ["runAsNonRoot", "seccompProfile_restricted"]
    );
}

#[test]
fn every_run_as_non_root_violation_is_listed() {
    // Upstream: `cornercases/psa-run-as-non-root`.
    let spec = r#""initContainers":[{"name":"i","image":"x","securityContext":{"runAsNonRoot":false}}],
        "containers":[{"name":"c","image":"nginx"}]"#;
    let found = checks("restricted:v1.29", "", &pod(spec));
    assert_eq!(
        fields("runAsNonRoot", &found),
        [
            "spec.initContainers[0].securityContext.runAsNonRoot is forbidden, forbidden values found: false",
            "spec.containers[0].securityContext.runAsNonRoot: Required value",
        ]
    );
}

#[test]
fn bodies_with_unknown_words_do_not_compile() {
    let compile = |standard: &str, exclude: &str| PodSecurityCheck::compile(&body(standard, exclude)).unwrap_err();
    assert!(matches!(compile("strict:latest", ""), CompileError::Level(_)));
    assert!(matches!(compile("baseline:v1.33", ""), CompileError::Version(_)));
    assert_eq!(
        compile("baseline:latest", r#"{"controlName":"capabilities"}"#),
        CompileError::UnknownControl("capabilities".into())
    );
}
