use std::sync::Arc;

use ephor_cluster::{Cluster, DeleteOptions, Discovery, ListQuery, MemoryCluster, WriteOptions};
use ephor_engine::exceptions::{Exception, ExceptionSet};
use ephor_engine::policy::{Policy, PolicyException, ProgramKind};
use ephor_expr::value::decode;
use ephor_expr::yaml::{parse_value, to_yaml};
use ephor_expr::{Map, Value};
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::config::{Config, ConfigStore};
use ephor_runtime::lease::Term;
use ephor_runtime::policies::{ExceptionScope, PolicyStore, StoredKind, StoredPolicy};
use ephor_runtime::watcher::StoreEvent;

use super::controller::PutError;
use super::{
    AdmissionPolicyController, AdmissionPolicySources, GeneratedKinds, Objects, Skip, Surroundings, translate,
    translate_cel,
};
use crate::generated::{Generated, GeneratedBoard};
use crate::webhooks::{RegisteredFrom, WebhookSettings};

const RULE: &str = "name: r, match: {any: [{resources: {kinds: [Deployment]}}]}";
const CEL: &str = "cel: {generate: true, expressions: [{expression: 'object.spec.replicas > 1'}]}";

fn policy(spec: &str, rule: &str, validate: &str) -> Value {
    let text = format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p, uid: u, resourceVersion: '1'}}, spec: \
         {{{spec} rules: [{{{rule}, validate: {{{validate}}}}}]}}}}"
    );
    parse_value(&text).unwrap()
}

fn exception(matches: &str, more: &str) -> PolicyException {
    let text = format!(
        "{{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {{name: e, namespace: team}}, spec: {{match: \
         {{any: [{{resources: {matches}}}]}}, exceptions: [{{policyName: p, ruleNames: [r]}}]{more}}}}}"
    );
    decode(&parse_value(&text).unwrap()).unwrap()
}

fn translated(document: &Value, exceptions: &[PolicyException]) -> Result<super::Objects, Skip> {
    translated_in(&Config::of_data(&Map::new(), &Config::default_for("kyverno")).0, document, exceptions)
}

fn translated_in(config: &Config, document: &Value, exceptions: &[PolicyException]) -> Result<super::Objects, Skip> {
    let policy: Policy = decode(document).unwrap();
    let namespaces = parse_value("{matchExpressions: [{key: k, operator: NotIn, values: [own]}]}").unwrap();
    let exceptions: Vec<&PolicyException> = exceptions.iter().collect();
    let around = Surroundings {
        exceptions: &exceptions,
        discovery: &Discovery::kubernetes(),
        namespaces: &namespaces,
        config,
        ignore_failures: false,
    };
    translate(&policy, "u", &around)
}

fn constraints(rule: &str, exceptions: &[PolicyException]) -> String {
    match translated(&policy("", rule, CEL), exceptions) {
        Ok(objects) => objects.policy.at(&["spec", "matchConstraints"]).unwrap().to_json(),
        Err(skip) => skip.to_string(),
    }
}

#[test]
fn a_policy_becomes_two_objects() {
    let validate = "failureAction: Enforce, message: m, cel: {generate: true, expressions: [{expression: a}, \
                    {expression: b, message: own}], variables: [{name: v, expression: c}]}";
    let rule = "name: r, celPreconditions: [{name: pre, expression: d}], match: {any: [{resources: {kinds: [Pod, \
                apps/v1/Deployment], operations: [CREATE, UPDATE], namespaces: [team]}}]}";
    let objects = translated(&policy("failurePolicy: Ignore,", rule, validate), &[]).unwrap();
    insta::assert_snapshot!(format!("{}---\n{}", to_yaml(&objects.policy), to_yaml(&objects.binding)));
}

