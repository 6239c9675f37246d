//! Hostile and broken input: each gives a located error and the right exit code, in little time and memory.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// No input keeps the command busy for longer, even in a debug build on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// What a run may take of address space, in KiB. Most of it is never touched.
const MEMORY: &str = "4000000";

struct Run {
    code: Option<i32>,
    output: String,
}

/// Runs `ephor` with limited memory in `directory`.
fn ephor(directory: &Path, arguments: &[&str], input: &[u8]) -> Run {
    let limited = format!("ulimit -v {MEMORY} 2>/dev/null; exec \"$@\"");
    let mut child = Command::new("sh")
        .args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_ephor")])
        .args(arguments)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that does not read its input closes the pipe.
    let writer = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let stdout = read(Box::new(child.stdout.take().unwrap()));
    let stderr = read(Box::new(child.stderr.take().unwrap()));
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
            panic!("{arguments:?} takes longer than {TIMEOUT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    writer.join().unwrap();
    Run { code: status.code(), output: stdout.join().unwrap() + &stderr.join().unwrap() }
}

fn file(directory: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// A policy whose validate rule on Pods has `body`, after `context`.
fn policy(context: &str, body: &str) -> String {
    format!(
        "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: p}}
spec:
  rules:
  - name: r
    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
{context}    validate:
      message: refused
{body}"
    )
}

/// A policy that denies when `key` equals `x`.
fn denies(context: &str, key: &str) -> String {
    policy(context, &format!("      deny: {{conditions: {{any: [{{key: \"{key}\", operator: Equals, value: x}}]}}}}\n"))
}

/// `ephor check` of a policy file: exit code and the first line, concise.
fn check(content: impl AsRef<[u8]>) -> (Option<i32>, String) {
    let directory = TempDir::new().unwrap();
    file(&directory, "policy.yaml", content);
    let run = ephor(directory.path(), &["check", "policy.yaml", "--output-format", "concise", "--quiet"], b"");
    (run.code, run.output.lines().next().unwrap_or_default().chars().take(200).collect())
}

fn checks(content: impl AsRef<[u8]>, code: i32, line: &str) {
    assert_eq!(check(content), (Some(code), line.to_owned()));
}

#[test]
fn unknown_fields_come_with_the_nearest() {
    checks(
        policy("", "      deny: {}\n      mesage: x\n"),
        1,
        "policy.yaml:11:7: error[unknown-field]: unknown field `mesage` (spec.rules[0].validate.mesage); did you mean \
         `message`?",
    );
}

#[test]
fn broken_yaml_is_located() {
    checks(
        policy("", "      deny: {\n  x: ]\n"),
        2,
        "policy.yaml:10:13: error[invalid-yaml]: mismatched bracket '{' closed by ']'",
    );
    checks(
        "a: 1\nb: 2\na: 3\n",
        2,
        "policy.yaml:3:1: error[invalid-yaml]: duplicate key `a`, already defined at line 1",
    );
    checks("a:\n\t- b\n", 2, "policy.yaml:2:2: error[invalid-yaml]: expected spaces as indentation, found a tab");
}

#[test]
fn bytes_that_are_no_text_are_located() {
    let mut content = policy("", "      deny: {}\n").into_bytes();
    content.extend(b"# \xc3\xa9 \xff\n");
    checks(content, 2, "policy.yaml:11:5: error[unreadable]: `policy.yaml` is not UTF-8 text: found the byte 0xff");
}

#[test]
fn large_texts_are_refused() {
    let (code, line) = check(policy("", &format!("      deny: {{}} # {}\n", "x".repeat(50_000_000))));
    assert_eq!(code, Some(2));
    assert!(line.starts_with("policy.yaml:10:") && line.contains("expected at most 16777216 bytes"), "{line}");
    let (code, line) = check(policy("", &("      anyPattern:\n".to_owned() + &"      - a: b\n".repeat(4_000_000))));
    assert_eq!(code, Some(2));
    assert!(line.contains("error[invalid-yaml]: expected at most 16777216 bytes"), "{line}");
    checks("#".repeat(65 << 20), 2, "error[unreadable]: `policy.yaml` is larger than 64 MiB");
}

#[test]
fn deep_nesting_is_refused_where_it_goes_too_deep() {
    for (open, close) in [("{a: ", "}"), ("[", "]")] {
        let deep = format!("      pattern: {}{}\n", open.repeat(10_000), close.repeat(10_000));
        let (code, line) = check(policy("", &deep));
        assert_eq!(code, Some(2));
        assert!(line.starts_with("policy.yaml:10:"), "{line}");
        assert!(line.ends_with("error[invalid-yaml]: nested deeper than 200 levels"), "{line}");
    }
    let block: Vec<String> = (0..2_000).map(|i| " ".repeat(8 + i) + "a:\n").collect();
    let (code, line) = check(policy("", &format!("      pattern:\n{}", block.concat())));
    assert_eq!(code, Some(2));
    assert!(line.ends_with("error[invalid-yaml]: nested deeper than 200 levels"), "{line}");
}

#[test]
fn aliases_that_multiply_are_refused() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (before, name) in ('a'..='l').zip('b'..='m') {
        let uses = vec![format!("*{before}"); 10].join(",");
        writeln!(bomb, "{name}: &{name} [{uses}]").unwrap();
    }
    checks(bomb, 2, "policy.yaml:7:8: error[invalid-yaml]: expected at most 2000000 values, aliases followed");
    checks(
        "a: &a [*a]\n",
        2,
        "policy.yaml:1:8: error[invalid-yaml]: an anchor's value must not contain an alias of itself",
    );
}

#[test]
fn deep_expressions_are_refused_in_policies() {
    let key = format!("{{{{ {}a{} }}}}", "(".repeat(20_000), ")".repeat(20_000));
    let (code, line) = check(denies("", &key));
    assert_eq!(code, Some(1));
    assert!(line.contains("error[invalid-expression]: the expression nests deeper than 128 levels"), "{line}");
}

#[test]
fn unreadable_paths_are_named() {
    let directory = TempDir::new().unwrap();
    let run = ephor(directory.path(), &["check", "none.yaml", "--quiet", "--output-format", "concise"], b"");
    assert_eq!(
        (run.code, run.output.as_str()),
        (Some(2), "error[unreadable]: no such file or directory: `none.yaml`\n")
    );
    let run = ephor(directory.path(), &["check", ".", "--quiet", "--output-format", "concise"], b"");
    assert_eq!((run.code, run.output.as_str()), (Some(2), "error[no-policies]: no YAML files under `.`\n"));
}

/// `ephor jp query` of an expression: it fails and says `message`.
fn query_fails(expression: &str, message: &str) {
    let directory = TempDir::new().unwrap();
    file(&directory, "e.jmespath", expression);
    let run = ephor(directory.path(), &["jp", "query", "-q", "e.jmespath"], b"{a: [[1]]}");
    let shown: String = expression.chars().take(60).collect();
    let start: String = run.output.chars().take(400).collect();
    assert_eq!(run.code, Some(2), "{shown}: {start}");
    assert!(run.output.contains(message) && run.output.contains("--> e.jmespath:1:"), "{shown}: {start}");
}

#[test]
fn expressions_nest_to_a_limit() {
    let around = |open: &str, close: &str| format!("{}a{}", open.repeat(50_000), close.repeat(50_000));
    for expression in [
        around("(", ")"),
        around("[", "]"),
        around("{a:", "}"),
        around("not_null(", ")"),
        around("!", ""),
        around("", ".a"),
        around("", "|a"),
        around("", "||a"),
        around("", "[0]"),
        around("", "[]"),
        around("", "[?b]"),
        around("", " == a"),
    ] {
        query_fails(&expression, "nests deeper than 128 levels");
    }
    query_fails(&format!("`{}{}`", "[".repeat(100_000), "]".repeat(100_000)), "recursion limit exceeded");
}

#[test]
fn data_that_grows_ends_at_the_budget() {
    query_fails(&format!("'x'{}", " | join('', [@, @])".repeat(60)), "evaluation builds too much data");
    query_fails(&format!("{}to_string(@)", "[@, @] | ".repeat(60)), "evaluation takes too many steps");
    let grows = " | replace_all(@, 'b', 'bbbbbbbbbbbbbbbbbbbb')".repeat(12);
    query_fails(&format!("'b'{grows}"), "evaluation builds too much data");
}

#[test]
fn huge_repetitions_are_refused() {
    query_fails("random('[a-z]{1000000000}')", "invalid repeat count");
    query_fails("random('((((a{1000}){1000}){1000}){1000})')", "evaluation ");
    query_fails("regex_match('((a{1000}){1000}){1000}', 'a')", "error parsing regexp");
}

/// `ephor apply` of a policy to a Pod with the label `x` and the annotation `long`: exit code and output.
fn apply(policy: &str, label: &str) -> (Option<i32>, String) {
    let directory = TempDir::new().unwrap();
    file(&directory, "policy.yaml", policy);
    let long = "a".repeat(100_000);
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {{x: '{label}'}}\n  annotations: {{long: '{long}!'}}\n"
    );
    file(&directory, "pod.yaml", pod);
    let run = ephor(directory.path(), &["apply", "policy.yaml", "-r", "pod.yaml"], b"");
    (run.code, run.output)
}

