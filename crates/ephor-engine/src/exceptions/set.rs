//! Exceptions, compiled and found by policy.

use ephor_expr::scalar::wildcard::Wildcard;
use ephor_expr::value::{Path, decode};
use ephor_expr::{Str, Value};
use rustc_hash::FxHashMap;

use super::policies::{PolicyExceptionSpec, PolicyExemption, applying, exempted};
use crate::cel::Inputs;
use crate::compile::{POLICIES_GROUP, decode_finding};
use crate::conditions::CompiledConditions;
use crate::diagnostic::Diagnostic;
use crate::fetch::Fetch;
use crate::matching::{MatchError, MatchInput, MatchMode, Matcher};
use crate::policy::{Conditions, PolicyException, PolicyId};
use crate::rules::admission::Halt;
use crate::rules::conditions::{ConditionError, evaluate};
use crate::rules::judgement::Pending;
use crate::rules::validate::pod_security::Exclusion;
use crate::rules::validate::policy::{Exempted, Exemptions};
use crate::scope::{Answer, AtBase, Compiler, Scope, Template};

/// One exception, compiled.
#[derive(Debug)]
pub struct Exception {
    /// `namespace/name`.
    pub key: Str,
    /// Whether scans honour it.
    pub background: bool,
    family: Family,
}

/// Which family of policies an exception is for.
#[derive(Debug)]
enum Family {
    /// `kyverno.io`.
    Rules(Box<RuleExemption>),
    /// `policies.kyverno.io`.
    Policies(Box<PolicyExemption>),
}

/// An exception from rules of `kyverno.io`.
#[derive(Debug)]
struct RuleExemption {
    declared: PolicyException,
    matches: Matcher,
    conditions: Option<CompiledConditions<Template>>,
    rules: Vec<(Str, Vec<Wildcard>)>,
    pod_security: Vec<Exclusion>,
}

/// All exceptions that hold, in the order in which they apply.
#[derive(Debug, Default)]
pub struct ExceptionSet {
    all: Vec<Exception>,
    by_policy: FxHashMap<Str, Vec<usize>>,
}

/// The exceptions that apply to a rule for an object.
pub(crate) struct Excepted<'e> {
    /// Their keys.
    pub(crate) keys: Vec<Str>,
    /// The Pod Security exclusions, if all of the exceptions are limited to some; `None`: the whole rule is let off.
    pub(crate) exclusions: Option<Vec<&'e [Exclusion]>>,
}

impl Exception {
    /// Compiles a `PolicyException` document of either group.
    pub fn compile(document: &Value) -> Result<Self, Vec<Diagnostic>> {
        let group =
            document.str_at(&["apiVersion"]).and_then(|version| version.split_once('/')).map(|(group, _)| group);
        if group == Some(POLICIES_GROUP) {
            let exemption = PolicyExemption::compile(document)?;
            let key = exemption.key().clone();
            return Ok(Self { key, background: true, family: Family::Policies(Box::new(exemption)) });
        }
        Self::of_rules(document)
    }

    fn of_rules(document: &Value) -> Result<Self, Vec<Diagnostic>> {
        let exception: PolicyException =
            decode(document).map_err(|faults| faults.into_iter().map(decode_finding).collect::<Vec<_>>())?;
        let mut findings = Vec::new();
        let spec = &exception.spec;
        let base = Path::root().key("spec");
        let matches = match Matcher::compile(&spec.matches, MatchMode::Exception) {
            Ok(matcher) => matcher,
            Err(error) => {
                let mut path = base.key("match");
                path.0.extend(error.path().0.iter().cloned());
                findings.push(Diagnostic::error("invalid-selector", path, error.to_string()));
                return Err(findings);
            }
        };
        let mut compiler = Compiler::new(AtBase::Object, &mut findings);
        let conditions = spec.conditions.clone().map(Conditions::AnyAll).and_then(|block| {
            CompiledConditions::compile(&block, &base.key("conditions"), |v, at| compiler.template(v, at)).ok()
        });
        let exclusions = spec.pod_security.iter().flatten().enumerate();
        let mut pod_security = Vec::new();
        for (i, exclusion) in exclusions {
            match Exclusion::compile(exclusion) {
                Ok(exclusion) => pod_security.push(exclusion),
                Err(error) => {
                    let path = base.key("podSecurity").index(i);
                    findings.push(Diagnostic::error("pod-security", path, error.to_string()));
                }
            }
        }
        if findings.iter().any(Diagnostic::is_error) {
            return Err(findings);
        }
        let rules = spec.exceptions.iter();
        let rules = rules.map(|r| (r.policy_name.clone(), r.rule_names.iter().map(|n| Wildcard::new(n)).collect()));
        let rules = rules.collect();
        let metadata = &exception.metadata;
        Ok(Self {
            key: format!("{}/{}", metadata.namespace.as_deref().unwrap_or_default(), metadata.name).into(),
            background: spec.background.unwrap_or(true),
            family: Family::Rules(Box::new(RuleExemption {
                declared: exception,
                matches,
                conditions,
                rules,
                pod_security,
            })),
        })
    }

