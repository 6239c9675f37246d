//! A policy as a `ValidatingAdmissionPolicy` and its binding.
//!
//! In go the policy, the exceptions that hold, the kinds that are served and the namespaces that no webhook sees. Out
//! come two objects, or the reason why they could not say the same as the policy. What they would say only nearly, such
//! as a wildcard or a condition of an exception, is such a reason.

use std::collections::BTreeSet;

use ephor_cluster::{Discovery, Resource};
use ephor_engine::matching::{Gvk, UserExclusions};
use ephor_engine::policy::{
    CelValidation, FailureAction, FailurePolicy, LabelSelector, Match, Operation, Policy, PolicyException,
    ResourceFilter, ResourceSelection, Rule,
};
use ephor_expr::scalar::wildcard::{Wildcard, has_wildcard};
use ephor_expr::value::encode;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::config::Config;

use crate::webhooks::kinds::{Scope, Target, targets};

/// The label that marks the objects.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kyverno");
/// The group and version of the objects.
pub(super) const API_VERSION: &str = "admissionregistration.k8s.io/v1";
/// The operations of a match that names none, in upstream's order.
const ALL_OPERATIONS: [Operation; 4] = [Operation::Create, Operation::Update, Operation::Connect, Operation::Delete];
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Why there are no objects for a policy. The texts stand in the status of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("skip generating ValidatingAdmissionPolicy: {0}")]
pub struct Skip(pub(super) &'static str);

impl Skip {
    /// The text about objects of this kind.
    pub(super) fn of(self, kind: &str) -> Str {
        format!("skip generating {kind}: {}", self.0).into()
    }
}

/// Two objects that say what a policy says.
#[derive(Debug, Clone, PartialEq)]
pub struct Objects {
    /// The `ValidatingAdmissionPolicy` or `MutatingAdmissionPolicy`.
    pub policy: Value,
    /// Its binding.
    pub binding: Value,
}

/// What the objects depend on besides the policy.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The exceptions that hold.
    pub exceptions: &'a [&'a PolicyException],
    /// The kinds that are served.
    pub discovery: &'a Discovery,
    /// The selector of the namespaces that webhooks see.
    pub namespaces: &'a Value,
    /// What no policy sees.
    pub config: &'a Config,
    /// Whether expressions that fail let requests pass, whatever policies say.
    pub ignore_failures: bool,
}

/// The name of the admission policy for a policy.
pub(super) fn name(policy: &str) -> String {
    format!("cpol-{policy}")
}

/// Whether a policy asks for objects at all.
pub(super) fn is_asked(policy: &Policy) -> bool {
    let asks = |rule: &Rule| rule.validate.as_ref()?.cel.as_ref()?.generate;
    policy.spec.rules.iter().any(|rule| asks(rule) == Some(true))
}

