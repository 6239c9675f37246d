//! Kubernetes' own admission policies: the sandbox and a real API server say the same of the same objects.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use ephor_cluster::{Cluster, WriteOptions};
use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_value, parse_values};
use ephor_kube::{Access, ConnectOptions, KubeCluster};
use ephor_testbed::{ControlPlane, Controllers, Options};

use crate::process::Sandbox;

/// How long policies may take until a server follows them.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A policy and its binding: `spec` of both, and the objects to create under it. Only objects that have the name of the
/// case as a label `case` are meant.
struct Case {
    name: &'static str,
    kind: &'static str,
    spec: &'static str,
    binding: &'static str,
    objects: &'static [&'static str],
}

const VALIDATING: &str = "ValidatingAdmissionPolicy";
const MUTATING: &str = "MutatingAdmissionPolicy";
const DENY: &str = "validationActions: [Deny]";

const CONFIG_MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: o}, data: {a: x, b: w}}";
const EMPTY: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: o}}";
const DEPLOYMENT: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: o, annotations: {k: v}}, spec: \
                          {replicas: 2, selector: {matchLabels: {app: o}}, template: {metadata: {labels: {app: o}}, \
                          spec: {containers: [{name: web, image: w, args: [x]}, {name: log, image: l}]}}}}";
const SERVICE_ACCOUNT: &str =
    "{apiVersion: v1, kind: ServiceAccount, metadata: {name: o}, imagePullSecrets: [{name: s}]}";

