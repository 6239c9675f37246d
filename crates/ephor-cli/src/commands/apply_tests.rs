//! `ephor apply` as a library call: arguments in, text and exit code out.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use clap::Parser;
use ephor_cluster::{Cluster as _, MemoryCluster, WriteOptions};
use ephor_expr::Value;
use tempfile::TempDir;

use super::apply::{Args, ran};
use crate::exit::Exit;
use crate::host::ReadOnly;
use crate::output::diagnostics;
use crate::ui::Ui;

const REQUIRE_TEAM: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: require-team
  annotations:
    policies.kyverno.io/category: Ownership
    policies.kyverno.io/severity: medium
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  rules:
  - name: team-label
    match: {any: [{resources: {kinds: [Pod, Namespace]}}]}
    validate:
      message: every object has a team
      pattern: {metadata: {labels: {team: '?*'}}}
";

const OWNER: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owner, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
  - name: owner-is-known
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: nobody owns this
      deny:
        conditions:
          all:
          - key: '{{ request.object.metadata.annotations.owner }}'
            operator: Equals
            value: nobody
";

const ADD_LABEL: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: add-label, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
  - name: add
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate:
      patchStrategicMerge: {metadata: {labels: {+(team): core}}}
";

const GENERATE: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: make-quota}
spec:
  rules:
  - name: quota
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      apiVersion: v1
      kind: ResourceQuota
      name: quota
      namespace: '{{ request.object.metadata.name }}'
      data: {spec: {hard: {pods: '5'}}}
";

const PODS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: good, namespace: a, labels: {team: core}, annotations: {owner: ann}}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bad, annotations: {}}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
";

/// A command line around [`Args`].
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// A directory with files.
pub(super) struct Desk {
    directory: TempDir,
}

impl Desk {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { directory }
    }

    /// Runs `ephor apply` with these words, in which `@` is the directory; gives findings and output.
    pub(super) fn apply(&self, words: &str) -> (String, Exit) {
        self.apply_to(words, &MemoryCluster::default())
    }

    /// The same; this is the cluster of `--cluster`.
    pub(super) fn apply_to(&self, words: &str, cluster: &MemoryCluster) -> (String, Exit) {
        let here = self.directory.path().display().to_string();
        let words = words.split_whitespace().map(|word| word.replace('@', &here));
        let line = match Line::try_parse_from(std::iter::once("apply".to_owned()).chain(words)) {
            Ok(line) => line,
            Err(error) => return (error.render().to_string(), Exit::CouldNot),
        };
        match ran(&line.args, &Ui::new(true, true), |_| Ok(Arc::new(ReadOnly::new(Arc::new(cluster.clone()))))) {
            Ok(ran) => {
                let findings = ran.results.findings.iter();
                let findings: String = findings.map(|f| diagnostics::concise(f) + "\n").collect();
                let seconds = ran.results.plan.now.as_second().to_string();
                let nanos = ran.results.plan.now.subsec_nanosecond().to_string();
                let text = (findings + &ran.text).replace(&format!("{here}/"), "");
                (text.replace(&seconds, "NOW").replace(&format!("nanos: {nanos}"), "nanos: N"), ran.exit)
            }
            Err(error) => (format!("error: {error:#}\n").replace(&format!("{here}/"), ""), Exit::CouldNot),
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap()
    }
}

fn validating() -> Desk {
    Desk::new(&[("p/team.yaml", REQUIRE_TEAM), ("p/owner.yaml", OWNER), ("pods.yaml", PODS)])
}

#[test]
fn failures_and_errors_are_shown_with_their_places() {
    let (text, exit) = validating().apply("@/p -r @/pods.yaml");
    insta::assert_snapshot!(text);
    assert_eq!(exit, Exit::Findings);
}