/// Makes the objects for a `ClusterPolicy` with this UID.
///
/// # Errors
///
/// If they would not say what the policy says.
pub fn translate(policy: &Policy, uid: &str, around: &Surroundings<'_>) -> Result<Objects, Skip> {
    let [rule] = policy.spec.rules.as_slice() else { return Err(Skip("multiple rules are not applicable.")) };
    let validate = rule.validate.as_ref().ok_or(Skip("not a validate rule."))?;
    let cel = validate.cel.as_ref().ok_or(Skip("the rule is not a CEL rule."))?;
    if cel.generate != Some(true) {
        return Err(Skip("not enabled."));
    }
    let overrides = [&policy.spec.validation_failure_action_overrides, &validate.failure_action_overrides];
    if overrides.iter().any(|overrides| overrides.as_ref().is_some_and(|list| !list.is_empty())) {
        return Err(Skip("failureActionOverrides are not applicable."));
    }
    if rule.preconditions.is_some() || rule.context.as_ref().is_some_and(|entries| !entries.is_empty()) {
        return Err(Skip("preconditions and context entries are not applicable."));
    }
    let mut constraints = Constraints::default();
    constraints.matched(&rule.matches, around.discovery)?;
    if let Some(exclude) = &rule.exclude {
        constraints.excluded(exclude, around.discovery)?;
    }
    for exception in around.exceptions {
        constraints.excepted(exception, &policy.metadata.name, &rule.name, around.discovery)?;
    }
    let exempt = Exempt::of(&constraints.kinds, around)?;
    let mut conditions = exempt.conditions;
    for condition in rule.cel_preconditions.iter().flatten() {
        conditions.push(plain(condition)?);
    }
    let webhook = policy.spec.webhook_configuration.as_ref();
    conditions.extend(webhook.and_then(|webhook| webhook.match_conditions.clone()).into_iter().flatten());
    conditions.extend(constraints.conditions.iter().cloned());
    can_stand_together(&conditions)?;

    let asked = webhook.and_then(|webhook| webhook.failure_policy).or(policy.spec.failure_policy).unwrap_or_default();
    let failure = if around.ignore_failures { FailurePolicy::Ignore } else { asked };
    let mut spec = Map::new();
    spec.insert("failurePolicy", if failure == FailurePolicy::Fail { "Fail" } else { "Ignore" });
    if !conditions.is_empty() {
        spec.insert("matchConditions", Value::array(conditions));
    }
    spec.insert("matchConstraints", constraints.value()?);
    if let Some(kind) = &cel.param_kind {
        spec.insert("paramKind", plain(kind)?);
    }
    let validations = cel.expressions.iter().flatten().map(|validation| {
        let message = validation.message.clone().or_else(|| validate.message.clone());
        plain(&CelValidation { message, ..validation.clone() })
    });
    spec.insert("validations", Value::array(validations.collect::<Result<_, _>>()?));
    for (key, list) in [
        ("auditAnnotations", cel.audit_annotations.as_ref().map(plain).transpose()?),
        ("variables", cel.variables.as_ref().map(plain).transpose()?),
    ] {
        if let Some(list) = list {
            spec.insert(key, list);
        }
    }

    let name = name(&policy.metadata.name);
    let mut bound = Map::new();
    bound.insert("policyName", name.as_str());
    bound.insert("matchResources", exempt.bound);
    if let Some(param) = &cel.param_ref {
        bound.insert("paramRef", plain(param)?);
    }
    let action = validate.failure_action.or(policy.spec.validation_failure_action).unwrap_or_default();
    let actions: &[&str] = if action == FailureAction::Enforce { &["Deny"] } else { &["Audit", "Warn"] };
    bound.insert("validationActions", Value::from(actions.to_vec()));
    let object = |kind: &str, name: &str, spec: Map| {
        Value::from([
            ("apiVersion", Value::from(API_VERSION)),
            ("kind", kind.into()),
            ("metadata", metadata(name, &policy.metadata.name, uid)),
            ("spec", Value::object(spec)),
        ])
    };
    Ok(Objects {
        policy: object("ValidatingAdmissionPolicy", &name, spec),
        binding: object("ValidatingAdmissionPolicyBinding", &format!("{name}-binding"), bound),
    })
}

fn metadata(name: &str, policy: &str, uid: &str) -> Value {
    let owner = Value::from([
        ("apiVersion", Value::from("kyverno.io/v1")),
        ("kind", "ClusterPolicy".into()),
        ("name", policy.into()),
        ("uid", uid.into()),
    ]);
    Value::from([
        ("labels", Value::from([(MANAGED_BY.0, Value::from(MANAGED_BY.1))])),
        ("name", name.into()),
        ("ownerReferences", Value::array(vec![owner])),
    ])
}

/// The API server refuses two conditions of one name, and more than 64 conditions.
pub(super) fn can_stand_together(conditions: &[Value]) -> Result<(), Skip> {
    let names: BTreeSet<_> = conditions.iter().map(|condition| condition.str_at(&["name"])).collect();
    if names.len() < conditions.len() {
        return Err(Skip("two match conditions have the same name."));
    }
    if conditions.len() > 64 {
        return Err(Skip("more than 64 match conditions are not applicable."));
    }
    Ok(())
}

/// A part of a policy as the API server takes it.
fn plain(part: &impl serde::Serialize) -> Result<Value, Skip> {
    encode(part).map_err(|_| Skip("it cannot be written as JSON."))
}