const CASES: &[Case] = &[
    Case {
        name: "message",
        kind: VALIDATING,
        spec: "validations: [{expression: object.data.a == 'z', message: a is not z}, {expression: \"'b' in object.data\"}]",
        binding: DENY,
        objects: &[CONFIG_MAP, EMPTY],
    },
    Case {
        name: "reason",
        kind: VALIDATING,
        spec: "validations: [{expression: 'size(object.data) < 2', messageExpression: \"'it has ' + \
               string(size(object.data))\", reason: RequestEntityTooLarge}]",
        binding: DENY,
        objects: &[CONFIG_MAP, EMPTY],
    },
    Case {
        name: "variables",
        kind: VALIDATING,
        spec: "variables: [{name: all, expression: 'object.spec.template.spec.containers'}, {name: images, expression: \
               'variables.all.map(c, c.image)'}]\nvalidations: [{expression: \"variables.images.exists(i, i == 'z')\", \
               messageExpression: \"'images: ' + variables.images.join(', ')\"}]",
        binding: DENY,
        objects: &[DEPLOYMENT],
    },
    Case {
        name: "conditions",
        kind: VALIDATING,
        spec: "matchConditions: [{name: named, expression: 'object.metadata.name != \"o\"'}]\nvalidations: [{expression: \
               'false'}]",
        binding: DENY,
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "condition-fails",
        kind: VALIDATING,
        spec: "matchConditions: [{name: named, expression: 'object.data.missing == \"o\"'}]\nvalidations: [{expression: \
               'true'}]",
        binding: DENY,
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "parameters",
        kind: VALIDATING,
        spec: "paramKind: {apiVersion: v1, kind: ConfigMap}\nvalidations: [{expression: 'object.data.a == params.data.a'}]",
        binding: "validationActions: [Deny]\nparamRef: {name: nothing, namespace: default, parameterNotFoundAction: Deny}",
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "ignored",
        kind: VALIDATING,
        spec: "failurePolicy: Ignore\nvalidations: [{expression: 'object.nope == 1'}]",
        binding: DENY,
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "merge",
        kind: MUTATING,
        spec: "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{spec: \
               Object.spec{replicas: 5, template: Object.spec.template{spec: Object.spec.template.spec{containers: \
               [Object.spec.template.spec.containers{name: 'log', image: 'new'}, \
               Object.spec.template.spec.containers{name: 'more', image: 'm'}]}}}}\"}}]",
        binding: "",
        objects: &[DEPLOYMENT],
    },
    Case {
        name: "merge-map",
        kind: MUTATING,
        spec: "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{metadata: \
               Object.metadata{annotations: {'new': object.metadata.name}}, data: {'c': 'z', 'a': 'changed'}}\"}}]",
        binding: "",
        objects: &[CONFIG_MAP, EMPTY],
    },
    Case {
        name: "merge-atomic",
        kind: MUTATING,
        spec: "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{spec: \
               Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{nodeSelector: {'a': 'b'}, \
               containers: [Object.spec.template.spec.containers{name: 'web', args: ['z']}]}}}}\"}}]",
        binding: "",
        objects: &[DEPLOYMENT],
    },
    Case {
        name: "merge-undeclared",
        kind: MUTATING,
        spec: "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{spec: \
               Object.spec{colour: 'red'}}\"}}]",
        binding: "",
        objects: &[DEPLOYMENT],
    },
    Case {
        name: "merge-misnamed",
        kind: MUTATING,
        spec: "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{spec: \
               Object.metadata{replicas: 1}}\"}}]",
        binding: "",
        objects: &[DEPLOYMENT],
    },
    Case {
        name: "merge-secrets",
        kind: MUTATING,
        spec: "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{imagePullSecrets: \
               [Object.imagePullSecrets{name: 'mine'}]}\"}}]",
        binding: "",
        objects: &[SERVICE_ACCOUNT],
    },
    Case {
        name: "merge-order",
        kind: MUTATING,
        spec: "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{imagePullSecrets: \
               ['c', 'n', 'a'].map(name, Object.imagePullSecrets{name: name})}\"}}]",
        binding: "",
        objects: &[
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: o}, imagePullSecrets: [{name: a}, {name: b}, {name: c}, {name: d}]}",
        ],
    },
    Case {
        name: "merge-unsigned",
        kind: MUTATING,
        spec: "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{spec: \
               Object.spec{replicas: 3u}}\"}}]",
        binding: "",
        objects: &[DEPLOYMENT],
    },
    Case {
        name: "patch-unsigned",
        kind: MUTATING,
        spec: "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'replace', path: '/spec/replicas', \
               value: 3u}]\"}}]",
        binding: "",
        objects: &[DEPLOYMENT],
    },
    // What no double holds is text, so that it can stand in a ConfigMap.
    Case {
        name: "patch-large",
        kind: MUTATING,
        spec: "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'add', path: '/data/i', value: \
               9007199254740993}, JSONPatch{op: 'add', path: '/data/u', value: 18446744073709551615u}, JSONPatch{op: 'add', \
               path: '/data/d', value: duration('1500ms')}, JSONPatch{op: 'add', path: '/data/t', value: \
               timestamp('2024-01-02T03:04:05Z')}, JSONPatch{op: 'add', path: '/data/b', value: b'abc'}]\"}}]",
        binding: "",
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "patch",
        kind: MUTATING,
        spec: "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'add', path: '/data/c', value: \
               'z'}, JSONPatch{op: 'remove', path: '/data/a'}, JSONPatch{op: 'replace', path: '/metadata/labels/' + \
               jsonpatch.escapeKey('case'), value: 'done'}]\"}}]",
        binding: "",
        objects: &[CONFIG_MAP, EMPTY],
    },
    Case {
        name: "patch-remove",
        kind: MUTATING,
        spec: "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'remove', path: '/data/a'}]\"}}]",
        binding: "",
        objects: &[CONFIG_MAP, EMPTY, "{apiVersion: v1, kind: ConfigMap, metadata: {name: o}, data: {b: w}}"],
    },
    Case {
        name: "patch-items",
        kind: MUTATING,
        spec: "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'remove', path: \
               '/spec/template/spec/containers/7'}]\"}}]",
        binding: "",
        objects: &[DEPLOYMENT],
    },
    Case {
        name: "patch-replace",
        kind: MUTATING,
        spec: "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'replace', path: '/data/z', value: \
               '1'}]\"}}, {patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'move', from: '/data/z', path: \
               '/data/y'}]\"}}]",
        binding: "",
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "patch-test",
        kind: MUTATING,
        spec: "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'test', path: '/data/a', value: \
               'other'}, JSONPatch{op: 'remove', path: '/data/b'}]\"}}, {patchType: JSONPatch, jsonPatch: {expression: \
               \"[JSONPatch{op: 'add', path: '/data/d', value: 'second'}]\"}}]",
        binding: "",
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "patch-object",
        kind: MUTATING,
        spec: "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'add', path: \
               '/spec/template/spec/containers/-', value: Object.spec.template.spec.containers{name: 'more', image: 'm'}}, \
               JSONPatch{op: 'add', path: '/spec/template/spec/nodeSelector', value: {'a': 'b'}}]\"}}]",
        binding: "",
        objects: &[DEPLOYMENT],
    },
    Case {
        name: "mutate-parameters",
        kind: MUTATING,
        spec: "paramKind: {apiVersion: v1, kind: ConfigMap}\nmutations: [{patchType: ApplyConfiguration, \
               applyConfiguration: {expression: \"Object{data: {'a': params.data.a}}\"}}]",
        binding: "paramRef: {name: nothing, namespace: default, parameterNotFoundAction: Deny}",
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "mutate-condition",
        kind: MUTATING,
        spec: "matchConditions: [{name: plenty, expression: 'size(object.data) > 1'}]\nmutations: [{patchType: \
               ApplyConfiguration, applyConfiguration: {expression: \"Object{data: {'n': string(size(object.data))}}\"}}]",
        binding: "",
        objects: &[CONFIG_MAP, EMPTY],
    },
    Case {
        name: "mutate-ignored",
        kind: MUTATING,
        spec: "failurePolicy: Ignore\nmutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \
               \"Object{data: {'n': object.data.missing}}\"}}, {patchType: ApplyConfiguration, applyConfiguration: \
               {expression: \"Object{data: {'m': 'there'}}\"}}]",
        binding: "",
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "mutate-fails",
        kind: MUTATING,
        spec: "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{data: {'n': \
               object.data.missing}}\"}}]",
        binding: "",
        objects: &[CONFIG_MAP],
    },
    Case {
        name: "invoked-again",
        kind: MUTATING,
        spec: "reinvocationPolicy: IfNeeded\nmutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \
               \"Object{data: {'seen': string(size(object.data))}}\"}}]",
        binding: "",
        objects: &[CONFIG_MAP],
    },
    // Runs after the one before, on the same objects.
    Case {
        name: "invoked-again-by",
        kind: MUTATING,
        spec: "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'add', path: '/data/later', \
               value: 'z'}]\"}}]",
        binding: "",
        objects: &[],
    },
];

