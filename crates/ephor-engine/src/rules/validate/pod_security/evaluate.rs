//! A compiled podSecurity body, and what it says of one resource.

use ephor_expr::{Str, Value};

use super::checks::{CHECKS, Check};
use super::exclusions::Exclusion;
use super::messages;
use super::pod::{Home, Pod};
use super::standard::{Level, UnknownLevel, UnknownVersion, Version};
use super::violation::{FieldError, Violations};
use crate::policy::PodSecurity;

/// Why a podSecurity body cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// There is no such level.
    #[error(transparent)]
    Level(#[from] UnknownLevel),
    /// There is no such version.
    #[error(transparent)]
    Version(#[from] UnknownVersion),
    /// An exclusion names a control that does not exist.
    #[error("unknown pod security control `{0}`")]
    UnknownControl(Str),
}

/// A compiled podSecurity body.
#[derive(Debug, Clone)]
pub struct PodSecurityCheck {
    level: Level,
    version: Version,
    /// As written, for messages.
    level_name: Str,
    version_name: Str,
    exclusions: Vec<Exclusion>,
}

/// What a podSecurity rule says of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodSecurityOutcome {
    /// No violation, or none that the policy does not let off.
    Pass {
        /// For the user.
        message: Str,
    },
    /// The resource violates the standard.
    Fail(Box<PodSecurityFailure>),
    /// Exceptions let off all that the policy does not; [`messages::violations_excepted`] is the text.
    Skip,
    /// The resource has no Pod, or one that cannot be read.
    Error {
        /// For the user.
        message: Str,
    },
}

/// A violated standard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSecurityFailure {
    /// For the user.
    pub message: Str,
    /// The level, as the policy writes it.
    pub level: Str,
    /// The version, as the policy writes it; empty if it does not.
    pub version: Str,
    /// The checks that fail.
    pub checks: Vec<FailedCheck>,
}

/// A check that fails, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCheck {
    /// The check's identifier, for example `capabilities_baseline`.
    pub id: &'static str,
    /// The name of its control; empty for the one check without.
    pub control: &'static str,
    /// Why the standard forbids it, in a few words.
    pub reason: &'static str,
    /// Images of the containers that violate the check before exclusions, each once.
    pub images: Vec<Str>,
    /// The fields that are left after exclusions, as paths in the resource.
    pub errors: Vec<FieldError>,
}

/// A check and its violations, while exclusions are being taken off.
pub(super) struct Finding {
    pub(super) check: &'static Check,
    pub(super) violations: Violations,
}

impl PodSecurityCheck {
    /// Compiles a podSecurity body.
    pub fn compile(body: &PodSecurity) -> Result<Self, CompileError> {
        let version_name = body.version.clone().unwrap_or_default();
        Ok(PodSecurityCheck {
            level: Level::parse(&body.level)?,
            version: Version::parse(&version_name)?,
            level_name: body.level.clone(),
            version_name,
            exclusions: body.exclude.iter().flatten().map(Exclusion::compile).collect::<Result<_, _>>()?,
        })
    }

    /// Evaluates the rule `rule_name` for a Pod, a workload or a `CronJob`.
    ///
    /// `exceptions` are the `podSecurity` entries of the exceptions that apply, one slice for each exception, in the
    /// order of the exceptions. They matter only to a rule that would fail. An exception without such entries skips
    /// the rule without evaluation, and a DELETE has no result; both are the caller's.
    pub fn evaluate(&self, resource: &Value, rule_name: &str, exceptions: &[&[Exclusion]]) -> PodSecurityOutcome {
        let Some(home) = resource.str_at(&["kind"]).and_then(Home::of) else {
            return PodSecurityOutcome::Error { message: messages::NO_POD.into() };
        };
        let pod = match Pod::read(resource, home) {
            Ok(pod) => pod,
            Err(misfit) => return PodSecurityOutcome::Error { message: messages::unreadable(&misfit) },
        };
        let mut findings = self.run_checks(&pod);
        for exclusion in &self.exclusions {
            exclusion.apply(&pod, self.version, &mut findings);
        }
        if findings.is_empty() {
            return PodSecurityOutcome::Pass { message: messages::passed(rule_name) };
        }
        for exclusion in exceptions.iter().copied().flatten() {
            exclusion.apply(&pod, self.version, &mut findings);
        }
        if findings.is_empty() {
            return PodSecurityOutcome::Skip;
        }
        PodSecurityOutcome::Fail(Box::new(self.failure(rule_name, home, findings)))
    }

    fn run_checks(&self, pod: &Pod<'_>) -> Vec<Finding> {
        let checks = CHECKS.iter().filter(|check| check.applies_at(self.level));
        let found = checks.map(|check| Finding { check, violations: check.run(pod, self.version) });
        found.filter(|finding| !finding.violations.is_empty()).collect()
    }

    fn failure(&self, rule_name: &str, home: Home, findings: Vec<Finding>) -> PodSecurityFailure {
        let checks: Vec<_> = findings
            .into_iter()
            .map(|Finding { check, violations }| FailedCheck {
                id: check.id,
                control: check.control.map_or("", |control| control.name()),
                reason: violations.reason,
                images: violations.images,
                errors: violations
                    .errors
                    .into_iter()
                    .map(|error| FieldError { field: home.locate(error.field), ..error })
                    .collect(),
            })
            .collect();
        PodSecurityFailure {
            message: messages::failed(rule_name, &self.level_name, &self.version_name, &checks),
            level: self.level_name.clone(),
            version: self.version_name.clone(),
            checks,
        }
    }
}
