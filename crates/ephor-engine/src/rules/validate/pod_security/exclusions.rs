//! Taking away what an `exclude` entry lets off.
//!
//! Upstream runs the checks again on a reduced Pod and removes from the first result what the second one finds too.
//! Which fields that covers is full of surprises; validate-mutate-autogen.md 2.3 and 6.4 fix them.

use ephor_expr::Str;
use ephor_expr::scalar::wildcard::Wildcard;

use super::control::Control;
use super::evaluate::{CompileError, Finding};
use super::pod::{Container, Pod};
use super::standard::Version;
use super::violation::{FieldError, FieldFault};
use crate::policy::PodSecurityExclusion;

/// A compiled `exclude` entry of a rule, or `podSecurity` entry of an exception.
#[derive(Debug, Clone)]
pub struct Exclusion {
    control: Control,
    images: Vec<Wildcard>,
    /// With `*` for each number.
    field: Option<Str>,
    values: Vec<Wildcard>,
}

impl Exclusion {
    /// Compiles an entry; fails if there is no control of its name.
    pub fn compile(entry: &PodSecurityExclusion) -> Result<Self, CompileError> {
        let wildcards =
            |texts: &Option<Vec<Str>>| texts.iter().flatten().map(|text| Wildcard::new(text)).collect::<Vec<_>>();
        Ok(Exclusion {
            control: Control::named(&entry.control_name)
                .ok_or_else(|| CompileError::UnknownControl(entry.control_name.clone()))?,
            images: wildcards(&entry.images),
            field: entry.restricted_field.clone().filter(|field| !field.is_empty()),
            values: wildcards(&entry.values),
        })
    }

    /// Removes from `findings` what this entry covers, and findings with nothing left.
    pub(super) fn apply(&self, pod: &Pod<'_>, version: Version, findings: &mut Vec<Finding>) {
        if !findings.iter().any(|finding| finding.check.control == Some(self.control)) {
            return;
        }
        let reduced = self.reduce(pod);
        findings.retain_mut(|finding| {
            if finding.check.control != Some(self.control) {
                return true;
            }
            for covered in finding.check.run(&reduced, version).errors.iter().filter(|error| self.covers(error)) {
                let errors = &mut finding.violations.errors;
                if let Some(i) = errors.iter().position(|error| self.is_same(error, covered)) {
                    errors.swap_remove(i);
                }
            }
            !finding.violations.errors.is_empty()
        });
    }

    /// The Pod on which the checks run again: with images, nothing but the containers of those images; without, all
    /// of the Pod but its containers, and a bare one instead.
    fn reduce<'v>(&self, pod: &Pod<'v>) -> Pod<'v> {
        if self.images.is_empty() {
            return Pod { containers: vec![Container::default()], ..pod.clone() };
        }
        let chosen = |container: &&Container<'v>| self.images.iter().any(|image| image.matches(container.image));
        Pod { containers: pod.containers.iter().filter(chosen).cloned().collect(), ..Pod::default() }
    }

    fn covers(&self, error: &FieldError) -> bool {
        let field_fits = self.field.as_ref().is_none_or(|field| without_numbers(&error.field) == *field);
        field_fits
            && match &error.fault {
                FieldFault::Required => true,
                FieldFault::Forbidden(value) => {
                    self.values.is_empty() || value.all(|text| self.values.iter().any(|w| w.matches(text)))
                }
            }
    }

    /// Whether a violation found again counts as that of the first run.
    ///
    /// Upstream: without images any container will do, and list indices never count.
    fn is_same(&self, first: &FieldError, again: &FieldError) -> bool {
        (self.images.is_empty() || first.container == again.container)
            && without_numbers(&first.field) == without_numbers(&again.field)
    }
}

/// `field` with `*` for each run of digits.
fn without_numbers(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut in_number = false;
    for c in field.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !in_number {
            out.push('*');
        }
        in_number = c.is_ascii_digit();
    }
    out
}