/// What no policy sees: the objects and users that the configuration exempts. Webhooks ask Ephor, which lets them pass;
/// the API server has to be told.
pub(super) struct Exempt {
    /// `matchResources` of the binding.
    pub(super) bound: Value,
    /// Conditions about the user.
    pub(super) conditions: Vec<Value>,
}

impl Exempt {
    /// What is exempt among these kinds, each with its subresource and a rule about it alone.
    pub(super) fn of(kinds: &[(Gvk, Str, Value)], around: &Surroundings<'_>) -> Result<Self, Skip> {
        let (mut namespaces, mut resources) = (BTreeSet::new(), Vec::new());
        for (gvk, subresource, rule) in kinds {
            let hidden = around.config.resource_filters.of_kind(gvk, subresource);
            if hidden.all {
                resources.push(rule.clone());
                continue;
            }
            let named = exact(&hidden.namespaces).is_err();
            // The filters of a namespace hide the Namespace, too, which no selector of the binding can tell.
            if hidden.partly || named || (gvk.is_namespace() && !hidden.namespaces.is_empty()) {
                return Err(Skip("resourceFilters that hide some objects of a kind are not applicable."));
            }
            namespaces.extend(hidden.namespaces);
        }
        let mut selector = around.namespaces.as_object().cloned().unwrap_or_default();
        if !namespaces.is_empty() {
            let mut expressions =
                selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default().to_vec();
            expressions.push(Value::from([
                ("key", Value::from(NAMESPACE_NAME)),
                ("operator", "NotIn".into()),
                ("values", Value::array(namespaces.into_iter().map(Value::from).collect())),
            ]));
            selector.insert("matchExpressions", expressions);
        }
        let mut bound = Map::new();
        if !resources.is_empty() {
            bound.insert("excludeResourceRules", Value::array(resources));
        }
        bound.insert("namespaceSelector", Value::object(selector));
        if let Some(selector) = &around.config.webhooks.object_selector {
            bound.insert("objectSelector", selector.clone());
        }
        let mut conditions = users(&around.config.excluded_users, kinds)?;
        conditions.extend(around.config.match_conditions.iter().cloned());
        Ok(Self { bound: Value::object(bound), conditions })
    }
}

/// The group of kubelets, and what they may write: an authorizer of its own lets them write nothing else.
const NODES: &str = "system:nodes";
const WRITTEN_BY_NODES: [&str; 9] = [
    "CSINode",
    "CertificateSigningRequest",
    "Event",
    "Lease",
    "Node",
    "Pod",
    "ResourceClaim",
    "ResourceSlice",
    "ServiceAccount",
];

/// Conditions that exclude users as the configuration does.
fn users(excluded: &UserExclusions, kinds: &[(Gvk, Str, Value)]) -> Result<Vec<Value>, Skip> {
    const SKIP: Skip = Skip("exclusions of users by roles, wildcards or inclusions are not applicable.");
    let UserExclusions { groups, usernames, roles, cluster_roles } = excluded;
    let lists = [groups, usernames, roles, cluster_roles];
    if lists.iter().any(|list| !list.included().is_empty())
        || [roles, cluster_roles].iter().any(|list| !list.excluded().is_empty())
    {
        return Err(SKIP);
    }
    let quoted = |patterns: &[Wildcard]| -> Result<Option<String>, Skip> {
        let names: Vec<Str> = patterns.iter().map(|pattern| Str::new(pattern.as_str())).collect();
        exact(&names).map_err(|_| SKIP)?;
        let list = names.iter().map(Str::as_str).collect::<Vec<_>>().join("', '");
        Ok((!names.is_empty()).then(|| format!("['{list}']")))
    };
    let condition =
        |name: &str, expression: String| Value::from([("expression", Value::from(expression)), ("name", name.into())]);
    let mut conditions = Vec::new();
    let only_nodes = matches!(groups.excluded(), [group] if group.as_str() == NODES);
    let by_nodes = |(gvk, subresource, _): &(Gvk, Str, Value)| {
        let below = matches!(subresource.as_str(), "" | "*" | "eviction" | "status" | "token");
        below && (gvk.kind == "*" || WRITTEN_BY_NODES.contains(&gvk.kind.as_str()))
    };
    // A condition about users that never come says nothing.
    let is_needed = !only_nodes || kinds.iter().any(by_nodes);
    if let Some(list) = quoted(groups.excluded())?.filter(|_| is_needed) {
        let expression = format!("!has(request.userInfo.groups) || !request.userInfo.groups.exists(g, g in {list})");
        conditions.push(condition("ephor-exclude-groups", expression));
    }
    if let Some(list) = quoted(usernames.excluded())? {
        conditions.push(condition("ephor-exclude-usernames", format!("!(request.userInfo.username in {list})")));
    }
    Ok(conditions)
}

