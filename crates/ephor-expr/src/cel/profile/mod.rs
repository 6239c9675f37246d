//! Profiles: what expressions may use in each place where they stand, as data.

mod kyverno;

use std::collections::BTreeMap;

use super::environment::{Edition, Environment, Literals, ObjectType, Options};
use super::library::{self, Library};
use super::schema;
use super::types::Type;
use crate::value::Value;

pub use self::kyverno::{CONTEXTS, KYVERNO_VARIABLES, Kyverno, Version, kyverno_image_reference};

/// What one evaluation may cost in Kubernetes.
pub const COST_LIMIT: u64 = 1_000_000;

/// The libraries that Kubernetes has everywhere.
const KUBERNETES: [Library; 18] = [
    library::OPERATORS,
    library::EQUALITY,
    library::CONVERSIONS,
    library::STANDARD_STRINGS,
    library::TIME,
    library::OPTIONALS,
    library::STRINGS,
    library::SETS,
    library::LISTS,
    library::KUBERNETES_LISTS,
    library::KUBERNETES_REGEX,
    library::KUBERNETES_URL,
    library::KUBERNETES_IP,
    library::KUBERNETES_CIDR,
    library::KUBERNETES_QUANTITY,
    library::KUBERNETES_SEMVER,
    library::KUBERNETES_FORMAT,
    library::KUBERNETES_AUTHORIZER,
];

/// The types of what an admission request says, field by field.
const OBJECTS: [(&str, &[(&str, &str)]); 10] = [
    ("kubernetes.GroupVersionKind", &[("group", "string"), ("version", "string"), ("kind", "string")]),
    ("kubernetes.GroupVersionResource", &[("group", "string"), ("version", "string"), ("resource", "string")]),
    (
        "kubernetes.UserInfo",
        &[
            ("username", "string"),
            ("uid", "string"),
            ("groups", "list(string)"),
            ("extra", "map(string, list(string))"),
        ],
    ),
    (
        "kubernetes.AdmissionRequest",
        &[
            ("kind", "kubernetes.GroupVersionKind"),
            ("resource", "kubernetes.GroupVersionResource"),
            ("subResource", "string"),
            ("requestKind", "kubernetes.GroupVersionKind"),
            ("requestResource", "kubernetes.GroupVersionResource"),
            ("requestSubResource", "string"),
            ("name", "string"),
            ("namespace", "string"),
            ("operation", "string"),
            ("userInfo", "kubernetes.UserInfo"),
            ("dryRun", "bool"),
            ("options", "dyn"),
        ],
    ),
    (
        "kubernetes.NamespaceMetadata",
        &[
            ("name", "string"),
            ("generateName", "string"),
            ("namespace", "string"),
            ("labels", "map(string, string)"),
            ("annotations", "map(string, string)"),
            ("UID", "string"),
            ("creationTimestamp", "timestamp"),
            ("deletionGracePeriodSeconds", "int"),
            ("deletionTimestamp", "timestamp"),
            ("generation", "int"),
            ("resourceVersion", "string"),
            ("finalizers", "list(string)"),
        ],
    ),
    ("kubernetes.NamespaceSpec", &[("finalizers", "list(string)")]),
    (
        "kubernetes.NamespaceCondition",
        &[
            ("status", "string"),
            ("type", "string"),
            ("lastTransitionTime", "timestamp"),
            ("message", "string"),
            ("reason", "string"),
        ],
    ),
    ("kubernetes.NamespaceStatus", &[("conditions", "list(kubernetes.NamespaceCondition)"), ("phase", "string")]),
    (
        "kubernetes.Namespace",
        &[
            ("metadata", "kubernetes.NamespaceMetadata"),
            ("spec", "kubernetes.NamespaceSpec"),
            ("status", "kubernetes.NamespaceStatus"),
        ],
    ),
    ("JSONPatch", &[("op", "string"), ("path", "string"), ("from", "string"), ("value", "dyn")]),
];

/// Where an expression of Kubernetes stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kubernetes {
    /// `ValidatingAdmissionPolicy`: validations, match conditions, variables, audit annotations.
    Policy,
    /// The same in a policy without `paramKind`.
    PolicyWithoutParams,
    /// `messageExpression`: no authorizer.
    Message,
    /// The same in a policy without `paramKind`.
    MessageWithoutParams,
    /// Match conditions of webhooks.
    Webhook,
    /// `MutatingAdmissionPolicy`.
    Mutation,
    /// The same in a policy without `paramKind`.
    MutationWithoutParams,
    /// As [`Kubernetes::Policy`], in Kubernetes 1.36.
    Policy136,
}

