//! `ClusterPolicy`, `Policy` and the policies of `policies.kyverno.io`.

use ephor_engine::check::check_update;
use ephor_engine::compile::{POLICIES_GROUP, compile};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::policy::{Operation, Policy, ProgramKind};
use ephor_expr::Value;
use ephor_expr::value::{Path, decode, decode_rest};
use ephor_runtime::decision::{AdmissionRequest, Answer};

use super::{PolicyAdmission, accounts, definitions, is_of_cel, kinds, match_conditions, needs, text};

/// Everything about a policy that is created or changed.
pub(super) fn check(host: &PolicyAdmission, request: &AdmissionRequest, document: &Value) -> Answer {
    let mut findings = compile(document).findings;
    if is_of_cel(document) {
        // A policy that is accepted and then not carried out would be a silent pass.
        let kind = document.str_at(&["kind"]).unwrap_or_default();
        let kind_of_program = ProgramKind::parse(kind);
        let deletes =
            matches!(kind_of_program, Some(ProgramKind::DeletingPolicy | ProgramKind::NamespacedDeletingPolicy));
        if deletes && document.at(&["spec", "matchConstraints"]).is_none_or(Value::is_null) {
            // On the command line such a policy judges any JSON value; a cluster would have to delete everything.
            let text = "Required value: a matchConstraints with at least one resource rule is required";
            let path = Path::root().keys(&["spec", "matchConstraints"]);
            findings.retain(Diagnostic::is_error);
            findings.push(Diagnostic::error("cel-policy", path, text));
        }
        if kind_of_program.is_some_and(|kind| !kind.is_carried_out()) {
            let text = format!("kind `{kind}` of `{POLICIES_GROUP}` is not supported yet");
            findings = vec![Diagnostic::error("not-supported", Path::root().key("kind"), text)];
        }
        return text::answer(&findings, document);
    }
    if let (Some(policy), _) = decode_rest::<Policy>(document) {
        if request.operation == Operation::Update
            && let Ok(old) = decode::<Policy>(&request.old_object)
        {
            findings.extend(check_update(&old, &policy));
        }
        match definitions::discovery(&*host.cluster, &host.waiting, &policy) {
            Ok(discovery) => {
                kinds::check(&policy, &discovery, &mut findings);
                // Permissions are asked for one by one, which is not worth it for a policy that is refused anyway.
                if !findings.iter().any(Diagnostic::is_error) {
                    match_conditions::check(&policy, &*host.cluster, &mut findings);
                    let needs = needs::of_policy(&policy, &host.accounts, &discovery);
                    accounts::check(&*host.cluster, &needs, &mut findings);
                    findings.extend(needs::unchecked(&policy, &host.accounts));
                }
            }
            Err(error) => {
                let message = format!("kinds and permissions were not checked: {error}");
                findings.push(Diagnostic::warning("no-discovery", Path::root(), message));
            }
        }
    }
    text::answer(&findings, document)
}