#[test]
fn every_format_shows_the_results() {
    let desk = validating();
    for format in ["json", "yaml", "markdown", "junit", "sarif", "github"] {
        let (text, exit) = desk.apply(&format!("@/p -r @/pods.yaml --output-format {format}"));
        insta::assert_snapshot!(format, text);
        assert_eq!(exit, Exit::Findings);
    }
}

#[test]
fn a_table_lists_all_results() {
    let desk = validating();
    insta::assert_snapshot!(desk.apply("@/p -r @/pods.yaml -t").0);
    insta::assert_snapshot!("detailed", desk.apply("@/p/team.yaml -r @/pods.yaml --detailed-results").0);
}

#[test]
fn reports_are_openreports() {
    let desk = validating();
    insta::assert_snapshot!(desk.apply("@/p/team.yaml -r @/pods.yaml -p").0);
    let (json, _) = desk.apply("@/p/team.yaml -r @/pods.yaml -p --output-format json");
    assert!(json.starts_with("{\n  \"apiVersion\": \"openreports.io/v1alpha1\""), "{json}");
}

#[test]
fn namespaced_policies_have_reports_of_their_own() {
    let namespaced = REQUIRE_TEAM
        .replace("kind: ClusterPolicy", "kind: Policy")
        .replace("name: require-team", "name: require-team\n  namespace: default")
        .replace("[Pod, Namespace]", "[Pod]");
    let desk = Desk::new(&[("p.yaml", &namespaced), ("owner.yaml", OWNER), ("pods.yaml", PODS)]);
    let (text, _) = desk.apply("@/p.yaml @/owner.yaml -r @/pods.yaml -p");
    assert!(text.contains("kind: ClusterReport\nmetadata:\n  name: merged\n"), "{text}");
    assert!(text.contains("---\napiVersion: openreports.io/v1alpha1\nkind: PolicyReport\n"), "{text}");
    assert!(text.contains("  policy: default/require-team\n"), "{text}");
}

#[test]
fn exceptions_are_made_for_failures() {
    insta::assert_snapshot!(validating().apply("@/p/team.yaml -r @/pods.yaml --generate-exceptions").0);
}

#[test]
fn audit_failures_can_be_warnings_with_a_code() {
    let desk = validating();
    let (text, exit) = desk.apply("@/p/team.yaml -r @/pods.yaml --audit-warn --warn-exit-code 3");
    assert_eq!(exit, Exit::Chosen(3));
    assert!(text.contains("policy require-team -> resource default/Pod/bad failed as audit warning:"), "{text}");
    assert!(text.ends_with("\npass: 1, fail: 0, warn: 2, error: 0, skip: 0 \nexit as warnExitCode is 3\n"), "{text}");
    assert_eq!(desk.apply("@/p/team.yaml -r @/pods.yaml --audit-warn").1, Exit::Clean);
}

#[test]
fn nothing_passed_can_have_a_code() {
    let desk = Desk::new(&[("p.yaml", OWNER), ("n.yaml", "{apiVersion: v1, kind: Node, metadata: {name: n}}")]);
    assert_eq!(desk.apply("@/p.yaml -r @/n.yaml").1, Exit::Clean);
    assert_eq!(desk.apply("@/p.yaml -r @/n.yaml --warn-no-pass --warn-exit-code 4").1, Exit::Chosen(4));
}

#[test]
fn mutated_and_generated_objects_are_printed() {
    let desk = Desk::new(&[("p/m.yaml", ADD_LABEL), ("p/g.yaml", GENERATE), ("pods.yaml", PODS)]);
    let (text, exit) = desk.apply("@/p -r @/pods.yaml");
    insta::assert_snapshot!(text);
    assert_eq!(exit, Exit::Clean);
}

