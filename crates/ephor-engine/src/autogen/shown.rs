//! What a status shows of the forms that auto-gen makes of a policy of `policies.kyverno.io`.
//!
//! In go the spec as it is stored and a generated form; out comes the form as a document: the stored spec with the
//! constraints and expressions of the form, and the resources that it is for.

use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::policies::{Controller, GeneratedSpec};
use crate::policy::{
    MatchCondition, MatchResources, MutatingPolicySpec, Mutation, NamedRule, RuleOperation, ValidatingPolicySpec,
};

/// A spec whose expressions auto-gen rewrites.
pub trait Rewritten {
    /// Its expressions and messages, each with its place below `spec`.
    fn texts(&self) -> Vec<(Path, &Str)>;

    /// Which requests it is about.
    fn constraints(&self) -> Option<&MatchResources>;
}

impl Rewritten for ValidatingPolicySpec {
    fn texts(&self) -> Vec<(Path, &Str)> {
        let mut texts = conditions(&self.match_conditions);
        texts.extend(listed("variables", "expression", self.variables.iter().map(|v| Some(&v.expression))));
        let validations = || self.validations.iter();
        texts.extend(listed("validations", "expression", validations().map(|v| Some(&v.expression))));
        texts.extend(listed("validations", "message", validations().map(|v| v.message.as_ref())));
        texts.extend(listed("validations", "messageExpression", validations().map(|v| v.message_expression.as_ref())));
        let annotations = self.audit_annotations.iter().map(|annotation| Some(&annotation.value_expression));
        texts.extend(listed("auditAnnotations", "valueExpression", annotations));
        texts
    }

    fn constraints(&self) -> Option<&MatchResources> {
        self.match_constraints.as_ref()
    }
}

impl Rewritten for MutatingPolicySpec {
    fn texts(&self) -> Vec<(Path, &Str)> {
        let mut texts = conditions(&self.match_conditions);
        texts.extend(listed("variables", "expression", self.variables.iter().map(|v| Some(&v.expression))));
        for (i, mutation) in self.mutations.iter().enumerate() {
            if let Mutation::ApplyConfiguration { apply_configuration } = mutation {
                let at = Path::root().key("mutations").index(i).keys(&["applyConfiguration", "expression"]);
                texts.push((at, &apply_configuration.expression));
            }
        }
        texts
    }

    fn constraints(&self) -> Option<&MatchResources> {
        self.match_constraints.as_ref()
    }
}

fn conditions(conditions: &[MatchCondition]) -> Vec<(Path, &Str)> {
    listed("matchConditions", "expression", conditions.iter().map(|condition| Some(&condition.expression))).collect()
}

/// The texts at `LIST[i].KEY`.
fn listed<'s>(
    list: &'static str,
    key: &'static str,
    texts: impl Iterator<Item = Option<&'s Str>> + 's,
) -> impl Iterator<Item = (Path, &'s Str)> + 's {
    let at = move |i| Path::root().key(list).index(i).key(key);
    texts.enumerate().filter_map(move |(i, text)| Some((at(i), text?)))
}

/// A form as the member of `status.autogen.configs` that it is.
pub fn shown<S: Rewritten>(stored: &Value, generated: &GeneratedSpec<S>) -> Value {
    let mut spec = stored.clone();
    for (at, text) in generated.spec.texts() {
        if let Some(stored) = at.lookup_mut(&mut spec) {
            *stored = Value::from(text.clone());
        }
    }
    if let (Some(members), Some(constraints)) = (spec.as_object_mut(), generated.spec.constraints()) {
        members.insert("matchConstraints", constraints_of(stored, constraints));
    }
    let targets = generated.controllers.iter().map(target).collect::<Vec<_>>();
    Value::from([("spec", spec), ("targets", Value::array(targets))])
}

fn target(controller: &Controller) -> Value {
    Value::from([
        ("group", Value::from(controller.group)),
        ("kind", controller.kind.into()),
        ("resource", controller.resource.into()),
        ("version", "v1".into()),
    ])
}

/// Generated constraints keep the selector of namespaces that the stored ones have.
fn constraints_of(stored: &Value, constraints: &MatchResources) -> Value {
    let rules: Vec<Value> = constraints.resource_rules.iter().map(rule).collect();
    let mut members = ephor_expr::Map::from_iter([("resourceRules".into(), Value::array(rules))]);
    if let Some(selector) = stored.at(&["matchConstraints", "namespaceSelector"]) {
        members.insert("namespaceSelector", selector.clone());
    }
    members.into()
}

fn rule(rule: &NamedRule) -> Value {
    let texts = |texts: &[Str]| Value::array(texts.iter().cloned().map(Value::from).collect::<Vec<_>>());
    let operations: Vec<Value> = rule.operations.iter().map(|operation| word(*operation).into()).collect();
    Value::from([
        ("apiGroups", texts(&rule.api_groups)),
        ("apiVersions", texts(&rule.api_versions)),
        ("operations", Value::array(operations)),
        ("resources", texts(&rule.resources)),
    ])
}

fn word(operation: RuleOperation) -> &'static str {
    match operation {
        RuleOperation::All => "*",
        RuleOperation::Create => "CREATE",
        RuleOperation::Update => "UPDATE",
        RuleOperation::Delete => "DELETE",
        RuleOperation::Connect => "CONNECT",
    }
}