fn is_rule_error(policy: &str, label: &str, message: &str) {
    let (code, output) = apply(policy, label);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains(message) && output.contains("error: 1,"), "{output}");
}

#[test]
fn variables_in_a_circle_are_an_error_of_the_rule() {
    let context = "    context:
    - {name: a, variable: {value: '{{ b }}'}}
    - {name: b, variable: {value: '{{ a }}'}}
";
    is_rule_error(&denies(context, "{{ a }}"), "", "failed to load context entry a");
    // A text of an object is no template, whatever stands in it.
    let variable = "-{{ request.object.metadata.labels.x }}";
    let (code, output) = apply(&denies("", variable), variable);
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn doubling_in_a_policy_ends_at_the_budget() {
    let mut context = "    context:\n    - {name: v0, variable: {value: xxxxxxxxxx}}\n".to_owned();
    for i in 1..40 {
        let before = i - 1;
        let twice = format!("{{{{ v{before} }}}}").repeat(2);
        writeln!(context, "    - {{name: v{i}, variable: {{value: '{twice}'}}}}").unwrap();
    }
    is_rule_error(&denies(&context, "{{ v39 }}"), "", "evaluation builds too much data");
}

#[test]
fn patterns_match_in_linear_time() {
    let regex = denies("", "{{ to_string(regex_match('^(a+)+$', request.object.metadata.annotations.long)) }}");
    assert_eq!(apply(&regex, "").0, Some(0));
    let wildcard = format!("      pattern: {{metadata: {{annotations: {{long: '{}b'}}}}}}\n", "*a".repeat(200));
    let (code, output) = apply(&policy("", &wildcard), "");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("fail: 1,"), "{output}");
}