#[test]
fn mutated_and_generated_objects_are_written() {
    let desk = Desk::new(&[("p/m.yaml", ADD_LABEL), ("p/g.yaml", GENERATE), ("pods.yaml", PODS)]);
    let (text, exit) = desk.apply("@/p -r @/pods.yaml -o @/out.yaml");
    assert_eq!(exit, Exit::Clean);
    assert!(!text.contains("kind:"), "{text}");
    insta::assert_snapshot!(desk.read("out.yaml"));
    desk.apply("@/p -r @/pods.yaml -o @/out");
    assert!(desk.read("out/bad-mutated.yaml").contains("team: core"));
    assert!(desk.read("out/make-quota-generated.yaml").contains("kind: ResourceQuota"));
    // A second run begins anew.
    let once = desk.read("out/bad-mutated.yaml");
    desk.apply("@/p -r @/pods.yaml -o @/out");
    assert_eq!(desk.read("out/bad-mutated.yaml"), once);
}

#[test]
fn names_of_resources_do_not_lead_out_of_the_directory() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: ../../up}, spec: {}}";
    let desk = Desk::new(&[("m.yaml", ADD_LABEL), ("pod.yaml", pod)]);
    desk.apply("@/m.yaml -r @/pod.yaml -o @/a/b/out");
    assert!(desk.read("a/b/out/_.._up-mutated.yaml").contains("team: core"));
}

#[test]
fn what_cannot_be_loaded_is_said_and_ends_in_two() {
    let broken = REQUIRE_TEAM.replace("validate:", "validat:");
    let desk = Desk::new(&[("p/team.yaml", REQUIRE_TEAM), ("p/broken.yaml", &broken), ("pods.yaml", PODS)]);
    let (text, exit) = desk.apply("@/p @/missing.yaml -r @/pods.yaml");
    insta::assert_snapshot!(text);
    assert_eq!(exit, Exit::CouldNot);
}

#[test]
fn missing_inputs_print_no_counts() {
    let desk = validating();
    for words in ["@/missing.yaml -r @/pods.yaml", "@/p -r @/missing.yaml"] {
        let (text, exit) = desk.apply(words);
        assert_eq!(exit, Exit::CouldNot, "{words}");
        assert!(text.contains("no such file") && !text.contains("pass:"), "{words}: {text}");
    }
}

#[test]
fn documents_that_are_no_resources_have_places() {
    let odd = format!("{PODS}---\n# no kind\napiVersion: v1\nmetadata: {{name: x}}\n---\n- 1\n---\na: b: c\n");
    let desk = Desk::new(&[("p.yaml", REQUIRE_TEAM), ("odd.yaml", &odd)]);
    let (text, exit) = desk.apply("@/p.yaml -r @/odd.yaml");
    insta::assert_snapshot!(text);
    assert_eq!(exit, Exit::CouldNot);
    let (text, exit) = desk.apply("@/p.yaml -r @/odd.yaml --continue-on-fail");
    assert_eq!(exit, Exit::Findings);
    assert!(text.contains("odd.yaml:20:1: warning[not-a-resource]"), "{text}");
}

#[test]
fn lists_are_judged_item_by_item() {
    let list = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}, \
                {apiVersion: v1, kind: Pod, metadata: {name: a}}]}";
    let desk = Desk::new(&[("p.yaml", REQUIRE_TEAM), ("list.yaml", list)]);
    assert!(desk.apply("@/p.yaml -r @/list.yaml").0.contains("pass: 0, fail: 2,"));
}