#[test]
fn excludes_and_exceptions_become_exclude_rules() {
    let names = exception("{kinds: [Deployment], names: [tool], operations: [CREATE]}", "");
    assert_eq!(
        constraints(RULE, &[names]),
        r#"{"excludeResourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resourceNames":["tool"],"resources":["deployments"]}],"resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE","UPDATE","CONNECT","DELETE"],"resources":["deployments"]}]}"#
    );
    // A rule about a Namespace excludes that object and nothing in it: a condition does the rest.
    let namespaces = exception("{namespaces: [a, b], operations: [CREATE]}", "");
    let objects = translated(&policy("", RULE, CEL), &[namespaces]).unwrap();
    let conditions = objects.policy.at(&["spec", "matchConditions"]).and_then(Value::as_array).unwrap();
    assert_eq!(conditions.len(), 1);
    let expression = "!(request.operation in ['CREATE'] && request.namespace in ['a', 'b'])";
    assert_eq!(conditions[0].str_at(&["expression"]), Some(expression));
}

#[test]
fn what_the_objects_cannot_say_exactly_is_refused() {
    let matched = |filter: &str| format!("name: r, match: {{any: [{filter}]}}");
    let deployment = "resources: {kinds: [Deployment]";
    let many: Vec<String> = (0..65).map(|n| format!("{{name: c{n}, expression: b}}")).collect();
    for (rule, why) in [
        (matched("{resources: {kinds: [Nothing]}}"), "kinds is served"),
        (matched(&format!("{{{deployment}, names: ['a*']}}}}")), "wildcards"),
        (matched(&format!("{{{deployment}, namespaces: ['a?']}}}}")), "wildcards"),
        (matched(&format!("{{{deployment}, namespaces: [\"a'] || true || ['\"]}}}}")), "wildcards"),
        (matched(&format!("{{{deployment}, annotations: {{a: b}}}}}}")), "annotations"),
        (matched(&format!("{{{deployment}, selector: {{matchLabels: {{a: 'b*'}}}}}}}}")), "wildcards"),
        (matched(&format!("{{{deployment}}}, roles: [a:b]}}")), "roles"),
        (matched(&format!("{{{deployment}}}, subjects: [{{kind: User, name: u}}]}}")), "subjects"),
        (matched("{resources: {kinds: [ClusterRole], namespaces: [a]}}"), "cluster-wide"),
        (matched(&format!("{{{deployment}, namespaces: [a]}}}}, {{resources: {{kinds: [Pod]}}}}")), "multiple match"),
        (format!("{RULE}, exclude: {{any: [{{{deployment}, namespaces: [a]}}}}]}}"), "in exclude"),
        (format!("{RULE}, exclude: {{any: [{{{deployment}, selector: {{matchLabels: {{a: b}}}}}}}}]}}"), "in exclude"),
        (format!("{RULE}, exclude: {{any: [{{resources: {{names: [a]}}}}]}}"), "without kinds"),
        ("name: r, match: {all: [{resources: {kinds: [Pod]}}, {resources: {names: [a]}}]}".to_owned(), "'all'"),
        (format!("{RULE}, preconditions: {{all: []}}"), "preconditions"),
        (format!("{RULE}, celPreconditions: [{{name: a, expression: b}}, {{name: a, expression: c}}]"), "same name"),
        (format!("{RULE}, celPreconditions: [{}]", many.join(",")), "more than 64"),
    ] {
        let said = constraints(&rule, &[]);
        assert!(said.contains("skip generating") && said.contains(why), "{rule}: {said}");
    }
    let conditions = exception("{kinds: [Deployment]}", ", conditions: {any: [{key: a, operator: Equals, value: a}]}");
    assert!(constraints(RULE, &[conditions]).contains("conditions"));
    let overrides = "validationFailureActionOverrides: [{action: audit, namespaces: [a]}],";
    assert!(translated(&policy(overrides, RULE, CEL), &[]).unwrap_err().to_string().contains("Overrides"));
    let not_asked = CEL.replace("generate: true", "generate: false");
    assert!(translated(&policy("", RULE, &not_asked), &[]).is_err());
}

