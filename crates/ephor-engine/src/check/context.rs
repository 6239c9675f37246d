//! Context entries. That each has a name and exactly one source is reported where they are compiled.

use ephor_expr::value::Path;

use crate::diagnostic::Diagnostic;
use crate::policy::{ContextEntry, Policy, PolicyKind};

/// Names that mean something already; with a `.` behind them too.
const RESERVED: [&str; 6] =
    ["images", "request", "serviceAccountName", "serviceAccountNamespace", "element", "elementIndex"];

/// Checks the entries of a list at `path`.
pub(super) fn check(policy: &Policy, entries: Option<&Vec<ContextEntry>>, path: &Path, found: &mut Vec<Diagnostic>) {
    for (i, entry) in entries.into_iter().flatten().enumerate() {
        let at = path.index(i);
        let first = entry.name.split('.').next().unwrap_or_default();
        if RESERVED.contains(&first) {
            let message = format!("context entry name `{}` is reserved", entry.name);
            found.push(Diagnostic::error("reserved-name", at.key("name"), message));
        }
        if let Some(variable) = &entry.variable {
            let at = at.key("variable");
            if variable.value.is_none() && variable.jmes_path.is_none() {
                found.push(Diagnostic::error("variable", at.clone(), "a variable needs `value` or `jmesPath`"));
            }
            if variable.default.is_some() && variable.jmes_path.is_none() {
                let message = "`default` is for when the `jmesPath` fails, and there is none";
                found.push(Diagnostic::error("variable", at.key("default"), message).at_key());
            }
        }
        if let Some(map) = &entry.config_map {
            let at = at.key("configMap");
            if map.name.is_empty() {
                found.push(Diagnostic::error("config-map", at.clone(), "a configMap entry needs a `name`"));
            }
            let namespace = map.namespace.as_deref().unwrap_or_default();
            if namespace.is_empty() {
                found.push(Diagnostic::error("config-map", at.clone(), "a configMap entry needs a `namespace`"));
            }
            let own = policy.metadata.namespace.as_deref().unwrap_or("default");
            let literal = !namespace.contains("{{");
            if policy.kind == PolicyKind::Policy && !namespace.is_empty() && literal && namespace != own {
                let message = format!("a Policy of namespace `{own}` may not read ConfigMaps in `{namespace}`");
                found.push(Diagnostic::error("foreign-namespace", at.key("namespace"), message));
            }
        }
        if entry.api_call.as_ref().is_some_and(|call| call.service.is_some()) && policy.kind == PolicyKind::Policy {
            let message = "a namespaced Policy may not call services";
            found.push(Diagnostic::error("foreign-call", at.keys(&["apiCall", "service"]), message).at_key());
        }
    }
}