/// `matchConstraints` in the making.
#[derive(Default)]
struct Constraints {
    rules: Vec<NamedRule>,
    excludes: Vec<NamedRule>,
    namespaces: Option<Value>,
    labels: Option<Value>,
    conditions: Vec<Value>,
    /// The kinds that match, each as a rule of its own.
    kinds: Vec<(Gvk, Str, Value)>,
}

/// Resources of one group and version, with operations and names in the order of the policy.
#[derive(PartialEq)]
struct NamedRule {
    group: Str,
    version: Str,
    operations: Vec<Operation>,
    names: Vec<Str>,
    resources: BTreeSet<Str>,
}

impl Constraints {
    fn matched(&mut self, block: &Match, discovery: &Discovery) -> Result<(), Skip> {
        let selections = selections(block)?;
        let alone = selections.len() == 1;
        for selection in selections {
            let selects = selection.selector.is_some()
                || selection.namespace_selector.is_some()
                || !listed(selection.namespaces.as_ref()).is_empty();
            if selects && !alone {
                return Err(Skip("selectors and namespaces in multiple match entries are not applicable."));
            }
            let added = add(&mut self.rules, selection, discovery)?;
            self.kinds.extend(kinds(selection, discovery));
            if let Some(selector) = &selection.selector {
                self.labels = Some(label_selector(selector)?);
            }
            let namespaces = listed(selection.namespaces.as_ref());
            // The API server lets a selector of namespaces pass all objects outside of them, Ephor none.
            let selects_namespaces = selection.namespace_selector.is_some() || !namespaces.is_empty();
            if selects_namespaces && added != Scope::Namespaced {
                return Err(Skip("namespaces of cluster-wide kinds are not applicable."));
            }
            self.namespaces = match (&selection.namespace_selector, namespaces) {
                (None, []) => None,
                (Some(selector), []) => Some(label_selector(selector)?),
                (None, names) => Some(in_namespaces(names)?),
                (Some(_), _) => return Err(Skip("namespaces beside a namespaceSelector are not applicable.")),
            };
        }
        Ok(())
    }

    fn excluded(&mut self, block: &Match, discovery: &Discovery) -> Result<(), Skip> {
        for selection in selections(block)? {
            if selection.selector.is_some() || selection.namespace_selector.is_some() {
                return Err(Skip("selectors in exclude are not applicable."));
            }
            let namespaces = listed(selection.namespaces.as_ref());
            if namespaces.is_empty() {
                add(&mut self.excludes, selection, discovery)?;
                continue;
            }
            if !listed(selection.kinds.as_ref()).is_empty() || !names(selection)?.is_empty() {
                return Err(Skip("namespaces beside kinds or names in exclude are not applicable."));
            }
            exact(namespaces)?;
            let operations = operations(selection);
            // The Namespace objects, and what is in them.
            self.excludes.push(NamedRule {
                group: Str::default(),
                version: "v1".into(),
                operations: operations.clone(),
                names: namespaces.to_vec(),
                resources: ["namespaces".into()].into(),
            });
            let quoted = |words: Vec<&str>| format!("['{}']", words.join("', '"));
            let operations = quoted(operations.iter().map(|operation| operation.as_str()).collect());
            let namespaces = quoted(namespaces.iter().map(Str::as_str).collect());
            let expression = format!("!(request.operation in {operations} && request.namespace in {namespaces})");
            let number = self.conditions.len();
            self.conditions.push(Value::from([
                ("expression", Value::from(expression)),
                ("name", format!("ephor-exclude-namespaces-{number}").into()),
            ]));
        }
        Ok(())
    }