#[test]
fn what_the_configuration_exempts_is_exempt_from_the_objects_too() {
    let config = Config::default_for("kyverno");
    let rule = |kinds: &str| format!("name: r, match: {{any: [{{resources: {{kinds: [{kinds}]}}}}]}}");
    let of = |kinds: &str| translated_in(&config, &policy("", &rule(kinds), CEL), &[]);
    let objects = of("Node, ConfigMap").unwrap();
    let bound = objects.binding.at(&["spec", "matchResources"]).unwrap().to_json();
    assert!(bound.contains(r#""operations":["*"],"resources":["nodes"]"#) && !bound.contains("configmaps"), "{bound}");
    for namespace in ["kube-system", "kube-public", "kube-node-lease", "kyverno"] {
        assert!(bound.contains(namespace), "{namespace}: {bound}");
    }
    let conditions = objects.policy.at(&["spec", "matchConditions"]).and_then(Value::as_array).unwrap();
    let expression = "!has(request.userInfo.groups) || !request.userInfo.groups.exists(g, g in ['system:nodes'])";
    assert_eq!(conditions[0].str_at(&["expression"]), Some(expression));
    // Some objects of a kind by name, and Namespaces by the filters of their content, cannot be told apart.
    for kind in ["ClusterRole", "Namespace"] {
        let skip = of(kind).unwrap_err().to_string();
        assert!(skip.contains("resourceFilters"), "{kind}: {skip}");
    }
    let data = ephor_expr::yaml::parse_value("{excludeClusterRoles: cluster-admin}").unwrap();
    let (by_roles, _) = Config::of_data(data.as_object().unwrap(), &config);
    let skip = translated_in(&by_roles, &policy("", RULE, CEL), &[]).unwrap_err().to_string();
    assert!(skip.contains("roles"), "{skip}");
}

struct World {
    cluster: Arc<dyn Cluster>,
    policies: PolicyStore,
    board: GeneratedBoard,
    settings: WebhookSettings,
}

impl World {
    fn new() -> Self {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        Self {
            cluster,
            policies: PolicyStore::new(ExceptionScope::Disabled),
            board: GeneratedBoard::default(),
            settings: WebhookSettings::default(),
        }
    }

    fn reconcile(&self, enabled: bool) -> Result<bool, PutError> {
        let sources = AdmissionPolicySources {
            cluster: Arc::clone(&self.cluster),
            policies: self.policies.clone(),
            config: ConfigStore::new("kyverno", "kyverno"),
        };
        let kinds = GeneratedKinds { validating: enabled, mutating: enabled };
        let controller = AdmissionPolicyController::new(sources, self.settings.clone(), kinds, self.board.clone());
        controller.reconcile(&Term::unlimited(&CancellationToken::new()))
    }

    fn look(&self, enabled: bool) {
        self.reconcile(enabled).unwrap();
    }

    fn set(&self, document: Value) {
        self.policies.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(document));
    }

    fn stored(&self, kind: &str) -> Vec<Value> {
        let resource = self.cluster.resolve("admissionregistration.k8s.io/v1", kind).unwrap();
        self.cluster.list(&resource, &ListQuery::all()).unwrap().items
    }

    fn names(&self) -> Vec<String> {
        let kinds = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
        let objects = kinds.iter().flat_map(|kind| self.stored(kind));
        objects.map(|object| object.str_at(&["metadata", "name"]).unwrap().to_owned()).collect()
    }
}

#[test]
fn objects_follow_their_policy() {
    let world = World::new();
    world.set(policy("", RULE, CEL));
    world.look(true);
    assert_eq!(world.names(), ["cpol-p", "cpol-p-binding"]);
    assert_eq!(world.board.get().values().collect::<Vec<_>>(), [&Generated::Stored]);
    // Nothing is written again, and what somebody changes is put right.
    let stored = world.stored("ValidatingAdmissionPolicy");
    world.look(true);
    assert_eq!(world.stored("ValidatingAdmissionPolicy"), stored);
    let resource =
        world.cluster.resolve("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding").unwrap();
    let mut binding = world.stored("ValidatingAdmissionPolicyBinding").remove(0);
    let spec = binding.as_object_mut().unwrap().get_mut("spec").and_then(Value::as_object_mut).unwrap();
    spec.insert("validationActions", Value::from(vec!["Audit"]));
    world.cluster.update(&resource, binding, &WriteOptions::default()).unwrap();
    world.look(true);
    let actions = world.stored("ValidatingAdmissionPolicyBinding")[0].at(&["spec", "validationActions"]).cloned();
    assert_eq!(actions, Some(Value::from(vec!["Audit", "Warn"])));
    world.cluster.delete(&resource, None, "cpol-p-binding", &DeleteOptions::default()).unwrap();
    world.look(true);
    assert_eq!(world.names().len(), 2);
    // The flag off, or the policy gone: so are the objects.
    world.look(false);
    assert_eq!(world.names(), [""; 0]);
    world.look(true);
    world.policies.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Delete(policy("", RULE, CEL)));
    world.look(true);
    assert_eq!(world.names(), [""; 0]);
}

