//! The owner that an object names in upstream's labels.

use ephor_engine::policy::ProgramKind;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::content::{ADOPTED_LABEL, OWNERSHIP_ANNOTATION, Written, set_entry};
use ephor_runtime::policies::PolicyId;

use super::ownership::OwnershipAnnotation;
use crate::queue::WorkKey;

/// Who manages the object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The policy's name.
pub const POLICY_NAME: &str = "generate.kyverno.io/policy-name";
/// The policy's namespace.
pub const POLICY_NAMESPACE: &str = "generate.kyverno.io/policy-namespace";
/// The rule's name.
pub const RULE_NAME: &str = "generate.kyverno.io/rule-name";
/// What the labels of the trigger begin with.
pub const TRIGGER: &str = "generate.kyverno.io/trigger-";
/// What the labels of the source begin with.
pub const SOURCE: &str = "generate.kyverno.io/source-";
/// Marks an object that others were copied from.
pub const CLONE_SOURCE: &str = "generate.kyverno.io/clone-source";
/// The rule that made the object for a trigger that was there before it.
pub const EXISTING: &str = "kyverno.io/background-gen-rule";

/// A rule and the trigger that it made an object for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The policy.
    pub policy: PolicyId,
    /// The rule's name.
    pub rule: Str,
    /// The trigger's UID.
    pub trigger: Str,
}

impl Owner {
    /// The owner that labels name. A policy of `policies.kyverno.io` is one rule by itself, so that there is no label
    /// of a rule.
    fn named(rule: Str, namespace: &str, name: Str, trigger: Str) -> Self {
        if !rule.is_empty() {
            return Self { policy: PolicyId::kyverno(namespace, &name), rule, trigger };
        }
        let kind = match namespace {
            "" => ProgramKind::GeneratingPolicy,
            _ => ProgramKind::NamespacedGeneratingPolicy,
        };
        Self { policy: PolicyId::new(kind, Some(namespace), name.clone()), rule: name, trigger }
    }

    /// Whether both are the same rule, for whatever trigger.
    pub fn is_rule_of(&self, other: &Self) -> bool {
        (&self.policy, &self.rule) == (&other.policy, &other.rule)
    }

    /// The reconciliation that looks after its objects.
    pub fn key(&self) -> WorkKey {
        WorkKey { policy: self.policy.clone(), trigger: self.trigger.clone() }
    }
}

/// What the labels and the annotation of an object say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Whom it belongs to.
    pub owner: Owner,
    /// The trigger's `apiVersion`.
    pub trigger_api_version: Str,
    /// The trigger's kind.
    pub trigger_kind: Str,
    /// The trigger's namespace.
    pub trigger_namespace: Str,
    /// The UID of what it was copied from; empty if it is no copy.
    pub source: Str,
    /// The annotation, if it was made for this object.
    pub annotation: Option<OwnershipAnnotation>,
    /// Whether annotation or label say that the object was there before its rule wrote to it.
    pub adopted: bool,
}

impl Claim {
    /// The claim of an object; `None` for one that says nothing of the sort, or that names a policy of another
    /// namespace: a Policy makes objects in its own namespace alone, so that label is not its word.
    pub fn of(object: &Value) -> Option<Self> {
        let labels = object.at(&["metadata", "labels"])?;
        let label = |key: &str| Str::new(labels.get(key).and_then(Value::as_str).unwrap_or_default());
        let of = |role: &str, part: &str| label(&format!("{role}{part}"));
        let name = label(POLICY_NAME);
        let policy_namespace = label(POLICY_NAMESPACE);
        let namespace = object.str_at(&["metadata", "namespace"]).unwrap_or_default();
        let foreign = !policy_namespace.is_empty() && policy_namespace != namespace;
        if label(MANAGED_BY) != "kyverno" || name.is_empty() || foreign {
            return None;
        }
        let owner = Owner::named(label(RULE_NAME), &policy_namespace, name, of(TRIGGER, "uid"));
        Some(Self {
            owner,
            trigger_api_version: ephor_cluster::resource::join_api_version(
                &of(TRIGGER, "group"),
                &of(TRIGGER, "version"),
            ),
            trigger_kind: of(TRIGGER, "kind"),
            trigger_namespace: of(TRIGGER, "namespace"),
            source: of(SOURCE, "uid"),
            annotation: OwnershipAnnotation::read(object),
            adopted: says_adopted(object),
        })
    }
}

/// Whether annotation or label say that an object was there before its rule wrote to it.
pub fn says_adopted(object: &Value) -> bool {
    object.at(&["metadata", "labels", ADOPTED_LABEL]).is_some()
        || OwnershipAnnotation::read(object).is_some_and(|annotation| annotation.adopted)
}

/// Whether an object was there before its rule wrote to it: what is remembered of the last write counts, then what the
/// object says; `None` if neither tells.
pub fn is_adopted(object: &Value, written: Option<&Written>) -> Option<bool> {
    let uid = object.str_at(&["metadata", "uid"]).unwrap_or_default();
    let known = written.and_then(|written| written.is_found(uid));
    let said = || says_adopted(object).then_some(true);
    known.or_else(said).or_else(|| OwnershipAnnotation::read(object).map(|_| false))
}

/// The object without anything that ties it to a rule, so that any rule may take it over.
pub fn released(object: &Value) -> Value {
    let mut object = object.clone();
    for label in [POLICY_NAME, POLICY_NAMESPACE, RULE_NAME] {
        set_entry(&mut object, "labels", label, None);
    }
    set_entry(&mut object, "labels", ADOPTED_LABEL, None);
    set_entry(&mut object, "annotations", OWNERSHIP_ANNOTATION, None);
    object
}

/// An object that a rule took over and did not create, without any label of the rule.
pub fn given_back(object: &Value) -> Value {
    let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
    let ours = |key: &str, value: &Value| {
        [TRIGGER, SOURCE].iter().any(|role| key.starts_with(role))
            || key == EXISTING
            || key == MANAGED_BY && value.as_str() == Some("kyverno")
    };
    let ours: Vec<Str> = labels
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(key, value)| ours(key, value))
        .map(|(key, _)| key.clone())
        .collect();
    let mut object = released(object);
    for label in ours {
        set_entry(&mut object, "labels", &label, None);
    }
    object
}
