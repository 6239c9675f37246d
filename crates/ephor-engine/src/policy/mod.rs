//! Policies as users write them: the `kyverno.io` kinds, field by field.
//!
//! These types only carry what a document says. Unknown fields are refused when they are decoded
//! ([`ephor_expr::value::decode`]); what they mean is checked in [`crate::check`] and given effect in
//! [`crate::compile`].

mod admission;
mod attestors;
mod blocks;
mod cel;
mod cleanup;
mod conditions;
mod context;
mod deleting;
mod exception;
mod generate;
mod generating;
mod global_context;
mod id;
mod meta;
mod mutate;
mod mutating;
mod operations;
mod rule;
mod selection;
mod spec;
mod status;
mod validate;
mod validating;

use blocks::{filled, filled_validate};

pub use admission::{
    MatchPolicy, MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicySpec, Mutation, MutationExpression,
    NamedRule, ReinvocationPolicy, RuleOperation, RuleScope, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
    ValidationAction,
};
pub use attestors::{Attestor, AttestorSet, StaticKeys};
pub use cel::{
    AuditAnnotation, Cel, CelValidation, CelVariable, MatchCondition, ParamKind, ParamRef, ParameterNotFound,
};
pub use cleanup::{CleanupPolicy, CleanupSpec, DeletionPropagation};
pub use conditions::{AnyAll, Condition, Conditions};
pub use context::{
    ApiCall, ConfigMapRef, ContextEntry, GlobalRef, HttpMethod, ImageData, RequestData, ServiceCall, VariableEntry,
};
pub use deleting::{DeletingPolicy, DeletingPolicySpec};
pub use exception::{ExceptionRules, ExceptionSpec, PolicyException};
pub use generate::{Clone, CloneList, Generate, GenerateForEach, GenerateParts};
pub use generating::{
    GeneratingPolicy, GeneratingPolicySpec, Generation, GenerationEvaluation, GenerationTemplate, Interpolation,
};
pub use global_context::{GlobalApiCall, GlobalContextEntry, GlobalContextSpec, Projection, WatchedResource};
pub use id::{PolicyId, ProgramKind, is_own_group};
pub use meta::Metadata;
pub use mutate::{Mutate, MutateForEach, Order, Target};
pub use mutating::{MutatingPolicy, MutatingPolicySpec, MutationAutogen, MutationEvaluation, TargetConstraints};
pub use operations::Operations;
pub use rule::Rule;
pub use selection::{
    LabelSelector, Match, Operation, Requirement, ResourceFilter, ResourceSelection, SelectorOperator, Subject,
};
pub use spec::{
    ApplyRules, FailureAction, FailureActionOverride, FailurePolicy, Policy, PolicyKind, Spec, WebhookConfiguration,
};
pub use status::{AutogenStatus, PolicyCondition, PolicyStatus, RuleCount, RuleSince, ValidatingAdmissionPolicyStatus};
pub use validate::{
    Deny, DryRun, IgnoredFields, Manifests, ObjectReference, PodSecurity, PodSecurityExclusion, Validate,
    ValidateForEach,
};
pub use validating::{
    EvaluationMode, PodControllers, PolicyAutogen, PolicyEvaluation, PolicyWebhook, Switch, ValidatingPolicy,
    ValidatingPolicySpec,
};
