//! Suites of our own, one for each rule by which rows are made.

use std::fs;

use tempfile::TempDir;

use super::{Selection, find_suites, run_file};
use crate::output::diagnostics;

const REQUIRE: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: a team is needed
      pattern: {metadata: {labels: {team: '?*'}}}
";

const PODS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: good, labels: {team: a}}
---
apiVersion: v1
kind: Pod
metadata: {name: bad}
---
apiVersion: v1
kind: Service
metadata: {name: good}
";

/// Runs a suite of `results` and other members over files: rows as `resource: reason`, then findings as `code`.
fn run(suite: &str, files: &[(&str, &str)]) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().join("kyverno-test.yaml");
    fs::write(&path, format!("apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\n{suite}")).unwrap();
    let mut lines = Vec::new();
    let files = find_suites(&path, "").unwrap();
    for report in files.iter().flat_map(|file| run_file(file, &Selection::default())) {
        lines.extend(report.rows.iter().map(|row| {
            let verdict = if row.passed { "pass" } else { "FAIL" };
            format!("{verdict} {}: {}", row.resource, row.reason)
        }));
        lines.extend(report.findings.iter().map(|finding| finding.code.to_owned()));
    }
    lines
}

fn required(results: &str) -> Vec<String> {
    let suite = format!("policies: [p.yaml]\nresources: [r.yaml]\nresults:\n{results}");
    run(&suite, &[("p.yaml", REQUIRE), ("r.yaml", PODS)])
}

#[test]
fn rows_have_the_verdict_of_the_rule() {
    assert_eq!(
        required("- {policy: require, rule: team, kind: Pod, resources: [good, bad], result: pass}"),
        ["pass v1/Pod/default/good: Ok", "FAIL v1/Pod/default/bad: Want pass, got fail"]
    );
}

#[test]
fn names_that_do_not_exist_fail() {
    assert_eq!(required("- {policy: requires, resources: [good], result: skip}"), ["FAIL good: Not found"]);
    assert_eq!(required("- {policy: require, rule: teams, resources: [good], result: pass}"), ["FAIL good: Not found"]);
    assert_eq!(required("- {policy: require, rule: team, resources: [god], result: pass}"), ["FAIL god: Not found"]);
    assert_eq!(
        required("- {policy: require, rule: team, resources: [other/good], result: pass}"),
        ["FAIL other/good: Not found"]
    );
}

#[test]
fn a_rule_that_does_not_apply_meets_skip_only() {
    let row = |result| {
        required(&format!("- {{policy: require, rule: team, kind: Service, resources: [good], result: {result}}}"))
    };
    assert_eq!(row("skip"), ["pass v1/Service/default/good: Excluded"]);
    assert_eq!(row("pass"), ["FAIL v1/Service/default/good: Want pass, got skip"]);
}

#[test]
fn of_namesakes_those_are_meant_that_the_rule_applies_to() {
    assert_eq!(
        required("- {policy: require, rule: team, resources: [default/good], result: pass}"),
        ["pass v1/Pod/default/good: Ok"]
    );
}

#[test]
fn a_result_without_resources_is_about_all_that_the_rule_applies_to() {
    assert_eq!(
        required("- {policy: require, result: pass}"),
        ["pass v1/Pod/default/good: Ok", "FAIL v1/Pod/default/bad: Want pass, got fail"]
    );
}

#[test]
fn resources_can_be_told_by_more_than_their_names() {
    assert_eq!(
        required("- {policy: require, resourceSpecs: [{version: v1, kind: Pod, name: good}], result: pass}"),
        ["pass v1/Pod/default/good: Ok"]
    );
    assert_eq!(
        required("- {policy: require, resourceSpecs: [{group: apps, kind: Pod, name: good}], result: pass}"),
        ["FAIL good: Not found"]
    );
}

#[test]
fn faults_of_a_test_are_found() {
    assert_eq!(required("- {policy: require, resources: [good], result: passes}").last().unwrap(), "invalid-result");
    assert_eq!(required("- {policy: require, rsources: [good], result: pass}"), ["unknown-field"]);
    let missing = run("policies: [p.yaml, q.yaml]\nresults: [{policy: require, result: skip}]", &[("p.yaml", REQUIRE)]);
    assert_eq!(missing, ["unreadable"]);
}

#[test]
fn a_test_without_results_is_a_warning() {
    assert_eq!(required(""), ["no-results"]);
}