#[test]
fn resources_that_cannot_be_read_are_located() {
    let directory = TempDir::new().unwrap();
    file(&directory, "policy.yaml", denies("", "y"));
    for (content, message) in [
        (format!("apiVersion: v1\nkind: Pod\nspec: {}{}\n", "[".repeat(10_000), "]".repeat(10_000)), "pod.yaml:3:207"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: p\n---\na: b\n".to_owned(), "pod.yaml:3:11"),
    ] {
        file(&directory, "pod.yaml", content);
        let run = ephor(directory.path(), &["apply", "policy.yaml", "-r", "pod.yaml"], b"");
        assert_eq!(run.code, Some(2), "{}", run.output);
        assert!(run.output.contains(message), "{}", run.output);
    }
}

#[test]
fn a_run_without_tests_fails_unless_that_is_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run = |words: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_ephor")).arg("test").args(words).current_dir(&root).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    for (words, why) in [
        (&["examples/policies"][..], "no file is called `kyverno-test.yaml`"),
        (&["examples/tests", "-t", "policy=foo"], "`--test-case-selector` selects nothing of 1 test file(s)"),
        (&["examples/tests", "-t", "policy=require-team-labl"], "did you mean `require-team-label`?"),
    ] {
        let (code, text) = run(words);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("No tests found") && text.contains(why), "{text}");
        assert_eq!(run(&[words, &["--allow-empty"]].concat()).0, Some(0));
    }
    let directory = TempDir::new().unwrap();
    file(
        &directory,
        "kyverno-test.yaml",
        "{apiVersion: cli.kyverno.io/v1alpha1, kind: Test, metadata: {name: t}, policies: [p.yaml], resources: [r.yaml], results: []}",
    );
    file(&directory, "p.yaml", denies("", "y"));
    file(&directory, "r.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: p}}");
    let empty = directory.path().to_str().unwrap();
    let (code, text) = run(&[empty]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("no test file expects a result"), "{text}");
    assert_eq!(run(&[empty, "--allow-empty"]).0, Some(0));
    let (code, text) = run(&["examples/tests", "-t", "polcy=foo"]);
    assert_eq!(code, Some(2));
    assert!(text.contains("did you mean `policy`?"), "{text}");
}

