//! `validate` blocks into checks.

use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::action::FailureActions;
use super::policy::{conditions, list, selector_finding};
use super::rule::{ForEach, PatternBody, ValidateBody, ValidateCheck};
use crate::diagnostic::Diagnostic;
use crate::policy::{Cel, Deny, Rule, Spec, Validate, ValidateForEach};
use crate::rules::references;
use crate::rules::validate::cel::{CelCheck, CelRule};
use crate::rules::validate::manifests::ManifestCheck;
use crate::rules::validate::pattern::{Pattern, Scalars};
use crate::rules::validate::pod_security::PodSecurityCheck;
use crate::scope::{Compiler, Entry, Template};

pub(super) fn validate_body(
    spec: &Spec,
    rule: &Rule,
    validate: &Validate,
    rule_path: &Path,
    compiler: &mut Compiler<'_>,
) -> ValidateBody {
    let path = &rule_path.key("validate");
    let actions = FailureActions::compile(spec, validate, path).unwrap_or_else(|error| {
        compiler.report(selector_finding(&error, &Path::root()));
        FailureActions::default()
    });
    let check = if let Some(manifests) = &validate.manifests {
        match ManifestCheck::compile(manifests) {
            Ok(check) => ValidateCheck::Manifests(Box::new(check)),
            Err(problems) => {
                for problem in problems {
                    let mut place = path.key("manifests");
                    place.0.extend(problem.path.0);
                    compiler.report(Diagnostic::error(problem.fault.code(), place, problem.fault.to_string()));
                }
                ValidateCheck::Deny(None)
            }
        }
    } else if let Some(cel) = &validate.cel {
        cel_check(cel, rule, rule_path, compiler)
    } else if let Some(pod_security) = &validate.pod_security {
        match PodSecurityCheck::compile(pod_security) {
            Ok(check) => ValidateCheck::PodSecurity(Box::new(check)),
            Err(error) => {
                compiler.report(Diagnostic::error("pod-security", path.key("podSecurity"), error.to_string()));
                ValidateCheck::Deny(None)
            }
        }
    } else {
        let parts = CheckParts {
            deny: validate.deny.as_ref(),
            pattern: validate.pattern.as_ref(),
            any_pattern: validate.any_pattern.as_ref(),
            foreach: validate.foreach.as_ref(),
        };
        validate_check(&parts, path, compiler)
    };
    ValidateBody {
        check,
        message: validate
            .message
            .as_ref()
            .filter(|m| !m.is_empty())
            .map(|m| message(m, &path.key("message"), compiler)),
        actions,
        allow_existing_violations: validate.allow_existing_violations.unwrap_or(true),
        pass_message: format!("validation rule '{}' passed.", rule.name).into(),
        path: path.clone(),
    }
}

fn cel_check(cel: &Cel, rule: &Rule, path: &Path, compiler: &mut Compiler<'_>) -> ValidateCheck {
    let message = rule.validate.as_ref().and_then(|validate| validate.message.as_ref());
    let preconditions = rule.cel_preconditions.as_deref().unwrap_or_default();
    match CelCheck::compile(&CelRule { cel, preconditions, message, path }) {
        Ok(check) => ValidateCheck::Cel(Box::new(check)),
        Err(findings) => {
            for finding in findings {
                compiler.report(finding);
            }
            ValidateCheck::Deny(None)
        }
    }
}

fn message(text: &Str, path: &Path, compiler: &mut Compiler<'_>) -> Template {
    let text = references::resolve_message(text).unwrap_or_else(|error| {
        compiler.report(Diagnostic::error("reference", path.clone(), error.to_string()));
        text.clone()
    });
    compiler.text(&text, path)
}

/// What rules and loop entries have in common.
struct CheckParts<'p> {
    deny: Option<&'p Deny>,
    pattern: Option<&'p Value>,
    any_pattern: Option<&'p Vec<Value>>,
    foreach: Option<&'p Vec<ValidateForEach>>,
}

fn validate_check(parts: &CheckParts<'_>, path: &Path, compiler: &mut Compiler<'_>) -> ValidateCheck {
    if let Some(deny) = parts.deny {
        return ValidateCheck::Deny(conditions(
            deny.conditions.as_ref(),
            &path.keys(&["deny", "conditions"]),
            compiler,
        ));
    }
    if let Some(pattern) = parts.pattern {
        return ValidateCheck::Pattern(pattern_body(pattern, Scalars::Typed, &path.key("pattern"), compiler));
    }
    if let Some(patterns) = parts.any_pattern {
        let path = path.key("anyPattern");
        let bodies = patterns.iter().enumerate();
        return ValidateCheck::AnyPattern(
            bodies.map(|(i, p)| pattern_body(p, Scalars::Floats, &path.index(i), compiler)).collect(),
        );
    }
    let loops = parts.foreach.into_iter().flatten().enumerate();
    ValidateCheck::ForEach(
        loops
            .filter_map(|(i, entry)| {
                let path = path.key("foreach").index(i);
                let parts = CheckParts {
                    deny: entry.deny.as_ref(),
                    pattern: entry.pattern.as_ref(),
                    any_pattern: entry.any_pattern.as_ref(),
                    foreach: entry.foreach.as_ref(),
                };
                Some(ForEach {
                    list: list(&entry.list, &path, compiler)?,
                    element_scope: entry.element_scope,
                    context: Entry::compile_all(entry.context.as_ref(), &path.key("context"), compiler),
                    preconditions: conditions(entry.preconditions.as_ref(), &path.key("preconditions"), compiler),
                    check: validate_check(&parts, &path, compiler),
                    path,
                })
            })
            .collect(),
    )
}

fn pattern_body(pattern: &Value, scalars: Scalars, path: &Path, compiler: &mut Compiler<'_>) -> PatternBody {
    let resolved = match references::resolve(pattern) {
        Ok(resolved) => resolved,
        Err(error) => {
            compiler.report(Diagnostic::error("reference", path.clone(), error.to_string()));
            pattern.clone()
        }
    };
    match compiler.template(&resolved, path) {
        Template::Fixed(value) => PatternBody::Fixed(Pattern::compile_with(&value, scalars)),
        template => PatternBody::Variable(template),
    }
}