#[test]
fn a_refused_policy_fails_its_rows() {
    let wrong = REQUIRE.replace("validate", "validates");
    let suite =
        "policies: [p.yaml]\nresources: [r.yaml]\nresults: [{policy: require, resources: [good], result: skip}]";
    let lines = run(suite, &[("p.yaml", &wrong), ("r.yaml", PODS)]);
    assert_eq!(lines.first().unwrap(), "FAIL good: Invalid policy");
    assert!(lines.contains(&"unknown-field".to_owned()), "{lines:?}");
}

#[test]
fn a_row_has_the_operation_that_it_asks_for() {
    let policy = REQUIRE.replace("kinds: [Pod]", "kinds: [Pod], operations: [DELETE]").replace(
        "pattern: {metadata: {labels: {team: '?*'}}}",
        "deny: {conditions: {any: [{key: '{{ request.oldObject.metadata.name }}', operator: Equals, value: bad}]}}",
    );
    let suite = "policies: [p.yaml]\nresources: [r.yaml]\nresults:\n\
        - {policy: require, resources: [bad], result: skip}\n\
        - {policy: require, operation: DELETE, resources: [bad], result: fail}\n";
    assert_eq!(
        run(suite, &[("p.yaml", &policy), ("r.yaml", PODS)]),
        ["pass v1/Pod/default/bad: Excluded", "pass v1/Pod/default/bad: Ok"]
    );
}

const LABEL: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: label, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
  - name: add
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): core}}}}
";

#[test]
fn patched_objects_are_compared() {
    let files = |want: &str| {
        run(
            "policies: [p.yaml]\nresources: [r.yaml]\nresults:\n\
             - {policy: label, rule: add, patchedResources: w.yaml, resources: [bad], result: pass}\n",
            &[("p.yaml", LABEL), ("r.yaml", PODS), ("w.yaml", want)],
        )
    };
    let want = |name: &str, team: &str| {
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{team: {team}}}}}\n")
    };
    assert_eq!(files(&want("bad", "core")), ["pass v1/Pod/default/bad: Ok"]);
    assert_eq!(files(&want("bad", "edge")), ["FAIL v1/Pod/default/bad: Resource diff"]);
    assert_eq!(files(&want("good", "core")), ["FAIL v1/Pod/default/bad: Resource error"]);
}

#[test]
fn validation_sees_what_mutation_made() {
    let suite = "policies: [q.yaml, p.yaml]\nresources: [r.yaml]\n\
        results: [{policy: require, rule: team, resources: [bad], result: pass}]";
    let lines = run(suite, &[("p.yaml", LABEL), ("q.yaml", REQUIRE), ("r.yaml", PODS)]);
    assert_eq!(lines, ["pass v1/Pod/default/bad: Ok"]);
}

#[test]
fn targets_are_patched_and_compared() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: spread}
spec:
  rules:
  - name: spread
    match: {any: [{resources: {kinds: [Service]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: Secret, name: s}]
      patchStrategicMerge: {metadata: {labels: {team: core}}}
";
    let secrets = "
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: a}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: b}
";
    let patched = secrets.replace("namespace: a", "namespace: a, labels: {team: core}");
    let suite = |members: &str| {
        format!(
            "policies: [p.yaml]\n{members}\nresults:\n\
             - {{policy: spread, rule: spread, patchedResources: w.yaml, resources: [a/s, b/s], result: pass}}\n"
        )
    };
    let want = ["pass v1/Secret/a/s: Ok", "FAIL v1/Secret/b/s: Resource diff"];
    let files = [("p.yaml", policy), ("r.yaml", PODS), ("s.yaml", secrets), ("w.yaml", &patched)];
    assert_eq!(run(&suite("resources: [r.yaml]\ntargetResources: [s.yaml]"), &files), want);
    // Targets may be among the resources too.
    assert_eq!(run(&suite("resources: [r.yaml, s.yaml]"), &files), want);
}

#[test]
fn generated_objects_are_compared_and_must_all_be_there() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: copies}
spec:
  rules:
  - name: copy
    match: {any: [{resources: {kinds: [Pod]}}]}
    generate:
      apiVersion: v1
      kind: Secret
      name: \"{{ request.object.metadata.name }}\"
      namespace: default
      clone: {namespace: vault, name: source}