#[test]
fn objects_of_others_stay_as_they_are() {
    let world = World::new();
    let foreign = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: \
                   cpol-p}, spec: {validations: [{expression: 'true'}], matchConstraints: {resourceRules: [{apiGroups: \
                   [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}}}";
    let resource = world.cluster.resolve("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy").unwrap();
    let stored = world.cluster.create(&resource, parse_value(foreign).unwrap(), &WriteOptions::default()).unwrap();
    world.set(policy("", RULE, CEL));
    let error = world.reconcile(true).unwrap_err();
    assert!(error.to_string().contains("is not Ephor's"), "{error}");
    assert_eq!(world.stored("ValidatingAdmissionPolicy"), std::slice::from_ref(&stored));
    world.policies.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Delete(policy("", RULE, CEL)));
    world.look(true);
    assert_eq!(world.stored("ValidatingAdmissionPolicy"), [stored]);
}

/// A `ValidatingPolicy` on these resources that asks for objects.
fn vpol(resources: &str, more: &str) -> Value {
    parse_value(&format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {{name: p, uid: u}}, spec: {{autogen: \
         {{podControllers: {{controllers: []}}, validatingAdmissionPolicy: {{enabled: true}}}}, matchConstraints: \
         {{resourceRules: [{{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: {resources}}}]}}, \
         validations: [{{expression: 'size(object.metadata.name) == 9', message: m}}]{more}}}}}"
    ))
    .unwrap()
}

fn polex(spec: &str) -> Exception {
    let text = format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: PolicyException, metadata: {{name: e, namespace: default}}, spec: \
         {{policyRefs: [{{name: p, kind: ValidatingPolicy}}, {{name: p, kind: MutatingPolicy}}], {spec}}}}}"
    );
    Exception::compile(&parse_value(&text).unwrap()).unwrap()
}

fn vpol_translated(policy: &Value, exceptions: Vec<Exception>) -> Result<Objects, String> {
    let stored = StoredPolicy::new(policy.clone());
    assert!(stored.program.is_some(), "{:?}", stored.findings);
    let asked = translate_cel::asking(&stored).ok_or("it asks for nothing")?;
    let made = asked.made();
    let config = Config::default_for("kyverno");
    let discovery = Discovery::kubernetes();
    let namespaces = Value::default();
    let around = Surroundings {
        exceptions: &[],
        discovery: &discovery,
        namespaces: &namespaces,
        config: &config,
        ignore_failures: false,
    };
    let exceptions = ExceptionSet::new(exceptions);
    translate_cel::translate(&asked, &stored, &exceptions, &around).map_err(|skip| skip.of(made).to_string())
}

#[test]
fn a_validating_policy_becomes_an_admission_policy() {
    let objects =
        vpol_translated(&vpol("[deployments]", ", failurePolicy: Ignore, validationActions: [Deny, Warn]"), vec![]);
    let objects = objects.unwrap();
    insta::assert_snapshot!(to_yaml(&objects.policy));
    insta::assert_snapshot!(to_yaml(objects.binding.get("spec").unwrap()));
    let nodes = vpol_translated(&vpol("['*']", ""), vec![]).unwrap();
    let conditions = nodes.policy.at(&["spec", "matchConditions"]).unwrap().to_json();
    assert!(conditions.contains("system:nodes"), "kubelets are exempt where they may write: {conditions}");
}

