//! Kubernetes' own admission policies: `ValidatingAdmissionPolicy` and `ValidatingAdmissionPolicyBinding`.
//!
//! The types carry what a document of `admissionregistration.k8s.io` says. They share their expressions with
//! `validate.cel`.

use ephor_expr::{Str, Value};
use serde::Deserialize;

use super::{
    AuditAnnotation, CelValidation, CelVariable, FailurePolicy, LabelSelector, MatchCondition, Metadata, Operation,
    ParamKind, ParamRef,
};

/// A `ValidatingAdmissionPolicy` document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ValidatingAdmissionPolicy {
    /// One version of `admissionregistration.k8s.io`.
    pub api_version: Str,
    /// `ValidatingAdmissionPolicy`.
    pub kind: Str,
    /// Name and annotations.
    pub metadata: Metadata,
    /// What it says.
    pub spec: ValidatingAdmissionPolicySpec,
    /// What a controller wrote; ignored.
    pub status: Option<Value>,
}

/// What a `ValidatingAdmissionPolicy` says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ValidatingAdmissionPolicySpec {
    /// The kind of the objects that expressions read as `params`.
    pub param_kind: Option<ParamKind>,
    /// Which requests it judges.
    pub match_constraints: Option<MatchResources>,
    /// Which of those, by expressions.
    pub match_conditions: Vec<MatchCondition>,
    /// Named expressions.
    pub variables: Vec<CelVariable>,
    /// What must be true.
    pub validations: Vec<CelValidation>,
    /// Texts for the audit log.
    pub audit_annotations: Vec<AuditAnnotation>,
    /// What an expression that fails means.
    pub failure_policy: Option<FailurePolicy>,
}

/// A `ValidatingAdmissionPolicyBinding` document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ValidatingAdmissionPolicyBinding {
    /// One version of `admissionregistration.k8s.io`.
    pub api_version: Str,
    /// `ValidatingAdmissionPolicyBinding`.
    pub kind: Str,
    /// Its name.
    pub metadata: Metadata,
    /// What it says.
    pub spec: ValidatingAdmissionPolicyBindingSpec,
}

/// What a `ValidatingAdmissionPolicyBinding` says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ValidatingAdmissionPolicyBindingSpec {
    /// The policy that it puts to work.
    pub policy_name: Str,
    /// Which parameter objects the policy reads.
    pub param_ref: Option<ParamRef>,
    /// Which requests of those that the policy matches.
    pub match_resources: Option<MatchResources>,
    /// What a violation does.
    pub validation_actions: Vec<ValidationAction>,
}

/// What a violation under a binding does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ValidationAction {
    /// It denies the request.
    Deny,
    /// The client gets a warning.
    Warn,
    /// The audit event carries it.
    Audit,
}

/// Which requests a policy or a binding is about.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MatchResources {
    /// Labels of the object's namespace.
    pub namespace_selector: Option<LabelSelector>,
    /// Labels of the object.
    pub object_selector: Option<LabelSelector>,
    /// Requests, one of which must fit; none means any.
    pub resource_rules: Vec<NamedRule>,
    /// Requests that are left out.
    pub exclude_resource_rules: Vec<NamedRule>,
    /// Whether rules mean other versions of a resource too.
    pub match_policy: Option<MatchPolicy>,
}

/// Whether rules mean other versions of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MatchPolicy {
    /// They mean what they name.
    Exact,
    /// The API server converts objects to a version that they name.
    Equivalent,
}

/// Requests by operation, resource and name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NamedRule {
    /// Names of objects; none means any.
    pub resource_names: Vec<Str>,
    /// Operations; none means any.
    pub operations: Vec<RuleOperation>,
    /// Groups; `*` is any.
    pub api_groups: Vec<Str>,
    /// Versions; `*` is any.
    pub api_versions: Vec<Str>,
    /// Resources such as `pods`, `pods/exec`, `*/scale`, `*` and `*/*`.
    pub resources: Vec<Str>,
    /// Resources with or without namespaces.
    pub scope: Option<RuleScope>,
}

/// An operation that a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RuleOperation {
    /// Any.
    #[serde(rename = "*")]
    All,
    /// A new object.
    #[serde(rename = "CREATE")]
    Create,
    /// A changed object.
    #[serde(rename = "UPDATE")]
    Update,
    /// A removed object.
    #[serde(rename = "DELETE")]
    Delete,
    /// A connection such as `pods/exec`.
    #[serde(rename = "CONNECT")]
    Connect,
}

impl RuleOperation {
    /// Whether it is this operation.
    pub fn matches(self, operation: Operation) -> bool {
        match self {
            Self::All => true,
            Self::Create => operation == Operation::Create,
            Self::Update => operation == Operation::Update,
            Self::Delete => operation == Operation::Delete,
            Self::Connect => operation == Operation::Connect,
        }
    }
}

/// Resources with or without namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RuleScope {
    /// Both.
    #[serde(rename = "*")]
    All,
    /// Those without; a Namespace is one.
    Cluster,
    /// Those with.
    Namespaced,
}

/// A `MutatingAdmissionPolicy` document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MutatingAdmissionPolicy {
    /// One version of `admissionregistration.k8s.io`.
    pub api_version: Str,
    /// `MutatingAdmissionPolicy`.
    pub kind: Str,
    /// Name and annotations.
    pub metadata: Metadata,
    /// What it says.
    pub spec: MutatingAdmissionPolicySpec,
}

/// What a `MutatingAdmissionPolicy` says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MutatingAdmissionPolicySpec {
    /// The kind of the objects that expressions read as `params`.
    pub param_kind: Option<ParamKind>,
    /// Which requests it changes.
    pub match_constraints: Option<MatchResources>,
    /// Which of those, by expressions.
    pub match_conditions: Vec<MatchCondition>,
    /// Named expressions.
    pub variables: Vec<CelVariable>,
    /// Patches, each of the object that the one before gave.
    pub mutations: Vec<Mutation>,
    /// What an expression that fails means.
    pub failure_policy: Option<FailurePolicy>,
    /// Whether an API server asks again after other policies and webhooks changed the object.
    pub reinvocation_policy: Option<ReinvocationPolicy>,
}

/// One patch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "patchType", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Mutation {
    /// Part of an object, which is merged.
    ApplyConfiguration {
        /// Gives an `Object`.
        apply_configuration: MutationExpression,
    },
    /// A list of operations.
    JSONPatch {
        /// Gives a list of `JSONPatch`.
        json_patch: MutationExpression,
    },
}

/// [`Mutation`] as definitions of kinds describe it: nothing may depend on the value of another field.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for Mutation {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mutation".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        #[derive(schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Flat {
            /// `ApplyConfiguration` or `JSONPatch`.
            patch_type: String,
            /// Gives an `Object`, which is merged.
            apply_configuration: Option<MutationExpression>,
            /// Gives a list of `JSONPatch`.
            json_patch: Option<MutationExpression>,
        }
        Flat::json_schema(generator)
    }
}

/// An expression that gives a patch.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MutationExpression {
    /// The expression.
    pub expression: Str,
}

/// Whether a mutation is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReinvocationPolicy {
    /// Once.
    Never,
    /// Again, if others changed the object.
    IfNeeded,
}