";
    let source = "apiVersion: v1\nkind: Secret\nmetadata: {name: source, namespace: vault}\ndata: {a: Yg==}\n";
    let want = |name: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\ndata: {{a: Yg==}}\n");
    let ran_by = |policy: &str, result: &str| {
        let both = format!("{}---\n{}", want("good"), want("other"));
        let suite = format!(
            "policies: [p.yaml]\nresources: [r.yaml]\nresults:\n\
             - {{policy: copies, rule: copy, kind: Pod, resources: [good], result: pass, {result}}}\n"
        );
        let files = [("p.yaml", policy), ("r.yaml", PODS), ("s.yaml", source)];
        run(
            &suite,
            &[&files[..], &[("one.yaml", &want("good")), ("two.yaml", &both), ("no.yaml", &want("x"))]].concat(),
        )
    };
    let ran = |result: &str| ran_by(policy, result);
    let cloned = "cloneSourceResource: s.yaml";
    assert_eq!(ran(&format!("{cloned}, generatedResource: one.yaml")), ["pass v1/Pod/default/good: Ok"]);
    assert_eq!(
        ran(&format!("{cloned}, generatedResources: [two.yaml]")),
        ["pass v1/Pod/default/good: Ok", "FAIL v1/Secret/default/other: Resource error"]
    );
    assert_eq!(
        ran(&format!("{cloned}, generatedResource: no.yaml")).first().unwrap(),
        "FAIL v1/Pod/default/good: Resource error"
    );
    let without_version = policy.replace("      apiVersion: v1\n", "");
    let ran_without = ran_by(&without_version, &format!("{cloned}, generatedResource: one.yaml"));
    assert_eq!(ran_without, ["pass v1/Pod/default/good: Ok", "missing-api-version"]);
    assert_eq!(ran("generatedResource: one.yaml").first().unwrap(), "FAIL v1/Pod/default/good: Want pass, got error");
}