/// The policy and the binding of a case.
fn documents(case: &Case) -> Vec<Value> {
    let version = if case.kind == VALIDATING { "v1" } else { "v1beta1" };
    let label = case.name.trim_end_matches("-by");
    let reinvocation = if case.kind == MUTATING && !case.spec.contains("reinvocationPolicy") {
        "reinvocationPolicy: Never\n"
    } else {
        ""
    };
    let text = format!(
        "apiVersion: admissionregistration.k8s.io/{version}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n\
         {reinvocation}matchConstraints: {{objectSelector: {{matchLabels: {{case: {label}}}}}, resourceRules: [{{apiGroups: \
         ['*'], apiVersions: ['*'], operations: [CREATE], resources: [configmaps, serviceaccounts, deployments]}}]}}\n\
         {spec}\n---\napiVersion: admissionregistration.k8s.io/{version}\nkind: {kind}Binding\nmetadata: {{name: {name}}}\n\
         spec:\npolicyName: {name}\n{binding}\n",
        kind = case.kind,
        name = case.name,
        spec = case.spec,
        binding = case.binding,
    );
    // The members of `spec` stand one level too far left.
    let indented: Vec<String> = text
        .lines()
        .map(|line| {
            let top =
                ["apiVersion: adm", "kind: ", "metadata: ", "spec:", "---"].iter().any(|start| line.starts_with(start));
            if top { line.to_owned() } else { format!("  {line}") }
        })
        .collect();
    parse_values(&indented.join("\n"), &Limits::default()).expect(case.name)
}

fn connect(kubeconfig: &Path) -> KubeCluster {
    let access = Access::Kubeconfig { path: kubeconfig.to_owned(), context: None };
    KubeCluster::connect(&ConnectOptions { access, ..ConnectOptions::default() }).expect("a server")
}

