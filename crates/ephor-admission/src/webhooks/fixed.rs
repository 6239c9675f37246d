//! The configurations that do not depend on policies: for policies themselves and what belongs to them.

use ephor_engine::policy::FailurePolicy;
use ephor_expr::{Map, Value};

use super::names::{Names, paths};
use super::plan::{Configuration, ConfigurationKind, Inputs, Ownership, configuration};
use super::render::{Webhook, outside_of, rule};

const WRITES: &[&str] = &["CREATE", "UPDATE"];

/// The policies of `policies.kyverno.io`, also those that are refused by name.
const CEL_POLICIES: [&str; 10] = [
    "deletingpolicies",
    "generatingpolicies",
    "imagevalidatingpolicies",
    "mutatingpolicies",
    "namespaceddeletingpolicies",
    "namespacedgeneratingpolicies",
    "namespacedimagevalidatingpolicies",
    "namespacedmutatingpolicies",
    "namespacedvalidatingpolicies",
    "validatingpolicies",
];

/// What differs among them.
struct Fixed {
    kind: ConfigurationKind,
    what: &'static str,
    webhook: String,
    path: &'static str,
    failure: FailurePolicy,
    side_effects: &'static str,
    rules: Vec<Value>,
    selectors: Selectors,
}

/// Which objects.
enum Selectors {
    /// All.
    None,
    /// The engine's own, by label.
    Labelled(&'static str, &'static str),
    /// Those with a label, outside of the engine's namespace.
    WithLabel(&'static str),
}

/// All of them, in the order in which they are written.
pub(super) fn configurations(inputs: &Inputs<'_>) -> Vec<Configuration> {
    let settings = inputs.settings;
    let names = Names::of(settings.serving);
    let policies = |resources: &[&str]| rule("kyverno.io", &["v1", "v2beta1"], resources, WRITES, "*");
    let of_cel = |resources: &[&str]| rule("policies.kyverno.io", &["*"], resources, WRITES, "*");
    let service = |name: &str| format!("{name}.{}.svc", settings.namespace);
    let versions = &["v2alpha1", "v2beta1", "v2"];
    let fixed = [
        Fixed {
            kind: ConfigurationKind::Validating,
            what: "policy-validating",
            webhook: names.webhook("validate-policy", ""),
            path: paths::POLICY_VALIDATE,
            failure: FailurePolicy::Fail,
            side_effects: "None",
            rules: vec![policies(&["clusterpolicies", "policies"]), of_cel(&CEL_POLICIES)],
            selectors: Selectors::None,
        },
        Fixed {
            kind: ConfigurationKind::Mutating,
            what: "policy-mutating",
            webhook: names.webhook("mutate-policy", ""),
            path: paths::POLICY_MUTATE,
            failure: FailurePolicy::Fail,
            side_effects: "NoneOnDryRun",
            rules: vec![policies(&["clusterpolicies", "policies"])],
            selectors: Selectors::None,
        },
        Fixed {
            kind: ConfigurationKind::Mutating,
            what: "verify-mutating",
            webhook: names.webhook("monitor-webhooks", ""),
            path: paths::VERIFY_MUTATE,
            failure: FailurePolicy::Ignore,
            side_effects: "NoneOnDryRun",
            rules: vec![rule("coordination.k8s.io", &["v1"], &["leases"], &["UPDATE"], "Namespaced")],
            selectors: Selectors::Labelled("app.kubernetes.io/name", "kyverno"),
        },
        Fixed {
            kind: ConfigurationKind::Validating,
            what: "exception-validating",
            webhook: service(&settings.service),
            path: paths::EXCEPTION_VALIDATE,
            failure: FailurePolicy::Fail,
            side_effects: "None",
            rules: vec![
                rule("kyverno.io", versions, &["policyexceptions"], WRITES, "Namespaced"),
                of_cel(&["policyexceptions"]),
            ],
            selectors: Selectors::None,
        },
        Fixed {
            kind: ConfigurationKind::Validating,
            what: "global-context-validating",
            webhook: service(&settings.service),
            path: paths::GLOBAL_CONTEXT_VALIDATE,
            failure: FailurePolicy::Fail,
            side_effects: "None",
            rules: vec![rule("kyverno.io", versions, &["globalcontextentries"], WRITES, "*")],
            selectors: Selectors::None,
        },
        Fixed {
            kind: ConfigurationKind::Validating,
            what: "cleanup-validating",
            webhook: service(&settings.cleanup_service),
            path: paths::CLEANUP_VALIDATE,
            failure: FailurePolicy::Fail,
            side_effects: "None",
            rules: vec![rule("kyverno.io", versions, &["cleanuppolicies", "clustercleanuppolicies"], WRITES, "*")],
            selectors: Selectors::None,
        },
        Fixed {
            kind: ConfigurationKind::Validating,
            what: "ttl-validating",
            webhook: service(&settings.cleanup_service),
            path: paths::VERIFY_TTL,
            failure: FailurePolicy::Ignore,
            side_effects: "None",
            rules: vec![rule("*", &["*"], &["*"], WRITES, "*")],
            selectors: Selectors::WithLabel("cleanup.kyverno.io/ttl"),
        },
    ];
    fixed.into_iter().map(|fixed| render(fixed, inputs, names)).collect()
}

fn render(fixed: Fixed, inputs: &Inputs<'_>, names: Names) -> Configuration {
    let nothing = || Value::object(Map::new());
    let (namespace_selector, object_selector) = match fixed.selectors {
        Selectors::None => (nothing(), nothing()),
        Selectors::Labelled(key, value) => {
            (nothing(), Value::from([("matchLabels", Value::from([(key, value.into())]))]))
        }
        Selectors::WithLabel(key) => {
            let exists = Value::from([("key", Value::from(key)), ("operator", Value::from("Exists"))]);
            let object = Value::from([("matchExpressions", Value::array(vec![exists]))]);
            (outside_of(&inputs.settings.namespace, None), object)
        }
    };
    let mutating = fixed.kind == ConfigurationKind::Mutating;
    let webhook = Webhook {
        name: fixed.webhook,
        path: fixed.path.to_owned(),
        failure: fixed.failure,
        timeout: inputs.settings.timeout,
        side_effects: fixed.side_effects,
        reinvocation: mutating.then_some("IfNeeded"),
        namespace_selector,
        object_selector,
        match_conditions: &[],
        exact: false,
        rules: Value::array(fixed.rules),
    };
    let webhooks = vec![(None, webhook.render(inputs.settings, inputs.ca_bundle))];
    configuration(inputs, names, fixed.kind, fixed.what, Ownership::Own, webhooks)
}
