//! What is wrong with the exclusions of a policy or an exception.

use ephor_expr::Str;
use ephor_expr::scalar::nearest::nearest;

use super::control::{Control, ImageRule};
use super::standard::Level;
use crate::policy::PodSecurityExclusion;

/// A fault in one entry of a list of exclusions. Prints without the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct ExclusionProblem {
    /// The entry.
    pub index: usize,
    /// What is wrong with it.
    pub fault: ExclusionFault,
}

/// What is wrong with an exclusion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExclusionFault {
    /// There is no such control.
    #[error("unknown control `{name}`")]
    UnknownControl {
        /// The name as written.
        name: Str,
        /// The control the author may have meant.
        nearest: Option<&'static str>,
    },
    /// The rule's level does not have the control.
    #[error("control `{}` is not part of the baseline level", .0.name())]
    NotInBaseline(Control),
    /// The control is one of containers.
    #[error("exclude.images must be specified for the container level control `{}`", .0.name())]
    ImagesRequired(Control),
    /// The control is one of whole Pods.
    #[error("exclude.images must not be specified for the pod level control `{}`", .0.name())]
    ImagesForbidden(Control),
    /// A field is let off for no values.
    #[error("values is required with restrictedField")]
    ValuesRequired,
    /// Values are let off in no field.
    #[error("restrictedField is required with values")]
    FieldRequired,
    /// The control never reports that field, so that the entry has no effect.
    #[error("control `{}` does not restrict the field `{field}`", .control.name())]
    UnknownField {
        /// The control.
        control: Control,
        /// The field as written.
        field: Str,
        /// The field the author may have meant.
        nearest: Option<String>,
    },
}

impl ExclusionFault {
    /// The key of the entry that is at fault.
    pub fn key(&self) -> &'static str {
        match self {
            ExclusionFault::UnknownControl { .. } | ExclusionFault::NotInBaseline(_) => "controlName",
            ExclusionFault::ImagesRequired(_) | ExclusionFault::ImagesForbidden(_) => "images",
            ExclusionFault::ValuesRequired => "values",
            ExclusionFault::FieldRequired | ExclusionFault::UnknownField { .. } => "restrictedField",
        }
    }

    /// Whether upstream refuses the policy for it; the rest is for a warning.
    pub fn is_refused(&self) -> bool {
        !matches!(self, ExclusionFault::UnknownField { .. })
    }
}

/// Examines exclusions: those of a rule at its `level`, or those of an exception, which has no level.
pub fn check_exclusions(level: Option<Level>, entries: &[PodSecurityExclusion]) -> Vec<ExclusionProblem> {
    let faults = entries.iter().enumerate().flat_map(|(index, entry)| {
        faults(level, entry).into_iter().map(move |fault| ExclusionProblem { index, fault })
    });
    faults.collect()
}

fn faults(level: Option<Level>, entry: &PodSecurityExclusion) -> Vec<ExclusionFault> {
    let Some(control) = Control::named(&entry.control_name) else {
        let nearest = nearest(&entry.control_name, Control::ALL.map(Control::name));
        return vec![ExclusionFault::UnknownControl { name: entry.control_name.clone(), nearest }];
    };
    let has_images = entry.images.as_ref().is_some_and(|images| !images.is_empty());
    let has_values = entry.values.as_ref().is_some_and(|values| !values.is_empty());
    let field = entry.restricted_field.as_ref().filter(|field| !field.is_empty());
    let mut faults = Vec::new();
    if level == Some(Level::Baseline) && control.restricted_only() {
        faults.push(ExclusionFault::NotInBaseline(control));
    }
    match control.images() {
        ImageRule::Required if !has_images => faults.push(ExclusionFault::ImagesRequired(control)),
        ImageRule::Forbidden if has_images => faults.push(ExclusionFault::ImagesForbidden(control)),
        _ => {}
    }
    match field {
        Some(_) if !has_values => faults.push(ExclusionFault::ValuesRequired),
        None if has_values => faults.push(ExclusionFault::FieldRequired),
        _ => {}
    }
    if let Some(field) = field.filter(|field| !control.knows_field(field)) {
        let known = control.fields();
        let nearest = nearest(field, known.iter().map(String::as_str)).map(str::to_owned);
        faults.push(ExclusionFault::UnknownField { control, field: field.clone(), nearest });
    }
    faults
}

#[cfg(test)]
mod tests {
    use ephor_expr::Value;
    use ephor_expr::value::decode;

    use super::*;

    fn faults_of(level: Option<Level>, entry: &str) -> Vec<String> {
        let entries: Vec<PodSecurityExclusion> = decode(&Value::from_json(&format!("[{entry}]")).unwrap()).unwrap();
        let problems = check_exclusions(level, &entries);
        problems.iter().map(|problem| format!("{}: {problem}", problem.fault.key())).collect()
    }

    #[test]
    fn faulty_exclusions_are_named() {
        let baseline = Some(Level::Baseline);
        for (level, entry, want) in [
            (baseline, r#"{"controlName":"Host Ports","images":["a"]}"#, ""),
            (baseline, r#"{"controlName":"Seccomp"}"#, ""),
            (
                baseline,
                r#"{"controlName":"Volume Types"}"#,
                "controlName: control `Volume Types` is not part of the baseline level",
            ),
            (Some(Level::Restricted), r#"{"controlName":"Volume Types"}"#, ""),
            (None, r#"{"controlName":"Running as Non-root"}"#, ""),
            (
                None,
                r#"{"controlName":"Capabilities"}"#,
                "images: exclude.images must be specified for the container level control `Capabilities`",
            ),
            (
                None,
                r#"{"controlName":"Sysctls","images":["a"]}"#,
                "images: exclude.images must not be specified for the pod level control `Sysctls`",
            ),
            (
                None,
                r#"{"controlName":"Host Namespaces","restrictedField":"spec.hostPID"}"#,
                "values: values is required with restrictedField",
            ),
            (
                None,
                r#"{"controlName":"Host Namespaces","values":["true"]}"#,
                "restrictedField: restrictedField is required with values",
            ),
            (
                None,
                r#"{"controlName":"AppArmor","values":["x"],
                    "restrictedField":"metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]"}"#,
                "",
            ),
            (None, r#"{"controlName":"Volume Types","restrictedField":"spec.volumes[*].nfs","values":["x"]}"#, ""),
        ] {
            assert_eq!(faults_of(level, entry).join("|"), want, "{entry}");
        }
    }

    #[test]
    fn misspelt_words_come_with_the_nearest() {
        let entries = [PodSecurityExclusion { control_name: "SELinx".into(), ..Default::default() }];
        let fault = &check_exclusions(None, &entries)[0].fault;
        assert!(matches!(fault, ExclusionFault::UnknownControl { nearest: Some("SELinux"), .. }), "{fault:?}");
        assert!(fault.is_refused());

        let entries = [PodSecurityExclusion {
            control_name: "Host Namespaces".into(),
            restricted_field: Some("spec.hostNetwrk".into()),
            values: Some(vec!["true".into()]),
            ..Default::default()
        }];
        let fault = &check_exclusions(None, &entries)[0].fault;
        assert!(
            matches!(fault, ExclusionFault::UnknownField { nearest: Some(field), .. } if field == "spec.hostNetwork"),
            "{fault:?}"
        );
        assert!(!fault.is_refused());
    }
}