#[test]
fn kinds_in_the_wrong_case_are_named() {
    let directory = TempDir::new().unwrap();
    let policy = |kind: &str| {
        format!(
            "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: p}}\nspec:\n  background: false\n  rules:\n  - name: r\n    \
             match: {{any: [{{resources: {{kinds: ['{kind}']}}}}]}}\n    validate: {{message: m, deny: {{}}}}\n"
        )
    };
    for (kind, near) in [
        ("pod", Some("Pod")),
        ("Deployments", Some("Deployment")),
        ("apps/v1/statefulset", Some("StatefulSet")),
        ("pods/exec", Some("Pod")),
        ("*/pod", Some("*/Pod")),
        ("Pod/Exec", Some("Pod/exec")),
        ("V1/Pod", Some("v1/Pod")),
        ("apps/V1/Deployment", Some("apps/v1/Deployment")),
        ("Apps/v1/Deployment", Some("apps/v1/Deployment")),
        ("Pod", None),
        ("*/Pod", None),
        ("*/scale", None),
        ("Pod/exec", None),
        ("Pod/*", None),
        ("apps/*/Deployment", None),
        ("example.com/v1/Deployment", None),
        ("PodExecOptions", None),
        ("Gizmo", None),
        ("*", None),
    ] {
        file(&directory, "policy.yaml", policy(kind));
        let told = ephor(directory.path(), &["check", "policy.yaml", "-o", "concise"], b"").output;
        match near {
            Some(near) => assert!(told.contains(&format!("did you mean `{near}`?")), "{kind}: {told}"),
            None => assert!(!told.contains("unknown-kind"), "{kind}: {told}"),
        }
    }
}

#[test]
fn kinds_in_the_wrong_case_are_named_in_all_documents() {
    let directory = TempDir::new().unwrap();
    for document in [
        "{apiVersion: kyverno.io/v2, kind: ClusterCleanupPolicy, metadata: {name: c}, spec: {schedule: '* * * * *',
          match: {any: [{resources: {kinds: [pod]}}]}}}",
        "{apiVersion: kyverno.io/v2, kind: ClusterCleanupPolicy, metadata: {name: c}, spec: {schedule: '* * * * *',
          match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {kinds: [pod]}}]}}}",
        "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: a}, spec: {
          match: {any: [{resources: {kinds: [pod]}}]}, exceptions: [{policyName: p, ruleNames: [r]}]}}",
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r,
          match: {any: [{resources: {kinds: [Secret]}}]}, validate: {cel: {paramKind: {apiVersion: v1, kind: pod},
          paramRef: {name: x, namespace: a, parameterNotFoundAction: Deny}, expressions: [{expression: 'true'}]}}}]}}",
    ] {
        file(&directory, "policy.yaml", document);
        let told = ephor(directory.path(), &["check", "policy.yaml", "-o", "concise"], b"").output;
        assert!(told.contains("did you mean `Pod`?"), "{document}: {told}");
    }
}

#[test]
fn a_query_prints_nothing_but_its_result_where_no_person_reads() {
    let directory = TempDir::new().unwrap();
    let run = ephor(directory.path(), &["jp", "query", "a"], b"{\"a\": 1}");
    assert_eq!((run.code, run.output.as_str()), (Some(0), "1\n"));
}

#[test]
fn kinds_of_targets_that_are_misspelt_are_named() {
    let directory = TempDir::new().unwrap();
    for (rule, near) in [
        ("generate: {namespace: a, cloneList: {namespace: b, kinds: [v1/Secert]}}", Some("Secret")),
        ("generate: {apiVersion: v1, kind: ConfigMpa, name: c, namespace: a, data: {}}", Some("ConfigMap")),
        (
            "generate: {foreach: [{list: '[`1`]', apiVersion: apps/v1, kind: Deploymnet, name: c, namespace: a, data: {}}]}",
            Some("Deployment"),
        ),
        (
            "mutate: {targets: [{apiVersion: v1, kind: Secrt, name: s, namespace: a}], patchStrategicMerge: {data: {a: b}}}",
            Some("Secret"),
        ),
        ("generate: {apiVersion: example.com/v1, kind: Secert, name: c, namespace: a, data: {}}", None),
        ("generate: {apiVersion: v1, kind: Gizmo, name: c, namespace: a, data: {}}", None),
    ] {
        let policy = format!(
            "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: p}}\nspec:\n  rules:\n  - name: r\n    \
             match: {{any: [{{resources: {{kinds: [Namespace]}}}}]}}\n    {rule}\n"
        );
        file(&directory, "policy.yaml", policy);
        let told = ephor(directory.path(), &["check", "policy.yaml", "-o", "concise"], b"").output;
        match near {
            Some(near) => assert!(told.contains(&format!("did you mean `{near}`?")), "{rule}: {told}"),
            None => assert!(!told.contains("unknown-kind"), "{rule}: {told}"),
        }
    }
}