#[test]
fn exceptions_come_from_files_resources_or_policies() {
    let exception = "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: a}, spec: \
                     {exceptions: [{policyName: require-team, ruleNames: [team-label]}], \
                     match: {any: [{resources: {kinds: [Pod, Namespace]}}]}}}";
    let desk = Desk::new(&[
        ("p.yaml", REQUIRE_TEAM),
        ("e.yaml", exception),
        ("pods.yaml", PODS),
        ("mixed.yaml", &format!("{PODS}---\n{exception}\n")),
        ("both.yaml", &format!("{REQUIRE_TEAM}---\n{exception}\n")),
    ]);
    for words in [
        "@/p.yaml -r @/pods.yaml -e @/e.yaml",
        "@/p.yaml -r @/mixed.yaml --exceptions-with-resources",
        "@/both.yaml -r @/pods.yaml --exceptions-within-policies",
    ] {
        let (text, exit) = desk.apply(words);
        assert!(text.contains("with 1 exception(s)...") && text.contains("fail: 0,"), "{words}: {text}");
        assert!(text.contains("skip: 3 "), "{words}: {text}");
        assert_eq!(exit, Exit::Clean, "{words}");
    }
    let (text, exit) = desk.apply("@/both.yaml -r @/pods.yaml");
    assert!(text.starts_with("warning[exceptions-left-out]"), "{text}");
    assert_eq!(exit, Exit::Findings);
}

#[test]
fn values_and_set_stand_in_for_data() {
    let policy = OWNER.replace("request.object.metadata.annotations.owner", "owner");
    let policy = policy
        .replace("    validate:", "    context: [{name: owner, configMap: {name: c, namespace: d}}]\n    validate:");
    let policy = policy.replace("{{ owner }}", "{{ owner.data.who }}");
    let values = "{apiVersion: cli.kyverno.io/v1alpha1, kind: Values, policies: [{name: owner, rules: \
                  [{name: owner-is-known, values: {owner.data.who: nobody}}]}]}";
    let config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: d}, data: {who: ann}}";
    let desk = Desk::new(&[("p.yaml", &policy), ("v.yaml", values), ("pods.yaml", PODS), ("c.yaml", config)]);
    let counts = |words: &str| desk.apply(words).0.lines().last().unwrap_or_default().to_owned();
    assert_eq!(counts("@/p.yaml -r @/pods.yaml"), "pass: 0, fail: 0, warn: 0, error: 2, skip: 0 ");
    assert_eq!(counts("@/p.yaml -r @/pods.yaml -f @/v.yaml"), "pass: 0, fail: 2, warn: 0, error: 0, skip: 0 ");
    assert_eq!(
        counts("@/p.yaml -r @/pods.yaml -s owner.data.who=ann"),
        "pass: 2, fail: 0, warn: 0, error: 0, skip: 0 "
    );
    assert_eq!(counts("@/p.yaml -r @/pods.yaml,@/c.yaml"), "pass: 2, fail: 0, warn: 0, error: 0, skip: 0 ");
    assert_eq!(desk.apply("@/p.yaml -r @/pods.yaml -s owner").1, Exit::CouldNot);
}

#[test]
fn values_for_a_rule_that_is_not_there_are_told() {
    let values = "{apiVersion: cli.kyverno.io/v1alpha1, kind: Values, policies: [{name: owner, rules: \
                  [{name: owner-is-knwon, values: {a: b}}]}, {name: elsewhere, rules: [{name: r}]}, {name: ownr, rules: [{name: r}]}]}";
    let desk = Desk::new(&[("p.yaml", OWNER), ("v.yaml", values), ("pods.yaml", PODS)]);
    let (text, _) = desk.apply("@/p.yaml -r @/pods.yaml -f @/v.yaml");
    assert!(text.contains("warning[unknown-rule]") && text.contains("did you mean `owner-is-known`?"), "{text}");
    assert!(text.contains("warning[unknown-policy]") && text.contains("did you mean `owner`?"), "{text}");
    assert!(!text.contains("`elsewhere`"), "{text}");
}

#[test]
fn calls_of_the_api_are_answered_from_the_resources() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: budget}
spec:
  background: false
  rules:
  - name: has-budget
    match: {any: [{resources: {kinds: [Deployment]}}]}
    context:
    - name: apps
      apiCall: {urlPath: '/apis/policy/v1/namespaces/{{ request.namespace }}/poddisruptionbudgets', jmesPath: 'items[].spec.app'}
    - name: maps
      globalReference: {name: maps, jmesPath: '[].metadata.name'}
    validate:
      message: '{{ apps }} {{ maps }}'
      deny: {conditions: {any: [{key: '{{ request.object.metadata.name }}', operator: AnyNotIn, value: '{{ apps }}'}]}}