    fn excepted(
        &mut self,
        exception: &PolicyException,
        policy: &str,
        rule: &str,
        discovery: &Discovery,
    ) -> Result<(), Skip> {
        let spec = &exception.spec;
        let about = spec.exceptions.iter().filter(|rules| rules.policy_name == policy);
        let names: Vec<&Str> = about.flat_map(|rules| &rules.rule_names).collect();
        if names.is_empty() {
            return Ok(());
        }
        if names.iter().any(|name| has_wildcard(name)) {
            return Err(Skip("exceptions with wildcards are not applicable."));
        }
        if !names.contains(&&Str::new(rule)) {
            return Ok(());
        }
        if spec.conditions.is_some() || spec.pod_security.is_some() {
            return Err(Skip("exceptions with conditions are not applicable."));
        }
        self.excluded(&spec.matches, discovery)
    }

    fn value(self) -> Result<Value, Skip> {
        if self.rules.is_empty() {
            return Err(Skip("none of its kinds is served."));
        }
        let mut members = Map::new();
        let values = |rules: Vec<NamedRule>| Value::array(rules.iter().map(NamedRule::value).collect());
        if !self.excludes.is_empty() {
            members.insert("excludeResourceRules", values(self.excludes));
        }
        if let Some(selector) = self.namespaces {
            members.insert("namespaceSelector", selector);
        }
        if let Some(selector) = self.labels {
            members.insert("objectSelector", selector);
        }
        members.insert("resourceRules", values(self.rules));
        Ok(Value::object(members))
    }
}

impl NamedRule {
    fn value(&self) -> Value {
        let texts = |list: &[Str]| Value::array(list.iter().cloned().map(Value::from).collect());
        let operations: Vec<&str> = self.operations.iter().map(|operation| operation.as_str()).collect();
        let resources: Vec<Str> = self.resources.iter().cloned().collect();
        let mut members = Map::new();
        members.insert("apiGroups", texts(std::slice::from_ref(&self.group)));
        members.insert("apiVersions", texts(std::slice::from_ref(&self.version)));
        members.insert("operations", Value::from(operations));
        if !self.names.is_empty() {
            members.insert("resourceNames", texts(&self.names));
        }
        members.insert("resources", texts(&resources));
        Value::object(members)
    }
}

/// The filters of a block, one of which must hold.
fn selections(block: &Match) -> Result<Vec<&ResourceSelection>, Skip> {
    const USERS: Skip = Skip("roles, clusterRoles and subjects are not applicable.");
    let has_user = |lists: [&Option<Vec<Str>>; 2], subjects: bool| {
        subjects || lists.iter().any(|list| list.as_ref().is_some_and(|list| !list.is_empty()))
    };
    let subjects = block.subjects.as_ref().is_some_and(|list| !list.is_empty());
    if has_user([&block.roles, &block.cluster_roles], subjects) {
        return Err(USERS);
    }
    let filters: Vec<&ResourceFilter> = match (&block.any, &block.all) {
        (Some(any), None) => any.iter().collect(),
        (None, Some(all)) if all.len() == 1 => all.iter().collect(),
        (None, Some(_)) => return Err(Skip("multiple 'all' is not applicable.")),
        (None, None) => Vec::new(),
        (Some(_), Some(_)) => return Err(Skip("'any' beside 'all' is not applicable.")),
    };
    let mut found: Vec<&ResourceSelection> = block.resources.iter().collect();
    for filter in filters {
        let subjects = filter.subjects.as_ref().is_some_and(|list| !list.is_empty());
        if has_user([&filter.roles, &filter.cluster_roles], subjects) {
            return Err(USERS);
        }
        found.extend(&filter.resources);
    }
    if found.iter().any(|selection| selection.annotations.as_ref().is_some_and(|pairs| !pairs.is_empty())) {
        return Err(Skip("annotations are not applicable."));
    }
    Ok(found)
}