impl Kubernetes {
    /// The environment of expressions there.
    pub fn environment(self) -> Environment {
        let mut libraries = KUBERNETES.to_vec();
        libraries.push(library::TWO_VARIABLES);
        let head = self == Kubernetes::Policy136;
        let mutates = matches!(self, Kubernetes::Mutation | Kubernetes::MutationWithoutParams);
        if !head {
            libraries.push(library::DURATION_OF_INT);
        }
        if mutates {
            libraries.push(library::KUBERNETES_JSON_PATCH);
        }
        let options = Options {
            literals: Literals::Strict,
            cost_limit: Some(COST_LIMIT),
            edition: if head { Edition::Head } else { Edition::Kubernetes134 },
            quoted_fields: head,
            open_object: mutates.then_some("Object"),
        };
        let mut environment = Environment::new(&libraries, options);
        declare_objects(&mut environment, mutates);
        environment.declare("object", Type::Dyn);
        environment.declare("oldObject", Type::Dyn);
        environment.declare("request", Type::Object("kubernetes.AdmissionRequest".into()));
        environment.declare("namespaceObject", Type::Object("kubernetes.Namespace".into()));
        environment.declare(super::MEMBERS, Type::Object(VARIABLES.into()));
        environment.declare_object(ObjectType {
            name: VARIABLES.into(),
            fields: BTreeMap::new(),
            constructible: false,
        });
        let without_params = matches!(
            self,
            Kubernetes::PolicyWithoutParams
                | Kubernetes::MessageWithoutParams
                | Kubernetes::MutationWithoutParams
                | Kubernetes::Webhook
        );
        if !without_params {
            environment.declare("params", Type::Dyn);
        }
        if !matches!(self, Kubernetes::Message | Kubernetes::MessageWithoutParams) {
            let authorizer = |name: &str| Type::Opaque(format!("kubernetes.authorization.{name}").into());
            environment.declare("authorizer", authorizer("Authorizer"));
            environment.declare("authorizer.requestResource", authorizer("ResourceCheck"));
        }
        environment
    }
}

/// Where a rule of a `CustomResourceDefinition` stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct RulePlace {
    /// Whether values there are objects with `apiVersion`, `kind` and `metadata`.
    pub is_resource: bool,
    /// Whether `oldSelf` is an optional, so that the rule also holds where there was no value before.
    pub optional_old: bool,
}

/// The libraries of Kubernetes for expressions that belong to no request: they cannot check the rights of a user.
fn without_authorizer() -> Vec<Library> {
    KUBERNETES.into_iter().filter(|library| library.name != library::KUBERNETES_AUTHORIZER.name).collect()
}

/// The environment of rules of a `CustomResourceDefinition` for whole objects with this schema.
pub fn definition_rule(schema: &Value) -> Environment {
    rule_at(schema, RulePlace { is_resource: true, optional_old: false })
}

/// The environment of rules of a `CustomResourceDefinition` for values with this schema: `self` and `oldSelf`.
pub fn rule_at(schema: &Value, place: RulePlace) -> Environment {
    let mut libraries = without_authorizer();
    libraries.extend([library::TWO_VARIABLES, library::DURATION_OF_INT]);
    let options = Options { literals: Literals::Strict, cost_limit: Some(COST_LIMIT), ..Options::default() };
    let mut environment = Environment::new(&libraries, options);
    let kind = schema::declare(&mut environment, schema, place.is_resource);
    environment.declare("self", kind.clone());
    environment.declare("oldSelf", if place.optional_old { Type::optional(kind) } else { kind });
    environment
}

/// The type of `variables` in Kubernetes.
pub const VARIABLES: &str = "kubernetes.variables";

/// Declares the types of admission requests.
pub(super) fn declare_objects(environment: &mut Environment, patches: bool) {
    for (name, fields) in OBJECTS {
        if name == "JSONPatch" && !patches {
            continue;
        }
        let field = |(name, kind): &(&str, &str)| Some(((*name).into(), object_type(kind)?));
        let fields = fields.iter().filter_map(field).collect();
        environment.declare_object(ObjectType { name: name.into(), fields, constructible: name == "JSONPatch" });
    }
}

/// Reads a type in which a dotted name is a type with fields.
fn object_type(text: &str) -> Option<Type> {
    Some(match text.strip_prefix("list(").and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => Type::list(object_type(inner)?),
        None if text.starts_with("kubernetes.") => Type::Object(text.into()),
        None => Type::parse(text)?,
    })
}