";
    let objects = "
{apiVersion: apps/v1, kind: Deployment, metadata: {name: one}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: two}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}, spec: {app: one}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}
---
{apiVersion: kyverno.io/v2, kind: GlobalContextEntry, metadata: {name: maps}, spec: {kubernetesResource: {version: v1, resource: configmaps, namespace: default}}}
";
    let desk = Desk::new(&[("p.yaml", policy), ("o.yaml", objects)]);
    let (text, exit) = desk.apply("@/p.yaml -r @/o.yaml");
    assert_eq!(exit, Exit::Findings);
    assert!(text.contains("1 - has-budget [\"one\"] [\"m\"]\n"), "{text}");
    assert!(text.ends_with("pass: 1, fail: 1, warn: 0, error: 0, skip: 0 \n"), "{text}");
}

#[test]
fn no_default_stands_in_for_what_is_not_at_hand() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: quota}
spec:
  background: false
  rules:
  - name: free
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: [{name: held, apiCall: {urlPath: /apis/PATH, default: none}}]
    validate: {message: m, deny: {conditions: {any: [{key: '{{ held }}', operator: NotEquals, value: none}]}}}
";
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}";
    for path in ["apps/v1/namespaces/default/deployments/x", "example.com/v1/widgets"] {
        let policy = policy.replace("PATH", path);
        let (text, exit) = Desk::new(&[("p.yaml", &policy), ("m.yaml", map)]).apply("@/p.yaml -r @/m.yaml");
        assert!(text.contains("failed to load context entry held: "), "{text}");
        assert!(text.contains("(among the objects given)"), "{text}");
        assert!(text.ends_with("error: 1, skip: 0 \n"), "{text}");
        assert_ne!(exit, Exit::Clean);
    }
}

#[test]
fn a_rule_that_fails_takes_the_patches_of_its_policy_back() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: stamp}
spec:
  rules:
  - name: label
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}
  - name: broken
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {a: '{{ request.object.data.none }}'}}}}
";
    let desk = Desk::new(&[
        ("p.yaml", policy),
        ("c.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}"),
    ]);
    let (text, exit) = desk.apply("@/p.yaml -r @/c.yaml --detailed-results");
    assert!(!text.contains("Mutation has been applied"), "{text}");
    assert!(text.contains("mutated ConfigMap/c in namespace default; not applied: rule `broken` failed"), "{text}");
    assert_eq!(exit, Exit::Findings);
}

#[test]
fn targets_are_patched() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: stamp}
spec:
  rules:
  - name: stamp
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate:
      mutateExistingOnPolicyUpdate: false
      targets: [{apiVersion: v1, kind: Secret, name: s, namespace: '{{ request.namespace }}'}]
      patchStrategicMerge: {metadata: {labels: {seen: 'yes'}}}
";
    let desk = Desk::new(&[
        ("p.yaml", policy),
        ("c.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"),
        ("s.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: s}}"),
    ]);
    let (text, exit) = desk.apply("@/p.yaml -r @/c.yaml --target-resource @/s.yaml");
    insta::assert_snapshot!(text);
    assert_eq!(exit, Exit::Clean);
}

#[test]
fn cleanup_policies_say_what_would_go() {
    let policy = "{apiVersion: kyverno.io/v2, kind: ClusterCleanupPolicy, metadata: {name: sweep}, spec: {schedule: '0 1 * * *', \
                  match: {any: [{resources: {kinds: [Pod]}}]}, \
                  conditions: {any: [{key: '{{ target.metadata.name }}', operator: Equals, value: bad}]}}}";
    let desk = Desk::new(&[("p.yaml", policy), ("pods.yaml", PODS)]);
    let (text, exit) = desk.apply("@/p.yaml -r @/pods.yaml");
    insta::assert_snapshot!(text);
    assert_eq!(exit, Exit::Findings);
}