#[test]
fn exceptions_from_a_validating_policy_are_conditions_and_lists() {
    let condition = |name: &str, text: &str| format!("{{name: {name}, expression: \"{text}\"}}");
    let (one, two) = (condition("c", "object.a == 1"), condition("d", "object.b == 2"));
    let excepted = |exceptions: &[String]| {
        let exceptions = exceptions.iter().map(|spec| polex(spec)).collect();
        let policy = vpol("[deployments]", &format!(", matchConditions: [{}]", condition("own", "object.c == 3")));
        let objects = vpol_translated(&policy, exceptions)?;
        let spec = objects.policy.get("spec").unwrap();
        let shown = |key| spec.get(key).map_or_else(String::new, Value::to_json);
        Ok::<_, String>(format!("{}{}", shown("matchConditions"), shown("variables")).replace("\\u0026", "&"))
    };
    let own = r#"{"expression":"object.c == 3","name":"own"}"#;
    for (exceptions, want) in [
        (
            vec![format!("matchConditions: [{one}]")],
            format!(r#"[{{"expression":"!(object.a == 1)","name":"c"}},{own}]"#),
        ),
        // All conditions of an exception must hold.
        (
            vec![format!("matchConditions: [{one}, {two}]")],
            format!(r#"[{{"expression":"!((object.a == 1) && (object.b == 2))","name":"c"}},{own}]"#),
        ),
        (
            vec![format!("matchConditions: [{one}]"), format!("matchConditions: [{one}]")],
            format!(
                r#"[{{"expression":"!(object.a == 1)","name":"c"}},{{"expression":"!(object.a == 1)","name":"c-2"}},{own}]"#
            ),
        ),
        (
            vec!["images: [\"it's\"]".to_owned()],
            format!(r#"[{own}][{{"expression":"['it\\'s']","name":"allowedImages"}}]"#),
        ),
    ] {
        assert_eq!(excepted(&exceptions).unwrap(), want);
    }
    for (exception, why) in [
        (format!("images: [a], matchConditions: [{one}]"), "with conditions"),
        ("expiresAt: '2030-01-01T00:00:00Z'".to_owned(), "that end"),
    ] {
        assert!(excepted(&[exception]).unwrap_err().contains(why));
    }
    let reads = vpol("[deployments]", "")
        .to_json()
        .replace("size(object.metadata.name) == 9", "object.x in exceptions.allowedImages");
    let objects = vpol_translated(&Value::from_json(&reads).unwrap(), vec![]).unwrap();
    let spec = objects.policy.get("spec").unwrap().to_json();
    assert!(spec.contains(r#""expression":"object.x in variables.allowedImages""#), "{spec}");
    assert!(spec.contains(r#"{"expression":"[]","name":"allowedImages"}"#), "{spec}");
}

#[test]
fn what_an_admission_policy_cannot_say_is_not_generated() {
    let read = ", variables: [{name: v, expression: \"resource.List('v1', 'pods', 'n')\"}]";
    let on_pods = vpol("[pods]", "").to_json().replace(r#"{"controllers":[]}"#, "{}").replace(r#"["apps"]"#, r#"[""]"#);
    let on_pods = Value::from_json(&on_pods).unwrap();
    for (policy, why) in
        [(vpol("[deployments]", read), "the API server does not have"), (on_pods, "autogen is enabled")]
    {
        let skip = vpol_translated(&policy, vec![]).unwrap_err();
        assert!(skip.starts_with("skip generating ValidatingAdmissionPolicy: ") && skip.contains(why), "{skip}");
    }
    let not_asked = vpol("[deployments]", "").to_json().replace(r#""enabled":true"#, r#""enabled":false"#);
    assert!(vpol_translated(&Value::from_json(&not_asked).unwrap(), vec![]).is_err());
}

#[test]
fn objects_of_policies_of_one_name_stand_beside_each_other() {
    let world = World::new();
    world.set(policy("", RULE, CEL));
    world
        .policies
        .apply(StoredKind::Policy(ProgramKind::ValidatingPolicy), StoreEvent::Apply(vpol("[deployments]", "")));
    world.look(true);
    assert_eq!(world.names(), ["cpol-p", "vpol-p", "cpol-p-binding", "vpol-p-binding"]);
    world.policies.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Reset(Vec::new()));
    world.look(true);
    assert_eq!(world.names(), ["vpol-p", "vpol-p-binding"]);
    world.look(false);
    assert!(world.names().is_empty());
}

/// A `MutatingPolicy` on Deployments that asks for objects.
fn mpol(more: &str) -> Value {
    parse_value(&format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: MutatingPolicy, metadata: {{name: p, uid: u}}, spec: {{autogen: \
         {{podControllers: {{controllers: []}}, mutatingAdmissionPolicy: {{enabled: true}}}}, matchConstraints: \
         {{resourceRules: [{{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}}]}}, \
         mutations: [{{patchType: JSONPatch, jsonPatch: {{expression: '[JSONPatch{{op: \"add\", path: \"/metadata/labels\", \
         value: {{\"a\": \"b\"}}}}]'}}}}]{more}}}}}"
    ))
    .unwrap()
}

#[test]
fn a_mutating_policy_becomes_an_admission_policy() {
    let condition = polex("matchConditions: [{name: c, expression: \"object.a == 1\"}]");
    let objects = vpol_translated(&mpol(", failurePolicy: Ignore, reinvocationPolicy: IfNeeded"), vec![condition]);
    let objects = objects.unwrap();
    insta::assert_snapshot!(format!("{}---\n{}", to_yaml(&objects.policy), to_yaml(&objects.binding)));
    let read = mpol(", variables: [{name: v, expression: \"resource.List('v1', 'pods', 'n')\"}]");
    assert_eq!(
        vpol_translated(&read, vec![]).unwrap_err(),
        "skip generating MutatingAdmissionPolicy: it uses what the API server does not have."
    );
    let off = mpol("").to_json().replace(r#""enabled":true"#, r#""enabled":false"#);
    assert!(vpol_translated(&Value::from_json(&off).unwrap(), vec![]).is_err());
}

#[test]
fn a_mutating_policy_leaves_the_webhooks_only_while_its_objects_are_stored() {
    let mut world = World::new();
    let apply = |world: &World, document: Value| {
        world.policies.apply(StoredKind::Policy(ProgramKind::MutatingPolicy), StoreEvent::Apply(document));
    };
    apply(&world, mpol(""));
    let id = world.policies.snapshot().policies.keys().next().unwrap().clone();
    let version = translate_cel::mutating_version(&Discovery::kubernetes()).unwrap();
    let names = |world: &World| -> Vec<String> {
        let kinds = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"];
        let list = |kind| {
            let resource = world.cluster.resolve(version, kind).unwrap();
            world.cluster.list(&resource, &ListQuery::all()).unwrap().items
        };
        let objects = kinds.into_iter().flat_map(list);
        objects.map(|object| object.str_at(&["metadata", "name"]).unwrap().to_owned()).collect()
    };
    assert!(!world.board.takes_over(&id));
    world.look(true);
    assert_eq!(names(&world), ["mpol-p", "mpol-p-binding"]);
    assert!(world.board.takes_over(&id));
    // Another replica may lead in between, and delete them.
    world.board.forget();
    assert!(!world.board.takes_over(&id) && !world.board.is_known());
    world.look(true);
    assert!(world.board.takes_over(&id));
    world.look(false);
    assert!(names(&world).is_empty() && !world.board.takes_over(&id));
    // Webhooks for whatever policies may come would mutate again.
    world.settings.registered_from = RegisteredFrom::Static;
    world.look(true);
    assert!(names(&world).is_empty() && !world.board.takes_over(&id));
}