/// Adds the resources of a selection; whether all of them live in namespaces.
fn add(rules: &mut Vec<NamedRule>, selection: &ResourceSelection, discovery: &Discovery) -> Result<Scope, Skip> {
    let (operations, names) = (operations(selection), names(selection)?);
    let kinds = listed(selection.kinds.as_ref());
    if kinds.is_empty() {
        return Err(Skip("entries without kinds are not applicable."));
    }
    let mut scope = Scope::Namespaced;
    for kind in kinds {
        for target in targets(kind, Scope::Any, discovery) {
            if target.scope != Scope::Namespaced {
                scope = target.scope;
            }
            let same = |rule: &&mut NamedRule| {
                (&rule.group, &rule.version, &rule.operations, &rule.names)
                    == (&target.group, &target.version, &operations, &names)
            };
            match rules.iter_mut().find(same) {
                Some(rule) => {
                    rule.resources.insert(target.resource);
                }
                None => rules.push(NamedRule {
                    group: target.group,
                    version: target.version,
                    operations: operations.clone(),
                    names: names.clone(),
                    resources: [target.resource].into(),
                }),
            }
        }
    }
    Ok(scope)
}

/// The kinds of a selection with their subresources, each with a rule for all of its objects.
fn kinds(selection: &ResourceSelection, discovery: &Discovery) -> Vec<(Gvk, Str, Value)> {
    let targets = listed(selection.kinds.as_ref()).iter().flat_map(|kind| targets(kind, Scope::Any, discovery));
    targets.map(|target| kind_of(&target, discovery)).collect()
}

/// The kind of a resource, its subresource, and a rule about it alone.
pub(super) fn kind_of(target: &Target, discovery: &Discovery) -> (Gvk, Str, Value) {
    let (plural, subresource) = target.resource.split_once('/').unwrap_or((&target.resource, ""));
    let same = |resource: &&Resource| {
        (&resource.group, &resource.version, resource.plural.as_str()) == (&target.group, &target.version, plural)
    };
    let kind = discovery.iter().find(same).map_or_else(|| Str::new_static("*"), |resource| resource.kind.clone());
    let list = |text: &Str| Value::array(vec![text.clone().into()]);
    let rule = Value::from([
        ("apiGroups", list(&target.group)),
        ("apiVersions", list(&target.version)),
        ("operations", Value::from(vec!["*"])),
        ("resources", list(&target.resource)),
    ]);
    (Gvk { group: target.group.clone(), version: target.version.clone(), kind }, Str::new(subresource), rule)
}

fn operations(selection: &ResourceSelection) -> Vec<Operation> {
    match selection.operations.as_deref() {
        Some(operations) if !operations.is_empty() => operations.to_vec(),
        _ => ALL_OPERATIONS.to_vec(),
    }
}

fn names(selection: &ResourceSelection) -> Result<Vec<Str>, Skip> {
    let one = selection.name.iter().filter(|name| !name.is_empty());
    let names: Vec<Str> = one.chain(selection.names.iter().flatten()).cloned().collect();
    exact(&names)?;
    Ok(names)
}

fn listed(list: Option<&Vec<Str>>) -> &[Str] {
    list.map(Vec::as_slice).unwrap_or_default()
}

/// Nothing but names: no wildcards, and nothing that would end a text in an expression.
fn exact(names: &[Str]) -> Result<(), Skip> {
    let is_name = |name: &Str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':'))
    };
    if names.iter().all(is_name) { Ok(()) } else { Err(Skip("wildcards in names and namespaces are not applicable.")) }
}

fn in_namespaces(names: &[Str]) -> Result<Value, Skip> {
    exact(names)?;
    let expression = Value::from([
        ("key", Value::from(NAMESPACE_NAME)),
        ("operator", "In".into()),
        ("values", Value::array(names.iter().cloned().map(Value::from).collect())),
    ]);
    Ok(Value::from([("matchExpressions", Value::array(vec![expression]))]))
}

fn label_selector(selector: &LabelSelector) -> Result<Value, Skip> {
    let pairs = selector.match_labels.iter().flatten();
    let values = selector.match_expressions.iter().flatten().flat_map(|r| r.values.iter().flatten().chain([&r.key]));
    if pairs.flat_map(|(key, value)| [key, value]).chain(values).any(|text| has_wildcard(text)) {
        return Err(Skip("wildcards in selectors are not applicable."));
    }
    plain(selector)
}