#[test]
fn the_name_of_a_format_as_output_is_the_format() {
    let desk = validating();
    assert_eq!(desk.apply("@/p -r @/pods.yaml -o json"), desk.apply("@/p -r @/pods.yaml --output-format json"));
    let (text, _) = desk.apply("@/p -r @/pods.yaml -o @/json");
    assert!(!text.starts_with('{'), "a path is a path: {text}");
}

#[test]
fn wrong_arguments_are_refused_with_reasons() {
    let desk = validating();
    for (words, reason) in [
        ("@/p", "no resources: give some with `--resource`"),
        ("- -r -", "`-` stands for standard input, which can be read only once"),
        ("@/p -r @/pods.yaml -n shop", "--cluster"),
        ("@/p --cluster --target-resource @/pods.yaml", "the targets are those of the cluster"),
        ("-r @/pods.yaml", "required arguments were not provided"),
        ("@/p -r @/pods.yaml --json x", "`--json`: it serves policies of `policies.kyverno.io`"),
        ("@/p -r @/pods.yaml -p --output-format sarif", "reports are YAML or JSON"),
        ("@/p -r @/pods.yaml -t --output-format json", "a table is text"),
        ("@/p -r @/pods.yaml -t -o json", "a table is text"),
        ("@/p -r @/pods.yaml -o jsn", "did you mean `json`?"),
        ("@/p -r @/pods.yaml -o table", "for a table use `--table`"),
        ("@/p -r @/pods.yaml -f @/v.yaml -s a=b", "cannot be used with"),
        ("https://example.com/p.yaml -r @/pods.yaml", "is a network address"),
    ] {
        let (text, exit) = desk.apply(words);
        assert_eq!(exit, Exit::CouldNot, "{words}");
        assert!(text.contains(reason), "{words}: {text}");
    }
}

const TEAMS_OF_SERVICE: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: known-team, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
  - name: team-is-known
    match: {any: [{resources: {kinds: [Pod]}}]}
    context:
    - name: known
      apiCall: {method: GET, service: {url: 'http://127.0.0.1:PORT/teams'}}
    validate:
      message: nobody knows this team
      deny:
        conditions:
          all:
          - key: '{{ request.object.metadata.labels.team || ''none'' }}'
            operator: AnyNotIn
            value: '{{ known.teams }}'
";

#[test]
fn services_are_called_only_where_the_user_allows_it() {
    let server = ephor_testbed::JsonService::start();
    let policy = TEAMS_OF_SERVICE.replace("PORT", &server.port.to_string());
    let desk = Desk::new(&[("p.yaml", &policy), ("pods.yaml", PODS)]);
    let (text, exit) = desk.apply("@/p.yaml -r @/pods.yaml --allow-net 127.0.0.1");
    assert_eq!(exit, Exit::Findings, "{text}");
    assert!(text.contains("nobody knows this team") && text.contains("pass: 1, fail: 1"), "{text}");
    let (text, _) = desk.apply("@/p.yaml -r @/pods.yaml --allow-net example.com");
    assert!(text.contains("`--allow-net 127.0.0.1`") && text.contains("error: 2"), "{text}");
    let (text, exit) = desk.apply("@/p.yaml -r @/pods.yaml --allow-net http://127.0.0.1/");
    assert!(text.contains("without scheme and path"), "{text}");
    assert_eq!(exit, Exit::CouldNot);
}