    /// What an exception from rules says, for translation into other kinds of policies.
    pub fn declared(&self) -> Option<&PolicyException> {
        self.rules().map(|rules| &rules.declared)
    }

    /// Whether its conditions may ask for more than the request holds: such an exception does not count once it is
    /// [`within`](Self::within) a namespace.
    pub fn asks(&self) -> bool {
        self.policies().is_some_and(PolicyExemption::asks)
    }

    fn rules(&self) -> Option<&RuleExemption> {
        match &self.family {
            Family::Rules(rules) => Some(rules),
            Family::Policies(_) => None,
        }
    }

    fn policies(&self) -> Option<&PolicyExemption> {
        match &self.family {
            Family::Rules(_) => None,
            Family::Policies(policies) => Some(policies),
        }
    }

    /// The exception as the owner of this namespace may write it: without the Policies of other namespaces, and without
    /// conditions that read more than the request.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        match &mut self.family {
            Family::Rules(exemption) => {
                let own = |policy: &str| policy.split_once('/').is_none_or(|(other, _)| other == namespace);
                exemption.rules.retain(|(policy, _)| own(policy));
            }
            Family::Policies(exemption) => exemption.restrict_to(namespace),
        }
        self
    }
}

impl ExceptionSet {
    /// The set of these exceptions, which apply in the given order.
    pub fn new(all: Vec<Exception>) -> Self {
        let mut by_policy: FxHashMap<Str, Vec<usize>> = FxHashMap::default();
        for (i, exception) in all.iter().enumerate() {
            for (policy, _) in exception.rules().iter().flat_map(|exemption| &exemption.rules) {
                let list = by_policy.entry(policy.clone()).or_default();
                if list.last() != Some(&i) {
                    list.push(i);
                }
            }
        }
        Self { all, by_policy }
    }

    /// What the exceptions from a policy of `policies.kyverno.io` say, for translation into other kinds of policies.
    pub fn of_cel<'e>(&'e self, policy: &'e PolicyId) -> impl Iterator<Item = &'e PolicyExceptionSpec> {
        let of_policies = self.all.iter().filter_map(Exception::policies);
        of_policies.filter(|exemption| exemption.is_about(policy)).map(PolicyExemption::declared)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The exceptions, in the order in which they apply.
    pub fn iter(&self) -> impl Iterator<Item = &Exception> {
        self.all.iter()
    }

    /// The exceptions for rule `rule` of the policy called `policy` that cover the input; `None` if none does.
    /// Conditions that cannot be evaluated make their exception not apply.
    pub(crate) fn applying(
        &self,
        policy: &str,
        rule: &str,
        input: &MatchInput<'_>,
        scanning: bool,
        scope: &mut Scope<'_>,
    ) -> Result<Option<Excepted<'_>>, Pending> {
        let Some(candidates) = self.by_policy.get(policy) else { return Ok(None) };
        let mut keys = Vec::new();
        let mut exclusions = Some(Vec::new());
        for known in candidates.iter().filter_map(|i| self.all.get(*i)) {
            let Some(exception) = known.rules() else { continue };
            let named = exception.rules.iter().any(|(p, rules)| p == policy && rules.iter().any(|w| w.matches(rule)));
            if !named || (scanning && !known.background) {
                continue;
            }
            match exception.matches.matches(input) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(MatchError::NamespaceLabelsUnavailable { namespace }) => {
                    match scope.world().ask(Fetch::NamespaceLabels { name: namespace }) {
                        Answer::Pending => return Err(Pending),
                        // An exception lets something through: when in doubt it does not hold.
                        Answer::Known(_) | Answer::Refused(_) => continue,
                    }
                }
            }
            match exception.conditions.as_ref().map(|block| evaluate(block, scope)).transpose() {
                Ok(outcome) if outcome.as_ref().is_none_or(|o| o.holds) => {}
                Ok(_)
                | Err(ConditionError::Unresolved(..) | ConditionError::Failed(..) | ConditionError::Budget(_)) => {
                    continue;
                }
                Err(ConditionError::Pending) => return Err(Pending),
            }
            keys.push(known.key.clone());
            if exception.pod_security.is_empty() {
                exclusions = None;
            } else if let Some(list) = &mut exclusions {
                list.push(exception.pod_security.as_slice());
            }
        }
        Ok((!keys.is_empty()).then_some(Excepted { keys, exclusions }))
    }
}

impl Exemptions for ExceptionSet {
    fn exempted(&self, policy: &PolicyId, inputs: &Inputs<'_>) -> Result<Exempted, Halt> {
        exempted(self.all.iter().filter_map(Exception::policies), policy, inputs)
    }

    fn applying(&self, policy: &PolicyId, inputs: &Inputs<'_>) -> Result<Result<Vec<Str>, String>, Halt> {
        applying(self.all.iter().filter_map(Exception::policies), policy, inputs)
    }
}