#[test]
fn names_that_an_exception_or_a_value_misspells_are_named_where_policies_are_run() {
    let directory = TempDir::new().unwrap();
    file(&directory, "p.yaml", denies("", "y"));
    file(&directory, "r.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: a}}");
    let rule = denies("", "y");
    let named = |after: &str| {
        let start = rule.find(after).unwrap() + after.len();
        let name = rule[start..].trim_start().split([',', '}', '\n']).next().unwrap();
        name.to_owned()
    };
    let (policy, rule) = (named("metadata: {name:"), named("- name:"));
    let exception = |policy: &str, rule: &str| {
        format!(
            "{{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {{name: e, namespace: a}}, spec: {{match: {{any: \
             [{{resources: {{kinds: [Pod]}}}}]}}, exceptions: [{{policyName: {policy}, ruleNames: ['{rule}']}}]}}}}"
        )
    };
    file(
        &directory,
        "kyverno-test.yaml",
        "{apiVersion: cli.kyverno.io/v1alpha1, kind: Test, metadata: {name: t}, policies: [p.yaml], resources: [r.yaml], \
         exceptions: [e.yaml], results: []}",
    );
    for commands in [
        &["apply", "p.yaml", "-r", "r.yaml", "--exception", "e.yaml"][..],
        &["test", ".", "--allow-empty"],
        &["explain", "p.yaml", "r.yaml", "--exception", "e.yaml"],
    ] {
        file(&directory, "e.yaml", exception(&policy, &format!("{rule}{rule}{rule}")));
        let told = ephor(directory.path(), commands, b"").output;
        assert!(told.contains(&format!("policy `{policy}` has no rule `{rule}{rule}{rule}`")), "{commands:?}: {told}");
    }
    let told =
        ephor(directory.path(), &["apply", "p.yaml", "-r", "r.yaml", "-s", "request.operatoin=CREATE"], b"").output;
    assert!(told.contains("did you mean `request.operation`?"), "{told}");
    let limits =
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: limits}, spec: {rules: [{name: memory,
        match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, deny: {}}}]}}";
    file(&directory, "limits.yaml", limits);
    for (values, near) in [("{name: limits, rules: [{name: memry}]}", "memory"), ("{name: limit}", "limits")] {
        let values = format!("{{apiVersion: cli.kyverno.io/v1alpha1, kind: Values, policies: [{values}]}}");
        file(&directory, "v.yaml", values);
        for commands in [
            &["apply", "limits.yaml", "-r", "r.yaml", "-f", "v.yaml"][..],
            &["explain", "limits.yaml", "r.yaml", "--values", "v.yaml"],
        ] {
            let told = ephor(directory.path(), commands, b"").output;
            assert!(told.contains(&format!("did you mean `{near}`?")), "{commands:?}: {told}");
        }
    }
}

#[test]
fn pipes_in_a_directory_of_a_stranger_are_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("f.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let within = directory.path().display().to_string();
    for words in [&["check", within.as_str()][..], &["apply", &within, "-r", &within], &["test", &within]] {
        let run = ephor(directory.path(), words, b"");
        assert!(run.code != Some(0), "{words:?}: {}", run.output);
        assert!(run.output.contains("not a regular file") || words[0] == "test", "{words:?}: {}", run.output);
    }
    let state = ephor(directory.path(), &["sandbox", "--state", "/dev/zero"], b"");
    assert!(state.code != Some(0) && state.output.contains("not a regular file"), "{}", state.output);
}

/// With a look at the document for each finding, the second one takes minutes.
#[test]
fn many_findings_in_one_document_are_told_at_once() {
    let directory = TempDir::new().unwrap();
    let variables = vec!["{name: a, expression: '1'}"; 4_000];
    for (separator, quoted) in [(",\n", true), (",", false)] {
        let text = format!(
            "{{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {{name: p}}, spec: {{matchConstraints: \
             {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]}}, \
             validations: [{{expression: 'true'}}], variables: [{}]}}}}\n",
            variables.join(separator)
        );
        std::fs::write(directory.path().join("policy.yaml"), text).unwrap();
        let run = ephor(directory.path(), &["check", "policy.yaml"], b"");
        assert_eq!(run.code, Some(1));
        assert!(run.output.contains("spec.variables[3999].name"));
        assert_eq!(run.output.contains("| {name: a"), quoted);
        assert!(run.output.len() < 2 << 20, "{} bytes", run.output.len());
    }
}