const TELLTALE: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: telltale}
spec:
  rules:
  - name: label
    match: {any: [{resources: {kinds: [Secret]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {seen: 'yes'}}}}
  - name: copy
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context:
    - name: all
      apiCall: {urlPath: /api/v1/namespaces/default/secrets, jmesPath: 'items[].data.k'}
    - name: global
      globalReference: {name: secrets, jmesPath: '[].data.k'}
    mutate: {patchStrategicMerge: {data: {stolen: '{{ all[0] }}', decoded: '{{ base64_decode(global[0]) }}'}}}
  - name: quote
    match: {any: [{resources: {kinds: [Secret]}}]}
    validate:
      message: 'it is {{ request.object.data.k }}, {{ base64_decode(request.object.data.k) }}'
      deny: {}
";

const SECRET: &str = "
{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {k: aHVudGVyMg==}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
---
{apiVersion: kyverno.io/v2, kind: GlobalContextEntry, metadata: {name: secrets}, spec: {kubernetesResource: {version: v1, resource: secrets, namespace: default}}}
";

#[test]
fn no_output_shows_values_of_secrets() {
    let desk = Desk::new(&[("p.yaml", TELLTALE), ("s.yaml", SECRET)]);
    let told = |text: &str| text.contains("aHVudGVyMg") || text.contains("hunter2");
    for format in ["text", "json", "yaml", "markdown", "junit", "sarif", "github"] {
        let (text, exit) = desk.apply(&format!("@/p.yaml -r @/s.yaml --output-format {format}"));
        assert_eq!(exit, Exit::Findings, "{format}: {text}");
        assert!(!told(&text) && text.contains("redacted"), "{format}: {text}");
    }
    for words in ["-p", "--detailed-results", "--generate-exceptions"] {
        let (text, _) = desk.apply(&format!("@/p.yaml -r @/s.yaml {words}"));
        assert!(!told(&text), "{words}: {text}");
    }
    let (text, _) = desk.apply("@/p.yaml -r @/s.yaml");
    assert!(text.contains("stolen: <redacted>") && text.contains("    k: <redacted>"), "{text}");
}

#[test]
fn files_hold_secrets_whole() {
    let desk = Desk::new(&[("p.yaml", TELLTALE), ("s.yaml", SECRET)]);
    desk.apply("@/p.yaml -r @/s.yaml -o @/out.yaml");
    let written = desk.read("out.yaml");
    assert!(written.contains("k: aHVudGVyMg==") && written.contains("decoded: hunter2"), "{written}");
}

#[test]
fn random_texts_differ_from_object_to_object_in_all_parts_of_a_run() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: tag}
spec:
  rules:
  - name: tag
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {tag: \"{{ random('[a-z]{16}') }}\"}}}}
";
    let cluster = MemoryCluster::default();
    let maps = cluster.resolve("v1", "ConfigMap").unwrap();
    for number in 0..60 {
        let object = format!(r#"{{"metadata":{{"name":"c{number}","namespace":"default"}}}}"#);
        cluster.create(&maps, Value::from_json(&object).unwrap(), &WriteOptions::default()).unwrap();
    }
    let (text, _) = Desk::new(&[("p.yaml", policy)]).apply_to("@/p.yaml --cluster", &cluster);
    let tags: BTreeSet<&str> = text.lines().filter(|line| line.contains(" tag: ")).collect();
    assert_eq!(tags.len(), 60, "{text}");
}

#[test]
fn names_and_messages_of_strangers_steer_no_output() {
    let hostile = r"x\e[31m\u202E\n::error::fake\n| <b>\x9b";
    let policy = REQUIRE_TEAM.replace(
        "every object has a team",
        &format!("\"no team in {hostile}: {{{{ request.object.metadata.name }}}}\""),
    );
    let pod = format!("{{apiVersion: v1, kind: Pod, metadata: {{name: \"{hostile}\"}}}}");
    let broken = "apiVersion: v1\nkind: \"P\u{202e}\u{9b}d\"\nmetadata: [1]\n";
    let desk = Desk::new(&[("p.yaml", &policy), ("pod.yaml", &pod), ("broken.yaml", broken), ("m.yaml", ADD_LABEL)]);
    for words in [
        "",
        "-t",
        "--detailed-results",
        "-p",
        "-p --output-format json",
        "--generate-exceptions",
        "--output-format json",
        "--output-format yaml",
        "--output-format markdown",
        "--output-format junit",
        "--output-format sarif",
        "--output-format github",
    ] {
        let (text, exit) = desk.apply(&format!("@/p.yaml @/m.yaml -r @/pod.yaml,@/broken.yaml {words}"));
        assert_eq!(exit, Exit::CouldNot, "{words}: {text}");
        let unseen = |c: char| c != '\n' && ephor_expr::scalar::unseen::is_unseen(c);
        assert!(!text.contains(unseen), "{words}: {text:?}");
        let fake = |line: &str| line.trim_start().starts_with("::error::fake");
        assert!(!text.lines().any(fake), "{words}: {text}");
    }
    let (text, _) = desk.apply("@/p.yaml -r @/pod.yaml --output-format markdown");
    assert!(text.contains("\\| &lt;b&gt;") && text.lines().count() == 9, "{text}");
}

#[test]
fn a_line_break_in_a_name_begins_no_line_of_the_output() {
    let forged = "pass: 99, fail: 0, warn: 0, error: 0, skip: 0";
    let pod = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: \"a\\n{forged}\\n\", namespace: \"b\\n{forged}\\n\"}}}}"
    );
    let desk = Desk::new(&[("p.yaml", REQUIRE_TEAM), ("pod.yaml", &pod), ("m.yaml", ADD_LABEL)]);
    for words in ["@/m.yaml", "@/m.yaml -t", "--detailed-results", "--output-format markdown", "--output-format github"]
    {
        let (text, _) = desk.apply(&format!("@/p.yaml -r @/pod.yaml {words}"));
        assert!(text.contains("99, fail"), "{words}: {text}");
        assert!(!text.lines().any(|line| line.starts_with(forged)), "{words}: {text}");
    }
}

#[test]
fn objects_are_not_written_through_links() {
    use std::os::unix::fs::symlink;
    let desk =
        Desk::new(&[("m.yaml", ADD_LABEL), ("pods.yaml", PODS), ("precious", "kept"), ("out/a", ""), ("real/a", "")]);
    let at = |name: &str| desk.directory.path().join(name);
    symlink(at("precious"), at("out.yaml")).unwrap();
    symlink(at("precious"), at("out/bad-mutated.yaml")).unwrap();
    symlink(at("real"), at("dir")).unwrap();
    for place in ["out.yaml", "out", "dir"] {
        let (text, exit) = desk.apply(&format!("@/m.yaml -r @/pods.yaml -o @/{place}"));
        assert_eq!(exit, Exit::CouldNot, "{place}: {text}");
        assert!(text.contains("is a symbolic link"), "{place}: {text}");
    }
    assert_eq!(desk.read("precious"), "kept");
    assert_eq!(fs::read_dir(at("out")).unwrap().count(), 2);
    // A slash says that the directory behind the link is meant.
    assert_eq!(desk.apply("@/m.yaml -r @/pods.yaml -o @/dir/").1, Exit::Clean);
    assert!(desk.read("real/bad-mutated.yaml").contains("team: core"));
}

#[test]
fn values_for_members_that_no_request_has_are_told() {
    let values = "{apiVersion: cli.kyverno.io/v1alpha1, kind: Values, globalValues: {request.operaton: UPDATE}}";
    let desk = Desk::new(&[("p.yaml", OWNER), ("v.yaml", values), ("pods.yaml", PODS)]);
    for words in ["-f @/v.yaml", "-s request.operaton=UPDATE"] {
        let (text, _) = desk.apply(&format!("@/p.yaml -r @/pods.yaml {words}"));
        assert!(text.contains("warning[undefined-variable]"), "{words}: {text}");
        assert!(text.contains("did you mean `request.operation`?"), "{words}: {text}");
    }
}
