//! `PolicyException`.

use ephor_cluster::Cluster;
use ephor_engine::check::check_exception;
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::exceptions::Exception;
use ephor_expr::Value;
use ephor_expr::value::Path;
use ephor_runtime::decision::Answer;
use ephor_runtime::kinds::misspelt_kinds;
use ephor_runtime::policies::ExceptionScope;

use super::{is_of_cel, text};

/// Refuses what cannot be an exception, and warns of one that does not count.
pub(super) fn check(cluster: &dyn Cluster, document: &Value, namespace: &str, scope: &ExceptionScope) -> Answer {
    let compiled = Exception::compile(document);
    let asks = compiled.as_ref().is_ok_and(Exception::asks);
    let mut findings = compiled.err().unwrap_or_default();
    if !is_of_cel(document) {
        findings.extend(check_exception(document));
        // Without discovery there is only less to warn of.
        findings.extend(cluster.discovery().iter().flat_map(|served| misspelt_kinds(document, served)));
    }
    if asks && *scope == ExceptionScope::Everywhere {
        let at = Path::root().keys(&["spec", "matchConditions"]);
        let message = "where every namespace may have exceptions, their conditions read nothing but the request";
        findings.push(Diagnostic::error("exception-scope", at, message));
    }
    let why = match scope {
        ExceptionScope::Disabled => Some("PolicyException resources would not be processed until it is enabled."),
        ExceptionScope::Namespace(own) if own.is_empty() => Some("The exceptionNamespace flag is not set"),
        ExceptionScope::Namespace(own) if own != namespace => {
            Some("PolicyException resource namespace must match the defined namespace.")
        }
        ExceptionScope::Namespace(_) | ExceptionScope::Everywhere => None,
    };
    findings.extend(why.map(|why| Diagnostic::warning("exception-scope", Path::root(), why)));
    if *scope == ExceptionScope::Everywhere {
        foreign(document, namespace, &mut findings);
    }
    text::answer(&findings, document)
}

/// Warns of Policies that an exception of this namespace cannot be about.
fn foreign(document: &Value, namespace: &str, findings: &mut Vec<Diagnostic>) {
    let exceptions = document.at(&["spec", "exceptions"]).and_then(Value::as_array).unwrap_or_default();
    for (i, exception) in exceptions.iter().enumerate() {
        if let Some((other, _)) = exception.str_at(&["policyName"]).and_then(|name| name.split_once('/'))
            && other != namespace
        {
            let at = Path::root().keys(&["spec", "exceptions"]).index(i).key("policyName");
            let message = format!("an exception of namespace `{namespace}` does not count for a Policy of `{other}`");
            findings.push(Diagnostic::warning("exception-scope", at, message));
        }
    }
}