/// A policy that denies unless `expression` over an entry from `source` is `want`.
fn asking(source: &str, expression: &str) -> String {
    format!(
        "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: ask, annotations: {{pod-policies.kyverno.io/autogen-controllers: none}}}}
spec:
  rules:
  - name: ask
    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
    context: [{{name: got, {source}}}]
    validate:
      message: denied
      deny: {{conditions: {{any: [{{key: \"{{{{ {expression} }}}}\", operator: NotEquals, value: 'yes'}}]}}}}
"
    )
}

fn asked(source: &str, expression: &str, members: &str, files: &[(&str, &str)]) -> Vec<String> {
    let suite = format!(
        "policies: [p.yaml]\nresources: [r.yaml]\n{members}\nresults: [{{policy: ask, resources: [good], result: pass}}]"
    );
    let policy = asking(source, expression);
    run(&suite, &[&[("p.yaml", policy.as_str()), ("r.yaml", PODS)], files].concat())
}

const OK: &str = "pass v1/Pod/default/good: Ok";
const UNKNOWN: &str = "FAIL v1/Pod/default/good: Want pass, got error";

#[test]
fn calls_are_answered_by_the_test() {
    let path = "apiCall: {urlPath: /api/v1/nodes, jmesPath: items}";
    let mock = |status: i64| {
        format!(
            "apiCallResponses: [{{urlPath: /api/v1/nodes, response: {{statusCode: {status}, body: {{items: ['yes']}}}}}}]"
        )
    };
    assert_eq!(asked(path, "got[0]", &mock(200), &[]), [OK]);
    assert_eq!(asked(path, "got[0]", &mock(500), &[]), [UNKNOWN]);
    assert_eq!(asked(path, "got[0]", "", &[]), [UNKNOWN]);
    let service = "apiCall: {method: POST, service: {url: 'https://x/y'}, data: [{key: a, value: b}]}";
    let posted = "apiCallResponses: [{url: 'https://x/y', method: POST, response: {body: {a: 'yes'}}}]";
    assert_eq!(asked(service, "got.a", posted, &[]), [OK]);
    assert_eq!(asked(service, "got.a", &posted.replace("POST", "GET"), &[]), [UNKNOWN]);
}

#[test]
fn global_context_entries_are_given_by_the_test() {
    let global = |path: &str| format!("globalReference: {{name: entry, jmesPath: '{path}'}}");
    let data = "globalContextEntries: [{name: entry, data: {a: {b: ['yes']}}, fieldPath: a, projections: [{name: c, path: 'b[0]'}]}]";
    assert_eq!(asked(&global("c"), "got", data, &[]), [OK]);
    let files = "globalContextEntries: [{name: entry, resourceFiles: [n.yaml]}]";
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: 'yes'}\n";
    assert_eq!(asked(&global("[0].metadata.name"), "got", files, &[("n.yaml", node)]), [OK]);
    assert_eq!(asked(&global("c"), "got", "", &[]), [UNKNOWN]);
}

#[test]
fn an_imagined_cluster_answers() {
    let cluster = "
apiVersion: cli.kyverno.io/v1alpha1
kind: ClusterResource
spec:
  resources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: x}, data: {a: 'yes'}}
";
    let files = [("c.yaml", cluster)];
    let members = "clusterResources: [c.yaml]";
    assert_eq!(asked("configMap: {name: c, namespace: x}", "got.data.a", members, &files), [OK]);
    let path = "apiCall: {urlPath: /api/v1/namespaces/x/configmaps/c}";
    assert_eq!(asked(path, "got.data.a", members, &files), [OK]);
    assert_eq!(asked(path, "got.data.a", "", &[]), [UNKNOWN]);
}

#[test]
fn definitions_of_a_cluster_say_the_scope_of_its_objects() {
    let definition = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: gizmos, singular: gizmo, kind: Gizmo, listKind: GizmoList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";
    let cluster = "
apiVersion: cli.kyverno.io/v1alpha1
kind: ClusterResource
spec:
  crds: [d.yaml]
  resources:
  - {apiVersion: example.com/v1, kind: Gizmo, metadata: {name: g}, data: {a: 'yes'}}
";
    let files = [("c.yaml", cluster), ("d.yaml", definition)];
    let path = "apiCall: {urlPath: /apis/example.com/v1/gizmos/g}";
    assert_eq!(asked(path, "got.data.a", "clusterResources: [c.yaml]", &files), [OK]);
}

#[test]
fn values_stand_in_for_data() {
    let map = "configMap: {name: c, namespace: x}";
    let values = |values: &str| format!("values: {{policies: [{{name: ask, {values}}}]}}");
    let given = values("rules: [{name: ask, values: {got.data.a: 'yes'}}]");
    assert_eq!(asked(map, "got.data.a", &given, &[]), [OK]);
    let given = values("resources: [{name: good, values: {got.data.a: 'yes'}}]");
    assert_eq!(asked(map, "got.data.a", &given, &[]), [OK]);
    let given = values("rules: [{name: ask, values: {request.mode: 'yes'}}]");
    // No request has such a member: a warning about the policy and one about the value, as from `apply`.
    let mocked = asked("variable: {jmesPath: request.mode}", "got", &given, &[]);
    assert_eq!(mocked, [OK, "undefined-variable", "undefined-variable"]);
    let file = "apiVersion: v1\nkind: Values\nGlobalValues: {request.operation: PATCH}\n";
    assert_eq!(asked(map, "got.data.a", "variables: v.yaml", &[("v.yaml", file)]).last().unwrap(), "invalid-values");
}

#[test]
fn labels_of_namespaces_and_users_come_from_the_test() {
    let policy = REQUIRE.replace("spec:", "spec:\n  background: false").replace(
        "{kinds: [Pod]}",
        "{kinds: [Pod], namespaceSelector: {matchLabels: {tier: prod}}}, clusterRoles: [admin]",
    );
    let suite = |members: &str| {
        format!(
            "policies: [p.yaml]\nresources: [r.yaml]\n{members}\nresults: [{{policy: require, resources: [bad], result: fail}}]"
        )
    };
    let files = [
        ("p.yaml", policy.as_str()),
        ("r.yaml", PODS),
        ("u.yaml", "apiVersion: v1\nkind: UserInfo\nclusterRoles: [admin]\nuserInfo: {username: eve}\n"),
        ("v.yaml", "apiVersion: v1\nkind: UserInfo\nuserInfo: {username: eve}\n"),
    ];
    let labels = "values: {namespaceSelector: [{name: default, labels: {tier: prod}}]}";
    assert_eq!(run(&suite(&format!("{labels}\nuserinfo: u.yaml")), &files), ["pass v1/Pod/default/bad: Ok"]);
    let excluded = ["FAIL v1/Pod/default/bad: Want fail, got skip"];
    assert_eq!(run(&suite(&format!("{labels}\nuserinfo: v.yaml")), &files), excluded);
    assert_eq!(run(&suite("userinfo: u.yaml"), &files), excluded);
}

#[test]
fn exceptions_skip() {
    let exception = "
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: x}
spec:
  exceptions: [{policyName: require, ruleNames: [team]}]
  match: {any: [{resources: {kinds: [Pod], names: [bad]}}]}
";
    let suite = "policies: [p.yaml]\nresources: [r.yaml]\nexceptions: [e.yaml]\n\
        results: [{policy: require, resources: [bad], result: skip}]";
    let files = [("p.yaml", REQUIRE), ("r.yaml", PODS), ("e.yaml", exception)];
    assert_eq!(run(suite, &files), ["pass v1/Pod/default/bad: Ok"]);
}

#[test]
fn kinds_can_stand_for_subresources() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-exec}
spec:
  background: false
  rules:
  - name: no-exec
    match: {any: [{resources: {kinds: [Pod/exec]}}]}
    validate: {message: not here, deny: {}}
";
    let object = "apiVersion: v1\nkind: PodExecOptions\nmetadata: {name: e}\n";
    let suite = "policies: [p.yaml]\nresources: [r.yaml]\nvalues:\n  subresources:\n  \
        - subresource: {name: pods/exec, version: v1, kind: PodExecOptions}\n    \
          parentResource: {name: pods, version: v1, kind: Pod}\n\
        results: [{policy: no-exec, resources: [e], result: fail}]";
    assert_eq!(run(suite, &[("p.yaml", policy), ("r.yaml", object)]), ["pass v1/PodExecOptions/default/e: Ok"]);
}

#[test]
fn a_kind_that_the_resource_is_not_fails() {
    assert_eq!(
        required("- {policy: require, rule: team, kind: Deployment, resources: [bad], result: fail}"),
        ["FAIL bad: Not found"]
    );
    for (kind, want) in
        [("Deployment", "FAIL Deployment: Not found"), ("Service", "FAIL v1/Service/default/good: Want fail, got skip")]
    {
        let row = format!("- {{policy: require, rule: team, kind: {kind}, result: fail}}");
        assert_eq!(required(&row), [want], "{row}");
    }
}

/// A directory tree, and the messages of the tests in its directory `tests`.
fn messages(tree: &TempDir, suite: &str) -> String {
    let tests = tree.path().join("tests");
    let head = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\n";
    fs::write(tests.join("kyverno-test.yaml"), format!("{head}{suite}results: []\n")).unwrap();
    let files = find_suites(&tests, "kyverno-test.yaml").unwrap();
    let reports = files.iter().flat_map(|file| run_file(file, &Selection::default()));
    let findings = reports.flat_map(|report| report.findings);
    findings.map(|finding| diagnostics::full(&finding, false) + "\n").collect()
}

#[test]
fn tests_read_nothing_outside_of_their_repository() {
    use std::os::unix::fs::symlink;
    let tree = TempDir::new().unwrap();
    let at = |name: &str| tree.path().join(name);
    fs::create_dir(at("tests")).unwrap();
    fs::write(at("shadow.yaml"), "root: [:x:0:0\n").unwrap();
    symlink(at("shadow.yaml"), at("tests/link.yaml")).unwrap();
    fs::create_dir(at("tests/d")).unwrap();
    symlink(at("shadow.yaml"), at("tests/d/link.yaml")).unwrap();
    let (outside, link) = ("../shadow.yaml", "link.yaml");
    for suite in [
        format!("policies: [{outside}]\n"),
        format!("policies: [{link}]\n"),
        "policies: [d]\n".to_owned(),
        "policies: ['../sh*.yaml']\n".to_owned(),
        format!("resources: [{outside}]\n"),
        format!("targetResources: [{link}]\n"),
        format!("exceptions: [{outside}]\n"),
        format!("variables: {outside}\n"),
        format!("userinfo: {outside}\n"),
        format!("clusterResources: [{outside}]\n"),
        format!("globalContextEntries: [{{name: g, resourceFiles: [{outside}]}}]\n"),
    ] {
        let told = messages(&tree, &suite);
        assert!(told.contains("error[outside]") && !told.contains("0:0"), "{suite}: {told}");
    }
    // In a repository all of it may be read.
    fs::create_dir(at(".git")).unwrap();
    let told = messages(&tree, "resources: [../shadow.yaml]\n");
    assert!(told.contains("error[invalid-yaml]"), "{told}");
}

#[test]
fn tests_read_no_files_but_manifests() {
    use std::os::unix::fs::symlink;
    let tree = TempDir::new().unwrap();
    let at = |name: &str| tree.path().join(name);
    fs::create_dir(at("tests")).unwrap();
    fs::write(at("tests/.env"), "TOKEN=[x\n").unwrap();
    symlink(at("tests/.env"), at("tests/link.yaml")).unwrap();
    for suite in ["resources: [.env]\n", "policies: [link.yaml]\n", "variables: .env\n"] {
        let told = messages(&tree, suite);
        assert!(told.contains("is no `.yaml`, `.yml` or `.json` file") && !told.contains("TOKEN"), "{suite}: {told}");
    }
    fs::remove_file(at("tests/kyverno-test.yaml")).unwrap();
    symlink(at("tests/.env"), at("tests/kyverno-test.yaml")).unwrap();
    let files = find_suites(&at("tests"), "kyverno-test.yaml").unwrap();
    let reports: Vec<_> = files.iter().flat_map(|file| run_file(file, &Selection::default())).collect();
    assert_eq!(reports[0].findings[0].code, "outside");
}