/// What the client gets of the created object, or the refusal.
fn create(cluster: &KubeCluster, object: &Value, dry_run: bool) -> Result<String, String> {
    let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
    let resource = cluster.resolve(text("apiVersion"), text("kind")).map_err(|error| error.to_string())?;
    let mut object = object.clone();
    if resource.namespaced
        && let Some(metadata) = object.as_object_mut().and_then(|map| map.get_mut("metadata"))
    {
        metadata.as_object_mut().expect("metadata").insert("namespace", "default");
    }
    let created = cluster.create(&resource, object, &WriteOptions { dry_run, ..WriteOptions::default() });
    let created = created.map_err(|error| format!("{} {}: {error}", error.code(), error.reason()))?;
    let at = |path: &[&str]| created.at(path).map(Value::to_json).unwrap_or_default();
    let paths: [&[&str]; 5] =
        [&["metadata", "labels"], &["metadata", "annotations"], &["data"], &["spec"], &["imagePullSecrets"]];
    Ok(paths.map(at).join(" "))
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn admission_policies_judge_and_change_as_a_real_server_does() {
    let flags =
        ["--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"];
    let api_server_flags = flags.map(str::to_owned).to_vec();
    let plane =
        ControlPlane::start(&Options { controllers: Controllers::Absent, api_server_flags, ..Options::default() })
            .expect("a control plane");
    let sandbox = Sandbox::start(&[]);
    let (real, ours) = (connect(&plane.kubeconfig()), connect(&sandbox.kubeconfig()));
    let mut differences = Vec::new();
    for document in CASES.iter().flat_map(documents) {
        for server in [&real, &ours] {
            create(server, &document, false).expect("policies and bindings are stored");
        }
    }
    let until = Instant::now() + TIMEOUT;
    for case in CASES {
        for object in case.objects {
            let mut object = parse_value(object).expect("an object");
            let metadata = object.as_object_mut().and_then(|map| map.get_mut("metadata")).expect("metadata");
            metadata.as_object_mut().expect("a map").insert("labels", Value::from([("case", Value::from(case.name))]));
            let found = create(&ours, &object, true);
            let mut wanted = create(&real, &object, true);
            // A real server follows policies some time after they are stored.
            while wanted != found && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(100));
                wanted = create(&real, &object, true);
            }
            if wanted != found {
                differences.push(format!("{} {}\nreal: {wanted:?}\nours: {found:?}", case.name, object.to_json()));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The expressions of conditions that were found in policies, each with the object that it was found beside.
fn mined() -> Vec<(String, Value)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/cel");
    let read = |name: &str| std::fs::read_to_string(data.join(name)).expect("the vectors are there");
    let bindings = Value::from_json(&read("bindings.json")).expect("JSON");
    let mut found = BTreeMap::new();
    for line in read("vectors.jsonl").lines() {
        let vector = Value::from_json(line).expect("JSON");
        let text = |path: &[&str]| vector.str_at(path).unwrap_or_default().to_owned();
        let has_more = ["variables", "decls"].iter().any(|key| vector.at(&["bindings", key]).is_some());
        if text(&["env"]) != "k8s" || !text(&["group"]).starts_with("mined/") || has_more {
            continue;
        }
        // Accounts of the sandbox may do everything.
        if text(&["expr"]).contains("authorizer") {
            continue;
        }
        let object = bindings.at(&["bound", "k8s", &text(&["bindings", "use"]), "object"]);
        if let Some(object) = object.filter(|object| object.as_object().is_some())
            && text(&["compile", "type"]) == "bool"
        {
            found.entry(text(&["expr"])).or_insert_with(|| object.clone());
        }
    }
    found.into_iter().collect()
}

/// What the policies say of an object: a denial, or that it passes; `None` if the server refuses the object for another
/// reason, which comes before the policies or has tests of its own.
fn verdict(cluster: &KubeCluster, object: &Value) -> Option<Result<(), String>> {
    match create(cluster, object, true) {
        Ok(_) => Some(Ok(())),
        Err(said) if said.contains(VALIDATING) => Some(Err(said)),
        Err(_) => None,
    }
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn expressions_of_real_policies_judge_as_on_a_real_server() {
    let plane = ControlPlane::start(&Options { controllers: Controllers::Absent, ..Options::default() })
        .expect("a control plane");
    let sandbox = Sandbox::start(&[]);
    let (real, ours) = (connect(&plane.kubeconfig()), connect(&sandbox.kubeconfig()));
    // Without it a real server admits no Pod; the sandbox has it.
    let account = parse_value("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}").expect("an object");
    create(&real, &account, false).expect("the account is stored");
    let mut objects = Vec::new();
    for (index, (expression, mut object)) in mined().into_iter().enumerate() {
        let name = format!("e{index}");
        let policy = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: {VALIDATING}\nmetadata: {{name: {name}}}\nspec:\n  \
             matchConstraints: {{objectSelector: {{matchLabels: {{case: {name}}}}}, resourceRules: [{{apiGroups: ['*'], \
             apiVersions: ['*'], operations: [CREATE], resources: ['*']}}]}}\n  validations: [{{expression: {}}}]\n---\n\
             apiVersion: admissionregistration.k8s.io/v1\nkind: {VALIDATING}Binding\nmetadata: {{name: {name}}}\nspec: \
             {{policyName: {name}, validationActions: [Deny]}}\n",
            Value::from(expression.as_str()).to_json()
        );
        for document in parse_values(&policy, &Limits::default()).expect("a policy") {
            // Ephor refuses a policy in words of its own.
            let stored = [&real, &ours].map(|server| create(server, &document, false).is_ok());
            assert_eq!(stored[0], stored[1], "{expression}");
        }
        let metadata = object.as_object_mut().and_then(|map| map.get_mut("metadata")).expect("metadata");
        metadata.as_object_mut().expect("a map").insert("labels", Value::from([("case", Value::from(name))]));
        objects.push(object);
    }
    let until = Instant::now() + TIMEOUT;
    let mut denials = 0;
    let mut differences = Vec::new();
    for object in &objects {
        let found = verdict(&ours, object);
        let mut wanted = verdict(&real, object);
        while wanted.is_some() && wanted != found && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
            wanted = verdict(&real, object);
        }
        denials += usize::from(matches!(wanted, Some(Err(_))));
        if wanted.is_some() && wanted != found {
            differences.push(format!("{}\nreal: {wanted:?}\nours: {found:?}", object.to_json()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(denials > 10, "{denials} of {} are denied", objects.len());
}
